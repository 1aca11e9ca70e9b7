// SPDX-License-Identifier: MIT
//
// Which of the formats a scraper gets.
#ifndef EXPERIMENTS_WATCH_METRIC_FORMATS_H
#define EXPERIMENTS_WATCH_METRIC_FORMATS_H

#include "experiments/watch/metric_format.h"

// The one that an HTTP request's Accept header likes best (RFC 9110, 12.5.1); OpenMetrics where it
// names neither, or there is none (NULL).
const struct metric_format *metric_format_accepted(const char *accept);

#endif
