// SPDX-License-Identifier: MIT
//
// Facts about this host from the kernel's small text files, and the paths of its programs.
#ifndef PROFILER_HOST_HOST_FACTS_H
#define PROFILER_HOST_HOST_FACTS_H

#include <stdbool.h>
#include <stddef.h>

// Reads a file's first line without its newline. False, and "" in out, when there is none.
bool host_read_line(const char *path, char *out, size_t out_bytes);

// Copies the value of a "key : value" line, as in /proc/cpuinfo.
bool host_read_field(const char *path, const char *key, char *out, size_t out_bytes);

// True when a word is in a list of words with spaces between.
bool host_has_word(const char *list, const char *word);

// True, with its path in out, when the program is in PATH.
bool host_find_program(const char *name, char *out, size_t out_bytes);

// --- privileges ----------------------------------------------------------------------------------
// Which of Linux's privileges (capabilities(7)) this process has, in words for error texts.

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
