// SPDX-License-Identifier: MIT
#include "analysis/run/input/run_segments.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/run/input/run_path.h"
#include "base/connection.h"
#include "profiler/bpf/event_log.h"
#include "shim/message_log.h"
#include "base/text.h"

enum { SEGMENTS_MAX = 1000000, MEMORY_SHARE = 8, CORES = 1 << 16, MOST_MOVES = 16 };

// More would take more than minutes: some half a million requests.
static const uint64_t most_log_bytes = 512 << 20;

// The n-th piece of a log: the segments, and what came after them, which is last.
static void piece_path(const struct run_segments *segments, const char *run_dir, const char *what,
                       unsigned n, char out[RUN_FILE_PATH_BYTES])
{
    char name[64];
    if (n < segments->count)
        snprintf(name, sizeof name, "%s/%s-%06u.tlog", segments->side, what, segments->first + n);
    else
        snprintf(name, sizeof name, "%s/%s.tlog", segments->side, what);
    run_path(out, run_dir, name);
}

static unsigned piece_count(const struct run_segments *segments)
{
    return segments->count + segments->ended;
}

// Of the logs of one piece.
static uint64_t piece_bytes(const struct run_segments *segments, unsigned n)
{
    return segments->bytes[segments->first + n - segments->named];
}

// The segment whose log a file of this name is; 0: of none.
static unsigned number_named(const char *file, const char *log)
{
    char name[64];
    const size_t length = strlen(log);
    if (strncmp(file, log, length) != 0 || file[length] != '-')
        return 0;
    const unsigned long number = strtoul(file + length + 1, NULL, 10);
    snprintf(name, sizeof name, "%s-%06lu.tlog", log, number);
    return number <= 2 * SEGMENTS_MAX && strcmp(file, name) == 0 ? (unsigned)number : 0;
}

// Which piece of that log a file of this name is; none: piece_count().
static unsigned piece_named(const struct run_segments *segments, const char *log, const char *file)
{
    const size_t length = strlen(log);
    if (strncmp(file, log, length) == 0 && strcmp(file + length, ".tlog") == 0)
        return segments->count; // of a capture that has not ended it is none
    const unsigned number = number_named(file, log);
    return number >= segments->first && number < segments->first + segments->count
               ? number - segments->first
               : piece_count(segments);
}

// Looks once at what is in the folder, not for each piece that capture.json names: it may name a
// million that are not there.
static int find_bytes(struct run_segments *segments, const char *run_dir, struct error *err)
{
    static const char *const logs[] = {"events", "calls"};
    const unsigned pieces = piece_count(segments);
    const struct dirent *entry;
    char folder[RUN_FILE_PATH_BYTES];
    segments->named = segments->first;
    segments->bytes = calloc((size_t)pieces + 1, sizeof *segments->bytes);
    if (!segments->bytes)
        return error_set(err, ERROR_FAILED, "no memory for %u segments", pieces);
    run_path(folder, run_dir, segments->side);
    DIR *entries = opendir(folder);
    if (!entries)
        return error_set_errno(err, ERROR_INPUT, "cannot open %s", folder);
    while ((entry = readdir(entries)))
        for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
            const unsigned n = piece_named(segments, logs[i], entry->d_name);
            struct stat status;
            if (n < pieces && fstatat(dirfd(entries), entry->d_name, &status, 0) == 0)
                segments->bytes[n] += (uint64_t)status.st_size;
        }
    closedir(entries);
    return 0;
}

