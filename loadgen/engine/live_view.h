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

// What a person is to know of the client's own part, in words that say what helps; empty: nothing.
// By how much it is behind its schedule, and the shares of the time in which its threads had
// nothing to do and in which they had their cores, or slept; -1: not known.
void live_view_format_client(double behind_ns, double idle, double core, char *out, size_t bytes);

// Ends the view, after refreshing it once more. NULL is allowed.
void live_view_stop(struct live_view *view);

#endif
