// SPDX-License-Identifier: MIT
//
// Why the slow requests were slow: for each message of a slice, how much longer than the reference
// it took, and which causes explain how many nanoseconds of that (NSight §4.2, §5.2; design §12).
#ifndef ANALYSIS_DIAGNOSIS_DIAGNOSIS_H
#define ANALYSIS_DIAGNOSIS_DIAGNOSIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "analysis/decomposition/components.h"
#include "analysis/decomposition/diagnosis_input.h"
#include "analysis/diagnosis/views.h"
#include "analysis/lifetime/lifetime.h"
#include "base/array.h"
#include "base/error.h"

// Which messages to explain.
struct diagnosis_slice {
    double low, high;       // quantiles of latency among the window's messages, e.g. 0.99 and 1
    double min_latency_ns;  // only messages at least this slow (0: all)
    int64_t from_ns, to_ns; // window of intended times, host time; from == to: the whole run
    bool relative;          // from and to count from the run's first intended time (run_analyze
                            // turns them into host time before it diagnoses)
    bool one;               // only the request whose number is `request`
    uint64_t request;
    bool of_application; // only what one of several servers answered: the window's messages are its
    uint16_t application;
};
struct diagnosis_slice_array ARRAY_OF(struct diagnosis_slice);

bool diagnosis_slice_is_same(const struct diagnosis_slice *a, const struct diagnosis_slice *b);

// Adds a slice unless it is there already. Returns its place, or -1: no memory.
int64_t diagnosis_slice_add(struct diagnosis_slice_array *all, const struct diagnosis_slice *slice);

// "p99-100", "p20-p30", ">500us", "99.9-100".
int diagnosis_slice_parse(const char *text, struct diagnosis_slice *out, struct error *err);

// "1234": one request, by its number in the run.
int diagnosis_slice_parse_message(const char *text, struct diagnosis_slice *out, struct error *err);

// "p99-p100, whole run", "p20-p30, 0 s to 5 s", "over 500 us, 5 s to 10.500 s": what a
// diagnosis is about. begin_ns is the run's begin, from which its window is counted. Returns out.
char *diagnosis_slice_label(const struct diagnosis_slice *slice, int64_t begin_ns, char *out,
                            size_t out_bytes);

// The first part of that alone, without the window: "p99-p100".
char *diagnosis_slice_words(const struct diagnosis_slice *slice, char *out, size_t out_bytes);

// What a part of a cause's time was about: of head-of-line blocking the page faults of those ahead.
struct cause_part {
    char name[40]; // "page faults"
    char category[32];
    double total_ns; // of the cause's
};

enum { CAUSE_PARTS = 2 };

struct cause {
    char name[CAUSE_NAME_BYTES]; // "yes", "wake-up latency", "head-of-line blocking"
    char tier[64];               // the other server at which it is; "": the one that the load asks
    char category[32]; // what it asks for (categories.h): "other programs", "NIC delay", "memory"
    enum core_role role;
    enum cause_class class;
    char shape[96]; // when it came (rhythm.h): "every 20.0 ms (98 % of 51 times)"; "": no shape
    struct cause_part parts[CAUSE_PARTS]; // of its time, the largest first; the rest is of none
    unsigned part_count;
    char parts_words[96]; // "page faults 51 %"; "": no parts
    bool explains;        // false: does not count towards coverage
    bool apart;           // the tool's own doing, or that of a virtual machine's host
    uint64_t messages;    // of the slice that it slowed
    double total_ns;
    double median_ns;                      // over the messages that it slowed
    double p25_ns, p75_ns, min_ns, max_ns; // the same, for the box plot
};
struct cause_array ARRAY_OF(struct cause);

// How much one cause added to one message.
struct attribution {
    uint64_t lifetime; // index into the lifetimes
    uint32_t cause;    // index into causes
    float ns;
};
struct attribution_array ARRAY_OF(struct attribution);

