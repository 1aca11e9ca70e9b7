// SPDX-License-Identifier: MIT
#include "loadgen/slo.h"

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
