// SPDX-License-Identifier: MIT
#include "analysis/pt/pt_segments.h"

#include <pthread.h>
#include <stdlib.h>

#include "analysis/pt/pt_parallel.h"
#include "analysis/pt/walk/pt_walk.h"
#include "base/text.h"

// Of a piece with a flow for every three bytes of trace the flows are still in the core's own cache
// (L2) when they are delivered.
enum { BEST_PIECE_BYTES = 8 << 10, BYTES_A_THREAD = 256 << 10 };

// A piece in progress: taken by a thread, walked, and delivered in the order of the stream.
struct slot {
    struct pt_piece piece;
    bool walked;
};

// A stream that is being decoded. Its slots are a ring: piece number n is in slot n modulo count.
struct cursor {
    size_t next_sync;    // where the next piece to take begins
    uint64_t taken;      // pieces
    uint64_t delivered;  //
    size_t previous_end; // sync where the last delivered piece ended
    bool previous_handed_over;
    bool delivering; // a thread is delivering
    bool exhausted;  // all pieces have been taken
    struct slot *slots;
};

struct decoding {
    const struct pt_memory *memory;
    const struct pt_symbols *symbols;
    const struct pt_stream *streams;
    size_t stream_count;
    const struct pt_decode_options *options;
    uint64_t piece_bytes;
    unsigned slots; // for each stream
    pt_piece_sink *sink;
    void *context;
    pthread_mutex_t lock; // guards what follows
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

// Cuts the next piece off the stream: [*first, *end). False when there is none left.
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
           (!syncs->items[sync].hands_over ||
            (syncs->items[sync].offset - syncs->items[*first].offset < decoding->piece_bytes &&
             sync_wanted(windows, syncs, sync))));
    *end = cursor->next_sync = sync;
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

static void cursor_free(struct decoding *decoding, struct cursor *cursor)
{
    for (unsigned i = 0; cursor->slots && i < decoding->slots; i++)
        pt_piece_free(&cursor->slots[i].piece);
    free(cursor->slots);
    cursor->slots = NULL;
}

// Takes a piece of the first stream that has a free slot; waits while none has. Called with the
// lock held. NULL: nothing is left.
static struct slot *take_piece(struct decoding *decoding, size_t *stream, size_t *first,
                               size_t *end)
{
    while (decoding->result == 0) {
        bool waiting = false;
        for (size_t i = decoding->first_open; i < decoding->stream_count; i++) {
            struct cursor *cursor = &decoding->cursors[i];
            if (cursor->exhausted)
                continue;
            if (cursor->taken - cursor->delivered >= decoding->slots) {
                waiting = true;
                continue;
            }
            if (!cursor->slots) {
                cursor->slots = calloc(decoding->slots, sizeof *cursor->slots);
                if (!cursor->slots) {
                    struct error err;
                    decoding_fail(decoding,
                                  error_set(&err, ERROR_FAILED, "out of memory for pieces"), &err);
                    return NULL;
                }
            }
            if (!cut_piece(decoding, &decoding->streams[i], cursor, first, end)) {
                cursor->exhausted = true;
                if (cursor->delivered == cursor->taken && !cursor->delivering)
                    cursor_free(decoding, cursor);
                continue;
            }
            *stream = i;
            return &cursor->slots[cursor->taken++ % decoding->slots];
        }
        if (!waiting)
            return NULL;
        pthread_cond_wait(&decoding->changed, &decoding->lock);
    }
    return NULL;
}

