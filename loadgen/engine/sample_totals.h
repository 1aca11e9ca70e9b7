// SPDX-License-Identifier: MIT
//
// What is kept of a load whose samples do not fit into memory. Its samples come in the order of the
// schedule, each when nothing can change it any more, and leave:
//  - counts, and histograms of their latencies (within 1/1024, base/histogram.h), of all of them;
//  - a sample of them for what needs single requests in their order, the method above all: whole
//    stretches of neighbours, every n-th stretch; when memory is full every other one of these is
//    dropped and n doubles, so what is kept is spread evenly over the load, however long it gets;
//  - the slowest, whole, those without a reply first;
//  - if asked for, all of them in a file.
// Memory is taken at the beginning and does not grow. One thread at a time uses it.
#ifndef LOADGEN_ENGINE_SAMPLE_TOTALS_H
#define LOADGEN_ENGINE_SAMPLE_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/histogram.h"
#include "base/log_file.h"
#include "loadgen/client/sample_log.h"
#include "loadgen/engine/sample_counts.h"

enum {
    TOTALS_STRETCH = 1024, // neighbours that are kept together
    TOTALS_SLOWEST = 256,
    TOTALS_UNWRITTEN = 512, // are written to the file at once
};

// Values of all requests; what never came is +infinity.
struct sample_values {
    struct histogram histogram;
    uint64_t max; // of the finite ones, exactly
};

struct sample_totals {
    struct sample_counts counts;
    // In TSC ticks: from the intended time to the reply, from the send call to the reply, and from
    // the intended time to the send call.
    struct sample_values latency, uncorrected, lateness;
    struct sample_values network; // ns, from the TX to the RX stamp, of those that have both

    struct sample *kept; // in the order of the schedule
    size_t kept_count, kept_size;
    uint64_t every; // of so many stretches one is kept

    struct sample slowest[TOTALS_SLOWEST]; // a heap; after sample_totals_finish the slowest first
    size_t slow_count;
    uint64_t slow_left_out; // requests without a reply for which there was no room

    struct log_writer spool;
    bool spooled, spooling; // asked for; and still going on
    struct sample unwritten[TOTALS_UNWRITTEN];
    size_t unwritten_count;
    uint64_t spool_count;   // after sample_totals_finish: the first so many are in the file ...
    struct error spool_why; // ... and this is why not all

    // Requests that were drawn when they were already due, and why: requests before them had been
    // open for so long that memory was full; or nobody had come to draw them.
    uint64_t late_full, late_drawn;
    uint64_t undrawn; // of those never sent, of which only the number is known
};

// bytes: of memory for `kept`, at least two stretches'. spool: the file; NULL: none. ERROR_FAILED:
// no memory, or the file cannot be created. The caller frees, also while the file is being written:
// nothing is left of it then.
int sample_totals_new(size_t bytes, const char *spool, struct sample_totals **made,
                      struct error *err);
void sample_totals_free(struct sample_totals *totals); // NULL is allowed

// Takes the next sample.
void sample_totals_add(struct sample_totals *totals, const struct sample *sample);

// So many more were never sent, at times that nobody drew: they are counted, and neither kept nor
// in the file.
void sample_totals_add_undrawn(struct sample_totals *totals, uint64_t count);

// There are no more: sorts the slowest, and gives the file its name.
void sample_totals_finish(struct sample_totals *totals);

// Adds those of another thread, which ran beside and has no file, but for `kept`. Before either is
// finished.
void sample_totals_merge(struct sample_totals *into, const struct sample_totals *from);

// Keeps one stretch in that many, which is `every` or, doubled so often, will be.
void sample_totals_thin(struct sample_totals *totals, uint64_t every);

// The latency in ticks; UINT64_MAX: no reply.
static inline uint64_t sample_latency_ticks(const struct sample *sample)
{
    int64_t ticks = (int64_t)(sample->reply_tsc - sample->intended_tsc);
    return !sample_is_answered(sample) ? UINT64_MAX : ticks > 0 ? (uint64_t)ticks : 0;
}

#endif
