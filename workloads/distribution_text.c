// SPDX-License-Identifier: MIT
#include "workloads/distribution_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fields.h"
#include "base/units.h"

enum parameter_kind {
    QUANTITY,    // in the distribution's unit, 0 or more
    SPREAD,      // the same, more than 0
    POSITIVE,    // a plain number, more than 0
    SHAPE,       // a plain number of either sign
    PROBABILITY, // 0 to 1
};

static const struct {
    unsigned count;
    enum parameter_kind kinds[DISTRIBUTION_PARAMETERS];
    const char *usage;
} forms[DISTRIBUTION_KINDS] = {
    [DISTRIBUTION_FIXED] = {1, {QUANTITY}, "VALUE"},
    [DISTRIBUTION_UNIFORM] = {2, {QUANTITY, QUANTITY}, "LOW,HIGH"},
    [DISTRIBUTION_EXPONENTIAL] = {1, {SPREAD}, "MEAN"},
    [DISTRIBUTION_NORMAL] = {2, {QUANTITY, SPREAD}, "MEAN,DEVIATION"},
    [DISTRIBUTION_LOGNORMAL] = {2, {SPREAD, POSITIVE}, "MEDIAN,SIGMA"},
    [DISTRIBUTION_PARETO] = {2, {SPREAD, POSITIVE}, "LEAST,SHAPE"},
    [DISTRIBUTION_GPD] = {3, {QUANTITY, SPREAD, SHAPE}, "LOCATION,SCALE,SHAPE"},
    [DISTRIBUTION_GEV] = {3, {QUANTITY, SPREAD, SHAPE}, "LOCATION,SCALE,SHAPE"},
    [DISTRIBUTION_BIMODAL] = {3, {QUANTITY, QUANTITY, PROBABILITY}, "ONE,OTHER,P(OTHER)"},
    [DISTRIBUTION_EMPIRICAL] = {1, {QUANTITY}, "FILE.csv"},
};

// --- reading -------------------------------------------------------------------------------------

static int parse_quantity(const char *text, enum distribution_unit unit, double *out,
                          struct error *err)
{
    uint64_t whole;
    if (unit == UNIT_NS) {
        if (units_parse_duration_ns(text, &whole, err) < 0)
            return -ERROR_INPUT;
        *out = (double)whole;
        return 0;
    }
    if (units_parse_number(text, out, err) == 0) // also fractions: a distribution's mean has one
        return 0;
    if (unit == UNIT_NONE || units_parse_bytes(text, &whole, err) < 0)
        return -ERROR_INPUT;
    *out = (double)whole;
    return 0;
}

static int parse_parameter(const char *text, enum parameter_kind kind, enum distribution_unit unit,
                           double *out, struct error *err)
{
    if (kind == QUANTITY || kind == SPREAD) {
        if (parse_quantity(text, unit, out, err) < 0)
            return -ERROR_INPUT;
        return *out > 0 || kind == QUANTITY
                   ? 0
                   : error_set(err, ERROR_INPUT, "%s must be more than 0; fixed:0 is always 0",
                               text);
    }
    bool minus = kind == SHAPE && *text == '-';
    if (units_parse_number(text + minus, out, err) < 0)
        return -ERROR_INPUT;
    *out = minus ? -*out : *out;
    if (kind == POSITIVE && !(*out > 0))
        return error_set(err, ERROR_INPUT, "%s must be more than 0", text);
    if (kind == PROBABILITY && *out > 1)
        return error_set(err, ERROR_INPUT, "the probability %s is more than 1", text);
    return 0;
}

static int resolve_kind(enum distribution_kind kind, const char *const *parameters,
                        enum distribution_unit unit, struct distribution *result, struct error *err)
{
    *result = (struct distribution){.kind = kind};
    double *const values[DISTRIBUTION_PARAMETERS] = {&result->first, &result->second,
                                                     &result->third};
    if (kind == DISTRIBUTION_EMPIRICAL)
        return distribution_load(parameters[0], result, err);
    for (unsigned i = 0; i < forms[kind].count; i++)
        if (parse_parameter(parameters[i], forms[kind].kinds[i], unit, values[i], err) < 0)
            return -ERROR_INPUT;
    if (kind == DISTRIBUTION_UNIFORM && result->first > result->second)
        return error_set(err, ERROR_INPUT, "[%s, %s] ends before it begins", parameters[0],
                         parameters[1]);
    return 0;
}

