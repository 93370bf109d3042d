/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a scheduler of sched_ext needs of the kernel, beyond kernel.h: the fields that it reads, and the functions that it
 * calls. Libbpf finds fields and members by name in the running kernel, so only what is used is declared.
 *
 * Functions are weak: a kernel without one still loads the scheduler, which then looks before it calls
 * (bpf_ksym_exists). Linux 6.12 has some of them by other names, which 6.13 replaced.
 */
#ifndef SCHED_EXT_H
#define SCHED_EXT_H

#include "kernel.h"

struct scx_init_task_args {
	bool fork;
} KERNEL;

struct scx_cpu_release_args;

enum scx_exit_kind {
	SCX_EXIT_NONE = 0,
};

struct scx_exit_info {
	enum scx_exit_kind kind;
} KERNEL;

struct bpf_iter_num {
	__u64 opaque[1];
} __attribute__((aligned(8)));

struct bpf_iter_scx_dsq {
	__u64 opaque[6];
} __attribute__((aligned(8)));

struct bpf_timer {
	__u64 opaque[2];
} __attribute__((aligned(8)));

/* The flags come first: the loader adds those that the kernel knows. */
struct sched_ext_ops {
	__u64 flags;
	__s32 (*select_cpu)(struct task_struct *task, __s32 previous, __u64 flags);
	void (*enqueue)(struct task_struct *task, __u64 flags);
	void (*dispatch)(__s32 cpu, struct task_struct *previous);
	void (*running)(struct task_struct *task);
	void (*stopping)(struct task_struct *task, bool runnable);
	bool (*yield)(struct task_struct *from, struct task_struct *to);
	__s32 (*init_task)(struct task_struct *task, struct scx_init_task_args *args);
	void (*cpu_online)(__s32 cpu);
	void (*cpu_offline)(__s32 cpu);
	void (*cpu_release)(__s32 cpu, struct scx_cpu_release_args *args);
	__s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	__u32 timeout_ms;
	char name[128];
};

/* The loader puts the running kernel's values in. */
enum scx_enq_flags {
	SCX_ENQ_HEAD = 1,
};

#define SCX_ENQ_REENQ (1ULL << 40)
#define SCX_OPS_ENQ_LAST 2ULL
#define SCX_OPS_SWITCH_PARTIAL 8ULL
#define E2BIG 7
#define SCX_DSQ_LOCAL 0x8000000000000002ULL
#define SCX_SLICE_INF (~0ULL)
#define SCX_KICK_IDLE 1
#define SCX_KICK_PREEMPT 2
#define SCX_TASK_QUEUED 1

/* Old compilers describe a type completely only where there is a value of it, and libbpf compares the whole type. */
struct cpumask type_of_masks;

#define SYMBOL __attribute__((weak)) __attribute__((section(".ksyms")))

extern __s32 scx_bpf_create_dsq(__u64 queue, __s32 node) SYMBOL;
extern __s32 scx_bpf_select_cpu_dfl(struct task_struct *task, __s32 previous, __u64 flags, bool *idle) SYMBOL;
extern __s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, __u64 flags) SYMBOL;
extern bool scx_bpf_test_and_clear_cpu_idle(__s32 cpu) SYMBOL;
extern void scx_bpf_kick_cpu(__s32 cpu, __u64 flags) SYMBOL;
extern __s32 scx_bpf_dsq_nr_queued(__u64 queue) SYMBOL;
extern __u32 scx_bpf_nr_cpu_ids(void) SYMBOL;
extern __s32 scx_bpf_task_cpu(const struct task_struct *task) SYMBOL;
extern __u32 scx_bpf_reenqueue_local(void) SYMBOL;
extern bool scx_bpf_task_set_slice(struct task_struct *task, __u64 slice) SYMBOL; /* 6.19 and later */
extern bool bpf_cpumask_test_cpu(__u32 cpu, const struct cpumask *mask) SYMBOL;
extern int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, __u64 queue, __u64 flags) SYMBOL;
extern struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) SYMBOL;
extern void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) SYMBOL;

/* As 6.13 and later name them, and as 6.12 does. */
extern void scx_bpf_dsq_insert(struct task_struct *task, __u64 queue, __u64 slice, __u64 flags) SYMBOL;
extern void scx_bpf_dispatch(struct task_struct *task, __u64 queue, __u64 slice, __u64 flags) SYMBOL;
extern bool scx_bpf_dsq_move_to_local(__u64 queue) SYMBOL;
extern bool scx_bpf_consume(__u64 queue) SYMBOL;
extern bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *task, __u64 queue, __u64 flags) SYMBOL;
extern bool scx_bpf_dispatch_from_dsq(struct bpf_iter_scx_dsq *it, struct task_struct *task, __u64 queue, __u64 flags) SYMBOL;
extern void scx_bpf_dsq_move_set_slice(struct bpf_iter_scx_dsq *it, __u64 slice) SYMBOL;
extern void scx_bpf_dispatch_from_dsq_set_slice(struct bpf_iter_scx_dsq *it, __u64 slice) SYMBOL;

#define insert(task, queue, slice, flags)                                                                                \
	(bpf_ksym_exists(scx_bpf_dsq_insert) ? scx_bpf_dsq_insert(task, queue, slice, flags)                               \
					     : scx_bpf_dispatch(task, queue, slice, flags))
#define move_to_local(queue)                                                                                             \
	(bpf_ksym_exists(scx_bpf_dsq_move_to_local) ? scx_bpf_dsq_move_to_local(queue) : scx_bpf_consume(queue))
#define move(it, task, queue, flags)                                                                                     \
	(bpf_ksym_exists(scx_bpf_dsq_move) ? scx_bpf_dsq_move(it, task, queue, flags)                                      \
					   : scx_bpf_dispatch_from_dsq(it, task, queue, flags))
#define move_set_slice(it, slice)                                                                                        \
	(bpf_ksym_exists(scx_bpf_dsq_move_set_slice) ? scx_bpf_dsq_move_set_slice(it, slice)                               \
						     : scx_bpf_dispatch_from_dsq_set_slice(it, slice))

enum {
	BPF_F_TIMER_CPU_PIN = 2,
};
#define CLOCK_MONOTONIC 1

#endif
