// SPDX-License-Identifier: MIT
//
// All that is known of a run when its messages' time is to be explained. Nothing of it is owned.
#ifndef ANALYSIS_DECOMPOSITION_DIAGNOSIS_INPUT_H
#define ANALYSIS_DECOMPOSITION_DIAGNOSIS_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/decomposition/categories.h"
#include "analysis/calls/applications.h"
#include "analysis/calls/calls.h"
#include "analysis/lifetime/client_turns.h"
#include "analysis/lifetime/holdups.h"
#include "analysis/hops/hop_stays.h"
#include "analysis/lifetime/lifetime.h"
#include "analysis/lifetime/openings.h"
#include "analysis/lifetime/peers.h"
#include "analysis/lifetime/service_order.h"
#include "analysis/timeline/span.h"
#include "profiler/capsule/hop_spec.h"

// An estimate of what the tool itself costs the server where no trace shows it: how often its BPF
// programs and its shim were called in a piece of time (the records say) times how long one call
// takes (measured by the capture, profiler/events/events_programs.h, or by `make bench
// BENCH=shim`).
struct overhead {
    double record_ns; // a scheduler or interrupt event; 0: not known
    double packet_ns; // a segment and its hand-off
    double call_ns;   // a socket call that the shim, or else the kernel's events, record
};

struct diagnosis_input {
    enum lifetime_part part;          // which of the messages' lifetimes to explain
    const struct lifetime *lifetimes; // of the whole run; those of loads beside (lifetime.load) are
    size_t lifetime_count;            // not explained
    const struct holdup_array *holdups; // of them; NULL: not known
    const struct hop_stays *hops;       // where on the network they were; NULL: not known
    const struct hop_place *hop_places;
    const struct host_timeline *server; // NULL: nothing was captured
    const struct host_timeline *client; // of the load's host, maybe the same; NULL: not captured
    const struct client_turns *client_turns; // of the load's threads; NULL: not known
    const struct openings *openings;         // of the load's connections; NULL: not known
    const uint32_t *application_threads;     // threads of the servers under test, ascending
    size_t application_thread_count;
    const struct applications *applications; // theirs; NULL: there is only one
    double granularity_ns;
    size_t reference_most; // ordinary messages to take apart, a multiple of REFERENCE_SAMPLE
                           // (reference.h); 0: REFERENCE_MOST
    bool without_views;    // none are made (views.h)
    bool without_client;   // no request is of a load of ours: whose it is, its connection says
    const struct application_calls *calls; // of the server, NULL: no shim log
    const struct service_order *order;     // of the lifetimes, NULL: no views (views.h) are made
    const struct peers *peers;             // what the servers asked of others; NULL: not known
    const struct categories *categories;   // NULL: the program's own
    struct overhead overhead;              // of the tool, as far as it is known
    double dropped_share;                  // of the capture's records, 0..1
};

#endif
