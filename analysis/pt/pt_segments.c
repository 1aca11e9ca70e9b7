// SPDX-License-Identifier: MIT
#include "analysis/pt/pt_segments.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/pt/pt_parallel.h"
#include "analysis/pt/walk/pt_walk.h"
#include "base/text.h"

enum {
    // Of a batch with a flow for every three bytes of trace the flows are still in the core's own
    // cache (L2) when they are delivered.
    BEST_BATCH_BYTES = 8 << 10,
    BYTES_A_THREAD = 256 << 10, // each learns the code, which takes longer than decoding less
    // How far a thread walks ahead while another still walks what comes before: far enough that it
    // hardly ever has to wait, but not so far that all those flows leave the caches.
    MOST_BATCHES = 8,
    // However long their pieces are: delivering takes less time than walking, so that the others
    // are seldom further ahead.
    FEW_BATCHES = 3,
    MOST_BYTES = 32 << 10,
    // Delivered bytes are given back to the kernel in few steps: each stops the other threads for a
    // moment.
    RELEASED_BYTES = 256 << 10,
};

// Pieces of a stream that a thread takes together: several where they are small. A batch stays its
// worker's, who delivers it, too: it is dear to read, and to write to, what another core wrote
// last.
struct batch {
    struct worker *worker;
    struct pt_piece *pieces;
    size_t count, capacity;
    uint64_t bytes, end; // end: offset in the stream
    bool under_way;      // taken and not yet delivered
    bool walked;
};

struct worker {
    struct decoding *decoding;
    struct pt_walker *walker;
    struct batch batches[MOST_BATCHES];
    unsigned under_way;
    uint64_t bytes; // of these
    bool waiting;   // until one of its batches is due, or a ring has room
};

// A stream that is being decoded. Its batches are a ring: number n is in place n modulo size.
struct cursor {
    size_t next_sync;    // where the next piece to take begins
    uint64_t taken;      // batches
    uint64_t delivered;  //
    size_t previous_end; // sync where the last delivered piece ended
    bool previous_handed_over;
    uint64_t told_error;     // as of pt_piece_drop_told
    uint64_t released, done; // bytes before these were given back to the kernel, are delivered
    bool delivering;         // a thread is delivering
    bool exhausted;          // all pieces have been taken
    struct batch **ring;
};

struct decoding {
    const struct pt_memory *memory;
    const struct pt_symbols *symbols;
    const struct pt_stream *streams;
    size_t stream_count;
    const struct pt_decode_options *options;
    uint64_t batch_bytes;
    uint64_t worker_bytes; // that each worker will walk, or so
    unsigned ring_size;
    pt_piece_sink *sink;
    void *context;
    pthread_mutex_t lock; // guards what follows, and all batches but those that are being walked
    pthread_cond_t changed;
    struct cursor *cursors;
    size_t first_open; // all streams before this one are done
    int result;        // the first failure
    struct error err;
};

// --- cutting -----------------------------------------------------------------------------------

// Whether a window overlaps the bytes between this sync and the next.
static bool sync_wanted(const struct pt_windows *windows, const struct pt_syncs *syncs, size_t sync)
{
    if (!windows)
        return true;
    uint64_t to = sync + 1 < syncs->count ? syncs->items[sync + 1].tsc : UINT64_MAX;
    return pt_windows_touch(windows, syncs->items[sync].tsc, to);
}

// Cuts the next piece off the stream: [*first, *end). False when there is none left. Every sync at
// which a walk can end begins a piece, however many threads there are and whatever is wanted.
static bool cut_piece(const struct decoding *decoding, const struct pt_stream *stream,
                      struct cursor *cursor, size_t *first, size_t *end)
{
    const struct pt_syncs *syncs = &stream->packets->syncs;
    const struct pt_decode_options *options = decoding->options;
    struct pt_windows common = {.items = (struct pt_window *)(uintptr_t)options->windows,
                                .count = options->window_count};
    const struct pt_windows *windows = stream->windows    ? stream->windows
                                       : options->windows ? &common
                                                          : NULL;
    size_t sync = cursor->next_sync;
    while (sync < syncs->count && !sync_wanted(windows, syncs, sync))
        sync++;
    *first = sync;
    if (sync == syncs->count)
        return false;
    do
        sync++;
    while (sync < syncs->count && !syncs->items[sync].after_break &&
           !syncs->items[sync].hands_over);
    *end = cursor->next_sync = sync;
    return true;
}

