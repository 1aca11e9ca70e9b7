// SPDX-License-Identifier: MIT
//
// What this host can measure, and what each missing thing would take. Everything is tried where it
// can be tried without leaving a trace, rather than guessed from versions.
#ifndef PROFILER_DOCTOR_H
#define PROFILER_DOCTOR_H

#include <jansson.h>

#include "base/array.h"
#include "base/error.h"

enum doctor_state {
    DOCTOR_YES,     // there, and works
    DOCTOR_LIMITED, // there, with a limit or a setting that disturbs measurements
    DOCTOR_NO,
};

enum doctor_group {
    DOCTOR_MACHINE,
    DOCTOR_CAPTURE,
    DOCTOR_EVENTS, // the programs of the events backend, one by one
    DOCTOR_NETWORK,
    DOCTOR_PROGRAMS,
    DOCTOR_GROUPS
};

struct doctor_item {
    enum doctor_group group;
    enum doctor_state state;
    char name[40];
    char found[200];   // what is here: "2 x AMD EPYC"
    char gives[120];   // what it is good for
    char missing[200]; // "" when nothing is
    char how[200];     // how to get it; "" when there is nothing to do
};

struct doctor_items ARRAY_OF(struct doctor_item);

// Looks at everything: some hundred milliseconds, every wait bounded. Fails only without memory.
// The caller frees with array_free.
int doctor_examine(struct doctor_items *items, struct error *err);

// "machine", "capture", "events backend", "network", "programs".
const char *doctor_group_name(enum doctor_group group);
// "yes", "limited", "no".
const char *doctor_state_name(enum doctor_state state);

// The document of `taillight doctor --json`:
//   {"host": {"hostname", "kernel", "os", "cpu", "cores", "memory_bytes", "boot_id", …},
//    "items": [{"group", "name", "state", "found", "gives", "missing", "how"}, …]}
// NULL without memory. The caller owns it.
json_t *doctor_json(const struct doctor_items *items);

// Examines and makes that document, for a run folder's facts.json.
json_t *doctor_facts_json(void);

#endif
