// SPDX-License-Identifier: MIT
//
// Queues and head-of-line blocking on the terminal: who was ahead, and whose requests held up the
// others.
#ifndef ANALYSIS_REPORT_TERMINAL_SUMMARY_QUEUES_H
#define ANALYSIS_REPORT_TERMINAL_SUMMARY_QUEUES_H

#include "analysis/report/terminal/summary_pieces.h"

// In the short form: whose requests held up others for longest, where that is a cause to look at.
void summary_write_first_culprit(const struct summary *s, const struct diagnosis *diagnosis);

// How many messages were ahead, by kind, and who blocked most: at most six lines.
void summary_write_queues(const struct summary *s, const struct diagnosis *diagnosis);

#endif
