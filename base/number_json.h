// SPDX-License-Identifier: MIT
//
// Numbers as JSON has them: it knows no infinity and nothing that is no number, which a latency
// that was never answered, or an interval that is not known, may be.
#ifndef BASE_NUMBER_JSON_H
#define BASE_NUMBER_JSON_H

#include <jansson.h>
#include <math.h>

// The caller owns it; null for what is not finite.
static inline json_t *number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

#endif
