// SPDX-License-Identifier: MIT
//
// What a person sees while a load lasts: rate, in flight, percentiles so far, errors, and the goal,
// four times a second on a terminal; or, for a program that shows it to somebody, a line of JSON on
// stdout once a second. A thread of the lowest priority reads the load threads' counters. Without a
// terminal or such a program there is no view and there are no counters.
#ifndef LOADGEN_ENGINE_LIVE_VIEW_H
#define LOADGEN_ENGINE_LIVE_VIEW_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/progress.h"
#include "loadgen/client/connection_counts.h"

struct live_view;

// Begins the view. told: on stdout, as {"live": TEXT}, from the first reply on; else on progress's
// terminal, and *view is NULL if there is none. goal: what the load is waiting for, "10 s"; not
// told. ERROR_FAILED: no memory or no thread.
int live_view_start(const struct progress *progress, bool told, uint32_t threads, const char *goal,
                    struct live_view **view, struct error *err);

// One counter set per load thread, for engine_settings.live; NULL for a NULL view.
struct live_counters *live_view_counters(struct live_view *view);

// Changes the goal that is shown.
void live_view_wait_for(struct live_view *view, const char *goal);

// The client's own part, of all its threads together; what is below 0 is not known.
struct live_client {
    double behind_ns;  // its schedule
    double idle, core; // shares of the time in which it had nothing to do, had its cores or slept
    double cost_ns;    // of its cores' time that a request took
};

// What a person is to know of it, in words that say what helps; empty: nothing.
void live_view_format_client(const struct live_client *client, char *out, size_t bytes);

// Ends the view, after refreshing it once more. NULL is allowed.
void live_view_stop(struct live_view *view);

#endif
