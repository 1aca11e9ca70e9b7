// SPDX-License-Identifier: MIT
//
// What `taillight load` is asked to do, as it was said, and what of that excludes each other,
// whatever the workload and the server are. Errors are ERROR_INPUT and name the option.
#ifndef LOADGEN_LOAD_OPTIONS_H
#define LOADGEN_LOAD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/options.h"

#define LOAD_NOT_GIVEN UINT64_MAX // a seed, a duration

struct load_options {
    const char *server, *protocol, *rate_text, *workload, *arrivals, *stamps, *samples, *target;
    const char *sweep, *slo, *out, *hgrm;
    const char *user, *password_file, *tls_ca, *tls_cert, *tls_key, *sentinel, *think;
    uint64_t fanout; // 0: not given
    uint64_t batch_ns;
    uint64_t session; // requests of a connection; 0: not given
    double rate;      // of rate_text; INFINITY: max, a closed loop
    double confidence;
    uint64_t threads, connections, depth, duration_ns, interval_ns, max_duration_ns, seed,
        timeout_ns, reconnect_ns, slow_ns;
    uint64_t repetitions;
    uint64_t memory_bytes; // 0: not given
    const char *restart;
    struct option_list agents;
    bool tls, tls_insecure, tls_full_handshakes, cluster;
    bool prepare, announce, hold, tell_live, sleep, json, quiet;
};

extern const struct option_spec load_options_table[];          // of struct load_options
extern const struct option_elsewhere load_options_elsewhere[]; // of other load generators

// With nothing given.
struct load_options load_options_defaults(void);

// Takes the rate from its text, where there is one.
int load_options_take_rate(struct load_options *o, struct error *err);

// What the rate excludes, once it is known, be it the workload's.
int load_options_check_rate(struct load_options *o, struct error *err);

int load_options_check_numbers(struct load_options *o, struct error *err);

#endif
