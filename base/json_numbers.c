// SPDX-License-Identifier: MIT
#include "base/json_numbers.h"

#include <math.h>

json_t *json_number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *json_number_pair(double low, double high)
{
    return json_pack("[o,o]", json_number_or_null(low), json_number_or_null(high));
}

json_t *json_interval_or_null(const struct quantile_interval *interval)
{
    return interval->known ? json_number_pair(interval->low, interval->high) : json_null();
}
