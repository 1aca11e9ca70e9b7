// SPDX-License-Identifier: MIT
//
// A load far longer than memory, without a server and faster than its own time: 500,000 requests a
// second for a while (TAILLIGHT_HOURS, 0.1 when absent), drawn into rings, answered at once by this
// program, taken out and judged, in the memory that --memory 1GiB gives. Prints what drawing and
// taking a request cost, and how much memory the process has had, after each tenth and at the end.
// Fails when that is over 1 GiB, or when requests are missing.
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "loadgen/engine/engine_result.h"
#include "loadgen/engine/sample_drain.h"
#include "loadgen/method/method.h"
#include "tests/bench/bench_json.h"

static const double rate = 500000, tsc_hz = 2e9;
static const size_t memory_bytes = 1 << 30;
enum { TENTHS = 10, THREADS = 2, LATENCIES = 1 << 16 };

static double peak_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

// The load threads: each request leaves when it is due, and is answered after a time with a tail.
static uint64_t answer(struct sample_drain *drain, const uint32_t *latencies)
{
    uint64_t answered = 0;
    for (uint32_t i = 0; i < drain->ring_count; i++) {
        struct sample_ring *ring = &drain->rings[i];
        const uint64_t ready = atomic_load(&ring->drawn.ready);
        for (uint64_t n = atomic_load(&ring->sent.final); n < ready; n++, answered++) {
            struct sample *sample = sample_ring_at(ring, n);
            sample->send_tsc = sample->intended_tsc + 2000;
            sample->sent_tsc = sample->send_tsc + 4000;
            sample->reply_tsc = sample->sent_tsc + latencies[hash64(n) % LATENCIES];
            sample->status = SAMPLE_ANSWERED;
            sample_set_sender(sample, i);
        }
        atomic_store(&ring->sent.final, ready);
    }
    return answered;
}

static double seconds(void)
{
    return (double)monotonic_ns() / 1e9;
}

static void fail(const char *why)
{
    fprintf(stderr, "%s\n", why);
    exit(1);
}

// What drawing alone costs, in ns a request.
static double drawing_ns(const struct workload *workload)
{
    enum { COUNT = 2000000 };
    struct schedule_drawer *drawer;
    struct scheduled_request request;
    struct error err;
    if (schedule_drawer_open(workload, &workload->arrivals, rate, UINT64_MAX / 4, 1, &drawer,
                             &err) < 0)
        fail(err.text);
    const double begin = seconds();
    for (size_t i = 0; i < COUNT; i++)
        schedule_drawer_next(drawer, &request);
    const double ns = (seconds() - begin) / COUNT * 1e9;
    schedule_drawer_close(drawer);
    return ns;
}

// What taking alone costs: of samples that are in the cache, as a thread's newest are.
static double taking_ns(const uint32_t *latencies)
{
    enum { COUNT = 2000000 };
    struct sample_totals *totals;
    struct error err;
    if (sample_totals_new(memory_bytes / 3, NULL, &totals, &err) < 0)
        fail(err.text);
    struct sample sample = {.intended_tsc = 1000, .send_tsc = 2000, .sent_tsc = 3000};
    const double begin = seconds();
    for (size_t i = 0; i < COUNT; i++) {
        sample.reply_tsc = sample.sent_tsc + latencies[i % LATENCIES];
        sample_totals_add(totals, &sample);
    }
    const double ns = (seconds() - begin) / COUNT * 1e9;
    sample_totals_free(totals);
    return ns;
}

static void judge(struct sample_totals *totals, const struct workload *workload, double duration_s)
{
    struct load_summary summary;
    struct method method;
    struct error err;
    const struct engine_result result = {.samples = totals->kept,
                                         .sample_count = totals->kept_count,
                                         .totals = totals,
                                         .tsc_hz = tsc_hz,
                                         .thread_count = THREADS,
                                         .connections_at_once = 16,
                                         .cpu_ns = (uint64_t)(duration_s * 1e9),
                                         .spin_tsc = (uint64_t)(duration_s * tsc_hz),
                                         .end_tsc = (uint64_t)(duration_s * tsc_hz)};
    const struct method_settings settings = {.quantile = 0.99,
                                             .confidence = 0.95,
                                             .arrivals = workload->arrivals,
                                             .rate = rate,
                                             .duration_s = duration_s,
                                             .turn = 16};
    if (load_judge(&result, (uint64_t)(duration_s * 1e9), &settings, &summary, &method, &err) < 0)
        fail(err.text);
    const struct load_percentiles *latency = &summary.latency;
    for (unsigned i = 0; i < SUMMARY_QUANTILES; i++)
        printf("  %-7s %10.1f us, 95 %% interval %.1f to %.1f\n", summary_quantile_names[i],
               latency->us[i], latency->interval[i].low, latency->interval[i].high);
    for (unsigned i = 0; i < summary.reason_count; i++)
        printf("  - %s\n", summary.reasons[i]);
}