// Delivers the stream's pieces whose turn has come, unless another thread is doing so. Called with
// the lock held.
static void deliver_due_pieces(struct decoding *decoding, size_t stream)
{
    struct cursor *cursor = &decoding->cursors[stream];
    if (cursor->delivering)
        return;
    cursor->delivering = true;
    while (decoding->result == 0 && cursor->delivered < cursor->taken) {
        struct slot *slot = &cursor->slots[cursor->delivered % decoding->slots];
        if (!slot->walked)
            break;
        bool contiguous = cursor->delivered > 0 && cursor->previous_handed_over &&
                          cursor->previous_end == slot->piece.first_sync;
        struct error err;
        pthread_mutex_unlock(&decoding->lock);
        int result = decoding->sink(decoding->context, stream, &slot->piece, contiguous, &err);
        pthread_mutex_lock(&decoding->lock);
        cursor->previous_end = slot->piece.end_sync;
        cursor->previous_handed_over = slot->piece.handed_over;
        slot->walked = false;
        cursor->delivered++;
        if (result < 0)
            decoding_fail(decoding, result, &err);
        pthread_cond_broadcast(&decoding->changed);
    }
    cursor->delivering = false;
    if (cursor->exhausted && cursor->delivered == cursor->taken) {
        cursor_free(decoding, cursor);
        while (decoding->first_open < decoding->stream_count &&
               decoding->cursors[decoding->first_open].exhausted &&
               decoding->cursors[decoding->first_open].delivered ==
                   decoding->cursors[decoding->first_open].taken)
            decoding->first_open++;
    }
}

static void *decoding_thread(void *context)
{
    struct decoding *decoding = context;
    struct error err = {0};
    struct pt_walker *walker =
        pt_walker_alloc(decoding->memory, decoding->symbols, decoding->options->careful, &err);
    pthread_mutex_lock(&decoding->lock);
    if (!walker)
        decoding_fail(decoding, -ERROR_FAILED, &err);
    struct slot *slot;
    size_t stream, first, end;
    while (walker && (slot = take_piece(decoding, &stream, &first, &end))) {
        pthread_mutex_unlock(&decoding->lock);
        int result = pt_walk(walker, &decoding->streams[stream], first, end, &slot->piece, &err);
        pthread_mutex_lock(&decoding->lock);
        slot->walked = true;
        if (result < 0)
            decoding_fail(decoding, result, &err);
        deliver_due_pieces(decoding, stream);
    }
    pthread_mutex_unlock(&decoding->lock);
    pt_walker_free(walker);
    return NULL;
}

// Each thread learns the code for itself, which takes longer than decoding little with one.
static unsigned threads_worth(const struct pt_decode_options *options,
                              const struct pt_stream *streams, size_t stream_count)
{
    unsigned threads = pt_parallel_threads(options->threads);
    uint64_t bytes = 0;
    for (size_t i = 0; i < stream_count; i++)
        bytes += streams[i].bytes.bytes;
    uint64_t most = 1 + bytes / BYTES_A_THREAD;
    return options->threads || most > threads ? threads : (unsigned)most;
}

int pt_decode(const struct pt_memory *memory, const struct pt_symbols *symbols,
              const struct pt_stream *streams, size_t stream_count,
              const struct pt_decode_options *options, pt_piece_sink *sink, void *context,
              struct error *err)
{
    unsigned threads = threads_worth(options, streams, stream_count), started = 0;
    struct decoding decoding = {
        .memory = memory,
        .symbols = symbols,
        .streams = streams,
        .stream_count = stream_count,
        .options = options,
        .piece_bytes = options->piece_bytes ? options->piece_bytes : BEST_PIECE_BYTES,
        // One thread delivers each before the next. Several have few under way: all of their flows
        // go through the cores' caches.
        .slots = threads > 1 ? threads + 2 : 1,
        .sink = sink,
        .context = context,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER,
        .cursors = calloc(stream_count + 1, sizeof *decoding.cursors),
    };
    if (!decoding.cursors)
        return error_set(err, ERROR_FAILED, "out of memory for %s streams",
                         TEXT_COUNT(stream_count));
    pthread_t helpers[PT_MOST_THREADS];
    while (started + 1 < threads && // this thread works too; fewer helpers only take longer
           pthread_create(&helpers[started], NULL, decoding_thread, &decoding) == 0)
        started++;
    decoding_thread(&decoding);
    for (unsigned i = 0; i < started; i++)
        pthread_join(helpers[i], NULL);
    for (size_t i = 0; i < stream_count; i++)
        cursor_free(&decoding, &decoding.cursors[i]);
    free(decoding.cursors);
    pthread_cond_destroy(&decoding.changed);
    pthread_mutex_destroy(&decoding.lock);
    if (decoding.result < 0)
        *err = decoding.err;
    return decoding.result;
}
