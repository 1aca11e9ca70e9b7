// SPDX-License-Identifier: MIT
#include "loadgen/method/standstill.h"

#include <stdio.h>

#include "base/text.h"

static const double least_s = 0.05; // less is any machine's

bool standstill_words(const struct engine_result *run, char *out, size_t out_bytes)
{
    const double lasted_s = (double)run->standstill.lasted_tsc / run->tsc_hz;
    const double at_s = (double)(int64_t)(run->standstill.at_tsc - run->start_tsc) / run->tsc_hz;
    *out = '\0';
    if (!(lasted_s >= least_s))
        return false;
    snprintf(out, out_bytes, "stood still for %s, %s after the begin (stopped, or without a core)",
             TEXT_NS(1e9 * lasted_s), TEXT_NS(1e9 * at_s));
    return true;
}
