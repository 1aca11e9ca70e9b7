// SPDX-License-Identifier: MIT
#include "analysis/compare/gate.h"

#include <stdio.h>

char *gate_words(const struct gate *gate, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "%s at most %s%s", gate->name,
             gate->limit == GATE_MAX_INCREASE ? "+" : "", gate->text);
    return out;
}
