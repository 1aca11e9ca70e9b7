// SPDX-License-Identifier: MIT
//
// What the verdict rests on, in its words: how many requests' lives are whole and why the others
// are not, what the capture dropped or did not see, which stamps are missing or wrong.
#ifndef ANALYSIS_RUN_VERDICT_EVIDENCE_H
#define ANALYSIS_RUN_VERDICT_EVIDENCE_H

#include "analysis/run/run_analysis.h"

// Appends to out, of VERDICT_BYTES.
void verdict_append_evidence(char *out, const struct run_analysis *run);

// How requests of clients that are not ours were told apart: "by turns", "by redis framing", or
// both with their numbers. Returns words.
enum { RUN_TOLD_APART_WORDS = 320 };
const char *run_told_apart(const struct run_analysis *run, char *words, size_t bytes);

#endif
