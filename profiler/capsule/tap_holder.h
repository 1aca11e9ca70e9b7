// SPDX-License-Identifier: MIT
//
// Who has the other end of a tap interface, or of one that lies upon another (macvtap, ipvtap): a
// virtual machine's process, as a rule, and its threads. What the kernel sends through the tap, or
// what the other one receives, waits until one of them, or the kernel's vhost thread for them,
// takes it out.
#ifndef PROFILER_CAPSULE_TAP_HOLDER_H
#define PROFILER_CAPSULE_TAP_HOLDER_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TAP_THREADS_MAX = 64,
    TAP_NAME_BYTES = 16, // TASK_COMM_LEN
};

struct tap_thread {
    uint32_t thread;
    char name[TAP_NAME_BYTES];
    bool reads; // from the tap: the others have what it read
};

struct tap_holder {
    uint32_t process;    // 0: nobody that is known
    bool takes_received; // it takes out what the interface receives, not what is sent through it
    size_t thread_count;
    struct tap_thread threads[TAP_THREADS_MAX];
};

// Of the interface of that name in the network namespace of the caller, which has that inode.
// False: it is no tap, or nobody has it, or that is not to be known.
bool tap_holder_find(const char *interface, uint32_t namespace, struct tap_holder *out);

// The cores that its threads may run on.
void tap_holder_cores(const struct tap_holder *holder, cpu_set_t *out);

// Whether the thread is the machine's core of that number, by the name that its emulator gave it
// ("CPU 3/KVM", or "ALL CPUs/TCG", which is each of them).
enum tap_core { TAP_CORE_NOT_KNOWN, TAP_CORE_ANOTHER, TAP_CORE_THIS };
enum tap_core tap_thread_core(const struct tap_thread *thread, unsigned core);

#endif
