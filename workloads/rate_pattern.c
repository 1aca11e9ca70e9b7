// SPDX-License-Identifier: MIT
#include "workloads/rate_pattern.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

static const struct {
    const char *name;
    unsigned least, most;
} forms[] = {[PATTERN_CONSTANT] = {"constant", 0, 0},
             [PATTERN_STEP] = {"step", 2, PATTERN_VALUES},
             [PATTERN_RAMP] = {"ramp", 2, 2},
             [PATTERN_DIURNAL] = {"diurnal", 1, 2}};
enum { KINDS = sizeof forms / sizeof *forms };

static int parse_values(const char *at, struct rate_pattern *pattern, struct error *err)
{
    while (*at) {
        char word[40];
        size_t bytes = strcspn(at, ",");
        if (pattern->count == forms[pattern->kind].most || bytes >= sizeof word)
            return error_set(err, ERROR_INPUT, "%s takes at most %u factors",
                             forms[pattern->kind].name, forms[pattern->kind].most);
        memcpy(word, at, bytes);
        word[bytes] = '\0';
        if (units_parse_number(word, &pattern->values[pattern->count++], err) < 0)
            return -ERROR_INPUT;
        at += bytes;
        at += *at == ',';
    }
    return 0;
}

static int check_values(const char *text, const struct rate_pattern *pattern, struct error *err)
{
    double integral = rate_pattern_integral(pattern, 1);
    if (pattern->count < forms[pattern->kind].least)
        return error_set(err, ERROR_INPUT, "%s takes at least %u numbers",
                         forms[pattern->kind].name, forms[pattern->kind].least);
    if (pattern->kind == PATTERN_DIURNAL && !(pattern->values[0] <= 1 && pattern->values[1] > 0))
        return error_set(err, ERROR_INPUT,
                         "%s: the amplitude must be at most 1 and the days more than 0", text);
    if (!(integral > 0) || !isfinite(integral))
        return error_set(err, ERROR_INPUT, "%s: no request would ever be sent", text);
    return 0;
}

int rate_pattern_parse(const char *text, struct rate_pattern *pattern, struct error *err)
{
    size_t name_bytes = strcspn(text, ":");
    for (unsigned kind = 0; kind < KINDS; kind++) {
        if (strlen(forms[kind].name) != name_bytes ||
            strncmp(text, forms[kind].name, name_bytes) != 0)
            continue;
        struct rate_pattern result = {.kind = (enum rate_pattern_kind)kind};
        const char *rest = text + name_bytes;
        if (parse_values(rest + (*rest == ':'), &result, err) < 0)
            return -ERROR_INPUT;
        if (kind == PATTERN_DIURNAL && result.count == 1)
            result.values[result.count++] = 1;
        if (check_values(text, &result, err) < 0)
            return -ERROR_INPUT;
        *pattern = result;
        return 0;
    }
    return error_set(err, ERROR_INPUT,
                     "\"%s\" is no pattern; write constant, step:0.5,1,2, ramp:0.5,1.5 or "
                     "diurnal:0.4",
                     text);
}

char *rate_pattern_format(const struct rate_pattern *pattern, char *out, size_t out_bytes)
{
    size_t used = (size_t)snprintf(out, out_bytes, "%s", forms[pattern->kind].name);
    for (unsigned i = 0; i < pattern->count && used < out_bytes; i++)
        used += (size_t)snprintf(out + used, out_bytes - used, "%c%.15g", i ? ',' : ':',
                                 pattern->values[i]);
    return out;
}

double rate_pattern_integral(const struct rate_pattern *pattern, double x)
{
    const double *v = pattern->values;
    double sum = 0, angle, length = 1.0 / (pattern->count ? pattern->count : 1);
    switch (pattern->kind) {
    case PATTERN_CONSTANT:
        return x;
    case PATTERN_STEP:
        for (unsigned i = 0; i < pattern->count; i++)
            sum += v[i] * fmax(fmin(x - i * length, length), 0);
        return sum;
    case PATTERN_RAMP:
        return x * (v[0] + (v[1] - v[0]) * x / 2);
    case PATTERN_DIURNAL:
        angle = 2 * M_PI * v[1];
        return x + v[0] * (1 - cos(angle * x)) / angle;
    }
    return NAN;
}

double rate_pattern_inverse(const struct rate_pattern *pattern, double integral, double from)
{
    double low = from, high = 1;
    if (pattern->kind == PATTERN_CONSTANT)
        return fmin(integral, 1);
    if (rate_pattern_integral(pattern, high) <= integral)
        return 1;
    // It only grows. Neighbours are near: widen from `from`, then halve to 2^-50 of the run.
    for (double step = 1e-6; low + step < 1; step *= 4) {
        if (rate_pattern_integral(pattern, low + step) > integral) {
            high = low + step;
            break;
        }
        low += step;
    }
    while (high - low > 0x1p-50) {
        double middle = low + (high - low) / 2;
        if (rate_pattern_integral(pattern, middle) > integral)
            high = middle;
        else
            low = middle;
    }
    return high;
}
