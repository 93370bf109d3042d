/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The number of a thread as user space knows it: numbers of tasks differ from PID namespace to PID namespace. */
#ifndef NUMBER_H
#define NUMBER_H

#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define LEVELS 8 /* of PID namespaces that are searched */

/* Set before loading: the PID namespace in which threads are numbered. */
const volatile __u32 namespace_inode = 0;

/* 0 if it has none there. */
static __u32 number(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 deepest = BPF_CORE_READ(pid, level);

	for (__u32 level = 0; level < LEVELS && level <= deepest; level++) {
		struct upid upid;

		bpf_core_read(&upid, sizeof(upid), &pid->numbers[level]);
		if (BPF_CORE_READ(upid.ns, ns.inum) == namespace_inode)
			return upid.nr;
	}
	return 0;
}

#endif