static uint64_t offset_of(const struct pt_packets *packets, size_t sync)
{
    return sync < packets->syncs.count ? packets->syncs.items[sync].offset : packets->bytes;
}

// Cuts the next pieces off the stream: one, or as many as are no longer together than a batch is as
// a rule, so that a long one is always walked into the same memory. Returns false without memory.
static bool cut_batch(const struct decoding *decoding, const struct pt_stream *stream,
                      struct cursor *cursor, struct batch *batch)
{
    const struct pt_packets *packets = stream->packets;
    size_t first, end;
    batch->count = 0;
    batch->bytes = 0;
    while (batch->bytes < decoding->batch_bytes &&
           cut_piece(decoding, stream, cursor, &first, &end)) {
        uint64_t until = offset_of(packets, end);
        uint64_t bytes = until - packets->syncs.items[first].offset;
        if (batch->count && batch->bytes + bytes > decoding->batch_bytes) {
            cursor->next_sync = first;
            break;
        }
        if (batch->count == batch->capacity) {
            size_t capacity = batch->capacity ? 2 * batch->capacity : 1;
            struct pt_piece *grown = realloc(batch->pieces, capacity * sizeof *grown);
            if (!grown)
                return false;
            for (size_t i = batch->capacity; i < capacity; i++)
                grown[i] = (struct pt_piece){.room = &batch->worker->walker->room};
            batch->pieces = grown;
            batch->capacity = capacity;
        }
        batch->pieces[batch->count].first_sync = first;
        batch->pieces[batch->count++].end_sync = end;
        batch->bytes += bytes;
        batch->end = until;
    }
    return true;
}

// --- working -----------------------------------------------------------------------------------

static void decoding_fail(struct decoding *decoding, int result, const struct error *err)
{
    if (decoding->result == 0) {
        decoding->result = result;
        decoding->err = *err;
    }
    pthread_cond_broadcast(&decoding->changed);
}

static bool cursor_done(const struct cursor *cursor)
{
    return cursor->exhausted && cursor->delivered == cursor->taken;
}

// Gives back what nobody reads any more, where that is so much: while pieces are walked in any
// order, what lies before those that were delivered.
static void cursor_release(const struct decoding *decoding, struct cursor *cursor, uint64_t least)
{
    const struct pt_stream *stream = &decoding->streams[cursor - decoding->cursors];
    if (cursor->done - cursor->released < least)
        return;
    pt_bytes_release(&stream->bytes, cursor->released, cursor->done - cursor->released);
    cursor->released = cursor->done;
}

// Ends a stream that is done.
static void cursor_close(struct decoding *decoding, struct cursor *cursor)
{
    if (!cursor_done(cursor) || cursor->delivering)
        return;
    cursor_release(decoding, cursor, 1);
    free(cursor->ring);
    cursor->ring = NULL;
    while (decoding->first_open < decoding->stream_count &&
           cursor_done(&decoding->cursors[decoding->first_open]))
        decoding->first_open++;
}

static struct batch *free_batch(struct worker *worker)
{
    struct batch *batch = worker->batches, *end = batch + MOST_BATCHES;
    if (worker->under_way >= FEW_BATCHES && worker->bytes >= MOST_BYTES)
        return NULL;
    while (batch < end && batch->under_way)
        batch++;
    return batch < end ? batch : NULL;
}

