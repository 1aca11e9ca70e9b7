// SPDX-License-Identifier: MIT
//
// Silences: times in which no reply came on any connection although many waited for one, as where
// the server, its host or the network between stopped for a while. A server that is slow with each
// of these requests by itself would hardly be so with all of them at once.
#ifndef LOADGEN_METHOD_SILENCES_H
#define LOADGEN_METHOD_SILENCES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "loadgen/engine/engine_result.h"

struct silences {
    uint32_t count;
    double lasted_s;             // all together
    double longest_s, after_s;   // the longest: how long, and when after the load's begin
    uint32_t longest_awaited_on; // and how many connections became overdue in it
};

// usual_us: the median time from a request's send call to its reply; where it is unknown, or not
// all requests were kept, none are found. ERROR_FAILED: out of memory.
int silences_find(const struct engine_result *run, double usual_us, struct silences *found,
                  struct error *err);

// "no reply came on any connection for 412 ms, 3.21 s after the begin, while 16 waited for one (5
// such, 1.90 s in all): the server or its host stood still, one request held up all others, or the
// network was down"; false: there were none, and the text is empty.
bool silences_words(const struct silences *found, char *out, size_t out_bytes);

#endif
