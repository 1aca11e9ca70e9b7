// SPDX-License-Identifier: MIT
//
// Quantities as people write them: "20k", "256MiB", "10us", "1.5s", "0-2,5". Parsers take a whole
// string, allow no trailing garbage and no overflow, and do no I/O.
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

// A number with an optional decimal suffix k, M or G: "20k" is 20000, "1.5M" 1500000.
int units_parse_number(const char *text, double *out, struct error *err);

// The same, but it must be a whole number in [0, 2^53].
int units_parse_count(const char *text, uint64_t *out, struct error *err);

// A part of a whole: "5%" and "0.05" are 0.05.
int units_parse_share(const char *text, double *out, struct error *err);

// A duration with a mandatory suffix ns, us, ms, s, min or h, in nanoseconds. "0" is allowed bare.
int units_parse_duration_ns(const char *text, uint64_t *out, struct error *err);

// A size with an optional suffix B, kB, MB, GB, KiB, MiB or GiB, in bytes.
int units_parse_bytes(const char *text, uint64_t *out, struct error *err);

// A list of cores, as in Linux's cpu lists: "0", "0-2,5".
int units_parse_cores(const char *text, cpu_set_t *out, struct error *err);

// Writes the cores as such a list. Returns out.
char *units_format_cores(const cpu_set_t *cores, char *out, size_t out_bytes);

// Writes the cores in the form of the kernel's masks: hexadecimal words of 32 cores, highest first,
// "f,00000001". Returns out.
char *units_format_core_mask(const cpu_set_t *cores, char *out, size_t out_bytes);

// A number as it is printed with so many decimals: halves go away from zero, as on the report's
// page (printf would take them to the even digit).
double units_round(double value, int decimals);

// Writes a duration for people, three significant digits, in the unit in which what is printed is
// below 1000: "12.3 us", "4.56 ms", "1.00 s" of 999.9 ms; "never" of infinity, "-" of no number. As
// the report's page does (page_plot.js). Returns out.
char *units_format_ns(double ns, char *out, size_t out_bytes);

#endif