static void prepare_rings(struct sample_drain *drain)
{
    size_t size = 1;
    while (size <= memory_bytes / 4 / THREADS / sizeof(struct sample) / 2)
        size *= 2;
    for (uint32_t i = 0; i < THREADS; i++) {
        drain->rings[i].samples = calloc(size, sizeof(struct sample));
        drain->rings[i].mask = size - 1;
        if (!drain->rings[i].samples)
            fail("out of memory for the rings");
    }
    sample_drain_fill(drain, tsc_hz / 1e9);
}

int main(void)
{
    const char *hours = getenv("TAILLIGHT_HOURS");
    const double duration_s = 3600 * (hours ? atof(hours) : 0.1);
    static uint32_t latencies[LATENCIES];
    struct workload workload;
    struct schedule_drawer *drawer;
    struct sample_totals *totals;
    struct sample_drain drain;
    struct bench_json json;
    struct error err;
    workload_defaults(&workload);
    for (uint64_t i = 0; i < LATENCIES; i++)
        latencies[i] = (uint32_t)(60000 / pow(1 - hash_fraction(hash64(i)), 0.3));
    const double draw_ns = drawing_ns(&workload), take_ns = taking_ns(latencies);
    if (schedule_drawer_open(&workload, &workload.arrivals, rate, (uint64_t)(duration_s * 1e9), 7,
                             &drawer, &err) < 0 ||
        sample_totals_new(memory_bytes / 3, NULL, &totals, &err) < 0 ||
        sample_drain_open(&drain, THREADS, drawer, totals, &err) < 0)
        fail(err.text);
    prepare_rings(&drain);
    const double begin = seconds();
    uint64_t answered = 0;
    for (unsigned tenth = 1; drain.has_next; sample_drain_look(&drain)) {
        answered += answer(&drain, latencies);
        for (; (double)drain.last_tsc > duration_s * tsc_hz * tenth / TENTHS; tenth++)
            printf("  %5.2f h simulated in %.0f s: %llu requests, 1 of %llu kept, peak %.0f MiB\n",
                   duration_s * tenth / TENTHS / 3600, seconds() - begin,
                   (unsigned long long)totals->counts.scheduled, (unsigned long long)totals->every,
                   peak_mib());
        fflush(stdout);
    }
    answered += answer(&drain, latencies);
    sample_drain_end(&drain, UINT64_MAX, UINT64_MAX);
    sample_totals_finish(totals);
    const double all_ns = (seconds() - begin) / (double)answered * 1e9;
    for (uint32_t i = 0; i < THREADS; i++)
        free(drain.rings[i].samples);
    judge(totals, &workload, duration_s);
    const double peak = peak_mib();
    printf(
        "drawing %.0f ns, taking %.0f ns a request; all of it, with this program's answers, %.0f "
        "ns; %.0f MiB at most\n",
        draw_ns, take_ns, all_ns, peak);
    if (totals->counts.answered != answered || totals->counts.scheduled != answered)
        fail("requests are missing");
    sample_drain_close(&drain);
    sample_totals_free(totals);
    schedule_drawer_close(drawer);
    workload_free(&workload);
    if (peak > (double)(memory_bytes >> 20))
        fail("more memory than it may take");
    if (bench_json_open(&json, "long_load") < 0)
        return 1;
    bench_json_add(&json, "drawing", "ns", &draw_ns, 1);
    bench_json_add(&json, "taking", "ns", &take_ns, 1);
    bench_json_add(&json, "peak", "MiB", &peak, 1);
    return bench_json_close(&json);
}
