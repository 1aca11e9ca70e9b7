// SPDX-License-Identifier: MIT
#include "analysis/compare/gate.h"

#include <stdbool.h>
#include <stdio.h>

char *gate_words(const struct gate *gate, char *out, size_t out_bytes)
{
    const bool named = gate->load[0];
    snprintf(out, out_bytes, "%s%s%s%s at most %s%s", gate->name, named ? " of load `" : "",
             gate->load, named ? "`" : "", gate->limit == GATE_MAX_INCREASE ? "+" : "", gate->text);
    return out;
}
