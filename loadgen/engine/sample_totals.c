// SPDX-License-Identifier: MIT
#include "loadgen/engine/sample_totals.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/array.h"

// --- all of them ---------------------------------------------------------------------------------

static void note_value(struct sample_values *values, uint64_t from, uint64_t to)
{
    const int64_t difference = (int64_t)(to - from);
    const uint64_t value = difference > 0 ? (uint64_t)difference : 0;
    histogram_record(&values->histogram, value);
    if (value > values->max)
        values->max = value;
}

static void note_values(struct sample_totals *totals, const struct sample *sample)
{
    const bool answered = sample_is_answered(sample);
    if (answered)
        note_value(&totals->latency, sample->intended_tsc, sample->reply_tsc);
    else
        histogram_record_infinite(&totals->latency.histogram);
    if (sample->tx_ns && sample->rx_ns)
        note_value(&totals->network, sample->tx_ns, sample->rx_ns);
    if (!sample->sent_tsc)
        return;
    note_value(&totals->lateness, sample->intended_tsc, sample->send_tsc);
    if (answered)
        note_value(&totals->uncorrected, sample->send_tsc, sample->reply_tsc);
    else
        histogram_record_infinite(&totals->uncorrected.histogram);
}

// --- every n-th stretch --------------------------------------------------------------------------

static void drop_every_other_stretch(struct sample_totals *totals)
{
    size_t kept = 0;
    for (size_t i = 0; i < totals->kept_count; i += 2 * TOTALS_STRETCH) {
        const size_t left = totals->kept_count - i,
                     count = left < TOTALS_STRETCH ? left : TOTALS_STRETCH;
        memmove(totals->kept + kept, totals->kept + i, count * sizeof *totals->kept);
        kept += count;
    }
    totals->kept_count = kept;
    totals->every *= 2;
}

// place: of the sample in the schedule.
static void keep(struct sample_totals *totals, uint64_t place, const struct sample *sample)
{
    const uint64_t stretch = place / TOTALS_STRETCH;
    if (stretch % totals->every)
        return;
    if (totals->kept_count == totals->kept_size) { // whole stretches: this one begins
        drop_every_other_stretch(totals);
        if (stretch % totals->every)
            return;
    }
    totals->kept[totals->kept_count++] = *sample;
}

// --- the slowest ---------------------------------------------------------------------------------

static uint64_t slowness(const struct sample_totals *totals, size_t i)
{
    return sample_latency_ticks(&totals->slowest[i]);
}

static void swap_slow(struct sample_totals *totals, size_t i, size_t k)
{
    const struct sample between = totals->slowest[i];
    totals->slowest[i] = totals->slowest[k];
    totals->slowest[k] = between;
}

// The least slow of the heap stands in front: restores that after the first was replaced.
static void sink_first(struct sample_totals *totals)
{
    for (size_t i = 0, least = 0;; i = least) {
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < totals->slow_count; child++)
            if (slowness(totals, child) < slowness(totals, least))
                least = child;
        if (least == i)
            return;
        swap_slow(totals, i, least);
    }
}

static void note_slow(struct sample_totals *totals, const struct sample *sample)
{
    const uint64_t ticks = sample_latency_ticks(sample);
    if (totals->slow_count == TOTALS_SLOWEST) {
        if (ticks > slowness(totals, 0)) {
            totals->slowest[0] = *sample;
            sink_first(totals);
        } else if (ticks == UINT64_MAX) {
            totals->slow_left_out++;
        }
        return;
    }
    size_t i = totals->slow_count++;
    totals->slowest[i] = *sample;
    for (; i && slowness(totals, i) < slowness(totals, (i - 1) / 2); i = (i - 1) / 2)
        swap_slow(totals, i, (i - 1) / 2);
}

static int slowest_first(const void *a, const void *b)
{
    const uint64_t one = sample_latency_ticks(a), other = sample_latency_ticks(b);
    return order_of(other, one);
}

// --- the file ------------------------------------------------------------------------------------