#define SEVERAL(name, entries, text)                                                               \
    {                                                                                              \
        name, FIELD_TEXTS, .low = entries, .high = entries, .help = text                           \
    }

static const struct field distribution_rows[] = {
    {"fixed", FIELD_TEXT, .help = "always this"},
    SEVERAL("uniform", "2", "between the two"),
    {"exponential", FIELD_TEXT, .help = "the mean"},
    SEVERAL("normal", "2", "mean and standard deviation"),
    SEVERAL("lognormal", "2", "median and the logarithm's standard deviation"),
    SEVERAL("pareto", "2", "least value and shape"),
    SEVERAL("gpd", "3", "generalised Pareto: location, scale, shape"),
    SEVERAL("gev", "3", "generalised extreme value: location, scale, shape"),
    SEVERAL("bimodal", "3", "one value, another, and the other's probability"),
    {"empirical", FIELD_TEXT, .help = "a file with one value a line, or \"value,weight\""},
};

static int read_distribution(const struct binding *binding, const struct node *node, void *object)
{
    const struct node *value = node_entry(node, 0);
    const char *parameters[DISTRIBUTION_PARAMETERS] = {node_text(value)};
    struct distribution result;
    struct error inner;
    unsigned kind = 0;
    if (!value)
        return 0;
    const char *name = node_text(node_entry_key(node, 0));
    if (node_count(node) > 1)
        return document_error(binding->document, node_entry_key(node, 1), binding->err,
                              "one distribution, please: %s or %s", name,
                              node_text(node_entry_key(node, 1)));
    while (strcmp(distribution_name((enum distribution_kind)kind), name) != 0)
        kind++;
    for (size_t i = 0; i < node_count(value); i++)
        parameters[i] = node_text(node_entry(value, i));
    if (resolve_kind((enum distribution_kind)kind, parameters, UNIT_BYTES, &result, &inner) < 0)
        return document_error(binding->document, value, binding->err, "%s: %s", name, inner.text);
    distribution_free(object);
    *(struct distribution *)object = result;
    return 0;
}

const struct fields distribution_fields =
    FIELDS(distribution_rows, struct distribution, .example = "e.g. `{fixed: 31}`",
           .check = read_distribution);

static int unknown_name(const char *text, struct error *err)
{
    char known[300];
    size_t used = 0;
    for (int kind = 0; kind < DISTRIBUTION_KINDS; kind++)
        used +=
            (size_t)snprintf(known + used, sizeof known - used, "%s%s:%s", kind ? ", " : "",
                             distribution_name((enum distribution_kind)kind), forms[kind].usage);
    return error_set(err, ERROR_INPUT, "\"%s\" is no distribution; write one of %s", text, known);
}

static int parse_kind(enum distribution_kind kind, char *rest, enum distribution_unit unit,
                      struct distribution *distribution, struct error *err)
{
    const char *parameters[DISTRIBUTION_PARAMETERS] = {0};
    char *next = rest;
    unsigned count = 0;
    while (next && count < forms[kind].count) {
        parameters[count++] = next;
        // A file's name may hold commas.
        next = kind == DISTRIBUTION_EMPIRICAL ? NULL : strchr(next, ',');
        if (next)
            *next++ = '\0';
    }
    if (next || count < forms[kind].count)
        return error_set(err, ERROR_INPUT, "write %s:%s", distribution_name(kind),
                         forms[kind].usage);
    int result = resolve_kind(kind, parameters, unit, distribution, err);
    return result < 0 ? error_prefix(err, "%s", distribution_name(kind)) : 0;
}

int distribution_parse(const char *text, enum distribution_unit unit,
                       struct distribution *distribution, struct error *err)
{
    size_t name_bytes = strcspn(text, ":");
    if (!text[name_bytes])
        return unknown_name(text, err);
    for (int i = 0; i < DISTRIBUTION_KINDS; i++) {
        enum distribution_kind kind = (enum distribution_kind)i;
        const char *name = distribution_name(kind);
        if (strlen(name) != name_bytes || strncmp(text, name, name_bytes) != 0)
            continue;
        char *rest = strdup(text + name_bytes + 1);
        if (!rest)
            return error_set(err, ERROR_FAILED, "out of memory");
        int result = parse_kind(kind, rest, unit, distribution, err);
        free(rest);
        return result;
    }
    return unknown_name(text, err);
}

