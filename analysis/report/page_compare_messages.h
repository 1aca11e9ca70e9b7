// SPDX-License-Identifier: MIT
//
// The messages of a slice of two runs, for the balloon plots of the page that compares them.
#ifndef ANALYSIS_REPORT_PAGE_COMPARE_MESSAGES_H
#define ANALYSIS_REPORT_PAGE_COMPARE_MESSAGES_H

#include <jansson.h>

#include "analysis/compare/cause_shift.h"

// Of one side, column by column: `id`, `at_s`, `latency_us`, and from `first` on to the next
// message's `cause` (index into the slice's changes) and `us`, what it has of the cause beyond the
// base's median. At most 3,000 messages, evenly chosen from all; `messages` says how many there
// are. The caller owns it.
json_t *page_compare_messages(const struct slice_shift *slice, const struct slice_profile *profile);

#endif
