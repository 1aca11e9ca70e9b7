// SPDX-License-Identifier: MIT
//
// JSON: numbers, of which it has no infinite or unknown ones (RFC 8259, 6): they become null; and
// documents on stdout and in files.
#ifndef BASE_JSON_NUMBERS_H
#define BASE_JSON_NUMBERS_H

#include <jansson.h>

#include "base/error.h"
#include "base/quantile.h"

// The caller owns what is returned; NULL: out of memory.
json_t *json_number_or_null(double value);

// Sets a percentile of latencies in an object under its name. One that requests without an answer
// reach (infinite) is null; one that too few requests reach (NaN; quantile_is_seen) is left out, so
// that nobody takes it for the other.
void json_set_percentile(json_t *object, const char *name, double value);

// Reads one back.
double json_percentile(const json_t *object, const char *name);

// [low, high].
json_t *json_number_pair(double low, double high);

// [low, high] of an interval, or null if it is not known.
json_t *json_interval_or_null(const struct quantile_interval *interval);

enum { JSON_FOR_PEOPLE = JSON_INDENT(2) | JSON_REAL_PRECISION(12) };

// Prints a document and a newline on stdout, at once, and frees it. flags: json_dumpf's. NULL, and
// what cannot be printed, is ERROR_FAILED "cannot print <what>".
int json_print_new(json_t *document, size_t flags, const char *what, struct error *err);

// Writes a document and a newline as a new file (base/new_file.h).
int json_write(const json_t *document, size_t flags, const char *path, struct error *err);

#endif
