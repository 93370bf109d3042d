// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// What the threads of given programs do: run, wait for a CPU, wait for a lock, or sleep. Also which
// thread took a CPU from which other thread.
//
// Problem. Time at locks and preemptions could be had from events, but a lock storm has a million of them a second; and
// the tracepoints of the futex call put every process of the machine on the slow system-call path.
//
// Idea. Everything is seen at context switches. A thread that gives up its CPU is `current` there, so its saved
// registers tell which system call it is in: if that is futex, it waits for a lock. Each thread has a record in an array
// that user space maps into its memory; nothing is ever sent. A record is written only by the CPU that switches its
// thread, or wakes it while it is off its CPU.
//
// Membership is a value in the storage of a process' first thread. User space writes it by pidfd, so no number of a
// process is ever compared, whatever PID namespaces there are. Forked processes inherit it; threads find it at their
// leader.

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "monitor.h"
#include "number.h"

#define EXPIRY_WITHOUT_SLICE_NS 3000000ULL // where the kernel does not tell a thread's slice (before Linux 6.6)

// Set before loading: how many threads have room at once.
const volatile __u32 room = RECORDS;

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct membership);
} members SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, RECORDS);
	__type(key, __u32);
	__type(value, struct record);
} records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counts);
} counts SEC(".maps");

// Records of ended threads with last figures that have been read.
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, RECORDS);
	__type(value, __u32);
} returned SEC(".maps");

// The group of each CPU, if a caller requests transfers by distance.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CPUS);
	__type(key, __u32);
	__type(value, __u32);
} groups SEC(".maps");

// Whether a caller requests for which locks threads wait.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} wanted SEC(".maps");

static struct record *record_of(struct membership *member)
{
	__u32 slot = member->slot;

	return slot == NO_SLOT ? 0 : bpf_map_lookup_elem(&records, &slot);
}

// A record is being written while its version is odd.
static void begin(struct record *record)
{
	__sync_fetch_and_add(&record->version, 1);
}

static void end(struct record *record)
{
	__sync_fetch_and_add(&record->version, 1);
}

// What a thread left behind that had the record before. Everything but the version.
static void forget(struct record *record)
{
	__builtin_memset(&record->program, 0, sizeof(*record) - offsetof(struct record, program));
}

// A thread that is seen for the first time gets a record if its process is a member.
static struct record *welcome(struct task_struct *task)
{
	struct task_struct *leader = task->group_leader;
	struct membership *process, *member;
	struct record *record;
	struct counts *count;
	__u32 slot, only = 0;

	process = bpf_task_storage_get(&members, leader, 0, 0);
	if (!process)
		return 0;
	member = bpf_task_storage_get(&members, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	count = bpf_map_lookup_elem(&counts, &only);
	if (!member || !count)
		return 0;
	if (bpf_map_pop_elem(&returned, &slot))
		slot = count->used < room ? __sync_fetch_and_add(&count->used, 1) : NO_SLOT;
	member->program = process->program;
	member->slot = slot < RECORDS ? slot : NO_SLOT;
	record = record_of(member);
	if (!record) {
		__sync_fetch_and_add(&count->lost, 1);
		return 0;
	}
	begin(record);
	forget(record);
	record->program = process->program;
	record->process = number(leader);
	record->thread = number(task);
	record->cpu = NO_CPU;
	record->waker = NO_CPU;
	record->since = bpf_ktime_get_ns();
	end(record);
	return record;
}

// For nearly every task of the machine this is all that happens: nothing here may cost much.
static struct record *find(struct task_struct *task)
{
	struct membership *member;

