// SPDX-License-Identifier: MIT
//
// The highest rate that meets an SLO. One trial says "met" when the whole confidence interval of
// the percentile meets it, "missed" when none of it does or the server is saturated, and is
// repeated for longer when the SLO lies inside the interval. Rates double until one misses, then
// the gap is halved; the trials at one rate are added up, and both ends of the last gap must have
// been found twice, so a single disturbed trial delays the search but does not change its result.
//
// The decisions (search_next) do not depend on how a rate is tried.
#ifndef LOADGEN_LOAD_SEARCH_H
#define LOADGEN_LOAD_SEARCH_H

#include <stddef.h>

#include "base/error.h"
#include "loadgen/load_curve.h"
#include "loadgen/load_plan.h"

enum {
    SEARCH_RATES_MAX = 40,  // different rates in one search
    SEARCH_TRIALS_MAX = 40, // trials in all; a trial is one load, or more when undecided
    SEARCH_SURE = 2,        // trials that must agree, at both ends
    SEARCH_DOUBTS = 2,      // undecided trials after which a rate stays undecided
};

struct search_rate {
    double rate;
    int met, missed, undecided; // trials
};

enum search_end {
    SEARCH_GOING_ON,
    SEARCH_FOUND,     // between `low` and `high`
    SEARCH_ALL_MET,   // even the highest rate of the range meets it
    SEARCH_NONE_MET,  // not even the lowest rate meets it
    SEARCH_UNDECIDED, // the lowest rate stayed undecided, or the trials ran out
};

struct search {
    double lowest, highest;                     // of the range; highest may be +infinity
    double near;                                // of the result: high <= low + near, or
    double ratio;                               // high <= low * ratio
    struct search_rate rates[SEARCH_RATES_MAX]; // ascending
    size_t count;
    unsigned trials;
};

// The state of the search: its end, or GOING_ON and the rate to try next. low, high: the highest
// rate known to meet the SLO and the lowest above it known not to; 0 or +infinity: none.
enum search_end search_next(const struct search *search, double *next, double *low, double *high);

// Adds the result of a trial.
void search_note(struct search *search, double rate, enum curve_finding finding);

// Does the search; prints a table or the document, and writes what --out asks for. ERROR_GATE: not
// even the lowest rate meets the SLO; ERROR_INCONCLUSIVE: no trustworthy answer.
int load_search(struct load_plan *plan, struct error *err);

#endif
