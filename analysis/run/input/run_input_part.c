// SPDX-License-Identifier: MIT
#include "analysis/run/input/run_input_part.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/lifetime/answer_times.h"
#include "analysis/run/input/run_input_clocks.h"
#include "base/histogram.h"
#include "base/text.h"
#include "loadgen/client/sample_log.h"
#include "profiler/bpf/event_log.h"

struct moments ARRAY_OF(int64_t); // host time

// Latencies are slow from here on: of the slowest hundredth the least, in ticks.
static int slow_latency(const struct sample *samples, size_t count, uint64_t *slow,
                        struct error *err)
{
    struct histogram *latencies = calloc(1, sizeof *latencies);
    if (!latencies)
        return error_set(err, ERROR_FAILED, "no memory for a histogram");
    for (size_t i = 0; i < count; i++)
        if (sample_is_answered(&samples[i]))
            histogram_record(latencies, samples[i].reply_tsc - samples[i].intended_tsc);
        else
            histogram_record_infinite(latencies);
    const double quantile = histogram_quantile(latencies, 0.99);
    *slow = isfinite(quantile) ? histogram_lowest(histogram_slot((uint64_t)quantile)) : UINT64_MAX;
    free(latencies);
    return 0;
}

// When the slowest hundredth of all requests were due, by the host's clock.
static int find_slowest(const struct run_input *input, const struct time_source *clock,
                        struct moments *out, struct error *err)
{
    const struct sample *samples = input->samples.records;
    uint64_t slow = 0;
    int result = slow_latency(samples, input->samples.count, &slow, err);
    for (size_t i = 0; i < input->samples.count && result == 0; i++) {
        if (sample_is_answered(&samples[i]) &&
            samples[i].reply_tsc - samples[i].intended_tsc < slow)
            continue;
        if (array_push(out,
                       clock->convert(clock->context, HOST_CLOCK_TSC, samples[i].intended_tsc)) < 0)
            result = error_set(err, ERROR_FAILED, "no memory for the slowest requests");
    }
    return result;
}

// When the first of the events was recorded, by the host's clock.
static int64_t begin_of_events(const struct log_reader *log, const struct time_source *clock)
{
    const struct event *events = log->records;
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < log->count; i++)
        first = events[i].time < first ? events[i].time : first;
    return clock->convert(clock->context, HOST_CLOCK_MONOTONIC, first);
}

// --- of a capture alone --------------------------------------------------------------------------

struct slow_answer {
    int64_t latency_ns, answered_ns;
};

// The slowest of so many as there are; no more than twice SLOWEST_MOST at a time.
struct slow_answers {
    struct ARRAY_OF(struct slow_answer) kept;
    size_t all;
};
enum { SLOWEST_MOST = 1 << 20 };

static int slowest_first(const void *left, const void *right)
{
    const struct slow_answer *a = left, *b = right;
    return order_of(b->latency_ns, a->latency_ns) ?: order_of(a->answered_ns, b->answered_ns);
}

static int by_moment(const void *left, const void *right)
{
    const int64_t *a = left, *b = right;
    return order_of(*a, *b);
}

static void keep_slowest(struct slow_answers *slow, size_t most)
{
    array_sort(&slow->kept, slowest_first);
    if (slow->kept.count > most)
        slow->kept.count = most;
}

static int take_answers(struct slow_answers *slow, const struct answer_array *answers)
{
    for (size_t i = 0; i < answers->count; i++) {
        const struct answer *answer = &answers->items[i];
        const struct slow_answer one = {answer->answered_ns - answer->arrived_ns,
                                        answer->answered_ns};
        if (array_push(&slow->kept, one) < 0)
            return -1;
        if (slow->kept.count == 2 * SLOWEST_MOST)
            keep_slowest(slow, SLOWEST_MOST);
    }
    slow->all += answers->count;
    return 0;
}

// Log by log, of which one is in memory at a time.
static int gather_answers(struct run_input *input, const char *run_dir,
                          const struct time_source *clock, struct progress *progress,
                          struct slow_answers *slow, struct error *err)
{
    const unsigned logs = run_segments_all(&input->segments);
    struct answer_times times = {0};
    struct answer_array answers = {0};
    int result = 0;
    progress_phase(progress, "looking for the slowest requests in %u logs", logs);
    for (unsigned n = 0; n < logs && result == 0; n++) {
        struct log_reader log;
        result = run_segments_open_one(&input->segments, run_dir, n, &log, err);
        if (result < 0)
            break;
        if (n == 0)
            input->begin_ns = begin_of_events(&log, clock);
        answers.count = 0;
        if (answer_times_add(&times, log.records, log.count, clock, &answers) < 0 ||
            take_answers(slow, &answers) < 0)
            result = error_set(err, ERROR_FAILED, "no memory for the slowest requests");
        log_reader_close(&log);
        progress_update(progress, "%u of %u", n + 1, logs);
    }
    answer_times_free(&times);
    array_free(&answers);
    return result;
}

// When the slowest hundredth of all that was answered was so.
static int find_slowest_answers(struct run_input *input, const char *run_dir,
                                const struct time_source *clock, struct progress *progress,
                                struct moments *out, struct error *err)
{
    struct slow_answers slow = {0};
    int result = gather_answers(input, run_dir, clock, progress, &slow, err);
    keep_slowest(&slow, (slow.all + 99) / 100);
    for (size_t i = 0; i < slow.kept.count && result == 0; i++)
        if (array_push(out, slow.kept.items[i].answered_ns) < 0)
            result = error_set(err, ERROR_FAILED, "no memory for the slowest requests");
    array_sort(out, by_moment);
    array_free(&slow.kept);
    return result;
}

// -------------------------------------------------------------------------------------------------

