// SPDX-License-Identifier: MIT
//
// Distributions as people write them: in YAML ({gpd: [0, 214.476, 0.348238]}, {fixed: 1KiB}) and on
// a command line ("gpd:0,214.476,0.348238", "fixed:10us"). Written back, they read as the same.
//
//     fixed: VALUE                       normal: [MEAN, DEVIATION]
//     uniform: [LOW, HIGH]               lognormal: [MEDIAN, SIGMA]
//     exponential: MEAN                  pareto: [LEAST, SHAPE]
//     bimodal: [ONE, OTHER, P(OTHER)]    gpd, gev: [LOCATION, SCALE, SHAPE]
//     empirical: FILE.csv                one value a line, or "value,weight"
#ifndef WORKLOADS_DISTRIBUTION_TEXT_H
#define WORKLOADS_DISTRIBUTION_TEXT_H

#include <jansson.h>

#include "base/error.h"
#include "workloads/distribution.h"

struct fields;

// What the values are, hence how they may be written. Shapes and probabilities are plain numbers.
enum distribution_unit {
    UNIT_NONE,  // plain numbers
    UNIT_BYTES, // "200", "1.5", "4KiB"
    UNIT_NS,    // "10us", "1.5ms"; kept in nanoseconds
};

enum { DISTRIBUTION_PARAMETERS = 3 };

// The keys of the mapping, of which one is given: into a struct distribution of bytes. Frees the
// table that it had.
extern const struct fields distribution_fields;

// Parses "name:a,b,c"; the caller frees it with distribution_free. ERROR_INPUT names what is wrong.
int distribution_parse(const char *text, enum distribution_unit unit,
                       struct distribution *distribution, struct error *err);

// Arrivals: "exponential" (a Poisson process), "fixed", "uniform" (from none to twice the mean), or
// a distribution as above in plain numbers, of which only the shape counts: gaps are scaled to the
// rate. Its mean must be finite and more than 0. The caller frees it with distribution_free.
int arrivals_parse(const char *text, struct distribution *gaps, struct error *err);

// Writes them back in that form. Returns out.
char *arrivals_format(const struct distribution *gaps, char *out, size_t out_bytes);

// Writes "gpd:0,214.476,0.348238". Returns out.
char *distribution_format(const struct distribution *distribution, enum distribution_unit unit,
                          char *out, size_t out_bytes);

// {"gpd": [0, 214.476, 0.348238]}. UNIT_NS is written as "16029ns". NULL: no memory.
json_t *distribution_to_json(const struct distribution *distribution, enum distribution_unit unit);

#endif
