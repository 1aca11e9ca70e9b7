// SPDX-License-Identifier: MIT
#include "profiler/events_sparing.h"

void events_sparing_decide(struct events_sparing *sparing, uint64_t records, uint64_t ns)
{
    const double rate = ns ? (double)records / 2 * 1e9 / (double)ns : 0;
    const double above = (double)sparing->above;
    sparing->many = sparing->above && rate > (sparing->many ? above * 2 / 3 : above);
    sparing->on = sparing->many && sparing->in_a_row < SPARING_IN_A_ROW;
    sparing->in_a_row = sparing->on ? sparing->in_a_row + 1 : 0;
}
