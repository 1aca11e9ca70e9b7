// SPDX-License-Identifier: MIT
//
// The hops of a run (server/hops.tlog and server/capsule.json, profiler/capsule; those on the
// load's machine in client/, where that is another): which part of a request's time on the network
// passed between which of them, and how that is distributed.
#ifndef ANALYSIS_RUN_RUN_HOPS_H
#define ANALYSIS_RUN_RUN_HOPS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/diagnosis/diagnosis.h"
#include "analysis/hops/hop_losses.h"
#include "analysis/hops/hop_sightings.h"
#include "analysis/hops/hop_stays.h"
#include "analysis/lifetime/lifetime.h"
#include "base/array.h"
#include "base/error.h"
#include "profiler/capsule/hop_spec.h"
#include "profiler/clock/clock_map.h"

enum { HOP_QUANTILES = 5, HOP_ROW_BYTES = 2 * HOP_NAME_BYTES + 8 };
extern const double hop_quantiles[HOP_QUANTILES];           // 0.5 0.9 0.99 0.999 1
extern const char *const hop_quantile_names[HOP_QUANTILES]; // "p50" ... "max"

// A part of a way, of the messages that hops saw on it, for each of which the parts add up to all
// of it: between two hops, before the first or behind the last, or all of it.
struct hop_row {
    char name[HOP_ROW_BYTES]; // "to0@switch -> to1@switch", "before the first hop"
    enum hop_way way;
    uint8_t from, to; // the hops; HOPS_MAX: it is no link
    bool in_queue;    // in the first one's queueing discipline; else what is not known to be there
    uint64_t messages;
    double mean_ns;
    double value_ns[HOP_QUANTILES]; // NAN: too few messages
};
struct hop_row_array ARRAY_OF(struct hop_row);

struct run_hops {
    bool present;      // packets were stamped, and it can be read
    char problem[400]; // why what should be there cannot be read; else ""
    size_t hop_count;
    struct hop_place places[HOPS_MAX];
    uint64_t records, dropped;
    uint64_t strange;    // records that are none of a hop: damaged
    uint64_t left_alone; // packets which cannot carry stamps that they are to
    struct hop_stays stays;
    struct hop_losses losses;
    struct hop_row_array rows; // by way, in the order in which packets pass; its whole last
};

struct run_hops_input {
    const char *run_dir;
    const char *boot_id;         // of the server's clock log, 40 bytes
    const char *server, *client; // the machines' hosts, for hops that have no host in their names
    struct time_source clock;    // the server's
    bool apart;                  // the client's machine has a clock of its own, which is
    struct time_source client_clock;
    const char *client_boot_id;                           // of its log, 40 bytes
    const struct clock_map *clock_map, *client_clock_map; // both logs' times
    struct hops_input requests;                           // without machines
};

// Without any hops.tlog all is zero. What cannot be read is no error: problem says why, and the
// network is not divided. Only lack of memory fails.
int run_hops_add(const struct run_hops_input *input, struct run_hops *out, struct error *err);
void run_hops_free(struct run_hops *hops);

// What is lacking, for beside the verdict: "on the way to the server no hop has stamps of 12
// requests: 3 packets could not carry any"; "" where all are divided. Returns out.
enum { RUN_HOPS_WORDS = 700 };
const char *run_hops_lack(const struct run_hops *hops, char out[RUN_HOPS_WORDS]);

// "lost between to1@client and to0@switch", "last seen at to1@server, on the way to the server".
// Returns out.
enum { HOP_LOSS_WORDS = 2 * HOP_NAME_BYTES + 64 };
const char *run_hops_loss_words(const struct run_hops *hops, const struct hop_loss *loss,
                                char out[HOP_LOSS_WORDS]);

// What a cause says that slow messages waited for between the hops of a row: "behind hog"; NULL: it
// says nothing of these.
const char *run_hops_wait(const struct run_hops *hops, const struct hop_row *row,
                          const struct cause *cause);

// For summary.json; null: there are none. diagnosis: the run's, which says what the hops' slow
// messages waited for; NULL: there is none.
json_t *run_hops_json(const struct run_hops *hops, const struct diagnosis *diagnosis);

#endif
