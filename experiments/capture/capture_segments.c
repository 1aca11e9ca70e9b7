// SPDX-License-Identifier: MIT
#include "experiments/capture/capture_segments.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "experiments/capture/capture_backend.h"
#include "experiments/capture/capture_document.h"
#include "experiments/common/run_folder.h"

// A segment costs time on a core that the load may share: a short capture has none, and a slow one
// only small ones. Elsewhere the first is early, so that a capture that is killed leaves all but
// its last moments. One is due when so much waits, or so long after the one before.
enum {
    SEGMENT_BYTES = 32 << 20, // or half of what the rings hold, if that is more
    SMALL_BYTES = 32 << 20,
    FIRST_AFTER_S = 2,  // the first, where no load is disturbed, and ...
    SMALL_AFTER_S = 10, // ... the next ones of no more than SMALL_BYTES
    ANY_AFTER_S = 30,
    SEGMENT_NICE = 10,
    RESERVE_SHARE = 5, // of the free space: one part in so many stays free ...
};
static const uint64_t most_reserve_bytes = UINT64_C(1) << 30; // ... and no more than this

void capture_segments_begin(struct capture *capture)
{
    uint64_t room = free_disk_bytes(capture->options.out) / RESERVE_SHARE;
    capture->segments = (struct capture_segments){
        .first = 1,
        .cut_ns = (uint64_t)monotonic_ns(),
        .reserve_bytes = room < most_reserve_bytes ? room : most_reserve_bytes};
}

static uint64_t waiting_bytes(const struct capture *capture)
{
    uint64_t bytes =
        capture->collector ? message_collector_kept(capture->collector) * sizeof(struct call) : 0;
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT; i++)
        if (capture->states[i])
            bytes += capture_backends[i]->kept(capture->states[i]);
    return bytes;
}

static uint64_t segment_bytes(const struct capture *capture)
{
    uint64_t rings = 0;
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT; i++)
        if (capture->states[i])
            rings += capture_backends[i]->ring_bytes(capture->states[i]);
    return rings / 2 > SEGMENT_BYTES ? rings / 2 : SEGMENT_BYTES;
}

// Whether what it writes takes time from the load.
static bool shares_load_core(const struct capture *capture)
{
    const struct capture_options *o = &capture->options;
    cpu_set_t both;
    CPU_AND(&both, &o->client_cores, &o->helper_cores);
    return CPU_COUNT(&both) > 0;
}

static bool is_due(const struct capture *capture, uint64_t waiting)
{
    uint64_t age_ns = (uint64_t)monotonic_ns() - capture->segments.cut_ns;
    uint64_t age_s = age_ns / 1000000000, asked_ns = capture->options.segment_ns;
    if (asked_ns)
        return age_ns >= asked_ns || waiting >= segment_bytes(capture);
    bool first = capture->segments.first == 1 && capture->segments.kept.count == 0 &&
                 !shares_load_core(capture);
    return waiting &&
           (waiting >= segment_bytes(capture) || age_s >= ANY_AFTER_S ||
            (age_s >= (first ? FIRST_AFTER_S : SMALL_AFTER_S) && waiting <= SMALL_BYTES));
}

// --- files ---------------------------------------------------------------------------------------

static void log_path(const struct capture *capture, const char *what, unsigned number, bool whole,
                     char out[RUN_PATH_BYTES + 64])
{
    snprintf(out, RUN_PATH_BYTES + 64, "%s%s%s-%06u.tlog", whole ? capture->options.out : "",
             whole ? "/" : "", what, number);
}

static const char *const segment_logs[] = {"events", "calls", "sockets"};
enum { LOGS = sizeof segment_logs / sizeof *segment_logs, RECORDS = LOGS - 1 };

// What a segment has on the disk.
static void find_files(const struct capture *capture, unsigned number, struct capture_segment *out)
{
    for (size_t i = 0; i < LOGS; i++) {
        char path[RUN_PATH_BYTES + 64];
        struct stat status;
        log_path(capture, segment_logs[i], number, true, path);
        if (lstat(path, &status) < 0)
            continue;
        out->bytes += (uint64_t)status.st_size;
        out->sockets |= i >= RECORDS;
    }
}

// Removes so many of a segment's files.
static void remove_files(const struct capture *capture, unsigned number, size_t logs)
{
    for (size_t i = 0; i < logs; i++) {
        char path[RUN_PATH_BYTES + 64];
        log_path(capture, segment_logs[i], number, true, path);
        unlink(path);
    }
}

// Forgets the oldest segments while there are more bytes than are to be kept.
static void rotate(struct capture *capture)
{
    struct capture_segments *segments = &capture->segments;
    uint64_t all = 0;
    size_t gone = 0;
    for (size_t i = 0; i < segments->kept.count; i++)
        all += segments->kept.items[i].bytes;
    while (capture->options.keep_bytes && all > capture->options.keep_bytes &&
           gone + 1 < segments->kept.count) {
        all -= segments->kept.items[gone].bytes;
        gone++;
        segments->from_ns = segments->kept.items[gone].from_ns;
    }
    if (gone == 0)
        return;
    json_decref(segments->counted);
    segments->counted = json_incref(segments->kept.items[gone - 1].counted);
    for (size_t i = 0; i < gone; i++)
        json_decref(segments->kept.items[i].counted);
    memmove(segments->kept.items, segments->kept.items + gone,
            (segments->kept.count - gone) * sizeof *segments->kept.items);
    segments->kept.count -= gone;
    segments->first += (unsigned)gone;
}

// --- cutting -------------------------------------------------------------------------------------

