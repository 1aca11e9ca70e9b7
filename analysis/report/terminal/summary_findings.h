// SPDX-License-Identifier: MIT
//
// The terminal summary's part on what does not depend on a diagnosis: where the time of the
// server's threads went, what an ordinary request is made of, what the slow ones share and when
// their causes came.
#ifndef ANALYSIS_REPORT_TERMINAL_SUMMARY_FINDINGS_H
#define ANALYSIS_REPORT_TERMINAL_SUMMARY_FINDINGS_H

#include "analysis/report/terminal/summary_pieces.h"

void summary_write_budget(const struct summary *s);

void summary_write_shared(const struct summary *s);

// The causes that have a shape in time.
void summary_write_shapes(const struct summary *s, const struct diagnosis *diagnosis);

// Where requests were passed on to other servers: how much of the slow ones' time each of these
// has.
void summary_write_tiers(const struct summary *s, const struct diagnosis *diagnosis);

// Only where it is slow itself, unless the summary is the full one; nothing where the diagnosis has
// no reference.
void summary_write_ordinary(const struct summary *s, const struct diagnosis *diagnosis);

#endif