static void spool_flush(struct sample_totals *totals, bool last)
{
    struct log_writer *file = &totals->spool;
    int status =
        log_writer_append(file, totals->unwritten, totals->unwritten_count, &totals->spool_why);
    totals->unwritten_count = 0;
    if (status == 0 && last)
        status = log_writer_flush(file, &totals->spool_why);
    if (status == 0)
        return;
    // A full disk ends the file, which keeps what it took.
    totals->spooling = false;
    if (log_writer_cut(file, &totals->spool_why) < 0)
        log_writer_discard(file);
}

static void spool_finish(struct sample_totals *totals)
{
    struct log_writer *file = &totals->spool;
    if (totals->spooling)
        spool_flush(totals, true);
    totals->spooling = false;
    if (!file->out.file)
        return;
    const uint64_t taken = file->header.records;
    if (log_writer_close(file, totals->counts.scheduled - taken, &totals->spool_why) == 0)
        totals->spool_count = taken;
}

static void spool_add(struct sample_totals *totals, const struct sample *sample)
{
    totals->unwritten[totals->unwritten_count++] = *sample;
    if (totals->unwritten_count == TOTALS_UNWRITTEN)
        spool_flush(totals, false);
}

// --- the whole -----------------------------------------------------------------------------------

int sample_totals_new(size_t bytes, const char *spool_path, struct sample_totals **made,
                      struct error *err)
{
    const size_t stretch_bytes = TOTALS_STRETCH * sizeof(struct sample);
    struct sample_totals *totals = *made = calloc(1, sizeof *totals);
    if (!totals)
        return error_set(err, ERROR_FAILED, "out of memory for histograms");
    totals->every = 1;
    totals->kept_size = bytes / stretch_bytes * TOTALS_STRETCH;
    void *memory = mmap(NULL, totals->kept_size * sizeof *totals->kept, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int status = 0;
    if (memory == MAP_FAILED)
        status = error_set_errno(err, ERROR_FAILED, "cannot take %zu MiB for samples", bytes >> 20);
    else
        totals->kept = memory;
    if (status == 0 && spool_path)
        status = log_writer_open(&totals->spool, spool_path, LOG_SAMPLES, SAMPLE_LOG_VERSION,
                                 sizeof(struct sample), err);
    totals->spooled = totals->spooling = status == 0 && spool_path;
    if (status == 0)
        return 0;
    sample_totals_free(totals);
    *made = NULL;
    return status;
}

void sample_totals_free(struct sample_totals *totals)
{
    if (!totals)
        return;
    log_writer_discard(&totals->spool);
    if (totals->kept)
        munmap(totals->kept, totals->kept_size * sizeof *totals->kept);
    free(totals);
}

void sample_totals_add(struct sample_totals *totals, const struct sample *sample)
{
    keep(totals, totals->counts.scheduled, sample);
    sample_counts_note(&totals->counts, sample);
    note_values(totals, sample);
    note_slow(totals, sample);
    if (totals->spooling)
        spool_add(totals, sample);
}

void sample_totals_add_undrawn(struct sample_totals *totals, uint64_t count)
{
    totals->undrawn += count;
    totals->counts.scheduled += count;
    totals->counts.unsent += count;
    totals->slow_left_out += count;
    histogram_add(&totals->latency.histogram.infinite, count);
}

static void merge_values(struct sample_values *into, const struct sample_values *from)
{
    histogram_merge(&into->histogram, &from->histogram);
    if (from->max > into->max)
        into->max = from->max;
}

void sample_totals_merge(struct sample_totals *into, const struct sample_totals *from)
{
    sample_counts_add(&into->counts, &from->counts);
    merge_values(&into->latency, &from->latency);
    merge_values(&into->uncorrected, &from->uncorrected);
    merge_values(&into->lateness, &from->lateness);
    merge_values(&into->network, &from->network);
    for (size_t i = 0; i < from->slow_count; i++)
        note_slow(into, &from->slowest[i]);
    into->slow_left_out += from->slow_left_out;
}

void sample_totals_thin(struct sample_totals *totals, uint64_t every)
{
    while (totals->every < every)
        drop_every_other_stretch(totals);
}

void sample_totals_finish(struct sample_totals *totals)
{
    qsort(totals->slowest, totals->slow_count, sizeof *totals->slowest, slowest_first);
    if (totals->spooled)
        spool_finish(totals);
}