// Ends what has been recorded so far; out NULL: it is forgotten.
static int cut_all(struct capture *capture, const char *out, unsigned number,
                   struct capture_segment *segment, struct error *err)
{
    char name[RUN_PATH_BYTES + 64];
    int result = 0;
    log_path(capture, "calls", number, false, name);
    if (capture->collector)
        result = message_collector_cut(capture->collector, out, name, err);
    for (size_t i = 0; i < CAPTURE_BACKENDS_COUNT && result == 0; i++)
        if (capture->states[i])
            result = capture_backends[i]->cut(capture->states[i], out, number, segment, err);
    return result;
}

static int write_segment(struct capture *capture, uint64_t waiting, unsigned number,
                         struct error *err)
{
    struct capture_segments *segments = &capture->segments;
    const int64_t cut_ns = clock_now_ns(CLOCK_MONOTONIC_RAW),
                  length_ns = cut_ns - segments->begun_ns;
    struct capture_segment segment = {.from_ns = segments->until_ns, .until_ns = cut_ns};
    uint64_t room = free_disk_bytes(capture->options.out);
    if (room < segments->reserve_bytes + waiting)
        return error_set(err, ERROR_FAILED,
                         "%llu MiB are left on the disk, and kept free for the load's result",
                         (unsigned long long)room >> 20);
    int result = cut_all(capture, capture->options.out, number, &segment, err);
    if (result == 0)
        result = capture_document_write_clock(capture, err);
    find_files(capture, number, &segment);
    const int64_t recorded_ns =
        segment.until_ns - (segment.from_ns ? segment.from_ns : segments->begun_ns);
    segment.recorded = segment.rests ? fmin((double)recorded_ns / (double)length_ns, 1) : 1;
    if (result == 0 && array_push(&segments->kept, segment) < 0)
        result = error_set(err, ERROR_FAILED, "out of memory for the list of segments");
    if (result < 0)
        return result;
    const unsigned oldest = segments->first;
    const int64_t before_ns = segments->until_ns;
    segments->until_ns = segment.until_ns;
    segments->begun_ns = cut_ns;
    rotate(capture);
    result = capture_document_write_so_far(capture, err);
    // Only now nobody looks for them.
    for (unsigned old = oldest; result == 0 && old < segments->first; old++)
        remove_files(capture, old, LOGS);
    if (result < 0) {
        json_decref(segments->kept.items[--segments->kept.count].counted);
        segments->until_ns = before_ns;
    }
    return result;
}

static void stop_writing(struct capture *capture, unsigned number, const char *why)
{
    struct error ignored;
    struct capture_segments *segments = &capture->segments;
    segments->stopped = true;
    // sockets.tlog may be without those that are in the segment's.
    remove_files(capture, number, RECORDS);
    snprintf(segments->why, sizeof segments->why,
             "the capture ends before the load, since it cannot be written on: %.500s", why);
    capture_warn(capture, segments->why);
    cut_all(capture, NULL, number, &(struct capture_segment){0}, &ignored);
    capture_document_write_so_far(capture, &ignored); // says why, if there is room
}

// Writing takes milliseconds, on a core that the load may share: whoever wants it goes first, also
// where the capture is a real-time program otherwise.
static int write_unhurried(struct capture *capture, uint64_t waiting, unsigned number,
                           struct error *err)
{
    struct sched_param before = {0};
    int policy = sched_getscheduler(0);
    bool real_time =
        (policy == SCHED_FIFO || policy == SCHED_RR) && sched_getparam(0, &before) == 0;
    const int nice_before = getpriority(PRIO_PROCESS, 0);
    setpriority(PRIO_PROCESS, 0, SEGMENT_NICE);
    if (real_time)
        sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
    int result = write_segment(capture, waiting, number, err);
    if (real_time)
        sched_setscheduler(0, policy, &before);
    // What empties the rings must not wait behind others: what does not fit into them is lost. Who
    // may not go back, without CAP_SYS_NICE, stays where it is.
    setpriority(PRIO_PROCESS, 0, nice_before);
    return result;
}

static json_t *segment_line(const struct capture_segment *segment, unsigned number)
{
    return json_pack("{s:i, s:I, s:I, s:f, s:f}", "segment", (int)number, "from_ns",
                     (json_int_t)segment->from_ns, "until_ns", (json_int_t)segment->until_ns,
                     "recorded", segment->recorded, "taken", segment->taken);
}

int capture_segments_poll(struct capture *capture, struct error *err)
{
    struct capture_segments *segments = &capture->segments;
    struct error problem;
    uint64_t waiting = waiting_bytes(capture);
    if (!is_due(capture, waiting))
        return 0;
    unsigned number = segments->first + (unsigned)segments->kept.count;
    if (segments->stopped) {
        segments->cut_ns = (uint64_t)monotonic_ns();
        return cut_all(capture, NULL, number, &(struct capture_segment){0}, err);
    }
    const uint64_t begun_ns = (uint64_t)monotonic_ns();
    if (write_unhurried(capture, waiting, number, &problem) < 0)
        stop_writing(capture, number, problem.text);
    // The next is due as if writing took no time, unless it took most of what was asked for.
    const uint64_t half_ago_ns = (uint64_t)monotonic_ns() - capture->options.segment_ns / 2;
    segments->cut_ns = begun_ns > half_ago_ns ? begun_ns : half_ago_ns;
    if (!capture->options.segment_ns)
        return 0;
    json_t *line = segments->stopped
                       ? json_pack("{s:s}", "stopped", problem.text)
                       : segment_line(&segments->kept.items[segments->kept.count - 1], number);
    return capture_lines_say(&capture->lines, line, err);
}

void capture_segments_free(struct capture_segments *segments)
{
    for (size_t i = 0; i < segments->kept.count; i++)
        json_decref(segments->kept.items[i].counted);
    json_decref(segments->counted);
    array_free(&segments->kept);
}