int arrivals_parse(const char *text, struct distribution *gaps, struct error *err)
{
    static const struct distribution plain[] = {{.kind = DISTRIBUTION_EXPONENTIAL, .first = 1},
                                                {.kind = DISTRIBUTION_FIXED, .first = 1},
                                                {.kind = DISTRIBUTION_UNIFORM, .second = 2}};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        if (strcmp(text, distribution_name(plain[i].kind)) == 0) {
            *gaps = plain[i];
            return 0;
        }
    }
    if (!strchr(text, ':'))
        return error_set(err, ERROR_INPUT,
                         "\"%s\" is neither exponential, fixed, uniform nor a distribution like "
                         "lognormal:1,0.5",
                         text);
    if (distribution_parse(text, UNIT_NONE, gaps, err) < 0)
        return -(int)err->kind;
    double mean = distribution_mean(gaps);
    if (mean > 0 && isfinite(mean))
        return 0;
    distribution_free(gaps);
    return error_set(err, ERROR_INPUT,
                     "\"%s\" cannot be scaled to a rate: the mean gap is %s (a smaller tail, "
                     "please)",
                     text, mean > 0 ? "infinite" : "0");
}

// --- writing -------------------------------------------------------------------------------------

static json_t *parameter_to_json(double value, enum parameter_kind kind,
                                 enum distribution_unit unit)
{
    if (unit == UNIT_NS && (kind == QUANTITY || kind == SPREAD))
        return json_sprintf("%.0fns", value);
    if (value == floor(value) && fabs(value) < 0x1p53)
        return json_integer((json_int_t)value);
    return json_real(value);
}

json_t *distribution_to_json(const struct distribution *distribution, enum distribution_unit unit)
{
    enum distribution_kind kind = distribution->kind;
    const double values[DISTRIBUTION_PARAMETERS] = {distribution->first, distribution->second,
                                                    distribution->third};
    if (kind == DISTRIBUTION_EMPIRICAL)
        return json_pack("{s:s}", distribution_name(kind), distribution->table->path);
    if (forms[kind].count == 1)
        return json_pack("{s:o}", distribution_name(kind),
                         parameter_to_json(values[0], forms[kind].kinds[0], unit));
    json_t *array = json_array();
    for (unsigned i = 0; i < forms[kind].count; i++)
        json_array_append_new(array, parameter_to_json(values[i], forms[kind].kinds[i], unit));
    return json_pack("{s:o}", distribution_name(kind), array);
}

char *distribution_format(const struct distribution *distribution, enum distribution_unit unit,
                          char *out, size_t out_bytes)
{
    enum distribution_kind kind = distribution->kind;
    const double values[DISTRIBUTION_PARAMETERS] = {distribution->first, distribution->second,
                                                    distribution->third};
    if (kind == DISTRIBUTION_EMPIRICAL) {
        snprintf(out, out_bytes, "%s:%s", distribution_name(kind), distribution->table->path);
        return out;
    }
    size_t used = (size_t)snprintf(out, out_bytes, "%s", distribution_name(kind));
    for (unsigned i = 0; i < forms[kind].count && used < out_bytes; i++) {
        enum parameter_kind parameter = forms[kind].kinds[i];
        bool time = unit == UNIT_NS && (parameter == QUANTITY || parameter == SPREAD);
        used += (size_t)snprintf(out + used, out_bytes - used, time ? "%c%.0fns" : "%c%.15g",
                                 i ? ',' : ':', values[i]);
    }
    return out;
}

char *arrivals_format(const struct distribution *gaps, char *out, size_t out_bytes)
{
    bool plain = gaps->kind == DISTRIBUTION_EXPONENTIAL || gaps->kind == DISTRIBUTION_FIXED ||
                 (gaps->kind == DISTRIBUTION_UNIFORM && gaps->first <= 0);
    if (!plain)
        return distribution_format(gaps, UNIT_NONE, out, out_bytes);
    snprintf(out, out_bytes, "%s", distribution_name(gaps->kind));
    return out;
}
