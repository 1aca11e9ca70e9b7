// SPDX-License-Identifier: MIT
//
// The join: what the client knows of a request and what the server's kernel and application saw of
// the same bytes become one lifetime. Connections are matched by their mirrored 5-tuple, messages
// by where their last byte stands in the stream (design §4). Linear in the number of records.
#ifndef ANALYSIS_LIFETIME_JOIN_H
#define ANALYSIS_LIFETIME_JOIN_H

#include "analysis/lifetime/holdups.h"
#include "analysis/lifetime/join_input.h"
#include "base/error.h"

// Which stages are not divided, of any whole life: of enum undivided, for stage_name().
unsigned join_undivided(const struct join_counts *counts);

// Builds one lifetime per sample, in the samples' order, with states and stages. The caller frees
// *out and *holdups with array_free. Only lack of memory fails.
int join_lifetimes(const struct join_input *input, struct lifetime_array *out,
                   struct holdup_array *holdups, struct join_counts *counts, struct error *err);

#endif
