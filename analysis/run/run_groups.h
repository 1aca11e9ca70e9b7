// SPDX-License-Identifier: MIT
//
// The control groups that the server's machine held back while the run lasted: which, at which
// limit, how often, by the kernel's own account (profiler/host/group_counters.h).
#ifndef ANALYSIS_RUN_RUN_GROUPS_H
#define ANALYSIS_RUN_RUN_GROUPS_H

#include <stddef.h>

#include "analysis/run/run_analysis.h"

enum { GROUP_WORDS_BYTES = 400 };

// The group that a cause names: "its control group /web.slice (CPU quota 5.00 ms of each 50.0 ms,
// used up 93 times)"; where the cause names none, or the account has none of its name, "its control
// group". The name is clean (text_clean). Returns out.
char *run_group_words(const struct run_analysis *run, const struct cause *cause,
                      char out[GROUP_WORDS_BYTES]);

// Appends which groups were held back, a sentence for quotas and one for memory.
void verdict_append_groups(char *out, const struct run_analysis *run);

#endif
