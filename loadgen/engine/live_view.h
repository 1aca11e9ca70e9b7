// SPDX-License-Identifier: MIT
//
// What a person sees while a load runs: rate, in flight, percentiles so far, errors, and what is
// waited for, four times a second on a terminal; nothing elsewhere.
// A thread of the lowest priority reads the load threads' counters. Without a terminal there are
// none.
#ifndef LOADGEN_ENGINE_LIVE_VIEW_H
#define LOADGEN_ENGINE_LIVE_VIEW_H

#include <stdint.h>

#include "base/error.h"
#include "base/progress.h"
#include "loadgen/client/live_counters.h"

struct live_view;

// Begins to show. *view is NULL when there is nobody to show it to. goal: what is waited for,
// "10 s". ERROR_FAILED: no memory or no thread.
int live_view_start(const struct progress *progress, uint32_t threads, const char *goal,
                    struct live_view **view, struct error *err);

// One for each load thread, for engine_settings.live; NULL for a NULL view.
struct live_counters *live_view_counters(struct live_view *view);

// Says what is waited for from now on.
void live_view_wait_for(struct live_view *view, const char *goal);

// Ends it, with a last look. NULL is allowed.
void live_view_stop(struct live_view *view);

#endif
