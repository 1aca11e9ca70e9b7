// SPDX-License-Identifier: MIT
#include "base/units.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct suffix {
    const char *text;
    double factor;
};

// Splits "<number><suffix>" and multiplies. strtod would also accept hexadecimal, infinities and
// NaN, but nobody means them: they are refused.
static int parse_scaled(const char *text, const struct suffix *suffixes, const char *what,
                        const char *example, double *out, struct error *err)
{
    bool hexadecimal = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    if (((text[0] >= '0' && text[0] <= '9') || text[0] == '.') && !hexadecimal) {
        char *end;
        errno = 0;
        double value = strtod(text, &end);
        if (end != text && errno == 0 && isfinite(value)) {
            for (const struct suffix *s = suffixes; s->text; s++) {
                if (strcmp(end, s->text) == 0) {
                    *out = value * s->factor;
                    return 0;
                }
            }
        }
    }
    if (text[0] == '-' && ((text[1] >= '0' && text[1] <= '9') || text[1] == '.'))
        return error_set(err, ERROR_INPUT, "\"%s\" is negative (write it like %s)", text, example);
    return error_set(err, ERROR_INPUT, "\"%s\" is not %s (write it like %s)", text, what, example);
}

int units_parse_number(const char *text, double *out, struct error *err)
{
    static const struct suffix suffixes[] = {{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {0}};
    return parse_scaled(text, suffixes, "a number", "20000, 20k or 1.5M", out, err);
}

int units_parse_count(const char *text, uint64_t *out, struct error *err)
{
    double value;
    int result = units_parse_number(text, &value, err);
    if (result < 0)
        return result;
    if (value > 9007199254740992.0 || value != floor(value))
        return error_set(err, ERROR_INPUT, "\"%s\" is not a whole number", text);
    *out = (uint64_t)value;
    return 0;
}

int units_parse_share(const char *text, double *out, struct error *err)
{
    static const struct suffix suffixes[] = {{"%", 0.01}, {"", 1}, {0}};
    return parse_scaled(text, suffixes, "a share", "5% or 0.05", out, err);
}

int units_parse_duration_ns(const char *text, uint64_t *out, struct error *err)
{
    static const struct suffix suffixes[] = {{"ns", 1},   {"us", 1e3},   {"ms", 1e6},   {"s", 1e9},
                                             {"m", 6e10}, {"min", 6e10}, {"h", 3.6e12}, {0}};
    double value;
    if (strcmp(text, "0") == 0) {
        *out = 0;
        return 0;
    }
    int result = parse_scaled(text, suffixes, "a duration", "10us, 250ms or 10s", &value, err);
    if (result < 0)
        return result;
    if (value > 9.2e18)
        return error_set(err, ERROR_INPUT, "\"%s\" is longer than 292 years", text);
    *out = (uint64_t)llround(value);
    return 0;
}

int units_parse_bytes(const char *text, uint64_t *out, struct error *err)
{
    static const struct suffix suffixes[] = {
        {"", 1},    {"B", 1},      {"kB", 1e3},       {"MB", 1e6},          {"GB", 1e9},
        {"k", 1e3}, {"KiB", 1024}, {"MiB", 1048576.}, {"GiB", 1073741824.}, {0}};
    double value;
    int result = parse_scaled(text, suffixes, "a size", "4096, 200B or 256MiB", &value, err);
    if (result < 0)
        return result;
    if (value > 9007199254740992.0 || value != floor(value))
        return error_set(err, ERROR_INPUT, "\"%s\" is not a whole number of bytes", text);
    *out = (uint64_t)value;
    return 0;
}

int units_parse_cores(const char *text, cpu_set_t *out, struct error *err)
{
    CPU_ZERO(out);
    const char *at = text;
    for (;;) {
        char *end;
        if (*at < '0' || *at > '9')
            break;
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (*end == '-') {
            at = end + 1;
            if (*at < '0' || *at > '9')
                break;
            last = strtoul(at, &end, 10);
        }
        if (first > last || last >= CPU_SETSIZE)
            break;
        for (unsigned long core = first; core <= last; core++)
            CPU_SET(core, out);
        if (*end == '\0')
            return 0;
        if (*end != ',')
            break;
        at = end + 1;
    }
    return error_set(err, ERROR_INPUT, "\"%s\" is not a list of cores (write it like 0-2,5)", text);
}

char *units_format_cores(const cpu_set_t *cores, char *out, size_t out_bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (int core = 0; core < CPU_SETSIZE && used < out_bytes; core++) {
        if (!CPU_ISSET((size_t)core, cores))
            continue;
        int last = core;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET((size_t)last + 1, cores))
            last++;
        int n = last == core ? snprintf(out + used, out_bytes - used, "%s%d", used ? "," : "", core)
                             : snprintf(out + used, out_bytes - used, "%s%d-%d", used ? "," : "",
                                        core, last);
        used += n > 0 ? (size_t)n : 0;
        core = last;
    }
    return out;
}

char *units_format_core_mask(const cpu_set_t *cores, char *out, size_t out_bytes)
{
    int highest = CPU_SETSIZE - 1;
    size_t used = 0;
    while (highest > 0 && !CPU_ISSET((size_t)highest, cores))
        highest--;
    for (int word = highest / 32; word >= 0 && used < out_bytes; word--) {
        unsigned bits = 0;
        for (int bit = 0; bit < 32; bit++)
            if (CPU_ISSET((size_t)(word * 32 + bit), cores))
                bits |= 1u << bit;
        used += (size_t)snprintf(out + used, out_bytes - used,
                                 word == highest / 32 ? "%x" : ",%08x", bits);
    }
    return out;
}

double units_round(double value, int decimals)
{
    const double steps = pow(10, decimals);
    return round(value * steps) / steps;
}

char *units_format_ns(double ns, char *out, size_t out_bytes)
{
    // What rounds to 1000 of a unit is 1 of the next.
    static const struct suffix scales[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
    if (!isfinite(ns)) {
        snprintf(out, out_bytes, "%s", isnan(ns) ? "-" : "never");
        return out;
    }
    size_t i = 0;
    while (i < 3 && fabs(ns) < 999.5 * scales[i + 1].factor)
        i++;
    const double value = ns / scales[i].factor, size = fabs(value);
    const int decimals = size >= 99.95 || i == 3 ? 0 : size >= 9.995 ? 1 : 2;
    snprintf(out, out_bytes, "%.*f %s", decimals, units_round(value, decimals), scales[i].text);
    return out;
}
