// SPDX-License-Identifier: MIT
//
// "p99-100", "p20-p30", "99.9-100", ">500us": which messages to explain, as a person writes it.
#include <stdlib.h>
#include <string.h>

#include "analysis/diagnosis.h"
#include "base/units.h"

static const char *skip_spaces(const char *text)
{
    return text + strspn(text, " \t");
}

// A percentile with an optional "p" in front; advances *text past it.
static int parse_percentile(const char **text, double *quantile)
{
    const char *at = skip_spaces(*text);
    if (*at == 'p' || *at == 'P')
        at++;
    if (strspn(at, "0123456789.") == 0) // no signs, exponents, "inf" or "nan"
        return -1;
    char *end;
    double percentile = strtod(at, &end);
    if (end != at + strspn(at, "0123456789.") || percentile < 0 || percentile > 100)
        return -1;
    *quantile = percentile / 100;
    *text = skip_spaces(end);
    return 0;
}

int diagnosis_slice_parse(const char *text, struct diagnosis_slice *out, struct error *err)
{
    const char *at = skip_spaces(text);
    *out = (struct diagnosis_slice){.low = 0, .high = 1};
    if (*at == '>') {
        uint64_t bound;
        int result = units_parse_duration_ns(skip_spaces(at + 1), &bound, err);
        if (result < 0)
            return error_prefix(err, "slice '%s'", text);
        out->min_latency_ns = (double)bound;
        return 0;
    }
    if (parse_percentile(&at, &out->low) < 0 || *at != '-')
        goto bad;
    at++;
    if (parse_percentile(&at, &out->high) < 0 || *at != '\0' || out->low >= out->high)
        goto bad;
    return 0;
bad:
    return error_set(err, ERROR_INPUT,
                     "slice '%s': neither percentiles from low to high, such as p99-100, nor a "
                     "latency, such as >500us",
                     text);
}