// Takes the stream's next batch; its count is 0 when none is left. Returns false on failure.
static bool take_from(struct decoding *decoding, size_t stream, struct batch *batch)
{
    struct cursor *cursor = &decoding->cursors[stream];
    if (!cursor->ring)
        cursor->ring = calloc(decoding->ring_size, sizeof *cursor->ring);
    if (!cursor->ring || !cut_batch(decoding, &decoding->streams[stream], cursor, batch)) {
        struct error err;
        decoding_fail(decoding, error_set(&err, ERROR_FAILED, "out of memory for pieces"), &err);
        return false;
    }
    if (batch->count) {
        batch->under_way = true;
        batch->walked = false;
        batch->worker->under_way++;
        batch->worker->bytes += batch->bytes;
        cursor->ring[cursor->taken++ % decoding->ring_size] = batch;
    }
    return true;
}

static int piece_deliver(struct decoding *decoding, size_t stream, struct pt_piece *piece,
                         struct error *err)
{
    struct cursor *cursor = &decoding->cursors[stream];
    bool contiguous = cursor->previous_handed_over && cursor->previous_end == piece->first_sync;
    pt_piece_drop_told(piece, &cursor->told_error);
    cursor->previous_end = piece->end_sync;
    cursor->previous_handed_over = piece->handed_over;
    return decoding->sink(decoding->context, stream, piece, contiguous, err);
}

static int batch_deliver(struct decoding *decoding, size_t stream, struct batch *batch,
                         struct error *err)
{
    struct cursor *cursor = &decoding->cursors[stream];
    int result = 0;
    for (size_t i = 0; result == 0 && i < batch->count; i++)
        result = piece_deliver(decoding, stream, &batch->pieces[i], err);
    cursor->done = batch->end;
    cursor_release(decoding, cursor, RELEASED_BYTES);
    return result;
}

// The stream's batch whose turn it is to be delivered. NULL: it is still being walked, or there is
// none, or a thread is delivering.
static struct batch *due_batch(const struct decoding *decoding, const struct cursor *cursor)
{
    if (cursor->delivering || !cursor->ring || cursor->delivered == cursor->taken)
        return NULL;
    struct batch *batch = cursor->ring[cursor->delivered % decoding->ring_size];
    return batch->walked ? batch : NULL;
}

static bool has_room(const struct decoding *decoding, const struct cursor *cursor)
{
    return cursor->taken - cursor->delivered < decoding->ring_size;
}

// Delivers those of the worker's batches of the stream whose turn has come, and wakes who waits for
// that. Called with the lock held. Returns whether there were any.
static bool deliver_due(struct worker *worker, size_t stream)
{
    struct decoding *decoding = worker->decoding;
    struct cursor *cursor = &decoding->cursors[stream];
    struct batch *batch;
    bool any = false, was_full = false;
    while (decoding->result == 0 && (batch = due_batch(decoding, cursor)) &&
           batch->worker == worker) {
        struct error err;
        cursor->delivering = true;
        pthread_mutex_unlock(&decoding->lock);
        int result = batch_deliver(decoding, stream, batch, &err);
        pthread_mutex_lock(&decoding->lock);
        cursor->delivering = false;
        batch->under_way = false;
        worker->under_way--;
        worker->bytes -= batch->bytes;
        was_full |= !has_room(decoding, cursor);
        cursor->delivered++;
        any = true;
        if (result < 0)
            decoding_fail(decoding, result, &err);
    }
    if (!any)
        return false;
    batch = due_batch(decoding, cursor);
    if (was_full || (batch && batch->worker->waiting))
        pthread_cond_broadcast(&decoding->changed);
    cursor_close(decoding, cursor);
    return true;
}

static bool deliver_any(struct worker *worker)
{
    const struct decoding *decoding = worker->decoding;
    for (size_t i = decoding->first_open; worker->under_way && i < decoding->stream_count; i++)
        if (deliver_due(worker, i))
            return true;
    return false;
}

