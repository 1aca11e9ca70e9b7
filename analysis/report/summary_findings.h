// SPDX-License-Identifier: MIT
//
// The terminal summary's part on what does not depend on a diagnosis: where the time of the
// server's threads went, and what an ordinary request is made of.
#ifndef ANALYSIS_REPORT_SUMMARY_FINDINGS_H
#define ANALYSIS_REPORT_SUMMARY_FINDINGS_H

#include "analysis/report/summary_pieces.h"

void summary_write_budget(const struct summary *s);

// Nothing where the diagnosis has no reference.
void summary_write_ordinary(const struct summary *s, const struct diagnosis *diagnosis);

#endif
