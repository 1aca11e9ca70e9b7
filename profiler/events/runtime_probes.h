// SPDX-License-Identifier: MIT
//
// Where the runtime of a language collects garbage in the very thread that serves, or the server
// itself does what no request asked for, nothing but that program can say so: of a server's
// process, finds the places in its programs' files at which CPython (its static probes gc__start
// and gc__done), Node.js (V8's Heap::CollectGarbage) and Go (which also stops all its goroutines)
// begin and end to collect, and Redis and
// Valkey (serverCron, some ten times a second: keys that expire, tables that grow, clients that are
// gone) to work for themselves, and attaches BPF programs there (uprobes). Other processes of the
// same file are left alone. It also finds where a CPython has the lock that its threads run with
// one at a time (GIL), so that waits for it can be told from others, and in which processes all
// waits are those of Go's scheduler, or Erlang's.
#ifndef PROFILER_EVENTS_RUNTIME_PROBES_H
#define PROFILER_EVENTS_RUNTIME_PROBES_H

#include <stdint.h>

#include "base/array.h"
#include "base/error.h"

struct bpf_link;
struct bpf_program;

enum runtime_work {
    RUNTIME_COLLECTS,
    RUNTIME_STOPS,
    SERVER_WORKS,
    RUNTIME_WORKS,
};

struct runtime_probes {
    const struct bpf_program *begin[RUNTIME_WORKS], *end[RUNTIME_WORKS];
    int waits; // the programs' map of such waits, by process
    struct ARRAY_OF(struct bpf_link *) links;
    struct ARRAY_OF(uint32_t) processes; // that were looked at
    unsigned probed, refused;            // of these: with probes, and those where it failed
    struct error why;                    // the first of those
};

// Looks at a process; a second time does nothing. What has no such runtime costs a look at its
// mapped files. A failure is counted.
void runtime_probes_add(struct runtime_probes *probes, uint32_t process);

// Takes all of them away, counts stay. Harmless on a zeroed one.
void runtime_probes_end(struct runtime_probes *probes);

#endif
