// SPDX-License-Identifier: MIT
//
// Hops on another machine: `taillight capsule` runs there, behind ssh (experiments/remote/), for as
// long as packets are stamped here, and what it recorded is brought here. Meanwhile round trips
// over the link say how the two machines' clocks are related.
#ifndef EXPERIMENTS_CAPSULE_FAR_HOPS_H
#define EXPERIMENTS_CAPSULE_FAR_HOPS_H

#include <jansson.h>
#include <stdint.h>

#include "base/array.h"
#include "base/options.h"
#include "experiments/common/command_line.h"
#include "experiments/keeper/keeper.h"
#include "experiments/plan/experiment.h"
#include "experiments/remote/far_host.h"
#include "profiler/bpf/hop_log.h"
#include "profiler/capsule/hop_capture.h"
#include "profiler/clock/clock_map.h"

// How far that machine's CLOCK_MONOTONIC was ahead of ours when ours showed `at_ns`.
struct link_trip {
    int64_t at_ns, offset_ns;
    uint64_t bound_ns;
};

struct far_hops {
    struct experiment_host plan;
    struct far_host far;
    struct keeper keeper;
    struct process process;     // the command there; pid 0: it does not run
    char there[FAR_PATH_BYTES]; // the folder of its records
    char here[4096];            // and where they are brought
    struct ARRAY_OF(struct link_trip) trips;
    uint32_t room_bytes; // how long packets may be there; 0: it did not say
    // Once they are here:
    struct hop_record_array records; // as they were recorded: by CLOCK_MONOTONIC
    uint64_t lost;                   // records for which there was no memory, there
    struct clock_map *clocks;        // of that machine
    json_t *document;                // its capsule.json
};

// Whether `address` can be given to ssh, and the other options with it. They outlive far_hops.
int far_hops_plan(struct far_hops *hops, const char *address, const char *ssh_config,
                  const struct option_list *ssh_options, const char *directory, struct error *err);

// Connects and starts the command there, with these arguments of `taillight capsule` (--out and
// what concerns this link is added); returns when it measures. here: a folder for its records,
// which is made; NULL: a private one that is gone in the end.
int far_hops_start(struct far_hops *hops, const struct command_line *arguments, const char *here,
                   struct error *err);

// Takes a round trip, and looks whether the command there still runs. Errors name the host.
int far_hops_check(struct far_hops *hops, struct error *err);

// Sends the command there a line: where packets carry, when they begin to, and when no more
// (capsule_command.c).
int far_hops_tell(struct far_hops *hops, const char *line, struct error *err);

// Ends the command there, brings its records here and reads them. ERROR_INCONCLUSIVE of the command
// there (it saw no packet) is none here.
int far_hops_finish(struct far_hops *hops, struct error *err);

// Ends what runs there, if need be, and leaves nothing there. Harmless on a zeroed one.
void far_hops_end(struct far_hops *hops);

#endif
