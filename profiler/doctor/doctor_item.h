// SPDX-License-Identifier: MIT
//
// One thing that a host can or cannot do for a measurement, and what would change that.
#ifndef PROFILER_DOCTOR_DOCTOR_ITEM_H
#define PROFILER_DOCTOR_DOCTOR_ITEM_H

#include "base/array.h"

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

// "machine", "capture", "events backend", "network", "programs".
const char *doctor_group_name(enum doctor_group group);
// "yes", "limited", "no".
const char *doctor_state_name(enum doctor_state state);

// Appends an item and returns it to be filled in further; NULL without memory.
struct doctor_item *doctor_add(struct doctor_items *items, enum doctor_group group,
                               const char *name, const char *gives);

// Sets the state and what was found.
void doctor_found(struct doctor_item *item, enum doctor_state state, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Sets the state, what is missing and how to get it.
void doctor_missing(struct doctor_item *item, enum doctor_state state, const char *how,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