// Takes a batch of the first stream that has one and room in its ring. Where there is none, or all
// of the worker's are under way, delivers what is due of these, or waits until something is. Called
// with the lock held. NULL: nothing is left, neither to take nor to deliver.
static struct batch *take_batch(struct worker *worker, size_t *stream)
{
    struct decoding *decoding = worker->decoding;
    while (decoding->result == 0) {
        struct batch *batch = free_batch(worker);
        bool waiting = false;
        for (size_t i = decoding->first_open; i < decoding->stream_count; i++) {
            struct cursor *cursor = &decoding->cursors[i];
            if (cursor->exhausted)
                continue;
            if (!batch || !has_room(decoding, cursor)) {
                waiting = true;
                continue;
            }
            if (!take_from(decoding, i, batch))
                return NULL;
            if (batch->count) {
                *stream = i;
                return batch;
            }
            cursor->exhausted = true;
            cursor_close(decoding, cursor);
        }
        if (deliver_any(worker))
            continue;
        if (!waiting && !worker->under_way)
            return NULL;
        worker->waiting = true;
        pthread_cond_wait(&decoding->changed, &decoding->lock);
        worker->waiting = false;
    }
    return NULL;
}

static int batch_walk(struct pt_walker *walker, const struct pt_stream *stream, struct batch *batch,
                      struct error *err)
{
    int result = 0;
    for (size_t i = 0; result == 0 && i < batch->count; i++) {
        struct pt_piece *piece = &batch->pieces[i];
        result = pt_walk(walker, stream, piece->first_sync, piece->end_sync, piece, err);
    }
    return result;
}

static void *decoding_thread(void *context)
{
    struct worker *worker = context;
    struct decoding *decoding = worker->decoding;
    struct error err = {0};
    struct pt_walker *walker = worker->walker =
        pt_walker_alloc(decoding->memory, decoding->symbols, decoding->options->careful, &err);
    pthread_mutex_lock(&decoding->lock);
    if (walker)
        pt_walker_expect(walker, decoding->worker_bytes);
    else
        decoding_fail(decoding, -ERROR_FAILED, &err);
    struct batch *batch;
    size_t stream;
    while (walker && (batch = take_batch(worker, &stream))) {
        pthread_mutex_unlock(&decoding->lock);
        int result = batch_walk(walker, &decoding->streams[stream], batch, &err);
        pthread_mutex_lock(&decoding->lock);
        batch->walked = true;
        if (result < 0)
            decoding_fail(decoding, result, &err);
        deliver_due(worker, stream);
    }
    pthread_mutex_unlock(&decoding->lock);
    return NULL;
}

static void worker_init(struct worker *worker, struct decoding *decoding)
{
    worker->decoding = decoding;
    for (int i = 0; i < MOST_BATCHES; i++)
        worker->batches[i].worker = worker;
}

static void worker_fini(struct worker *worker)
{
    for (int i = 0; i < MOST_BATCHES; i++) {
        for (size_t piece = 0; piece < worker->batches[i].capacity; piece++)
            pt_piece_free(&worker->batches[i].pieces[piece]);
        free(worker->batches[i].pieces);
    }
    pt_walker_free(worker->walker); // in whose room the pieces lie
}

static uint64_t bytes_of(const struct pt_stream *streams, size_t stream_count)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < stream_count; i++)
        bytes += streams[i].bytes.bytes;
    return bytes;
}

// How many bytes each thread will walk, or so. Of windows that are little.
static uint64_t bytes_each(const struct pt_decode_options *options, const struct pt_stream *streams,
                           size_t stream_count, unsigned threads)
{
    for (size_t i = 0; i < stream_count; i++)
        if (options->windows || streams[i].windows)
            return 0;
    return bytes_of(streams, stream_count) / threads;
}