	// A task is a member only if it or its leader has storage. A look at the pointers is
	// cheaper than to request the storage.
	if (!task->bpf_storage && !task->group_leader->bpf_storage)
		return 0;
	member = bpf_task_storage_get(&members, task, 0, 0);
	if (member && member->slot != NOT_YET)
		return record_of(member);
	return welcome(task);
}

static bool is_lock(__u32 state)
{
	return state >= AT_MUTEX && state <= AT_BARRIER;
}

// A thread has waited so long at its lock.
static void waited(struct record *record, __u64 time)
{
	struct lock_wait *place = &record->locks[0];
	__u32 only = 0, *is_wanted = bpf_map_lookup_elem(&wanted, &only);

	if (!is_wanted || !*is_wanted)
		return;
	for (int i = 0; i < LOCKS; i++) {
		struct lock_wait *other = &record->locks[i];

		if (other->lock == record->lock) {
			other->time += time;
			return;
		}
		if (other->time < place->time)
			place = other;
	}
	place->lock = record->lock;
	place->taken = place->time;
	place->time += time;
}

// A thread comes to a lock, and has to wait.
static void arrives(struct record *record, __u64 now)
{
	__u64 window = now / WINDOW_NS;
	struct arrival *arrival = &record->arrivals[window & 1];

	if (arrival->window != window) {
		arrival->window = window;
		arrival->at = now;
	}
}

// The time since the last change counts for what the thread did until now.
static void change(struct record *record, __u32 state, __u64 now)
{
	__u32 was = record->state;

	if (was < STATES && now > record->since) {
		record->time[was] += now - record->since;
		if (is_lock(was))
			waited(record, now - record->since);
	}
	if (is_lock(state))
		arrives(record, now);
	record->state = state;
	record->since = now;
}

// What a thread that gives up its CPU waits for.
static __u32 waits_for(struct task_struct *task, unsigned int state, struct record *record)
{
	struct pt_regs *regs;
	__u64 op, value;

	if (state & (STOPPED_STATES) || task->jobctl & JOBCTL_TRAP_FREEZE)
		return STOPPED;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	if (SYSCALL_NUMBER(regs) != SYS_futex)
		return SLEEPING;
	op = SYSCALL_ARGUMENT_2(regs) & FUTEX_CMD_MASK;
	value = SYSCALL_ARGUMENT_3(regs);
	record->lock = SYSCALL_ARGUMENT_1(regs);
	// The C library's mutexes sleep while their word is 2, whatever the call; its condition variables, semaphores and
	// read-write locks use the call with a bit set; what is left are barriers and the runtimes' own ways of waiting.
	if ((__u32)value == CONTENDED || op == FUTEX_LOCK_PI || op == FUTEX_LOCK_PI2)
		return AT_MUTEX;
	return op == FUTEX_WAIT_BITSET ? AT_CONDITION : AT_BARRIER;
}

// The CPU was taken from a thread that would have gone on.
static void taken(struct record *record, struct task_struct *prev, struct record *next, __u64 now)
{
	__u64 slice = EXPIRY_WITHOUT_SLICE_NS;

	if (bpf_core_field_exists(prev->se.slice))
		slice = prev->se.slice;
	record->involuntary++;
	if (now - record->since >= slice)
		record->expired++;
	else if (next && next->program == record->program)
		record->by_sibling++;
}

static __u32 group_of(__u32 cpu)
{
	__u32 *group = bpf_map_lookup_elem(&groups, &cpu);

	return group ? *group : 0;
}

// A thread that a sibling has woken at a lock comes to a CPU: the lock has come from there, as far as can be told.
static void transferred(struct record *record, __u32 cpu)
{
	if (record->waker == NO_CPU)
		return;
	record->transfers++;
	if (group_of(record->waker) != group_of(cpu))
		record->across++;
	record->waker = NO_CPU;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	struct record *leaving = find(prev), *coming = find(next);
	__u64 now = 0;

	if (leaving) {
		unsigned int state = prev->__state;

		now = bpf_ktime_get_ns();
		begin(leaving);
		if (preempted || state == 0) {
			taken(leaving, prev, coming, now);
			change(leaving, RUNNABLE, now);
		} else {
			leaving->voluntary++;
			change(leaving, waits_for(prev, state, leaving), now);
		}
		end(leaving);
	}
	if (coming) {
		__u32 cpu = bpf_get_smp_processor_id();

		if (!now)
			now = bpf_ktime_get_ns();
		begin(coming);
		if (coming->cpu != cpu && coming->cpu != NO_CPU)
			coming->migrations++;
		coming->cpu = cpu;
		transferred(coming, cpu);
		change(coming, RUNNING, now);
		end(coming);
	}
	return 0;
}

// Which thread wakes another one at a lock: only here it is surely `current`. Attached only if a
// caller requests transfers.
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	struct record *record = find(task), *waker;
	struct pt_regs *regs;

	if (!record || !is_lock(record->state))
		return 0;
	waker = find(bpf_get_current_task_btf());
	if (!waker || waker->program != record->program)
		return 0;
	// A timer that ends a wait interrupts whatever thread is running at that moment.
	regs = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	if (SYSCALL_NUMBER(regs) == SYS_futex)
		record->waker = bpf_get_smp_processor_id();
	return 0;
}

// At `sched_waking` the thread may still be on its way to sleep; from here on it only lacks a CPU.
static int woken(struct task_struct *task)
{
	struct record *record = find(task);

	if (record && record->state != RUNNING && record->state != RUNNABLE) {
		begin(record);
		record->waits[record->state < STATES ? record->state : SLEEPING]++;
		change(record, RUNNABLE, bpf_ktime_get_ns());
		end(record);
	}
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
	struct membership *process, *member;

	if (child->tgid == parent->tgid)
		return 0;
	process = bpf_task_storage_get(&members, parent->group_leader, 0, 0);
	if (!process)
		return 0;
	member = bpf_task_storage_get(&members, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!member)
		return 0;
	member->program = process->program;
	member->slot = NOT_YET;
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct membership *member = bpf_task_storage_get(&members, task, 0, 0);
	struct record *record = member && member->slot != NOT_YET ? record_of(member) : 0;

	if (record) {
		begin(record);
		change(record, ENDED, bpf_ktime_get_ns());
		end(record);
		member->slot = NO_SLOT;
	}
	return 0;
}

// A clock that ticks on every CPU while user time is wanted. Ticks only come to threads that run, and on their own CPU.
SEC("perf_event")
int on_tick(struct bpf_perf_event_data *tick)
{
	struct membership *member = bpf_task_storage_get(&members, bpf_get_current_task_btf(), 0, 0);
	struct record *record = member && member->slot != NOT_YET ? record_of(member) : 0;

	if (!record)
		return 0;
	if (IN_USER_MODE(tick->regs))
		record->user_ticks++;
	else
		record->kernel_ticks++;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
