// SPDX-License-Identifier: MIT
//
// What the capture's own limits cost, and what its checks of itself found, in words: the figures of
// capture.json that stand beside the counts of dropped records.
#ifndef ANALYSIS_RUN_LIMITS_H
#define ANALYSIS_RUN_LIMITS_H

#include <jansson.h>

enum { RUN_LIMITS_WORDS = 1400 };

// "the shim did not watch 3 connections, ..."; "" where all is well. capture may be NULL. Returns
// out.
const char *run_limits_words(const json_t *capture, char out[RUN_LIMITS_WORDS]);

#endif
