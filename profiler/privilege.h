// SPDX-License-Identifier: MIT
//
// Which of Linux's privileges (capabilities(7)) this process has, in words for error texts.
#ifndef PROFILER_PRIVILEGE_H
#define PROFILER_PRIVILEGE_H

#include <stdbool.h>
#include <stddef.h>

enum privilege {
    PRIVILEGE_NET_ADMIN = 12, // numbers as in linux/capability.h
    PRIVILEGE_SYS_ADMIN = 21,
    PRIVILEGE_SYS_TIME = 25,
    PRIVILEGE_PERFMON = 38,
    PRIVILEGE_BPF = 39,
};

// True when it is effective. CAP_SYS_ADMIN stands in for CAP_BPF and CAP_PERFMON, as in the kernel.
bool privilege_held(enum privilege privilege);

// Writes which privileges the BPF programs lack: "CAP_BPF and CAP_PERFMON"; "" when none. Returns
// out.
char *privilege_lacking_for_bpf(char *out, size_t out_bytes);

#endif
