// SPDX-License-Identifier: MIT
//
// "p99-100", "p20-p30", "99.9-100", ">500us": which messages to explain, read from what the user
// wrote and printed again.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diagnosis/diagnosis.h"
#include "base/text.h"
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

int diagnosis_slice_parse_message(const char *text, struct diagnosis_slice *out, struct error *err)
{
    size_t digits = strspn(text, "0123456789");
    errno = 0;
    unsigned long long request = strtoull(text, NULL, 10);
    if (digits == 0 || text[digits] != '\0' || errno == ERANGE)
        return error_set(
            err, ERROR_INPUT,
            "'%s' is not the number of a request, such as 1234 (run.db, the report and "
            "the samples number them from 0)",
            text);
    *out = (struct diagnosis_slice){.low = 0, .high = 1, .one = true, .request = request};
    return 0;
}

char *diagnosis_slice_words(const struct diagnosis_slice *slice, char *out, size_t out_bytes)
{
    char bound[32];
    bool all = slice->low <= 0 && slice->high >= 1;
    int used = 0;
    out[0] = '\0';
    if (slice->one)
        snprintf(out, out_bytes, "request %llu", (unsigned long long)slice->request);
    else if (!all)
        used = snprintf(out, out_bytes, "p%.6g-p%.6g", slice->low * 100, slice->high * 100);
    if (slice->min_latency_ns > 0 && (size_t)used < out_bytes)
        snprintf(out + used, out_bytes - (size_t)used, "%sover %s", used ? ", " : "",
                 units_format_ns(slice->min_latency_ns, bound, sizeof bound));
    else if (all && !slice->one)
        snprintf(out, out_bytes, "every message");
    return out;
}

char *diagnosis_slice_label(const struct diagnosis_slice *slice, int64_t begin_ns, char *out,
                            size_t out_bytes)
{
    char what[96], window[96] = "whole run";
    if (slice->from_ns != slice->to_ns)
        snprintf(window, sizeof window, "%s to %s",
                 TEXT_INSTANT((double)(slice->from_ns - begin_ns)),
                 TEXT_INSTANT((double)(slice->to_ns - begin_ns)));
    snprintf(out, out_bytes, "%s, %s", diagnosis_slice_words(slice, what, sizeof what), window);
    return out;
}

char *diagnosis_messages_words(const struct diagnosis *diagnosis, char *out, size_t out_bytes)
{
    char taken[32], all[32];
    const size_t count = diagnosis->messages.count;
    text_count(count, taken);
    if (diagnosis->passed_over)
        snprintf(out, out_bytes, "%s of %s messages, evenly chosen", taken,
                 text_count(count + diagnosis->passed_over, all));
    else
        snprintf(out, out_bytes, "%s message%s", taken, text_plural((double)count));
    return out;
}

bool diagnosis_slice_is_same(const struct diagnosis_slice *a, const struct diagnosis_slice *b)
{
    return fabs(a->low - b->low) < 1e-9 && fabs(a->high - b->high) < 1e-9 &&
           a->min_latency_ns == b->min_latency_ns && a->from_ns == b->from_ns &&
           a->to_ns == b->to_ns && a->relative == b->relative && a->one == b->one &&
           a->request == b->request && a->of_application == b->of_application &&
           a->application == b->application;
}

int64_t diagnosis_slice_add(struct diagnosis_slice_array *all, const struct diagnosis_slice *slice)
{
    for (size_t i = 0; i < all->count; i++)
        if (diagnosis_slice_is_same(&all->items[i], slice))
            return (int64_t)i;
    return array_push(all, *slice) < 0 ? -1 : (int64_t)all->count - 1;
}
