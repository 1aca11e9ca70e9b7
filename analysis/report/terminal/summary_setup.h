// SPDX-License-Identifier: MIT
//
// The terminal summary's part on how the run was set up: what was tuned, and what loads ran beside.
#ifndef ANALYSIS_REPORT_TERMINAL_SUMMARY_SETUP_H
#define ANALYSIS_REPORT_TERMINAL_SUMMARY_SETUP_H

#include "analysis/report/terminal/summary_pieces.h"

// The settings that were not applied, and the neighbours' loads; the full one has every setting.
void summary_write_setup(const struct summary *s);

#endif
