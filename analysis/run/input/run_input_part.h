// SPDX-License-Identifier: MIT
//
// Which part of a run is looked at, where that is not all of it: a capture too long for one
// analysis, one that ends before its load, a load that was killed.
#ifndef ANALYSIS_RUN_INPUT_PART_H
#define ANALYSIS_RUN_INPUT_PART_H

#include "analysis/run/input/run_input.h"
#include "base/progress.h"

// Of a capture that is too long for one analysis, the part with most of the slowest requests of the
// whole load is looked at; of a capture alone, of all that was answered, as the kernel's events
// show it (lifetime/answer_times.h). Client and server on different machines have no clock in
// common by which to find it.
int run_input_choose_segments(struct run_input *input, const char *run_dir,
                              struct progress *progress, struct error *err);

// Appends which part of a capture alone that is, and why; nothing where all is looked at.
void run_input_say_part(const struct run_input *input, char *out, size_t out_bytes);

// Leaves the requests out that came before or after what the segments have. Client and server on
// different machines have no clock in common by which to do that: what is missing is then missing.
// ERROR_INPUT: no request is left.
int run_input_cut_samples(struct run_input *input, const char *run_dir, struct error *err);

// Of samples that end where their load was killed.
void run_input_say_where_load_ends(struct run_input *input);

#endif
