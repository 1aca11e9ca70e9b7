// SPDX-License-Identifier: MIT
#include "loadgen/engine/sample_journal.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// --- samples -------------------------------------------------------------------------------------

// Its load thread's number is read anew only where the known one does not suffice.
static bool has_next(struct journal_part *part)
{
    if (part->taken == part->seen_final)
        part->seen_final = atomic_load_explicit(&part->sent.final, memory_order_acquire);
    return part->taken < part->seen_final;
}

// Of a closed loop: the one whose next sample comes first. As long as one of them may still say
// that its own does, nobody knows.
static struct journal_part *earliest_part(struct sample_journal *journal)
{
    struct journal_part *first = NULL;
    for (uint32_t i = 0; i < journal->count; i++) {
        struct journal_part *part = &journal->parts[i];
        const bool ended = atomic_load_explicit(&part->sent.ended, memory_order_acquire);
        if (!has_next(part)) {
            if (!ended)
                return NULL;
            continue;
        }
        if (!first ||
            part->samples[part->taken].intended_tsc < first->samples[first->taken].intended_tsc)
            first = part;
    }
    return first;
}

static struct journal_part *next_part(struct sample_journal *journal)
{
    if (!journal->dealt)
        return earliest_part(journal);
    struct journal_part *part = &journal->parts[journal->next];
    if (!has_next(part))
        return NULL;
    journal->next = journal->next + 1 < journal->count ? journal->next + 1 : 0;
    return part;
}

// Only its TX stamp, and a reply that is too late, may come meanwhile. One of the NIC's is by a
// clock that nobody knows in time, if the load is killed.
static struct sample copy_of(const struct sample *sample)
{
    const uint64_t tx_ns = __atomic_load_n(&sample->tx_ns, __ATOMIC_ACQUIRE);
    const uint8_t tx_source = __atomic_load_n(&sample->tx_source, __ATOMIC_RELAXED);
    const bool hardware_tx = tx_source == STAMP_HARDWARE,
               hardware_rx = sample->rx_source == STAMP_HARDWARE;
    return (struct sample){.intended_tsc = sample->intended_tsc,
                           .send_tsc = sample->send_tsc,
                           .sent_tsc = sample->sent_tsc,
                           .reply_tsc = sample->reply_tsc,
                           .tx_ns = hardware_tx ? 0 : tx_ns,
                           .rx_ns = hardware_rx ? 0 : sample->rx_ns,
                           .request_begin = sample->request_begin,
                           .request_end = sample->request_end,
                           .reply_begin = sample->reply_begin,
                           .reply_end = sample->reply_end,
                           .connection = sample->connection,
                           .operation = sample->operation,
                           .sender_high = __atomic_load_n(&sample->sender_high, __ATOMIC_RELAXED),
                           .status = sample->status,
                           .flags = sample->flags,
                           .tx_source = hardware_tx ? STAMP_LEFT_OUT : tx_source,
                           .rx_source = hardware_rx ? STAMP_NONE : sample->rx_source,
                           .in_flight = sample->in_flight,
                           .key = sample->key};
}

// --- the file ------------------------------------------------------------------------------------

static void write_piece(struct sample_journal *journal)
{
    struct error err;
    if (log_writer_append(journal->file, journal->unwritten, journal->unwritten_count, &err) < 0 ||
        log_writer_flush(journal->file, &err) < 0) {
        // It keeps what it took. That the disk is full is said when all is written.
        journal->full = true;
        log_writer_cut(journal->file, &err);
    }
    journal->unwritten_count = 0;
}

void sample_journal_look(struct sample_journal *journal)
{
    struct journal_part *part;
    while (!journal->full && (part = next_part(journal))) {
        journal->unwritten[journal->unwritten_count++] = copy_of(&part->samples[part->taken++]);
        if (journal->unwritten_count == JOURNAL_PIECE)
            write_piece(journal);
    }
    if (journal->unwritten_count)
        write_piece(journal);
}

int sample_journal_open(struct sample_journal *journal, const char *path, uint32_t parts,
                        bool dealt, struct error *err)
{
    const size_t bytes = parts * sizeof *journal->parts;
    struct stat there;
    *journal = (struct sample_journal){.count = parts, .dealt = dealt};
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode))
        return 0; // a pipe's reader gets the samples once
    journal->file = calloc(1, sizeof *journal->file);
    journal->parts = aligned_alloc(alignof(struct journal_part), bytes);
    if (!journal->file || !journal->parts) {
        sample_journal_close(journal);
        return error_set(err, ERROR_FAILED, "out of memory for the file of samples");
    }
    memset(journal->parts, 0, bytes);
    return log_writer_open(journal->file, path, LOG_SAMPLES, SAMPLE_LOG_VERSION,
                           sizeof(struct sample), err);
}

// --- the thread ----------------------------------------------------------------------------------

static void look(void *context)
{
    sample_journal_look(context);
}

int sample_journal_begin(struct sample_journal *journal, const cpu_set_t *cores, struct error *err)
{
    journal->side = (struct side_thread){
        .name = "load-journal", .look = look, .context = journal, .every_ns = JOURNAL_LOOK_NS};
    return side_thread_begin(&journal->side, cores, err);
}

struct log_writer *sample_journal_end(struct sample_journal *journal)
{
    struct log_writer *file = journal->file;
    const bool begun = journal->side.running;
    side_thread_end(&journal->side);
    if (begun)
        sample_journal_look(journal);
    journal->file = NULL;
    return file;
}

void sample_journal_close(struct sample_journal *journal)
{
    side_thread_end(&journal->side);
    if (journal->file)
        log_writer_discard(journal->file);
    free(journal->file);
    free(journal->parts);
    journal->file = NULL;
    journal->parts = NULL;
}
