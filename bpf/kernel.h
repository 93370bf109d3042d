/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The few types and constants of the kernel that our programs need.
 *
 * The loader finds each field in the running kernel's own type information (CO-RE), so what is declared here is names,
 * not layouts. This replaces a generated header of 100,000 lines for one kernel.
 */
#ifndef KERNEL_H
#define KERNEL_H

typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

#define true 1
#define false 0

enum bpf_map_type {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_F_NO_PREALLOC = 1,
	BPF_F_MMAPABLE = 1024,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
};

#define offsetof(type, member) __builtin_offsetof(type, member)
#define KERNEL __attribute__((preserve_access_index))

struct ns_common {
	unsigned int inum;
} KERNEL;

struct pid_namespace {
	struct ns_common ns;
} KERNEL;

struct upid {
	int nr;
	struct pid_namespace *ns;
} KERNEL;

struct pid {
	unsigned int level;
	struct upid numbers[8];
} KERNEL;

struct sched_entity {
	__u64 slice;
} KERNEL;

struct bpf_local_storage;

struct thread_info {
	__u32 cpu;
} KERNEL;

struct cpumask {
	unsigned long bits[1];
} KERNEL;

struct sched_ext_entity {
	__u64 slice;
	__u32 flags;
} KERNEL;

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	unsigned long jobctl;
	int pid;
	int tgid;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct sched_entity se;
	struct sched_ext_entity scx;
	const struct cpumask *cpus_ptr;
	unsigned short migration_disabled;
	struct bpf_local_storage *bpf_storage;
} KERNEL;

#define JOBCTL_TRAP_FREEZE (1UL << 23)
#define STOPPED_STATES (0x0004 | 0x0008 | 0x8000) /* __TASK_STOPPED, __TASK_TRACED, TASK_FROZEN */

#define FUTEX_LOCK_PI 6
#define FUTEX_WAIT_BITSET 9
#define FUTEX_LOCK_PI2 13
#define FUTEX_CMD_MASK 0x7f
#define CONTENDED 2

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long orig_ax, di, si, dx;
} KERNEL;
#define REGISTERS 21
#define IN_USER_MODE(registers) (((registers)[17] & 3) == 3) /* cs */
#define SYS_futex 202
#define SYSCALL_NUMBER(regs) ((long)(regs)->orig_ax)
#define SYSCALL_ARGUMENT_1(regs) ((regs)->di)
#define SYSCALL_ARGUMENT_2(regs) ((regs)->si)
#define SYSCALL_ARGUMENT_3(regs) ((regs)->dx)
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
} KERNEL;
struct pt_regs {
	__u64 regs[31];
	__u64 orig_x0;
	__s32 syscallno;
} KERNEL;
#define REGISTERS 34
#define IN_USER_MODE(registers) (((registers)[33] & 0xf) == 0) /* pstate */
#define SYS_futex 98
#define SYSCALL_NUMBER(pt) ((long)(pt)->syscallno)
#define SYSCALL_ARGUMENT_1(pt) ((pt)->orig_x0)
#define SYSCALL_ARGUMENT_2(pt) ((pt)->regs[1])
#define SYSCALL_ARGUMENT_3(pt) ((pt)->regs[2])
#else
#error "the registers of this architecture are not known here"
#endif

/* What a program is given at a tick of a clock: part of the kernel's interface to user space, so it never moves. */
struct bpf_perf_event_data {
	__u64 regs[REGISTERS];
	__u64 sample_period;
	__u64 addr;
};

#endif
