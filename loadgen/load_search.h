// SPDX-License-Identifier: MIT
//
// The highest rate that meets an SLO. One run says "met" when the whole confidence interval of the
// percentile meets it, "missed" when none of it does or the server is saturated, and is repeated
// for longer when the interval lies on both sides. Rates double until one misses, then the gap is
// halved; what the runs at one rate say is added up, and both ends of the last gap must have been
// found twice, so that a single disturbed run moves the search but not its result.
//
// The decisions (search_next) know nothing of how a rate is tried.
#ifndef LOADGEN_LOAD_SEARCH_H
#define LOADGEN_LOAD_SEARCH_H

#include <stddef.h>

#include "base/error.h"
#include "loadgen/load_curve.h"
#include "loadgen/load_plan.h"

enum {
    SEARCH_RATES_MAX = 40,  // different rates of one search
    SEARCH_TRIALS_MAX = 40, // trials of all of them; a trial is one run, or more when undecided
    SEARCH_SURE = 2,        // trials that must agree, at both ends
    SEARCH_DOUBTS = 2,      // undecided trials of a rate before it is left so
};

struct search_rate {
    double rate;
    int met, missed, undecided; // trials
};

enum search_end {
    SEARCH_GOING_ON,
    SEARCH_FOUND,     // between `low` and `high`
    SEARCH_ALL_MET,   // even the highest rate of the range
    SEARCH_NONE_MET,  // not even the lowest
    SEARCH_UNDECIDED, // the lowest rate could not be decided, or the trials ran out
};

struct search {
    double lowest, highest;                     // of the range; highest may be +infinity
    double near;                                // of the result: high <= low + near, or
    double ratio;                               // high <= low * ratio
    struct search_rate rates[SEARCH_RATES_MAX]; // ascending
    size_t count;
    unsigned trials;
};

// Where the search stands: its end, or GOING_ON and the rate to try next. low, high: the highest
// rate that meets the SLO and the lowest above it that does not (as yet); 0 or +infinity: none.
enum search_end search_next(const struct search *search, double *next, double *low, double *high);

// What a trial said.
void search_note(struct search *search, double rate, enum curve_finding finding);

// What one run says of the SLO; fills in the point's members of a search.
void search_judge(const struct load_outcome *outcome, const struct slo *slo,
                  struct curve_point *point);

// Runs it; prints a table or the document, and writes what --out asks for. ERROR_GATE: not even
// the lowest rate meets the SLO; ERROR_INCONCLUSIVE: no answer that could be trusted.
int load_search(struct load_plan *plan, struct error *err);

#endif
