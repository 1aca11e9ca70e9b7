// SPDX-License-Identifier: MIT
//
// Words that the page and the terminal summary share: names made safe to show (process names are
// whatever their owner wrote into them), counts as people read them.
#ifndef ANALYSIS_REPORT_REPORT_TEXT_H
#define ANALYSIS_REPORT_REPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/diagnosis.h"

// Copies text as valid UTF-8 that shows what it is: control characters become their visible
// pictures (U+2400 ff.), invalid bytes, other controls and bidirectional overrides become U+FFFD.
// ascii: everything outside printable ASCII becomes '?'. Cut at a character's end to fit. Returns
// out, always NUL-terminated.
char *report_clean_text(const char *text, bool ascii, char *out, size_t out_bytes);

// 1234567 as "1,234,567". Returns out, which needs 32 bytes.
char *report_count(uint64_t count, char out[32]);

#endif