uint64_t run_segments_affordable(void)
{
    uint64_t share =
        (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / MEMORY_SHARE;
    return share < most_log_bytes ? share : most_log_bytes;
}

// The ends of all segments, if they can be: ascending, and one each.
static int read_ends(struct run_segments *segments, const json_t *from, struct error *err)
{
    const json_t *ends = json_object_get(from, "ends_ns");
    if (json_array_size(ends) != segments->count)
        return 0;
    for (size_t i = 0; i < segments->count; i++) {
        const int64_t end = json_integer_value(json_array_get(ends, i));
        if (end <= (i ? segments->ends.items[i - 1] : 0)) {
            segments->ends.count = 0;
            return 0;
        }
        if (array_push(&segments->ends, end) < 0)
            return error_set(err, ERROR_FAILED, "no memory for %u segments", segments->count);
    }
    return 0;
}

static int read_rests(struct run_segments *segments, const json_t *from, struct error *err)
{
    const json_t *rests = json_object_get(from, "rests");
    for (size_t i = 0; i < json_array_size(rests); i++) {
        const json_int_t number = json_integer_value(json_array_get(rests, i));
        if (number > 0 && number <= SEGMENTS_MAX &&
            array_push(&segments->rests, (unsigned)number) < 0)
            return error_set(err, ERROR_FAILED, "no memory for %u segments", segments->count);
    }
    return 0;
}

int run_segments_read(struct run_segments *segments, const json_t *capture, const char *run_dir,
                      const char *side, uint64_t most_bytes, struct error *err)
{
    const json_t *from = json_object_get(capture, "segments");
    const char *why = json_string_value(json_object_get(from, "why"));
    json_int_t first = json_integer_value(json_object_get(from, "first")),
               count = json_integer_value(json_object_get(from, "count"));
    *segments = (struct run_segments){.side = side, .any = from != NULL};
    if (!from)
        return 0;
    if (first < 1 || first > SEGMENTS_MAX || count < 0 || count > SEGMENTS_MAX)
        return error_set(err, ERROR_INPUT,
                         "%s/%s/capture.json: segments %lld and the %s after it cannot be", run_dir,
                         side, (long long)first, TEXT_COUNT(count));
    segments->ended = json_is_true(json_object_get(from, "ended"));
    segments->first = (unsigned)first;
    segments->count = (unsigned)count;
    segments->from_ns = json_integer_value(json_object_get(from, "from_ns"));
    segments->until_ns = json_integer_value(json_object_get(from, "until_ns"));
    if (segments->from_ns < 0 || segments->until_ns < 0 ||
        (segments->until_ns && segments->until_ns < segments->from_ns))
        return error_set(err, ERROR_INPUT,
                         "%s/%s/capture.json: segments from %lld to %lld ns cannot be", run_dir,
                         side, (long long)segments->from_ns, (long long)segments->until_ns);
    snprintf(segments->why, sizeof segments->why, "%s", why ? why : "");
    segments->most_bytes = most_bytes;
    if (read_ends(segments, from, err) < 0 || read_rests(segments, from, err) < 0 ||
        find_bytes(segments, run_dir, err) < 0)
        return -ERROR_FAILED;
    uint64_t bytes = 0;
    unsigned kept = 0;
    for (unsigned n = piece_count(segments); n-- > 0; kept++)
        if ((bytes += piece_bytes(segments, n)) > most_bytes && kept)
            break;
    segments->left_out = piece_count(segments) - kept;
    segments->first += segments->left_out;
    segments->count -= segments->left_out < segments->count ? segments->left_out : segments->count;
    return 0;
}

bool run_segments_keep(struct run_segments *segments, struct run_segment_range range)
{
    if (range.first == 0)
        return true;
    bool there = segments->any && range.first >= segments->first && range.last >= range.first &&
                 range.last < segments->first + segments->count;
    if (!there)
        return false;
    segments->left_out += range.first - segments->first;
    segments->first = range.first;
    segments->count = range.last - range.first + 1;
    segments->messages_from = range.messages_from;
    segments->messages_lead_ns = range.messages_lead_ns;
    segments->events_from = range.events_from;
    segments->events_until = range.events_until;
    segments->ended = false;
    return true;
}

// How many of the moments are up to that one.
static size_t moments_until(const int64_t *moments, size_t count, int64_t until_ns)
{
    return array_bound(0, count, at, moments[at] <= until_ns);
}

// With those that are left out; of a capture that says when its segments ended.
static struct run_segments whole(const struct run_segments *segments)
{
    struct run_segments all = *segments;
    all.count = (unsigned)segments->ends.count;
    all.first = segments->first + segments->count - all.count;
    return all;
}

unsigned run_segments_all(const struct run_segments *segments)
{
    return segments->ends.count ? (unsigned)segments->ends.count + segments->ended : 0;
}

int run_segments_open_one(const struct run_segments *segments, const char *run_dir, unsigned n,
                          struct log_reader *out, struct error *err)
{
    const struct run_segments all = whole(segments);
    char path[RUN_FILE_PATH_BYTES];
    piece_path(&all, run_dir, "events", n, path);
    return log_reader_open(out, path, LOG_EVENTS, EVENT_LOG_VERSION, sizeof(struct event), err);
}

size_t run_segments_choose(struct run_segments *segments, const int64_t *moments, size_t count)
{
    const struct run_segments all = whole(segments);
    const unsigned pieces = run_segments_all(segments);
    if (segments->left_out == 0 || pieces == 0)
        return 0;
    unsigned from = 0, best_from = 0, best_to = 0;
    uint64_t bytes = 0;
    size_t most = 0;
    for (unsigned to = 0; to < pieces; to++) {
        bytes += piece_bytes(&all, to);
        while (bytes > segments->most_bytes && from < to)
            bytes -= piece_bytes(&all, from++);
        size_t before = from ? moments_until(moments, count, all.ends.items[from - 1]) : 0;
        size_t until = to < all.count ? moments_until(moments, count, all.ends.items[to]) : count;
        const size_t within = until - before;
        if (to && (within < most || (within == most && from != best_from)))
            continue;
        most = within;
        best_from = from;
        best_to = to;
    }
    segments->chosen = true;
    segments->left_out = pieces - (best_to + 1 - best_from);
    segments->first = all.first + best_from;
    segments->ended = best_to == all.count;
    segments->count = best_to + 1 - best_from - segments->ended;
    if (best_from)
        segments->from_ns = all.ends.items[best_from - 1];
    if (best_to < all.count)
        segments->until_ns = all.ends.items[best_to];
    return most;
}

// --- one log of many -----------------------------------------------------------------------------

struct pieces {
    struct ARRAY_OF(struct log_reader) logs;
    size_t records;
};

static void pieces_close(struct pieces *pieces)
{
    for (size_t i = 0; i < pieces->logs.count; i++)
        log_reader_close(&pieces->logs.items[i]);
    array_free(&pieces->logs);
}

// Whose records these are, too: one of the files was copied over the other. None: NULL.
static const struct log_reader *find_same(const struct pieces *pieces, const struct log_reader *log)
{
    for (size_t i = 0; log->count && i < pieces->logs.count; i++)
        if (pieces->logs.items[i].count == log->count &&
            memcmp(pieces->logs.items[i].records, log->records,
                   log->count * log->header.record_bytes) == 0)
            return &pieces->logs.items[i];
    return NULL;
}

static int pieces_open(const struct run_segments *segments, const char *run_dir, const char *what,
                       enum log_kind kind, uint32_t version, size_t record_bytes,
                       struct pieces *out, struct error *err)
{
    int result = 0;
    *out = (struct pieces){.records = 0};
    for (unsigned n = 0; n < piece_count(segments) && result == 0; n++) {
        char path[RUN_FILE_PATH_BYTES], other[RUN_FILE_PATH_BYTES];
        struct log_reader log;
        piece_path(segments, run_dir, what, n, path);
        result = log_reader_open(&log, path, kind, version, record_bytes, err);
        const struct log_reader *same = result == 0 ? find_same(out, &log) : NULL;
        if (same) {
            piece_path(segments, run_dir, what, (unsigned)(same - out->logs.items), other);
            result = error_set(err, ERROR_INPUT,
                               "%s has the same records as %s: one was copied over the other; copy "
                               "both again from where they were recorded",
                               path, other);
            log_reader_close(&log);
        }
        if (result == 0 && array_push(&out->logs, log) < 0) {
            log_reader_close(&log);
            result = error_set(err, ERROR_FAILED, "no memory for %s", path);
        }
        out->records += result == 0 ? log.count : 0;
    }
    if (result < 0)
        pieces_close(out);
    return result;
}

// The whole: its header is the first piece's, with what all of them lost.
static void whole_of(const struct pieces *pieces, void *records, struct log_reader *out)
{
    *out = (struct log_reader){.records = records, .count = pieces->records};
    for (size_t n = 0; n < pieces->logs.count; n++) {
        uint64_t dropped = out->header.dropped;
        if (n == 0)
            out->header = pieces->logs.items[n].header;
        else
            out->header.dropped = dropped + pieces->logs.items[n].header.dropped;
    }
    out->header.records = pieces->records;
}

static int event_compare(const void *left, const void *right)
{
    const struct event *a = left, *b = right;
    return order_of(a->time, b->time);
}

// As at the capture's end: a record is a little out of order only where one program interrupted
// another, or one segment ended and the next began.
static void sort_events(struct event *events, size_t count)
{
    size_t moves = 0;
    for (size_t i = 1; i < count; i++) {
        struct event moved = events[i];
        size_t to = i;
        for (; to > 0 && events[to - 1].time > moved.time; to--, moves++)
            events[to] = events[to - 1];
        events[to] = moved;
        if (moves > MOST_MOVES * count) { // their files were swapped, or worse
            qsort(events, count, sizeof *events, event_compare);
            return;
        }
    }
}

// A message's way by its socket, which tells nothing of what threads and cores did.
static bool is_of_message(const struct event *event)
{
    const uint64_t kinds = UINT64_C(1) << EVENT_SEGMENT | UINT64_C(1) << EVENT_STAMPED |
                           UINT64_C(1) << EVENT_HANDOFF | UINT64_C(1) << EVENT_TRANSMIT |
                           UINT64_C(1) << EVENT_ARRIVAL | UINT64_C(1) << EVENT_TAKEN |
                           UINT64_C(1) << EVENT_RECEIVED | UINT64_C(1) << EVENT_SENDING |
                           UINT64_C(1) << EVENT_SENT | UINT64_C(1) << EVENT_FRAMED;
    return event->kind < 64 && (kinds >> event->kind & 1);
}

// From when on messages are looked at, in the events' clock; 0: all of them are.
static uint64_t messages_begin(const struct run_segments *segments, const struct pieces *pieces)
{
    const unsigned from = segments->messages_from;
    uint64_t begin = UINT64_MAX;
    if (from <= segments->first || from - segments->first >= pieces->logs.count)
        return 0;
    const struct log_reader *log = &pieces->logs.items[from - segments->first];
    const struct event *events = log->records;
    for (size_t i = 0; i < log->count; i++)
        begin = events[i].time < begin ? events[i].time : begin;
    return begin == UINT64_MAX || begin < segments->messages_lead_ns
               ? 0
               : begin - segments->messages_lead_ns;
}

// What says who something is, for all that follows in its segment.
static bool is_introduction(const struct event *event)
{
    const uint64_t kinds = UINT64_C(1) << EVENT_MEMBER | UINT64_C(1) << EVENT_PROCESS |
                           UINT64_C(1) << EVENT_RENAMED | UINT64_C(1) << EVENT_DISK |
                           UINT64_C(1) << EVENT_SPARING;
    return event->kind < 64 && (kinds >> event->kind & 1);
}

// Which records of a piece are looked at.
struct choice {
    uint64_t messages_since; // of messages
    uint64_t from, until;    // of all others
    size_t *owners; // of each core: the last record before `from` that says who has it; CORES
};

static void find_owners(struct choice *choice, const struct log_reader *log)
{
    const struct event *events = log->records;
    for (size_t i = 0; choice->from && i < log->count; i++)
        if (events[i].time < choice->from &&
            (events[i].kind == EVENT_SWITCH || events[i].kind == EVENT_WATCHED))
            choice->owners[events[i].core] = i;
}

static bool is_chosen(const struct choice *choice, const struct event *events, size_t at)
{
    const struct event *event = &events[at];
    if (event->time < choice->from)
        return is_introduction(event) ||
               ((event->kind == EVENT_SWITCH || event->kind == EVENT_WATCHED) &&
                choice->owners[event->core] == at);
    return event->time <= choice->until &&
           (event->time >= choice->messages_since || !is_of_message(event));
}

// Puts each core's records of all pieces together, those that are chosen. ends: CORES + 1 of them,
// zeroed. Returns how many there are.
static size_t gather_cores(const struct pieces *pieces, struct choice *choice, size_t *ends,
                           struct event *out)
{
    for (size_t n = 0; n < pieces->logs.count; n++) {
        const struct event *events = pieces->logs.items[n].records;
        find_owners(choice, &pieces->logs.items[n]);
        for (size_t i = 0; i < pieces->logs.items[n].count; i++)
            ends[events[i].core + 1] += is_chosen(choice, events, i);
    }
    for (size_t core = 0; core < CORES; core++)
        ends[core + 1] += ends[core];
    // Now ends[core] is where a core begins; it moves to where it ends.
    for (size_t n = 0; n < pieces->logs.count; n++) {
        const struct event *events = pieces->logs.items[n].records;
        find_owners(choice, &pieces->logs.items[n]);
        for (size_t i = 0; i < pieces->logs.items[n].count; i++)
            if (is_chosen(choice, events, i))
                out[ends[events[i].core]++] = events[i];
    }
    for (size_t core = 0, begin = 0; core < CORES; begin = ends[core++])
        sort_events(out + begin, ends[core] - begin);
    return ends[CORES - 1];
}

// Between two that are looked at.
static int refuse_rests(const struct run_segments *segments, const char *run_dir, struct error *err)
{
    const unsigned last = segments->first + piece_count(segments) - 1;
    for (size_t i = 0; i < segments->rests.count; i++)
        if (segments->rests.items[i] >= segments->first && segments->rests.items[i] < last)
            return error_set(err, ERROR_INPUT,
                             "%s/%s/capture.json: nothing was recorded for a part of the time "
                             "between its segments (capture --budget): they are for taillight "
                             "watch, which looks at each by itself",
                             run_dir, segments->side);
    return 0;
}

int run_segments_open_events(struct run_segments *segments, const char *run_dir,
                             struct log_reader *out, struct error *err)
{
    struct pieces pieces;
    if (refuse_rests(segments, run_dir, err) < 0)
        return -ERROR_INPUT;
    int result = pieces_open(segments, run_dir, "events", LOG_EVENTS, EVENT_LOG_VERSION,
                             sizeof(struct event), &pieces, err);
    if (result < 0)
        return result;
    struct event *events = malloc((pieces.records + 1) * sizeof *events);
    size_t *ends = calloc(CORES + 1, sizeof *ends);
    struct choice choice = {.messages_since = messages_begin(segments, &pieces),
                            .from = segments->events_from,
                            .until = segments->events_until ? segments->events_until : UINT64_MAX,
                            .owners = calloc(CORES, sizeof *choice.owners)};
    segments->memory[0] = events;
    if (events && ends && choice.owners) {
        whole_of(&pieces, events, out);
        out->count = gather_cores(&pieces, &choice, ends, events); // of header.records
    } else {
        result =
            error_set(err, ERROR_FAILED, "no memory for %s events", TEXT_COUNT(pieces.records));
    }
    free(choice.owners);
    free(ends);
    pieces_close(&pieces);
    return result;
}

static int call_compare(const void *left, const void *right)
{
    const struct call *a = left, *b = right;
    return order_of(a->entry_tsc, b->entry_tsc) ?: order_of(a->exit_tsc, b->exit_tsc);
}

int run_segments_open_calls(struct run_segments *segments, const char *run_dir,
                            struct log_reader *out, struct error *err)
{
    struct pieces pieces;
    bool sorted = true;
    int result = pieces_open(segments, run_dir, "calls", LOG_CALLS, MESSAGE_LOG_VERSION,
                             sizeof(struct call), &pieces, err);
    if (result < 0)
        return result;
    struct call *calls = segments->memory[1] = malloc((pieces.records + 1) * sizeof *calls);
    size_t used = 0;
    for (size_t n = 0; n < pieces.logs.count && calls; n++) {
        memcpy(calls + used, pieces.logs.items[n].records,
               pieces.logs.items[n].count * sizeof *calls);
        used += pieces.logs.items[n].count;
    }
    for (size_t i = 1; i < used && calls; i++)
        sorted &= calls[i - 1].entry_tsc <= calls[i].entry_tsc;
    if (!sorted)
        qsort(calls, used, sizeof *calls, call_compare);
    if (calls)
        whole_of(&pieces, calls, out);
    else
        result = error_set(err, ERROR_FAILED, "no memory for %s calls", TEXT_COUNT(pieces.records));
    pieces_close(&pieces);
    return result;
}

static int piece_open(struct pieces *pieces, const char *path, enum log_kind kind, uint32_t version,
                      size_t record_bytes, struct error *err)
{
    struct log_reader log;
    int result = log_reader_open(&log, path, kind, version, record_bytes, err);
    if (result == 0 && array_push(&pieces->logs, log) < 0) {
        log_reader_close(&log);
        result = error_set(err, ERROR_FAILED, "no memory for %s", path);
    }
    pieces->records += result == 0 ? log.count : 0;
    return result;
}

// The side's sockets.tlog, and those of these segments and later ones.
static int sockets_open(const struct run_segments *segments, const char *run_dir,
                        struct pieces *out, struct error *err)
{
    const struct dirent *entry;
    char path[RUN_FILE_PATH_BYTES], name[64];
    run_path(path, run_dir, segments->side);
    DIR *entries = opendir(path);
    int result = entries ? 0 : error_set_errno(err, ERROR_INPUT, "cannot open %s", path);
    while (result == 0 && (entry = readdir(entries))) {
        const unsigned number = number_named(entry->d_name, "sockets");
        if (number == 0 || number < segments->first)
            continue;
        snprintf(name, sizeof name, "%s/sockets-%06u.tlog", segments->side, number);
        run_path(path, run_dir, name);
        result = piece_open(out, path, LOG_CONNECTIONS, EVENT_LOG_VERSION,
                            sizeof(struct connection), err);
    }
    if (entries)
        closedir(entries);
    snprintf(name, sizeof name, "%s/sockets.tlog", segments->side);
    run_path(path, run_dir, name);
    return result < 0 ? result
                      : piece_open(out, path, LOG_CONNECTIONS, EVENT_LOG_VERSION,
                                   sizeof(struct connection), err);
}

static int connection_compare(const void *left, const void *right)
{
    const struct connection *a = left, *b = right;
    return order_of(a->id, b->id) ?: order_of(a->cookie, b->cookie);
}

int run_segments_open_sockets(struct run_segments *segments, const char *run_dir,
                              struct log_reader *out, struct error *err)
{
    struct pieces pieces = {.records = 0};
    struct connection *all = NULL;
    size_t used = 0, kept = 0;
    int result = sockets_open(segments, run_dir, &pieces, err);
    if (result == 0 && !(all = segments->memory[2] = malloc((pieces.records + 1) * sizeof *all)))
        result = error_set(err, ERROR_FAILED, "no memory for %s connections",
                           TEXT_COUNT(pieces.records));
    for (size_t n = 0; n < pieces.logs.count && result == 0; n++) {
        const struct log_reader *log = &pieces.logs.items[n];
        memcpy(all + used, log->records, log->count * sizeof *all);
        used += log->count;
    }
    if (result == 0) {
        qsort(all, used, sizeof *all, connection_compare);
        // One that was killed between the two files has some in both.
        for (size_t i = 0; i < used; i++)
            if (kept == 0 || memcmp(&all[kept - 1], &all[i], sizeof *all) != 0)
                all[kept++] = all[i];
        pieces.records = kept;
        whole_of(&pieces, all, out);
    }
    pieces_close(&pieces);
    return result;
}

void run_segments_free(struct run_segments *segments)
{
    for (size_t i = 0; i < sizeof segments->memory / sizeof *segments->memory; i++)
        free(segments->memory[i]);
    array_free(&segments->ends);
    array_free(&segments->rests);
    free(segments->bytes);
    *segments = (struct run_segments){.any = false};
}
