/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What scheduler.bpf.c and user space share; crates/linux/src/control/ext/shared.rs says the same in Rust. Times in nanoseconds. */
#ifndef SCHEDULER_H
#define SCHEDULER_H

#define PROGRAMS 256
#define CPUS 1024
#define DEFAULT_SLICE 3000000ULL
#define SHORTEST_SLICE 100000ULL
#define LONGEST_SLICE 1000000000ULL
#define DEFAULT_WEIGHT 100

/* The first argument of sched_yield(), which a kernel without this scheduler ignores, says what the call is. */
#define DONATE 0xc05c0d01ULL        /* time_donating_to(thread): second argument; 0: to any laggard */
#define ARRIVED 0xc05c0d02ULL       /* update_barr_status(true); second argument: a time before the arrival */
#define ALL_ARRIVED 0xc05c0d03ULL   /* update_barr_status(false): its process' threads count as laggards again; a time after */

/* A program: the first part is written by user space, the second by the kernel. */
struct program {
	__u64 slice;  /* of its threads, but those with their own; 0: the default */
	__u32 weight; /* 0: the default */
	__u32 fills;  /* it runs only where no other program wants to, while turns are valid */
	/* so far: */
	__u64 used;        /* CPU time */
	__u64 donations;   /* calls that ask for another thread */
	__u64 handed_over; /* that found it, queued */
	__u64 followed;    /* after which that thread came next on the CPU */
	__u64 exact;       /* and had what was left of the slice */
	__u64 starts;      /* times that a thread came to a CPU */
	/* for the scheduler alone: */
	__u64 vtime[2]; /* used, by weight: with others, and while it filled. The one with least is next */
	__u64 waits;    /* since when it has had queued threads and no CPU, or less */
};

struct control {
	__u64 programs;    /* so many numbers of programs may be in use; 0: any */
	__u64 turns_until; /* a time of CLOCK_MONOTONIC: from then on all programs are equal, as user space may be stuck */
	__u64 stopped;     /* why the kernel has ended the scheduler; 0: it has not */
};

#endif
