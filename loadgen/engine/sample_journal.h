// SPDX-License-Identifier: MIT
//
// What a killed load leaves, where all its samples fit into memory and are written when it has
// ended: until then a thread beside it appends those that nothing can change any more to the same
// file, every JOURNAL_LOOK_NS, in the order in which they will be there. Load threads never wait
// for it; they say up to where their samples are final, as in bounded memory (sample_ring.h). What
// is open holds up what comes after it. A full disk ends the journal, and not the load.
#ifndef LOADGEN_ENGINE_SAMPLE_JOURNAL_H
#define LOADGEN_ENGINE_SAMPLE_JOURNAL_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log_file.h"
#include "loadgen/client/sample_log.h"
#include "loadgen/engine/sample_ring.h"
#include "loadgen/engine/side_thread.h"

enum { JOURNAL_LOOK_NS = 10000000, JOURNAL_PIECE = 256 };

// Of one load thread.
struct journal_part {
    const struct sample *samples; // in the order of their intended times; set before the begin
    uint64_t taken, seen_final;   // the first that was not; sent.final when it was last looked at
    struct sample_sent sent;
} __attribute__((aligned(64)));

struct sample_journal {
    struct log_writer *file;
    struct journal_part *parts; // NULL: it is not open
    uint32_t count;
    bool dealt;    // the parts have the samples in turn, the first has the first
    uint32_t next; // then: whose the next one is
    bool full;     // the file takes no more
    struct sample unwritten[JOURNAL_PIECE];
    size_t unwritten_count;
    struct side_thread side;
};

// Creates the file. dealt: as sample_merge. Where something other than a file has that name it
// stays closed. ERROR_FAILED: the file cannot be created, or no memory.
int sample_journal_open(struct sample_journal *journal, const char *path, uint32_t parts,
                        bool dealt, struct error *err);

// Starts the thread, on the given cores; NULL: on any. ERROR_FAILED: no thread.
int sample_journal_begin(struct sample_journal *journal, const cpu_set_t *cores, struct error *err);

// All load threads have ended, and their samples are still there: ends the thread and takes what is
// final. Returns the file, which is the caller's; NULL: there is none.
struct log_writer *sample_journal_end(struct sample_journal *journal);

// Ends the thread, if it runs; nothing is left of a file that was not taken. Harmless when it is
// not open.
void sample_journal_close(struct sample_journal *journal);

// One look. For the thread, and for tests.
void sample_journal_look(struct sample_journal *journal);

#endif
