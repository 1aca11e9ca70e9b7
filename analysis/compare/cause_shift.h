// SPDX-License-Identifier: MIT
//
// How much the components of the latency of a slice differ between two sets of runs (NSight §7: the
// comparison of iterations): how long each takes per message on average (these add up to the
// latency, so their differences add up to its difference), on which share of the messages it takes
// any time, and how long it takes there.
//
// Two questions are asked about every cause. First: did its mean surely move? Means add up, but
// where a slice mixes kinds of messages (slow themselves, or behind a slow one) they also move with
// the mixture. Second, therefore: did its median over the messages that have it move by
// more than its scatter? The mixture does not change that. The second question is asked where at
// least half of both sides' messages have the cause.
#ifndef ANALYSIS_COMPARE_CAUSE_SHIFT_H
#define ANALYSIS_COMPARE_CAUSE_SHIFT_H

#include "analysis/compare/resample.h"
#include "analysis/compare/run_profile.h"
#include "base/array.h"
#include "base/error.h"

enum change_kind {
    CHANGE_NONE, // by no more than the scatter or the granularity
    CHANGE_APPEARED,
    CHANGE_GREW,
    CHANGE_SHRANK,
    CHANGE_GONE,
};
const char *change_kind_name(enum change_kind kind); // "unchanged", "appeared", ...

// A message has a cause when the cause took more than the granularity.
struct cause_shift {
    char name[CAUSE_NAME_BYTES];
    char category[48]; // the base's where both sides have it
    enum core_role role;
    bool explains;
    enum change_kind kind;
    double mean_ns[COMPARE_SIDES];          // of a message of the slice
    uint64_t messages[COMPARE_SIDES];       // of messages that have it
    double share[COMPARE_SIDES];            // their share of all messages
    struct spread spread_ns[COMPARE_SIDES]; // over these messages; NaN: there are none
    double normal_ns;                       // the base's median, over all messages
    double longer[COMPARE_SIDES];           // share of messages in which it takes longer than that
    struct resample_spread spread[COMPARE_SIDES]; // of the means; infinite: too few blocks
    double difference_ns;                         // of the means
    struct resample_interval interval;            // infinite: too few blocks
    double median_difference_ns;                  // NaN: not asked
    struct resample_interval median_interval;
};
struct cause_shift_array ARRAY_OF(struct cause_shift);

// The differences of the causes that belong to one category, added up.
struct category_shift {
    const char *category; // a cause's
    double difference_ns;
};
struct category_shift_array ARRAY_OF(struct category_shift);

struct slice_profile_list ARRAY_OF(const struct slice_profile *);

struct slice_shift {
    char words[96]; // "p99-p100"
    bool available;
    char reason[240];
    double granularity_ns; // the largest of the runs'
    uint64_t messages[COMPARE_SIDES];
    size_t runs[COMPARE_SIDES]; // that have a profile
    double low_ns[COMPARE_SIDES], high_ns[COMPARE_SIDES];
    double mean_ns[COMPARE_SIDES];          // latency
    struct cause_shift latency;             // the same as if it were a cause; no messages, no share
    struct cause_shift_array causes;        // largest difference first, whatever its sign
    struct category_shift_array categories; // likewise
    uint64_t function_messages[COMPARE_SIDES]; // messages whose functions are all known
    struct cause_shift_array functions; // shifts of the time in each function itself, without its
                                        // callees; none where a side knows no functions
};

// One profile of the same slice per run; those that are not available are left out. An empty base
// gives the candidate alone: differences are NaN. -ERROR_FAILED: no memory. The caller frees either
// way.
int slice_shift(const struct slice_profile_list sides[COMPARE_SIDES], double confidence,
                struct slice_shift *out, struct error *err);
void slice_shift_free(struct slice_shift *shift);

struct named_shift {
    const struct cause_shift *cause;
    bool by_median; // its mean did not surely move, its median did
};

// Selects the causes to name: those that surely moved up (or down) by at least a twentieth of the
// latency's shift, means first. At most `most`; returns how many.
size_t slice_shift_named(const struct slice_shift *shift, bool up, struct named_shift *out,
                         size_t most);

// "nginx (A)".
char *cause_shift_name(const struct cause_shift *cause, char *out, size_t out_bytes);

#endif
