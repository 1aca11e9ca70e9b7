// SPDX-License-Identifier: MIT
//
// Numbers as JSON. JSON has no infinite or unknown numbers (RFC 8259, 6): they become null.
#ifndef BASE_JSON_NUMBERS_H
#define BASE_JSON_NUMBERS_H

#include <jansson.h>

#include "base/quantile.h"

// The caller owns what is returned; NULL: out of memory.
json_t *json_number_or_null(double value);

// [low, high].
json_t *json_number_pair(double low, double high);

// [low, high] of an interval, or null if it is not known.
json_t *json_interval_or_null(const struct quantile_interval *interval);

#endif
