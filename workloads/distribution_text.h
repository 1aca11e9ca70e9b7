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

#include <cyaml/cyaml.h>
#include <jansson.h>

#include "base/error.h"
#include "workloads/distribution.h"

// What the values are, hence how they may be written. Shapes and probabilities are plain numbers.
enum distribution_unit {
    UNIT_NONE,  // plain numbers
    UNIT_BYTES, // "200", "1.5", "4KiB"
    UNIT_NS,    // "10us", "1.5ms"; kept in nanoseconds
};

enum { DISTRIBUTION_PARAMETERS = 3 };

// The text form, as libcyaml fills it in. NULL: absent.
struct distribution_text {
    char *parameters[DISTRIBUTION_KINDS][DISTRIBUTION_PARAMETERS];
};
extern const cyaml_schema_field_t distribution_text_fields[];

// Resolves a mapping. `path` begins the error's text. Returns 1 when the mapping is empty (nothing
// changed), 0, or -ERROR_INPUT. Frees the table that *distribution had.
int distribution_resolve(const struct distribution_text *text, enum distribution_unit unit,
                         const char *path, struct distribution *distribution, struct error *err);

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
