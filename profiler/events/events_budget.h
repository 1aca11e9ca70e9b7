// SPDX-License-Identifier: MIT
//
// What a capture that stays (taillight watch) records of each segment, so that its programs take no
// more of a core than they may. Most of what a program costs is that it runs at all, and looks at
// the clock: for a server whose client is on the same machine some 18 runs a request, and 6 without
// those of EVENT_SPARED (bpf/events.tbl.h), which tell when a request was handed over, when its
// reply left, and what softirqs took.
//
// While all of them take too much, nine of ten segments do without the latter. A segment that
// takes too much all the same is recorded from its beginning on until the budget is spent; after
// that nothing runs, and nothing is recorded, until the next one begins. Whoever reads the records
// takes more than the programs do, and counts as well. Of a server that is asked little all is
// recorded, whatever else the machine does that is recorded with it.
#ifndef PROFILER_EVENTS_EVENTS_BUDGET_H
#define PROFILER_EVENTS_EVENTS_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SPARING_IN_A_ROW = 9,       // segments
    BUDGET_LEAST_RATE = 2000,   // requests a second; of fewer all is recorded
    BUDGET_LEAST_NS = 20000000, // of each segment, whatever it takes
};

// What was recorded of a segment.
struct events_segment {
    int64_t from_ns, until_ns; // host time; 0: since the cut before, until this one
    double taken;              // of a core, by programs and readers meanwhile; 0: not measured
};

// With no more than a share and a length it is before the first segment.
struct events_budget {
    double share;        // of a core; 0: as much as it takes
    uint64_t segment_ns; // how long segments are
    double spent_ns;     // of a core, in the segment that has begun
    double reading_ns;   // of a core, for each record, by its readers; 0: guessed as yet
    double taken;        // of a core, while the segment before was recorded
    bool sparing;        // in the segment that has begun
    bool much;           // would be taken with all programs
    unsigned in_a_row;   // sparing segments
    double owed_ns;      // of a core, that earlier segments took too much
    bool many;           // requests, as far as is known
    uint64_t few_ns;     // recorded since then, with few
};

// In the segment that has begun programs have taken so long on the core of which they take most,
// so many records have to be read, and there were so many requests.
void events_budget_measured(struct events_budget *budget, double programs_ns, uint64_t records,
                            uint64_t requests);

// So long it took to have programs run, or not, as was decided.
void events_budget_switched(struct events_budget *budget, uint64_t ns);

// So many records took their readers so long, whatever it was besides. Of few it is not known what
// each took.
void events_budget_read(struct events_budget *budget, uint64_t records, uint64_t ns);

// Whether the segment, which has been recorded for so long, is not to be recorded on.
bool events_budget_is_spent(const struct events_budget *budget, uint64_t recorded_ns);

// Whether a segment like the one before is not to be recorded all the time.
bool events_budget_is_exceeded(const struct events_budget *budget);

// Decides about the segment that begins now. Of the one before it so much was recorded, with so
// many requests, and it was so long.
void events_budget_next(struct events_budget *budget, uint64_t requests, uint64_t recorded_ns,
                        uint64_t length_ns);

#endif
