// SPDX-License-Identifier: MIT
//
// Whether the capsule's BPF programs can be tried here at all. Header-only: each test binary stands
// alone.
#ifndef TESTS_PROFILER_CAPSULE_PROGRAMS_H
#define TESTS_PROFILER_CAPSULE_PROGRAMS_H

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "profiler/capsule/capsule_skeleton.h"

// False: says why they cannot be loaded, for a test that is skipped then.
static inline bool programs_can_be_loaded(void)
{
    libbpf_set_print(NULL);
    struct capsule_bpf *programs = capsule_bpf__open_and_load();
    if (!programs)
        printf("BPF programs cannot be loaded here: %s\n", strerror(errno));
    bool loaded = programs != NULL;
    capsule_bpf__destroy(programs);
    return loaded;
}

#endif
