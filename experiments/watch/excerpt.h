// SPDX-License-Identifier: MIT
//
// Of an interval in which a server answered more than the watch may take apart: when each request
// was answered and how long it took, of all of them, and the part of the interval that is taken
// apart, an excerpt. To take all apart costs about as much processor time as a fast server takes to
// answer them.
#ifndef EXPERIMENTS_WATCH_EXCERPT_H
#define EXPERIMENTS_WATCH_EXCERPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/lifetime/answer_times.h"
#include "analysis/run/run_analyze.h"

// A zeroed one takes no excerpts.
struct excerpt {
    uint64_t rate;               // requests of a second that may be taken apart; 0: all
    struct answer_array answers; // of an interval of which there is an excerpt; else none
    struct answer_times times;
    unsigned read; // number of the last segment of which `times` knows
};

// Narrows a request that concerns the segments from `first` to its last one, whose interval they
// are: to the part with most of the slowest hundredth, by how long they took, of all that is
// answered. False: all of it is to be looked at, since that is few enough, or it is not known how
// much it is.
bool excerpt_take(struct excerpt *excerpt, unsigned first, struct run_request *request);

// The first of so many answers in a row, which are in order of time, in which the slowest hundredth
// of all took longest together.
size_t excerpt_choose(const struct answer_array *answers, size_t most);

void excerpt_free(struct excerpt *excerpt);

#endif
