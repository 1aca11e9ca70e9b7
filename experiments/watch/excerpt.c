// SPDX-License-Identifier: MIT
#include "experiments/watch/excerpt.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/log_file.h"
#include "base/quantile.h"
#include "experiments/common/run_folder.h"
#include "profiler/clock/clock_map.h"

enum {
    LEAST = 2000,           // requests: 20 of them are the slowest hundredth
    RECORDS_OF_REQUEST = 3, // at least
    LEAD_NS = 20000000,     // before the excerpt's first answer, for what threads did
    TAIL_NS = 10000000,     // and after its last one
};

static int64_t convert(const void *map, enum host_clock clock, uint64_t value)
{
    return clock_map_to_host(map, clock, value);
}

static void log_path(const struct run_request *request, unsigned segment, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s/events-%06u.tlog", request->run_dir, segment);
}

// --- what was answered ---------------------------------------------------------------------------

// So many records that there may be more requests than that.
static bool may_be_more(const struct run_request *request, unsigned first, size_t most)
{
    uint64_t bytes = 0;
    for (unsigned segment = first; segment <= request->segments.last; segment++) {
        char path[RUN_PATH_BYTES + 64];
        struct stat status;
        log_path(request, segment, path, sizeof path);
        bytes += stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
    }
    return bytes / sizeof(struct event) / RECORDS_OF_REQUEST > most;
}

static int read_segment(struct excerpt *excerpt, const struct run_request *request,
                        unsigned segment, const struct time_source *clock)
{
    char path[RUN_PATH_BYTES + 64];
    struct log_reader log;
    struct error ignored;
    log_path(request, segment, path, sizeof path);
    if (log_reader_open(&log, path, LOG_EVENTS, EVENT_LOG_VERSION, sizeof(struct event), &ignored) <
        0)
        return -1;
    int result =
        answer_times_add(&excerpt->times, log.records, log.count, clock, &excerpt->answers);
    log_reader_close(&log);
    return result;
}

// The answers of the interval. Where the one before was not read, what had been asked in it is; one
// that stands alone has none before it.
static int read_answers(struct excerpt *excerpt, unsigned first, const struct run_request *request)
{
    char path[RUN_PATH_BYTES + 64];
    struct clock_map *map = NULL;
    struct error ignored;
    int result = 0;
    snprintf(path, sizeof path, "%s/clock.tlog", request->run_dir);
    if (clock_map_open(path, &map, &ignored) < 0)
        return -1;
    const struct time_source clock = {.convert = convert, .context = map};
    const bool alone = request->segments.first == first;
    if (alone || excerpt->read + 1 != first) {
        answer_times_free(&excerpt->times);
        if (!alone)
            result = read_segment(excerpt, request, first - 1, &clock);
        excerpt->answers.count = 0;
    }
    for (unsigned segment = first; segment <= request->segments.last && result == 0; segment++)
        result = read_segment(excerpt, request, segment, &clock);
    excerpt->read = result == 0 ? request->segments.last : 0;
    clock_map_free(map);
    return result;
}

// --- which part ----------------------------------------------------------------------------------

static double latency_of(const struct answer *answer)
{
    return (double)(answer->answered_ns - answer->arrived_ns);
}

// What the slowest hundredth took at least; 0 where there is no memory to tell.
static double slow_from(const struct answer_array *answers)
{
    double *latencies = malloc((answers->count + 1) * sizeof *latencies), slow = 0;
    for (size_t i = 0; latencies && i < answers->count; i++)
        latencies[i] = latency_of(&answers->items[i]);
    if (latencies) {
        quantile_sort(latencies, answers->count);
        slow = quantile_sorted(latencies, answers->count, 0.99);
    }
    free(latencies);
    return slow;
}

size_t excerpt_choose(const struct answer_array *answers, size_t most)
{
    const double slow = slow_from(answers);
    double sum = 0, best_sum = -1;
    size_t best = 0;
    for (size_t i = 0; i < answers->count; i++) {
        const double latency = latency_of(&answers->items[i]);
        sum += latency >= slow ? latency : 0;
        if (i >= most) {
            const double gone = latency_of(&answers->items[i - most]);
            sum -= gone >= slow ? gone : 0;
        }
        if (i + 1 >= most && sum > best_sum) {
            best_sum = sum;
            best = i + 1 - most;
        }
    }
    return best;
}

static int64_t slowest_ns(const struct answer *answers, size_t count)
{
    int64_t slowest = 0;
    for (size_t i = 0; i < count; i++) {
        const int64_t latency = answers[i].answered_ns - answers[i].arrived_ns;
        slowest = latency > slowest ? latency : slowest;
    }
    return slowest;
}

static void narrow(const struct answer *answers, size_t first, size_t count,
                   struct run_request *request)
{
    const struct answer *begin = &answers[first], *end = &answers[first + count - 1];
    const int64_t lead = 2 * slowest_ns(begin, count);
    const uint64_t lead_ns = (uint64_t)(lead > LEAD_NS ? lead : LEAD_NS);
    request->segments.events_from = begin->time > lead_ns ? begin->time - lead_ns : 1;
    request->segments.events_until = end->time + TAIL_NS;
    if (first)
        request->answered_after_ns = begin[-1].answered_ns;
    request->answered_until_ns = end->answered_ns;
}

bool excerpt_take(struct excerpt *excerpt, unsigned first, struct run_request *request)
{
    const int64_t interval_ns = request->answered_until_ns - request->answered_after_ns;
    const double allowed = (double)excerpt->rate * (double)interval_ns / 1e9;
    const size_t most = allowed > LEAST ? (size_t)allowed : LEAST;
    excerpt->answers.count = 0;
    if (!excerpt->rate || !may_be_more(request, first, most) ||
        read_answers(excerpt, first, request) < 0 || excerpt->times.framed ||
        excerpt->answers.count <= most ||
        slowest_ns(excerpt->answers.items, excerpt->answers.count) > interval_ns / 2) {
        excerpt->answers.count = 0;
        return false;
    }
    narrow(excerpt->answers.items, excerpt_choose(&excerpt->answers, most), most, request);
    return true;
}

void excerpt_free(struct excerpt *excerpt)
{
    answer_times_free(&excerpt->times);
    array_free(&excerpt->answers);
}
