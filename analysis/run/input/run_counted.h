// SPDX-License-Identifier: MIT
//
// What the server's machine counted while a part of a capture was recorded. capture.json has the
// kernel's counts since the capture began, and of a capture in segments what they were at the end
// of the one before the first that is kept, and of each of these ("counted" of its "segments").
#ifndef ANALYSIS_RUN_COUNTED_H
#define ANALYSIS_RUN_COUNTED_H

#include <jansson.h>
#include <stdint.h>

// Leaves in a capture.json of the counts what moved from one host time (0: the begin) to another
// (0: the end), as far as the ends of segments tell: from the last one that is not after from_ns to
// the first that is not before until_ns. Of a capture that does not say, all stay as they are.
// NULL: none.
void run_counted_within(json_t *capture, int64_t from_ns, int64_t until_ns);

#endif
