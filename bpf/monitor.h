/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What monitor.bpf.c writes and user space reads; crates/linux/src/monitor/record.rs says the same in Rust. */
#ifndef MONITOR_H
#define MONITOR_H

#define RECORDS 32768
#define NO_SLOT 0xffffffffU
#define NOT_YET 0xfffffffeU
#define NO_CPU 0xffffffffU
#define CPUS 1024
#define LOCKS 4               /* so many locks are counted for each thread */
#define WINDOW_NS 100000000ULL /* arrivals at locks are told by windows of this length */

/* What a thread does. */
enum state {
	SLEEPING = 0,     /* for something that is no lock: a file, a timer, another process */
	RUNNING = 1,
	RUNNABLE = 2,     /* would run, has no CPU */
	AT_MUTEX = 3,
	AT_CONDITION = 4, /* condition variables, semaphores, read-write locks, joins */
	AT_BARRIER = 5,   /* barriers, and whatever else waits by a plain futex call */
	STOPPED = 6,      /* frozen, or stopped by a signal */
	STATES = 7,
	ENDED = 7,
};

struct membership {
	__u32 program; /* user space's number for it */
	__u32 slot;    /* of the thread's record; NOT_YET, NO_SLOT */
};

struct counts {
	__u32 used; /* records that were ever handed out */
	__u32 unused;
	__u64 lost; /* threads for which there was none */
};

/* How long a thread waited at a lock. Where there is no room, the lock with the least time is forgotten, and the new one
 * takes over its time: so whatever it waits for most is there in the end, however many others there are. */
struct lock_wait {
	__u64 lock;  /* address; 0: nothing here yet */
	__u64 time;
	__u64 taken; /* of this, what it took over */
};

/* The first time in a window that a thread came to a lock and had to wait. */
struct arrival {
	__u64 window; /* its number: CLOCK_MONOTONIC / WINDOW_NS */
	__u64 at;
};

/* One thread. Times are nanoseconds of CLOCK_MONOTONIC. */
struct record {
	__u32 version;      /* odd while it is written */
	__u32 program;
	__u32 process;      /* numbers of process and thread in user space's PID namespace */
	__u32 thread;
	__u32 state;
	__u32 cpu;          /* the last one */
	__u64 since;        /* in this state */
	__u64 lock;         /* address of the last lock waited at */
	__u64 time[STATES]; /* in each state, until `since` */
	__u64 waits[STATES]; /* how often each was ended by a wake-up */
	__u64 voluntary;
	__u64 involuntary;
	__u64 expired;      /* of these: the slice was used up */
	__u64 by_sibling;   /* of these: before that, and a thread of the same program got the CPU */
	__u64 migrations;
	__u64 user_ticks;   /* ticks that found it on its CPU outside the kernel, if wanted */
	__u64 kernel_ticks; /* ticks that found it inside the kernel, if wanted */
	__u32 waker;        /* CPU of the sibling that has woken it at a lock, until it runs; NO_CPU */
	__u32 unused;
	__u64 transfers;    /* how often it was woken so, and came to a CPU */
	__u64 across;       /* of these: of another group than the waker's */
	struct arrival arrivals[2]; /* in windows with even and with odd numbers */
	struct lock_wait locks[LOCKS];
};

#endif
