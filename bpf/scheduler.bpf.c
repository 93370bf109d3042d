// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A scheduler for the threads of cosched's programs: a queue per program, and a CPU that is handed to a named thread.
//
// Problem. A thread that waits at a barrier wants to give its CPU to a thread that has not arrived (Wu, Peng, Jin: "Time
// Donating Barrier", 2015, algorithm 3). With the kernel's own scheduler it can only leave its CPU to the next in the queue.
//
// Idea. sched_ext lets a BPF program schedule the threads of one class. sched_yield() ignores its arguments, so a waiter
// calls it with the number of a thread, and a kernel without this scheduler merely yields. Here, the named thread comes
// next on the waiter's CPU, with what is left of the waiter's slice and no more: a whole slice each time would let a program
// keep a CPU for ever. It must be queued and of the same program.
//
// Which program is next: the one that has used least by weight, as in fair queueing. A program that has waited does not get
// that time back, as it could shut out the others for as long. A program that *fills* comes only after all others. User
// space says how long that holds (turns_until), and says so again and again: where it is stuck, all programs are soon equal.
// Within a program, threads take turns in the order in which they came. A thread can have a slice of its own, such as one for
// its stage of a pipeline (Faithful Scheduling, sections III-C and V-E2). Of two threads of a program that compute, the one
// with the longer slice then has more of the program's time, as in the fixed-priority class of that paper.
//
// No thread waits for long: the kernel would end the scheduler (timeout_ms). A program with n queued threads gets a CPU at
// least every STARVING / n. A CPU that has had one program for SAME tries the others first, which may have threads that are
// bound to it. Slices are the shorter the more threads and programs share the CPUs.
//
// Slices end on time by a timer for each CPU. The kernel itself looks only at its ticks, which are 1 to 10 ms apart.
//
// The scheduler is loaded in partial mode: it has only threads of class SCHED_EXT. These run below all ordinary threads. An
// ordinary thread that takes a CPU leaves the thread that ran there on that CPU's own queue, where no other CPU sees it. That
// thread goes back to the front of its program's queue (cpu_release; from 7.1 on, the kernel does so). Most ordinary threads
// need a CPU for some microseconds. Then the displaced thread goes on there with the rest of its slice, if no other CPU has
// taken it.
//
// The kernel counts a thread that executes this program as one that may not change its CPU, also while it is enqueued from
// here. The flag that the loader adds (ENQ_MIGRATION_DISABLED, from 6.14 on) keeps it from putting such a thread back on the
// CPU's own queue with a slice of the kernel's.
//
// Membership is as in runstate.bpf.c: a value in the storage of a process' first thread. What it starts inherits it.

#include "sched_ext.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "scheduler.h"

#define STARVING 5000000000ULL
#define SAME 50000000ULL
#define LAG 200000000ULL /* so far behind the others may a program be that has waited, by weight */
#define MISSED 500000ULL /* after which idle CPUs look at the queues once more */
#define ROUND 2000000000ULL /* in which all threads of all programs are to have a slice */
#define MOST_SIBLINGS 4096 /* so many queued threads are looked at for a named one */
#define MOST_DISPLACED 8 /* and for a displaced one, which was put in front */
#define LEVELS 8

struct membership {
	__u32 program;
	__u32 arrived; /* in this round of its process: it waits at a barrier (BAPS, section 3.1) */
	__u32 round;   /* of a process' first thread: begins anew when all have arrived */
	__u32 unused;
	__u64 over;    /* of a process' first thread: when all had arrived, by its own clock */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct membership);
} members SEC(".maps");

/* A look at the queues for CPUs that may have missed a thread. */
struct missed {
	struct bpf_timer timer;
	__u32 has_timer;
	__u32 is_planned;
	__u32 wants_another;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct missed);
} misses SEC(".maps");

/* Slices of single threads, as user space asks for them; 0: that of the program. Each ends with its thread, and is not
 * inherited. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u32);
} slices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, PROGRAMS);
	__type(key, __u32);
	__type(value, struct program);
} programs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct control);
} control SEC(".maps");

/* What is on a CPU, or was last. */
struct cpu {
	struct bpf_timer timer;
	__u64 has_timer;
	__u64 since;    /* when its thread came, or its time was last charged; 0: none is on it */
	__u64 same;     /* since when it has had threads of one program only */
	__u64 slice;    /* that its thread had then */
	__u32 program;
	__u32 level;    /* of the PID namespace in which its thread named another */
	__u32 target;   /* the thread that is to be next; 0: none */
	__u32 any;      /* or any laggard */
	__u64 left;     /* of the slice, for that thread */
	__u32 handed;   /* kernel's number of the thread that was put next */
	__u32 process;  /* kernel's number of the process of the thread that named another */
	__u32 kicked;   /* its thread is to make room */
	__u32 displaced; /* kernel's number of the thread that an ordinary one displaced, and that is to be next */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CPUS);
	__type(key, __u32);
	__type(value, struct cpu);
} cpus SEC(".maps");

