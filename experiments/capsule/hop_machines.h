// SPDX-License-Identifier: MIT
//
// The hops of one `taillight capsule`, on this machine and on others: which is where, what they
// recorded, and all of it in the time of one machine.
#ifndef EXPERIMENTS_CAPSULE_HOP_MACHINES_H
#define EXPERIMENTS_CAPSULE_HOP_MACHINES_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "analysis/hops/hop_clocks.h"
#include "base/options.h"
#include "experiments/capsule/far_hops.h"
#include "profiler/capsule/hop_report.h"
#include "profiler/capsule/hop_spec.h"
#include "profiler/clock/clock_recorder.h"

enum { FAR_MACHINES_MAX = 3, MACHINES_MAX = FAR_MACHINES_MAX + 1, MACHINE_HERE = 0 };

struct hop_machines {
    struct hop_spec hops[HOPS_MAX]; // of all machines, as they were given
    size_t hop_count;
    const char *texts[HOPS_MAX]; // the words that gave them
    size_t text_count;
    bool carry;                                  // packets carry stamps from machine to machine
    size_t machine_count;                        // this one among them, with hops or without
    struct far_hops far[MACHINES_MAX];           // [MACHINE_HERE] stays empty
    struct command_line arguments[MACHINES_MAX]; // which hops are there, for the command there
    const char *address[MACHINES_MAX];
    struct hop_clock clock[MACHINES_MAX]; // how each is related to the reference
    size_t reference;                     // in whose time all records are in the end
    struct hop_link links[HOPS_MAX];      // of far hops
};

// How a machine is reached: all of them the same way.
struct hop_reach {
    const char *ssh_config, *directory;
    const struct option_list *ssh_options;
};

// Takes IFACE[:WAY][@NETNS[=NAME]][@ssh:[USER@]HOST]. Errors: ERROR_INPUT. `text` outlives it.
int hop_machines_take(struct hop_machines *machines, const char *text,
                      const struct hop_reach *reach, struct error *err);

// The hops of this machine, and their numbers among all.
size_t hop_machines_here(const struct hop_machines *machines, struct hop_spec hops[HOPS_MAX],
                         uint8_t numbers[HOPS_MAX]);

// Packets are to carry their stamps over all hops, in this order.
int hop_machines_carry(struct hop_machines *machines, struct error *err);

// Leaves the others to somebody else: of the hops there only the numbers stay.
void hop_machines_leave_others(struct hop_machines *machines);

// Starts the others, with these arguments beside their hops. out: a folder for a folder each, or
// NULL.
int hop_machines_start(struct hop_machines *machines, const struct command_line *common,
                       const char *out, struct error *err);

// To be called every so often while packets are stamped (far_hops_check).
int hop_machines_check(struct hop_machines *machines, struct error *err);
int hop_machines_finish(struct hop_machines *machines, struct error *err);

// Of machines among which packets carry: they begin to on the others, if they are no longer than
// the smallest of the MTUs there and `*room_bytes`, which is set to it; and they do no more.
int hop_machines_begin(struct hop_machines *machines, uint32_t *room_bytes, struct error *err);
int hop_machines_begin_no_more(struct hop_machines *machines, struct error *err);

// Fills in what the others said of their hops.
int hop_machines_report(struct hop_machines *machines, struct hop_report *report,
                        struct error *err);

// Brings everything into the time of one machine: adds the others' records to this one's (whose
// times are CLOCK_MONOTONIC, and whose hops are numbered among all), and moves the window's bounds
// along.
int hop_machines_join(struct hop_machines *machines, const struct clock_recorder *clocks,
                      struct hop_record_array *records, uint64_t *begin_ns, uint64_t *end_ns,
                      struct error *err);

// How the clocks are related: lines for people, and an array for scripts, empty without others.
void hop_machines_print(const struct hop_machines *machines, FILE *out);
json_t *hop_machines_json(const struct hop_machines *machines);

// Leaves nothing on any of them.
void hop_machines_end(struct hop_machines *machines);

#endif
