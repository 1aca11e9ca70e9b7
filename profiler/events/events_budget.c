// SPDX-License-Identifier: MIT
#include "profiler/events/events_budget.h"

#include <math.h>

// What all programs take, in parts of what is left without the spared ones.
static const double ALL_PROGRAMS = 3;

// By a capture and the analysis of what it recorded, on slow machines; 0.4 us on a fast one.
static const double READING_AT_FIRST_NS = 800;

enum { MANY_RECORDS = 50000 };

static bool are_many(uint64_t requests, uint64_t ns)
{
    return (double)requests * 1e9 > BUDGET_LEAST_RATE * (double)ns;
}

void events_budget_measured(struct events_budget *budget, double programs_ns, uint64_t records,
                            uint64_t requests)
{
    const double each_ns = budget->reading_ns > 0 ? budget->reading_ns : READING_AT_FIRST_NS;
    budget->spent_ns = programs_ns + each_ns * (double)records;
    // Whatever the rest of the segment brings.
    budget->many |= are_many(requests, budget->segment_ns);
}

void events_budget_switched(struct events_budget *budget, uint64_t ns)
{
    budget->owed_ns += (double)ns;
}

void events_budget_read(struct events_budget *budget, uint64_t records, uint64_t ns)
{
    if (records < MANY_RECORDS)
        return;
    const double each_ns = (double)ns / (double)records;
    budget->reading_ns = budget->reading_ns > 0 ? (budget->reading_ns + each_ns) / 2 : each_ns;
}

bool events_budget_is_spent(const struct events_budget *budget, uint64_t recorded_ns)
{
    return budget->share > 0 && budget->many && recorded_ns >= BUDGET_LEAST_NS &&
           budget->owed_ns + budget->spent_ns >= budget->share * (double)budget->segment_ns;
}

bool events_budget_is_exceeded(const struct events_budget *budget)
{
    return budget->share > 0 && budget->many && budget->taken > budget->share;
}

void events_budget_next(struct events_budget *budget, uint64_t requests, uint64_t recorded_ns,
                        uint64_t length_ns)
{
    const double owed_ns = budget->owed_ns + budget->spent_ns - budget->share * (double)length_ns,
                 most_ns = budget->share * (double)budget->segment_ns; // paid back in one segment
    budget->taken = recorded_ns ? budget->spent_ns / (double)recorded_ns : 0;
    const double all = budget->sparing ? budget->taken * ALL_PROGRAMS : budget->taken;
    // That little was asked in a moment does not say that little is: several may have to.
    const bool many_now = are_many(requests, recorded_ns);
    budget->few_ns = many_now ? 0 : budget->few_ns + recorded_ns;
    budget->many = many_now || (budget->many && budget->few_ns < length_ns / 2);
    budget->owed_ns = budget->many ? fmin(fmax(owed_ns, 0), most_ns) : 0;
    budget->much = budget->share > 0 && budget->many &&
                   all > (budget->much ? budget->share * 2 / 3 : budget->share);
    budget->sparing = budget->much && budget->in_a_row < SPARING_IN_A_ROW;
    budget->in_a_row = budget->sparing ? budget->in_a_row + 1 : 0;
    budget->spent_ns = 0;
}