/* How far the programs have come, by weight: the use of the one that was served last. First of programs with others, then
 * of those that fill. */
__u64 virtual_now[2];

static struct program *program_at(__u32 program)
{
	return bpf_map_lookup_elem(&programs, &program);
}

static struct cpu *cpu_at(__u32 cpu)
{
	return bpf_map_lookup_elem(&cpus, &cpu);
}

static struct control *the_control(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&control, &key);
}

static struct membership *member(struct task_struct *task)
{
	struct membership *own = bpf_task_storage_get(&members, task, 0, 0);

	return own ? own : bpf_task_storage_get(&members, task->group_leader, 0, 0);
}

// The first is for threads that have put themselves into the class.
static __u32 program_of(struct task_struct *task)
{
	struct membership *own = member(task);

	return own && own->program < PROGRAMS ? own->program : 0;
}

// The storage of the first thread goes with it, such as when another thread executes a program.
static void keep_membership(struct task_struct *task, __u32 program)
{
	struct membership *own;

	if (!program || bpf_task_storage_get(&members, task, 0, 0))
		return;
	own = bpf_task_storage_get(&members, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (own)
		own->program = program;
}

static bool fills(struct program *program, struct control *all, __u64 now)
{
	return program->fills && now < all->turns_until;
}

static __u32 programs_of(struct control *all)
{
	return all->programs && all->programs < PROGRAMS ? all->programs : PROGRAMS;
}

static __u64 slice_of(struct task_struct *task, struct program *program, __u32 id, struct control *all, bool is_filler)
{
	__u32 *own = bpf_task_storage_get(&slices, task, 0, 0);
	__u64 threads = scx_bpf_dsq_nr_queued(id) / scx_bpf_nr_cpu_ids() + 1;
	__u64 most = ROUND / (threads * programs_of(all));
	__u64 slice = program->slice ? program->slice : DEFAULT_SLICE;

	if (own && *own)
		slice = *own;
	if (is_filler && slice > DEFAULT_SLICE)
		slice = DEFAULT_SLICE;
	if (most > LONGEST_SLICE)
		most = LONGEST_SLICE;
	if (slice > most)
		slice = most;
	return slice < SHORTEST_SLICE ? SHORTEST_SLICE : slice;
}

// What it has used by weight. A program that has waited is not far behind the others.
static __u64 vtime_of(struct program *program, bool is_filler)
{
	__u64 least = virtual_now[is_filler];

	if (least > LAG && program->vtime[is_filler] < least - LAG)
		program->vtime[is_filler] = least - LAG;
	return program->vtime[is_filler];
}

static bool starves(struct program *program, __u32 id, __u64 now)
{
	__u64 queued = scx_bpf_dsq_nr_queued(id);

	return queued && now > program->waits + STARVING / (queued + 1);
}

static __u64 by_weight(struct program *program, __u64 time)
{
	return time * DEFAULT_WEIGHT / (program->weight ? program->weight : DEFAULT_WEIGHT);
}

// Adds the time since it was last charged to what the CPU's program has used.
static void charge(struct cpu *cpu, struct control *all, __u64 now)
{
	struct program *program = program_at(cpu->program);
	__u64 time = now > cpu->since ? now - cpu->since : 0;

	if (!program || !cpu->since)
		return;
	__sync_fetch_and_add(&program->used, time);
	__sync_fetch_and_add(&program->vtime[fills(program, all, now)], by_weight(program, time));
	cpu->since = now;
}

SEC("struct_ops/select_cpu")
__s32 BPF_PROG(on_select, struct task_struct *task, __s32 previous, __u64 flags)
{
	bool idle = false;

	// It is not put on that CPU's own queue, where an ordinary thread that is faster would leave it.
	return scx_bpf_select_cpu_dfl(task, previous, flags, &idle);
}

// Ends the turn of a program that fills on a CPU where this thread may run.
static void displace(struct task_struct *task, struct control *all, __u64 now)
{
	__u32 count = scx_bpf_nr_cpu_ids(), i;

	bpf_for(i, 0, count) {
		struct cpu *cpu = cpu_at(i);
		struct program *program;

		if (!cpu)
			break;
		if (!cpu->since || cpu->kicked || !bpf_cpumask_test_cpu(i, task->cpus_ptr))
			continue;
		program = program_at(cpu->program);
		if (program && fills(program, all, now)) {
			cpu->kicked = 1;
			scx_bpf_kick_cpu(i, SCX_KICK_PREEMPT);
			break;
		}
	}
}

// An ordinary thread took this thread's CPU. Notes that it is to be next there, and returns what is left of its slice.
static __u64 note_displaced(struct task_struct *task, __u32 id, __u64 most)
{
	struct cpu *cpu = cpu_at(scx_bpf_task_cpu(task));

	// It may have been on its way to the CPU, and then has the whole slice.
	if (cpu && cpu->program == id)
		cpu->displaced = task->pid;
	return task->scx.slice && task->scx.slice < most ? task->scx.slice : most;
}

// A thread was queued while no CPU was idle. A CPU that went idle at that moment may have missed it: it had looked at the
// queues before, and was not known to be idle yet. All idle CPUs look once more.
static int on_missed(void *map, int *key, struct missed *missed)
{
	struct control *all = the_control();
	__u32 count = scx_bpf_nr_cpu_ids(), programs, i;
	bool waits = false;

	// Another thread may have come since this look was planned, and may still be on its way to its queue.
	missed->is_planned = missed->wants_another;
	missed->wants_another = 0;
	if (missed->is_planned && bpf_timer_start(&missed->timer, MISSED, 0))
		missed->is_planned = 0;
	if (!all)
		return 0;
	programs = programs_of(all);
	bpf_for(i, 0, programs) {
		if (scx_bpf_dsq_nr_queued(i)) {
			waits = true;
			break;
		}
	}
	if (!waits)
		return 0;
	bpf_for(i, 0, count) {
		if (scx_bpf_test_and_clear_cpu_idle(i))
			scx_bpf_kick_cpu(i, SCX_KICK_IDLE);
	}
	return 0;
}

static void plan_look(void)
{
	__u32 zero = 0;
	struct missed *missed = bpf_map_lookup_elem(&misses, &zero);

	if (!missed)
		return;
	if (missed->is_planned) {
		missed->wants_another = 1;
		return;
	}
	if (!missed->has_timer) {
		if (bpf_timer_init(&missed->timer, &misses, CLOCK_MONOTONIC))
			return;
		bpf_timer_set_callback(&missed->timer, on_missed);
		missed->has_timer = 1;
	}
	missed->is_planned = 1;
	if (bpf_timer_start(&missed->timer, MISSED, 0))
		missed->is_planned = 0;
}

SEC("struct_ops/enqueue")
void BPF_PROG(on_enqueue, struct task_struct *task, __u64 flags)
{
	__u32 id = program_of(task);
	struct program *program = program_at(id);
	struct control *all = the_control();
	__u64 now = bpf_ktime_get_ns();
	__u64 slice;
	bool is_filler;
	__s32 idle;

	if (!program || !all)
		return;
	is_filler = fills(program, all, now);
	vtime_of(program, is_filler);
	if (!scx_bpf_dsq_nr_queued(id))
		program->waits = now;
	slice = slice_of(task, program, id, all, is_filler);
	if (flags & SCX_ENQ_REENQ) {
		flags |= bpf_core_enum_value(enum scx_enq_flags, SCX_ENQ_HEAD);
		slice = note_displaced(task, id, slice);
	}
	insert(task, id, slice, flags);
	idle = scx_bpf_pick_idle_cpu(task->cpus_ptr, 0);
	if (task->migration_disabled)
		scx_bpf_kick_cpu(scx_bpf_task_cpu(task), SCX_KICK_IDLE);
	if (idle >= 0) {
		scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
		return;
	}
	plan_look();
	if (!is_filler)
		displace(task, all, now);
}

// Its number in the PID namespace at this level, which is the caller's; 0: it has none there.
static __u32 number_at(struct task_struct *task, __u32 level)
{
	struct pid *pid = task->thread_pid;
	struct upid upid;

	if (level >= LEVELS || level > BPF_CORE_READ(pid, level))
		return 0;
	bpf_core_read(&upid, sizeof(upid), &pid->numbers[level]);
	return upid.nr;
}

static bool may_run_on(struct task_struct *task, __s32 cpu)
{
	return bpf_cpumask_test_cpu(cpu, task->cpus_ptr) && !task->migration_disabled;
}

// Whether it has not arrived at its process' barrier: its BAPS is false.
static bool is_laggard(struct task_struct *task)
{
	struct membership *own = bpf_task_storage_get(&members, task, 0, 0);
	struct membership *first = bpf_task_storage_get(&members, task->group_leader, 0, 0);

	return !own || !first || own->arrived != first->round + 1;
}

// Whether it is the one that is to be next on a CPU.
static bool is_named(struct cpu *cpu, struct task_struct *task)
{
	if (cpu->displaced)
		return task->pid == cpu->displaced;
	if (cpu->any)
		return task->tgid == cpu->process && is_laggard(task);
	return number_at(task, cpu->level) == cpu->target;
}

// Puts the thread next that was displaced here, or that the last one here has named (algorithm 3, lines 4 to 9).
static bool hand_over(__s32 here, struct cpu *cpu)
{
	struct program *program = program_at(cpu->program);
	struct bpf_iter_scx_dsq it;
	struct task_struct *task;
	bool done = false;
	__u32 looked, most = cpu->displaced ? MOST_DISPLACED : MOST_SIBLINGS;

	if (!program)
		return false;
	if (!bpf_iter_scx_dsq_new(&it, cpu->program, 0)) {
		bpf_for(looked, 0, most) {
			task = bpf_iter_scx_dsq_next(&it);
			if (!task || done)
				break;
			if (!is_named(cpu, task))
				continue;
			if (!may_run_on(task, here)) {
				if (cpu->any)
					continue;
				break;
			}
			// A displaced thread is queued with what is left of its slice.
			if (!cpu->displaced)
				move_set_slice(&it, cpu->left);
			cpu->handed = cpu->displaced ? 0 : task->pid;
			done = move(&it, task, SCX_DSQ_LOCAL, 0);
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	if (!done)
		cpu->handed = 0;
	else if (!cpu->displaced)
		__sync_fetch_and_add(&program->handed_over, 1);
	cpu->target = cpu->any = cpu->displaced = 0;
	return done;
}

// Whether a displaced thread may go on before all others: not if its program fills, or another one has waited too long.
static bool may_go_on(struct cpu *cpu, struct control *all, __u64 now)
{
	struct program *program = program_at(cpu->program);
	__u32 count = programs_of(all), i;

	if (!program || fills(program, all, now))
		return false;
	bpf_for(i, 0, count) {
		struct program *other = program_at(i);

		if (!other || starves(other, i, now))
			return false;
	}
	return true;
}

// The program that is to be next, of those with queued threads that were not tried, and the present one.
// Without fillers where the present one only makes room for an equal one.
static __u32 choose(struct control *all, __u32 present, bool makes_room, __u64 *tried, __u64 now, bool *is_starving)
{
	__u32 best = PROGRAMS, count = programs_of(all), i;
	__u64 rank = ~0ULL;

	bpf_for(i, 0, count) {
		struct program *program = program_at(i);
		__u64 own, queued;
		bool is_filler, is_late;

		if (!program)
			break;
		queued = scx_bpf_dsq_nr_queued(i);
		if ((i != present && !queued) || tried[(i >> 6) & 3] >> (i & 63) & 1)
			continue;
		is_late = starves(program, i, now);
		is_filler = fills(program, all, now);
		if (makes_room && is_filler && !is_late)
			continue;
		own = is_late ? 0 : vtime_of(program, is_filler) | (__u64)is_filler << 63;
		if (own < rank) {
			rank = own;
			best = i;
			*is_starving = is_late;
		}
	}
	return best;
}

static void note_progress(struct program *program, bool is_filler)
{
	if (program->vtime[is_filler] > virtual_now[is_filler])
		virtual_now[is_filler] = program->vtime[is_filler];
}

static void set_slice(struct task_struct *task, __u64 slice)
{
	if (bpf_ksym_exists(scx_bpf_task_set_slice))
		scx_bpf_task_set_slice(task, slice);
	else
		task->scx.slice = slice;
}

static void start_timer(struct cpu *cpu);

SEC("struct_ops/dispatch")
void BPF_PROG(on_dispatch, __s32 here, struct task_struct *previous)
{
	struct control *all = the_control();
	struct cpu *cpu = cpu_at(here);
	__u64 now = bpf_ktime_get_ns(), tried[4] = {};
	__u32 present = PROGRAMS, attempt;
	bool goes_on, makes_room;

	if (!all || !cpu)
		return;
	if (cpu->displaced && !may_go_on(cpu, all, now))
		cpu->displaced = 0;
	if ((cpu->target || cpu->any || cpu->displaced) && hand_over(here, cpu))
		return;
	goes_on = previous && previous->scx.flags & SCX_TASK_QUEUED && cpu->since;
	if (goes_on) {
		charge(cpu, all, now);
		present = cpu->program & (PROGRAMS - 1);
	}
	makes_room = goes_on && now > cpu->same + SAME;
	if (makes_room)
		tried[(present >> 6) & 3] |= 1ULL << (present & 63);
	bpf_for(attempt, 0, PROGRAMS) {
		bool is_starving = false;
		__u32 next = choose(all, present, makes_room, tried, now, &is_starving);
		struct program *program = program_at(next);

		if (!program)
			break;
		if (scx_bpf_dsq_nr_queued(next) && move_to_local(next)) {
			if (!is_starving && !makes_room)
				note_progress(program, fills(program, all, now));
			return;
		}
		if (next == present)
			break;
		tried[(next >> 6) & 3] |= 1ULL << (next & 63);
	}
	if (goes_on && previous) {
		struct program *program = program_at(present);

		if (!program)
			return;
		if (makes_room) {
			cpu->same = now;
			if (scx_bpf_dsq_nr_queued(present) && move_to_local(present))
				return;
		}
		// Its slice is over, and no other is to be next.
		note_progress(program, fills(program, all, now));
		cpu->slice = slice_of(previous, program, present, all, fills(program, all, now));
		set_slice(previous, cpu->slice);
		start_timer(cpu);
	}
}

// The slice is over, unless another thread has come in between, for which the timer was started anew.
static int on_time(void *map, int *key, struct cpu *cpu)
{
	if (cpu->since && bpf_ktime_get_ns() - cpu->since + 1000 >= cpu->slice)
		scx_bpf_kick_cpu(*key, SCX_KICK_PREEMPT);
	return 0;
}

static void start_timer(struct cpu *cpu)
{
	if (!cpu->has_timer) {
		bpf_timer_init(&cpu->timer, &cpus, CLOCK_MONOTONIC);
		bpf_timer_set_callback(&cpu->timer, on_time);
		cpu->has_timer = 1;
	}
	bpf_timer_start(&cpu->timer, cpu->slice, BPF_F_TIMER_CPU_PIN);
}

SEC("struct_ops/running")
void BPF_PROG(on_running, struct task_struct *task)
{
	__u32 id = program_of(task);
	struct program *program = program_at(id);
	struct cpu *cpu = cpu_at(scx_bpf_task_cpu(task));

	keep_membership(task, id);

	if (!program || !cpu)
		return;
	cpu->since = bpf_ktime_get_ns();
	if (cpu->program != id)
		cpu->same = cpu->since;
	cpu->slice = task->scx.slice;
	cpu->program = id;
	cpu->target = cpu->any = cpu->kicked = cpu->displaced = 0;
	program->waits = cpu->since;
	__sync_fetch_and_add(&program->starts, 1);
	if (cpu->handed && cpu->handed == task->pid) {
		__sync_fetch_and_add(&program->followed, 1);
		if (cpu->slice == cpu->left)
			__sync_fetch_and_add(&program->exact, 1);
	}
	cpu->handed = 0;
	if (cpu->slice != SCX_SLICE_INF)
		start_timer(cpu);
}

SEC("struct_ops/stopping")
void BPF_PROG(on_stopping, struct task_struct *task, bool runnable)
{
	struct cpu *cpu = cpu_at(scx_bpf_task_cpu(task));
	struct control *all = the_control();

	if (!cpu || !all)
		return;
	charge(cpu, all, bpf_ktime_get_ns());
	cpu->since = 0;
}

// time_donating_to: what is left of the slice goes to a thread of the same program. The kernel keeps account of slices at
// ticks and switches only, so the clock tells what is left.
static void donate(struct cpu *cpu, struct task_struct *from, __u32 target)
{
	struct program *program = program_at(cpu->program);
	__u64 used = bpf_ktime_get_ns() - cpu->since;

	if (!program || !cpu->since)
		return;
	__sync_fetch_and_add(&program->donations, 1);
	if (used >= cpu->slice)
		return;
	cpu->left = cpu->slice - used;
	cpu->level = BPF_CORE_READ(from, thread_pid, level);
	cpu->process = from->tgid;
	cpu->target = target;
	cpu->any = !target;
}

// update_barr_status: BAPS of the caller (section 4). A process' statuses are numbered by rounds, so that one store makes
// all of them false. A waiter may be preempted between its arrival and this call. If its round is over meanwhile, the call
// counts for nothing: the waiter would have arrived in the next round. Both times are of the process' clock, which may be
// another one than the kernel's (time namespaces).
static void set_status(struct task_struct *from, bool all_arrived, __u64 time)
{
	struct membership *first = bpf_task_storage_get(&members, from->group_leader, 0, 0);
	struct membership *own = bpf_task_storage_get(&members, from, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	__u32 round;

	if (!first || !own)
		return;
	own->program = first->program;
	if (all_arrived) {
		// Read in the opposite order: a thread that finds the new round finds its time as well.
		if (time > first->over)
			first->over = time;
		__sync_fetch_and_add(&first->round, 1);
		return;
	}
	round = *(volatile __u32 *)&first->round;
	if (time >= *(volatile __u64 *)&first->over)
		own->arrived = round + 1;
}

SEC("struct_ops/yield")
bool BPF_PROG(on_yield, struct task_struct *from, struct task_struct *to)
{
	struct cpu *cpu = cpu_at(scx_bpf_task_cpu(from));
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(from);
	__u64 call, argument;

	if (!cpu)
		return false;
	call = SYSCALL_ARGUMENT_1((struct pt_regs *)regs);
	argument = SYSCALL_ARGUMENT_2((struct pt_regs *)regs);
	if (call == ARRIVED || call == ALL_ARRIVED) {
		set_status(from, call == ALL_ARRIVED, argument);
		return false; // it keeps its CPU
	}
	if (call == DONATE)
		donate(cpu, from, argument);
	set_slice(from, 0);
	return false;
}

// What a process starts is of its program.
SEC("struct_ops/init_task")
__s32 BPF_PROG(on_birth, struct task_struct *task, struct scx_init_task_args *args)
{
	struct membership *creator, *own;

	if (!args->fork)
		return 0;
	creator = member(bpf_get_current_task_btf());
	if (!creator)
		return 0;
	own = bpf_task_storage_get(&members, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (own)
		own->program = creator->program;
	return 0;
}

// An ordinary thread takes this CPU: the threads on its own queue go back to those of their programs.
SEC("struct_ops/cpu_release")
void BPF_PROG(on_release, __s32 cpu, struct scx_cpu_release_args *args)
{
	if (bpf_ksym_exists(scx_bpf_reenqueue_local))
		scx_bpf_reenqueue_local();
}

// Without these two, the kernel ends the scheduler when a CPU comes or goes.
SEC("struct_ops/cpu_online")
void BPF_PROG(on_online, __s32 cpu)
{
}

SEC("struct_ops/cpu_offline")
void BPF_PROG(on_offline, __s32 cpu)
{
}

SEC("struct_ops.s/init")
__s32 BPF_PROG(on_init)
{
	__u32 i;

	if (scx_bpf_nr_cpu_ids() > CPUS)
		return -E2BIG;
	bpf_for(i, 0, PROGRAMS) {
		__s32 error = scx_bpf_create_dsq(i, -1);

		if (error)
			return error;
	}
	return 0;
}

SEC("struct_ops/exit")
void BPF_PROG(on_exit, struct scx_exit_info *info)
{
	struct control *all = the_control();

	if (all)
		all->stopped = BPF_CORE_READ(info, kind);
}

SEC(".struct_ops.link")
struct sched_ext_ops cosched = {
	.select_cpu = (void *)on_select,
	.enqueue = (void *)on_enqueue,
	.dispatch = (void *)on_dispatch,
	.running = (void *)on_running,
	.stopping = (void *)on_stopping,
	.yield = (void *)on_yield,
	.init_task = (void *)on_birth,
	.cpu_release = (void *)on_release,
	.cpu_online = (void *)on_online,
	.cpu_offline = (void *)on_offline,
	.init = (void *)on_init,
	.exit = (void *)on_exit,
	.flags = SCX_OPS_SWITCH_PARTIAL | SCX_OPS_ENQ_LAST,
	.timeout_ms = 10000,
	.name = "cosched",
};

char LICENSE[] SEC("license") = "Dual BSD/GPL";
