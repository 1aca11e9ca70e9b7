// SPDX-License-Identifier: MIT
//
// The texts of --sweep and --slo: what is accepted makes sense.
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "loadgen/slo.h"
#include "loadgen/sweep_range.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char text[100];
    struct sweep_range range;
    struct slo slo;
    struct error err;
    if (count >= sizeof text)
        return 0;
    memcpy(text, bytes, count);
    text[count] = '\0';
    if (sweep_range_parse(text, &range, &err) == 0) {
        assert(range.count >= 1 && range.count <= SWEEP_RATES_MAX);
        assert(sweep_range_rate(&range, range.count - 1) <= range.to);
        assert(sweep_range_rate(&range, 0) == range.from);
    }
    if (slo_parse(text, &slo, &err) == 0)
        assert(slo.quantile > 0 && slo.quantile < 1 && slo.limit_us > 0 &&
               slo_is_met(&slo, slo.limit_us) != slo.strict);
    return 0;
}
