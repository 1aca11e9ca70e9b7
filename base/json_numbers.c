// SPDX-License-Identifier: MIT
#include "base/json_numbers.h"

#include <math.h>
#include <stdio.h>

#include "base/new_file.h"

json_t *json_number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

void json_set_percentile(json_t *object, const char *name, double value)
{
    if (!isnan(value))
        json_object_set_new(object, name, json_number_or_null(value));
}

double json_percentile(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_number(value))
        return json_is_null(value) ? (double)INFINITY : (double)NAN;
    return json_number_value(value);
}

json_t *json_number_pair(double low, double high)
{
    return json_pack("[o,o]", json_number_or_null(low), json_number_or_null(high));
}

json_t *json_interval_or_null(const struct quantile_interval *interval)
{
    return interval->known ? json_number_pair(interval->low, interval->high) : json_null();
}

int json_print_new(json_t *document, size_t flags, const char *what, struct error *err)
{
    if (!document)
        return error_set(err, ERROR_FAILED, "cannot print %s: out of memory", what);
    int written = json_dumpf(document, stdout, flags);
    json_decref(document);
    if (written < 0 || putchar('\n') == EOF || fflush(stdout) == EOF)
        return error_set_errno(err, ERROR_FAILED, "cannot print %s", what);
    return 0;
}

int json_write(const json_t *document, size_t flags, const char *path, struct error *err)
{
    struct new_file out;
    int result = new_file_open(&out, path, err);
    if (result < 0)
        return result;
    if (json_dumpf(document, out.file, flags) < 0 && !ferror(out.file))
        result = error_set(err, ERROR_FAILED,
                           "cannot write %s: out of memory, or text that is "
                           "not UTF-8",
                           path);
    fputc('\n', out.file);
    return new_file_finish(&out, result, err);
}
