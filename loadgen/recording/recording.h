// SPDX-License-Identifier: MIT
//
// A recorded schedule that is sent again (`--arrivals replay:FILE`, recording_file.h): a
// samples.tlog, whose intended times, operations and keys are repeated, or text (recording_csv.h)
// or packets (recording_pcap.h), of which what it does not say is drawn from the workload.
#ifndef LOADGEN_RECORDING_RECORDING_H
#define LOADGEN_RECORDING_RECORDING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/array.h"
#include "base/error.h"
#include "loadgen/recording/recording_transactions.h"
#include "loadgen/engine/schedule.h"
#include "workloads/workload.h"

struct recording {
    struct schedule requests;      // in recorded time
    bool has_keys, has_operations; // these are recorded as well
    // Of keys that have names: how long they are, by number; else empty.
    struct recorded_key_array ARRAY_OF(struct recorded_key) keys;
    struct recorded_transactions transactions; // of them: the requests, and what each encloses
    struct lost_transactions lost;
    struct recorded_transactions multigets; // the same of requests of several keys
    // Requests that the protocol has no operation for, and what they asked for, each once, in the
    // order of their first; "..." behind as many as there is room for.
    uint64_t left_out;
    char left_out_names[160];
    // Of packets: places where a client's bytes are missing or are no commands, up to the next
    // segment that begins one; and packets that could not be read, or were of one connection too
    // many.
    uint64_t gaps, damaged;
};

void recording_free(struct recording *recording);

// Gives a workload the keys that are recorded by name: how many there are, and how long; and the
// transactions. The recording must outlive its use.
void recording_apply(const struct recording *recording, struct workload *workload);

// Requests per second until the last of them.
double recording_rate(const struct recording *recording);

// Makes a schedule of it: the recording's times scaled to `rate`, up to duration_ns. Operations and
// keys that are not recorded are drawn from `seed`. The caller frees it.
int recording_draw(const struct recording *recording, const struct workload *workload, double rate,
                   uint64_t duration_ns, uint64_t seed, struct schedule *schedule,
                   struct error *err);

#endif