static int decode_on(struct decoding *decoding, struct worker *workers, unsigned threads,
                     struct error *err)
{
    pthread_t helpers[PT_MOST_THREADS];
    unsigned started = 0;
    for (unsigned i = 0; i < threads; i++)
        worker_init(&workers[i], decoding);
    while (started + 1 < threads && // this thread works too; fewer helpers only take longer
           pthread_create(&helpers[started], NULL, decoding_thread, &workers[started + 1]) == 0)
        started++;
    decoding_thread(&workers[0]);
    for (unsigned i = 0; i < started; i++)
        pthread_join(helpers[i], NULL);
    for (unsigned i = 0; i < threads; i++)
        worker_fini(&workers[i]);
    for (size_t i = 0; i < decoding->stream_count; i++)
        free(decoding->cursors[i].ring);
    if (decoding->result < 0)
        *err = decoding->err;
    return decoding->result;
}

// Where there is one thread, it walks all pieces, one after the other, into the same memory.
static int stream_pass(struct decoding *decoding, struct pt_walker *walker, size_t index,
                       struct pt_piece *piece, struct error *err)
{
    const struct pt_stream *stream = &decoding->streams[index];
    struct cursor *cursor = &decoding->cursors[index];
    size_t first, end;
    int result = 0;
    while (result == 0 && cut_piece(decoding, stream, cursor, &first, &end)) {
        result = pt_walk(walker, stream, first, end, piece, err);
        if (result == 0)
            result = piece_deliver(decoding, index, piece, err);
        if (result == 0)
            cursor->done = offset_of(stream->packets, end);
        cursor_release(decoding, cursor, RELEASED_BYTES);
    }
    cursor_release(decoding, cursor, 1);
    return result;
}

static int decode_alone(struct decoding *decoding, struct error *err)
{
    struct pt_walker *walker =
        pt_walker_alloc(decoding->memory, decoding->symbols, decoding->options->careful, err);
    if (!walker)
        return -ERROR_FAILED;
    struct pt_piece piece = {.room = &walker->room};
    int result = 0;
    pt_walker_expect(walker, decoding->worker_bytes);
    for (size_t i = 0; result == 0 && i < decoding->stream_count; i++)
        result = stream_pass(decoding, walker, i, &piece, err);
    pt_piece_free(&piece);
    pt_walker_free(walker);
    return result;
}

static int decode_together(struct decoding *decoding, unsigned threads, struct error *err)
{
    struct worker *workers = calloc(threads, sizeof *workers);
    int result = workers ? decode_on(decoding, workers, threads, err)
                         : error_set(err, ERROR_FAILED, "out of memory for %u threads", threads);
    free(workers);
    return result;
}

int pt_decode(const struct pt_memory *memory, const struct pt_symbols *symbols,
              const struct pt_stream *streams, size_t stream_count,
              const struct pt_decode_options *options, pt_piece_sink *sink, void *context,
              struct error *err)
{
    unsigned threads =
        pt_parallel_worth(options->threads, bytes_of(streams, stream_count), BYTES_A_THREAD);
    struct decoding decoding = {
        .memory = memory,
        .symbols = symbols,
        .streams = streams,
        .stream_count = stream_count,
        .options = options,
        .batch_bytes = options->piece_bytes ? options->piece_bytes : BEST_BATCH_BYTES,
        .worker_bytes = bytes_each(options, streams, stream_count, threads),
        // room for all that two threads can have under way; where there are more, each stream has
        // some of them, as each is delivered by one at a time
        .ring_size = threads + 2 * MOST_BATCHES,
        .sink = sink,
        .context = context,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER,
        .cursors = calloc(stream_count + 1, sizeof *decoding.cursors),
    };
    int result;
    for (size_t i = 0; decoding.cursors && i < stream_count; i++)
        decoding.cursors[i].told_error = PT_NO_ERROR;
    if (!decoding.cursors)
        result =
            error_set(err, ERROR_FAILED, "out of memory for %s streams", TEXT_COUNT(stream_count));
    else if (threads == 1)
        result = decode_alone(&decoding, err);
    else
        result = decode_together(&decoding, threads, err);
    free(decoding.cursors);
    pthread_cond_destroy(&decoding.changed);
    pthread_mutex_destroy(&decoding.lock);
    return result;
}