struct diagnosed_message {
    uint64_t lifetime;
    double deviation_ns; // latency minus the reference's median
    double explained_ns; // by causes that explain; never more than the deviation
    double apart_ns;     // by what is neither the server's nor the client's doing
};
struct diagnosed_array ARRAY_OF(struct diagnosed_message);

// What the message around the median is made of, in absolute terms (ordinary.h).
struct ordinary_part {
    char name[CAUSE_NAME_BYTES];
    char category[32];
    enum core_role role;
    double mean_ns;     // over the messages around the median: the parts add up to their mean
    double fast_ns;     // the 5th percentile over all messages of the window
    double met;         // the share of the messages around the median that have any
    bool concerns;      // so much of it that every message is slow because of it
    const char *remedy; // what helps against its category; NULL: nothing in general
};
struct ordinary_part_array ARRAY_OF(struct ordinary_part);

struct diagnosis {
    struct diagnosis_slice slice;
    enum lifetime_part part; // the part of the lifetimes that all durations are of
    uint64_t without_part;   // whole lifetimes that lack a stamp of the part
    uint64_t candidates;     // messages with a whole lifetime in the window
    uint64_t earlier;        // whole ones that were answered before it (lifetime.earlier) and are
                             // compared with as well
    uint64_t
        left_out[LIFETIME_STATES]; // messages of the window without a whole lifetime, by reason
    uint64_t reference_count;      // messages around the median that define what is normal
    uint64_t reference_taken;      // of these, an evenly spaced selection that was taken apart
    double reference_latency_ns;   // their median
    double slice_low_ns, slice_high_ns;    // latency range of the slice
    double granularity_ns;                 // smaller differences were ignored
    struct diagnosed_array messages;       // slowest first
    uint64_t passed_over;                  // of the slice, beyond these: see diagnosis_pick
    struct cause_array causes;             // largest total first
    struct attribution_array attributions; // grouped by message, in the order of `messages`
    struct ordinary_part_array ordinary;   // largest first; also where only the slice's messages
                                           // could not be followed
    // What the causes explain of the deviation, without what stands apart; NAN when there is
    // nothing to explain.
    double coverage_median, coverage_min, coverage_total;
    struct diagnosis_views views; // queues, contexts, blocking
    bool not_available;           // the evidence is less complete than required: no verdict
    char reason[200];             // the reason for that
};

// The median of so many ordinary messages is as good as that of more.
enum { REFERENCE_MOST = 5000 };

// Below these there is no verdict.
enum { DIAGNOSIS_MIN_CANDIDATES = 50 };
#define DIAGNOSIS_MIN_JOINED  0.95
#define DIAGNOSIS_MAX_DROPPED 0.01

// Indices into the lifetimes.
struct lifetime_indices ARRAY_OF(uint64_t);

// Only selects the slice's messages: out->messages, slowest first, without causes; *candidates gets
// all whole lifetimes of its window. Where the lives of all are too long to be walked along (a
// server that stood still for half a minute under load), out->messages is an evenly spaced
// selection by latency that begins with the slowest, and passed_over counts the others. The caller
// frees both, also after a failure (no memory).
int diagnosis_pick(const struct diagnosis_input *input, const struct diagnosis_slice *slice,
                   struct diagnosis *out, struct lifetime_indices *candidates, struct error *err);

// How many messages the causes are of, in words: "2,000 messages", "166 of 180,000 messages, evenly
// chosen". Returns out.
char *diagnosis_messages_words(const struct diagnosis *diagnosis, char *out, size_t out_bytes);

int diagnose(const struct diagnosis_input *input, const struct diagnosis_slice *slice,
             struct diagnosis *out, struct error *err);
void diagnosis_free(struct diagnosis *diagnosis);

// From capture.json; shim: whether socket calls were recorded. NULL: nothing is known.
struct overhead overhead_of_capture(const json_t *capture, bool shim);

#endif
