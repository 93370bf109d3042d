// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Whether the threads of given programs are on a CPU, wait for one, or sleep: a table that the programs themselves read.
//
// Problem. A thread that waits at a barrier has to know whether a thread that has not come yet is
// running: only then does spinning pay. A system call per look would cost more than most waits are
// long.
//
// Idea. There is one word per thread, in an array that programs map into their memory, read-only.
// The word is at the thread's number modulo the size of the table. A word names its thread, so no
// thread has to register. Two threads with one place only make each other unknown. Words are whole:
// no reader ever sees half a change.
//
// Every word is written under the lock of a run queue, that of the CPU that its thread leaves, comes to, or is queued at; so
// plain stores suffice, and changes are in order. That is why wake-ups are seen at `sched_wakeup`, not at `sched_waking`:
// there the thread may still be on its way to sleep on another CPU, and that switch would then say "blocked" last, of a
// thread that is queued by then. What it costs: a wake-up that goes to another CPU by its wake list is seen when that CPU
// takes it from there, some microseconds later.
//
// Membership is as in monitor.bpf.c: a value in the storage of a process' first thread, inherited by forked processes.

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "number.h"

#define ENTRIES 65536 // crates/page/src/threads.rs has the same, and the layout of a word
#define CPU_SHIFT 32
#define CPU_MASK 0xffffULL
#define STATE_SHIFT 48

enum state {
	RUNNING = 1,
	PREEMPTED = 2, // or gave way
	BLOCKED = 3,   // asleep, stopped or frozen
	WOKEN = 4,     // and without a CPU so far
};

// Its number is not known yet; it has none, or has ended, and nothing is written of it.
#define NOT_YET 0
#define NO_THREAD 0xffffffffU

struct membership {
	__u32 thread; // its number in user space's PID namespace
	__u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct membership);
} members SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ENTRIES);
	__type(key, __u32);
	__type(value, __u64);
} threads SEC(".maps");

static void name(struct membership *member, struct task_struct *task)
{
	__u32 thread = number(task);

	member->thread = thread ? thread : NO_THREAD;
}

// For nearly every task of the machine this is all that happens: nothing here may cost much.
static struct membership *find(struct task_struct *task)
{
	struct membership *member;

	// A task is a member only if it or its leader has storage. A look at the pointers is
	// cheaper than to request the storage.
	if (!task->bpf_storage && !task->group_leader->bpf_storage)
		return 0;
	member = bpf_task_storage_get(&members, task, 0, 0);
	if (!member) {
		if (!bpf_task_storage_get(&members, task->group_leader, 0, 0))
			return 0;
		member = bpf_task_storage_get(&members, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (!member)
			return 0;
	}
	if (member->thread == NOT_YET)
		name(member, task);
	return member->thread == NO_THREAD ? 0 : member;
}

static __u64 *word_of(struct membership *member)
{
	__u32 place = member->thread % ENTRIES;

	return bpf_map_lookup_elem(&threads, &place);
}

static void put(__u64 *word, struct membership *member, __u64 cpu, __u64 state)
{
	*(volatile __u64 *)word = member->thread | (cpu & CPU_MASK) << CPU_SHIFT | state << STATE_SHIFT;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	struct membership *leaving = find(prev), *coming = find(next);
	__u64 cpu = bpf_get_smp_processor_id(), *word;

	if (leaving && (word = word_of(leaving)))
		put(word, leaving, cpu, preempted || prev->__state == 0 ? PREEMPTED : BLOCKED);
	if (coming && (word = word_of(coming)))
		put(word, coming, cpu, RUNNING);
	return 0;
}

// The CPU with the queue that a task is in, or else the one that this runs on.
static __u64 queue_of(struct task_struct *task)
{
	return bpf_core_field_exists(task->thread_info.cpu) ? task->thread_info.cpu : bpf_get_smp_processor_id();
}

// A thread that is woken before it has left its CPU goes on running.
static int woken(struct task_struct *task)
{
	struct membership *member = find(task);
	__u64 *word;

	if (!member || !(word = word_of(member)))
		return 0;
	if ((__u32)*word != member->thread || *word >> STATE_SHIFT != RUNNING)
		put(word, member, queue_of(task), WOKEN);
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task)
{
	return woken(task);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_birth, struct task_struct *task)
{
	return woken(task);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	if (child->tgid != parent->tgid && bpf_task_storage_get(&members, parent->group_leader, 0, 0))
		bpf_task_storage_get(&members, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	return 0;
}

static void forget(struct membership *member)
{
	__u64 *word = member->thread == NOT_YET || member->thread == NO_THREAD ? 0 : word_of(member);

	if (word && (__u32)*word == member->thread)
		*(volatile __u64 *)word = 0;
}

// A thread that is not the first of its process and executes another program gets the number of the first.
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	struct membership *member = bpf_task_storage_get(&members, task, 0, 0);

	if (member) {
		forget(member);
		name(member, task);
	}
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct membership *member = bpf_task_storage_get(&members, task, 0, 0);

	if (member) {
		forget(member);
		member->thread = NO_THREAD;
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