int run_input_choose_segments(struct run_input *input, const char *run_dir,
                              struct progress *progress, struct error *err)
{
    char boot_id[RUN_BOOT_ID_BYTES];
    struct clock_map *map = NULL;
    struct time_source clock;
    struct moments slowest = {0};
    if (input->segments.left_out == 0 || run_segments_all(&input->segments) == 0)
        return 0;
    int result = run_input_open_server_clock(run_dir, boot_id, &map, &clock, err);
    if (result < 0)
        return result;
    if (input->without_client)
        result = find_slowest_answers(input, run_dir, &clock, progress, &slowest, err);
    else if (memcmp(input->samples.header.boot_id, boot_id, sizeof boot_id) == 0)
        result = find_slowest(input, &clock, &slowest, err);
    if (result == 0 && slowest.count) {
        input->slowest = slowest.count;
        input->slowest_there = run_segments_choose(&input->segments, slowest.items, slowest.count);
    }
    array_free(&slowest);
    clock_map_free(map);
    return result;
}

static int64_t intended_ns(const struct run_input *input, size_t i)
{
    const struct sample *samples = input->samples.records;
    return input->clock.convert(input->clock.context, HOST_CLOCK_TSC, samples[i].intended_tsc);
}

void run_input_say_where_load_ends(struct run_input *input)
{
    const struct time_source *clock = input->apart ? &input->client_clock : &input->clock;
    const struct sample *samples = input->samples.records;
    const size_t count = input->samples.count;
    const int64_t ns =
        clock->convert(clock->context, HOST_CLOCK_TSC, samples[count - 1].intended_tsc) -
        clock->convert(clock->context, HOST_CLOCK_TSC, samples[0].intended_tsc);
    text_append(input->ends, sizeof input->ends,
                "%sThe load was killed: what it had written ends %s after its begin, with %s "
                "requests.",
                input->ends[0] ? " " : "", TEXT_INSTANT((double)ns), TEXT_COUNT(count));
}

static void say_where_it_ends(struct run_input *input, size_t requests, size_t all)
{
    const struct run_segments *segments = &input->segments;
    char from[80] = "", until[80] = "", slowest[120] = "";
    if (segments->from_ns)
        snprintf(from, sizeof from, "begins %s",
                 TEXT_INSTANT((double)(segments->from_ns - intended_ns(input, 0))));
    if (segments->until_ns)
        snprintf(until, sizeof until, "ends %s",
                 TEXT_INSTANT((double)(segments->until_ns - intended_ns(input, 0))));
    snprintf(slowest, sizeof slowest,
             " The rest is too much for one analysis; of the load's slowest 1 %%, %s of %s are "
             "in it.",
             TEXT_COUNT(input->slowest_there), TEXT_COUNT(input->slowest));
    text_append(
        input->ends, sizeof input->ends,
        "%sWhat there is of the capture %s%s%s after the load's begin: %s of %s requests are "
        "looked at%s%.350s.%s",
        input->ends[0] ? " " : "", from, from[0] && until[0] ? " and " : "", until,
        TEXT_COUNT(requests), TEXT_COUNT(all), segments->why[0] ? "; " : "", segments->why,
        segments->left_out == 0 ? ""
        : segments->chosen      ? slowest
                                : " What came before is too much for one analysis.");
}

void run_input_say_part(const struct run_input *input, char *out, size_t out_bytes)
{
    const struct run_segments *segments = &input->segments;
    char from[80] = "", until[80] = "";
    int64_t begin = input->begin_ns;
    if (begin == 0 && segments->left_out == 0 && input->has_events && input->events.count)
        begin = begin_of_events(&input->events, &input->clock);
    if (input->is_excerpt || !segments->any || (!segments->from_ns && !segments->until_ns))
        return;
    if (segments->from_ns && begin && segments->left_out)
        snprintf(from, sizeof from, " from %s", TEXT_INSTANT((double)(segments->from_ns - begin)));
    if (segments->until_ns && begin)
        snprintf(until, sizeof until, " to %s", TEXT_INSTANT((double)(segments->until_ns - begin)));
    text_append(out, out_bytes, "%sOf the capture what was answered%s%s%s is looked at%s%.350s.",
                out[0] ? " " : "", from, until,
                from[0] || until[0] ? " after its begin" : " latest", segments->why[0] ? "; " : "",
                segments->why);
    if (segments->chosen)
        text_append(out, out_bytes,
                    " The rest is too much for one analysis (--logs); of the slowest 1 %% of all, "
                    "%s of %s are in it.",
                    TEXT_COUNT(input->slowest_there), TEXT_COUNT(input->slowest));
    else if (segments->left_out)
        text_append(out, out_bytes, " What came before is too much for one analysis (--logs).");
}

int run_input_cut_samples(struct run_input *input, const char *run_dir, struct error *err)
{
    struct run_segments *segments = &input->segments;
    const struct sample *samples = input->samples.records;
    size_t all = input->samples.count;
    if (segments->left_out && !segments->chosen && input->has_events && input->events.count)
        segments->from_ns = begin_of_events(&input->events, &input->clock);
    if (!segments->any || input->apart || input->without_client ||
        (!segments->from_ns && !segments->until_ns))
        return 0;
    size_t first = array_bound(0, all, i, intended_ns(input, i) < segments->from_ns), last = all;
    if (segments->until_ns)
        last = array_bound(first, all, k, intended_ns(input, k) < segments->until_ns);
    say_where_it_ends(input, last - first, all);
    input->samples.count = last - first;
    input->samples.records = samples + first;
    return last > first ? 0
                        : error_set(err, ERROR_INPUT,
                                    "%s: nothing to analyze: no request came while the capture "
                                    "recorded what is left of it",
                                    run_dir);
}
