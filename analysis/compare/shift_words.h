// SPDX-License-Identifier: MIT
//
// Describes shifts in a sentence each:
//
//     p99.9 +38 % [+21, +57]: nginx (A) +120 us on 4.1 % of messages
#ifndef ANALYSIS_COMPARE_SHIFT_WORDS_H
#define ANALYSIS_COMPARE_SHIFT_WORDS_H

#include "analysis/compare/cause_shift.h"
#include "analysis/compare/percentile_shift.h"

enum { SHIFT_WORDS_BYTES = 600 };

// A percentile's shift and its causes, from the messages around it.
void percentile_shift_words(const char *name, const struct percentile_shift *shift,
                            const struct slice_shift *around, char out[SHIFT_WORDS_BYTES]);

// A slice's shift: its mean latency, and the causes that changed most.
void slice_shift_words(const struct slice_shift *slice, double confidence,
                       char out[SHIFT_WORDS_BYTES]);

#endif
