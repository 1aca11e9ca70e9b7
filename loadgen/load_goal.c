// SPDX-License-Identifier: MIT
#include "loadgen/load_goal.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

int slo_parse(const char *text, struct slo *slo, struct error *err)
{
    char *end = NULL;
    double percentile =
        *text == 'p' && text[1] >= '0' && text[1] <= '9' ? strtod(text + 1, &end) : 0;
    if (!end || !(percentile > 0 && percentile < 100))
        return error_set(err, ERROR_INPUT,
                         "\"%s\" does not begin with a percentile; it is like p99<=200us", text);
    end += strspn(end, " ");
    if (*end != '<')
        return error_set(err, ERROR_INPUT, "\"%s\": <= or < must follow the percentile", text);
    bool strict = end[1] != '=';
    uint64_t limit_ns;
    const char *limit = end + (strict ? 1 : 2);
    limit += strspn(limit, " ");
    if (units_parse_duration_ns(limit, &limit_ns, err) < 0)
        return error_prefix(err, "\"%s\"", text);
    if (limit_ns == 0)
        return error_set(err, ERROR_INPUT, "\"%s\": the limit must be more than 0", text);
    *slo = (struct slo){percentile / 100, (double)limit_ns / 1e3, strict};
    return 0;
}

bool slo_is_met(const struct slo *slo, double us)
{
    return slo->strict ? us < slo->limit_us : us <= slo->limit_us;
}

// fraction of a step, for rounding: 0.1 three times is not quite 0.3
static const double rounding = 1e-9;

static int parse_sweep_number(const char *begin, const char *end, double *rate, struct error *err)
{
    char text[32];
    size_t bytes = (size_t)(end - begin);
    if (bytes >= sizeof text)
        return error_set(err, ERROR_INPUT, "a number of %zu characters", bytes);
    memcpy(text, begin, bytes);
    text[bytes] = '\0';
    return units_parse_number(text, rate, err);
}

int sweep_range_parse(const char *text, struct sweep_range *range, struct error *err)
{
    const char *first = strchr(text, ':');
    const char *second = first ? strchr(first + 1, ':') : NULL;
    if (!second)
        return error_set(err, ERROR_INPUT,
                         "\"%s\" is not FROM:TO:STEP, like 10k:200k:10k or 1k:64k:x2", text);
    *range = (struct sweep_range){.geometric = second[1] == 'x'};
    const char *step = second + 1 + range->geometric;
    if (parse_sweep_number(text, first, &range->from, err) < 0 ||
        parse_sweep_number(first + 1, second, &range->to, err) < 0 ||
        parse_sweep_number(step, step + strlen(step), &range->step, err) < 0)
        return error_prefix(err, "\"%s\"", text);
    if (!(range->from > 0 && range->to >= range->from && isfinite(range->to)))
        return error_set(err, ERROR_INPUT, "\"%s\": 0 < FROM <= TO is needed", text);
    if (range->to > LOAD_RATE_MAX)
        return error_set(err, ERROR_INPUT, "\"%s\": TO must be at most 100M", text);
    if (!(range->step > range->geometric))
        return error_set(err, ERROR_INPUT, "\"%s\": STEP must be more than %s", text,
                         range->geometric ? "x1" : "0");
    double steps = range->geometric ? log(range->to / range->from) / log(range->step)
                                    : (range->to - range->from) / range->step;
    if (!(steps + rounding < SWEEP_RATES_MAX))
        return error_set(err, ERROR_INPUT, "\"%s\" are more than %d rates", text, SWEEP_RATES_MAX);
    range->count = (size_t)(steps + rounding) + 1;
    return 0;
}

double sweep_range_rate(const struct sweep_range *range, size_t i)
{
    double rate = range->geometric ? range->from * pow(range->step, (double)i)
                                   : range->from + range->step * (double)i;
    return fmin(rate, range->to);
}
