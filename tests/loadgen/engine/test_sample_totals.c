// SPDX-License-Identifier: MIT
//
// What is left of a load in bounded memory, held against all of its samples: counts, percentiles,
// what is kept, the slowest, the file, also on a disk that fills up; and that ten hours at 500,000
// a second, of which this takes a stretch, need no more memory than their first minute.
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/hash.h"
#include "base/quantile.h"
#include "loadgen/engine/sample_totals.h"
#include "loadgen/method/load_reasons.h"

enum { REQUESTS = 300000 };
static const double tsc_hz = 2e9;
static const uint64_t start_tsc = 1000000000;

static double fraction(uint64_t i, uint64_t use)
{
    return hash_fraction(hash64(i * 8 + use));
}

// A latency with a long tail; one in 500 has no reply, of which some were not even sent.
static struct sample request_of(uint64_t i)
{
    struct sample sample = {.intended_tsc = start_tsc + i * 20000,
                            .key = (uint32_t)i,
                            .status = i % 7 ? SAMPLE_ANSWERED : SAMPLE_MISS};
    sample.send_tsc = sample.intended_tsc + (uint64_t)(fraction(i, 1) * 5000);
    sample.sent_tsc = sample.send_tsc + 4000;
    sample.reply_tsc = sample.sent_tsc + (uint64_t)(50000 / pow(1 - fraction(i, 2), 0.7));
    sample.tx_ns = 5000 + i;
    sample.rx_ns = sample.tx_ns + (uint64_t)(20000 / (1 - fraction(i, 3)));
    sample.tx_source = sample.rx_source = STAMP_SOFTWARE;
    if (i % 500 == 3) {
        sample.reply_tsc = sample.rx_ns = sample.rx_source = 0;
        sample.status = i % 1500 == 3 ? SAMPLE_LOST : SAMPLE_TIMED_OUT;
    }
    if (i % 5000 == 3)
        sample = (struct sample){
            .intended_tsc = sample.intended_tsc, .key = (uint32_t)i, .status = SAMPLE_UNSENT};
    return sample;
}

static struct sample *all_requests(size_t count)
{
    struct sample *samples = malloc(count * sizeof *samples);
    assert_non_null(samples);
    for (size_t i = 0; i < count; i++)
        samples[i] = request_of(i);
    return samples;
}

static struct sample_totals *totals_of(const struct sample *samples, size_t count, size_t stretches,
                                       const char *spool)
{
    struct error err;
    struct sample_totals *totals;
    if (sample_totals_new(stretches * TOTALS_STRETCH * sizeof *samples, spool, &totals, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < count; i++)
        sample_totals_add(totals, &samples[i]);
    sample_totals_finish(totals);
    return totals;
}

static void summarise(const struct sample *samples, size_t count, struct sample_totals *totals,
                      struct load_summary *summary)
{
    struct error err;
    const struct engine_result result = {.samples = (struct sample *)samples,
                                         .sample_count = count,
                                         .totals = totals,
                                         .tsc_hz = tsc_hz,
                                         .start_tsc = start_tsc,
                                         .thread_count = 1,
                                         .connections_at_once = 1,
                                         .end_tsc = start_tsc + REQUESTS * (uint64_t)20000};
    assert_int_equal(load_summarise(&result, REQUESTS * (uint64_t)10000, summary, &err), 0);
}

static void same_percentiles(const struct load_percentiles *bounded,
                             const struct load_percentiles *whole)
{
    assert_int_equal(bounded->count, whole->count);
    for (unsigned i = 0; i < SUMMARY_QUANTILES; i++) {
        const double low = whole->us[i] * (1 - 1e-9), high = whole->us[i] * (1 + 1.0 / 1024);
        if (!isfinite(whole->us[i]))
            assert_int_equal(isinf(bounded->us[i]), isinf(whole->us[i]));
        else
            assert_true(bounded->us[i] >= low && bounded->us[i] <= high);
    }
    if (isfinite(whole->us[SUMMARY_QUANTILES - 1])) // the maximum is known exactly
        assert_true(
            fabs(bounded->us[SUMMARY_QUANTILES - 1] / whole->us[SUMMARY_QUANTILES - 1] - 1) < 1e-9);
}

// The same load, summed up both ways.
static void figures_are_those_of_all_samples(void **state)
{
    (void)state;
    struct sample *samples = all_requests(REQUESTS);
    struct sample_totals *totals = totals_of(samples, REQUESTS, 40, NULL);
    struct load_summary whole, bounded;
    summarise(samples, REQUESTS, NULL, &whole);
    summarise(totals->kept, totals->kept_count, totals, &bounded);
    assert_int_equal(bounded.scheduled, REQUESTS);
    assert_memory_equal(&bounded.scheduled, &whole.scheduled,
                        offsetof(struct load_summary, latency) -
                            offsetof(struct load_summary, scheduled));
    assert_int_equal(bounded.stamps_software, whole.stamps_software);
    assert_int_equal(bounded.stamps_user, whole.stamps_user);
    assert_true(bounded.achieved_rate == whole.achieved_rate);
    assert_true(bounded.offered_rate == whole.offered_rate);
    same_percentiles(&bounded.latency, &whole.latency);
    same_percentiles(&bounded.uncorrected, &whole.uncorrected);
    same_percentiles(&bounded.network, &whole.network);
    assert_true(fabs(bounded.lateness_p50_us / whole.lateness_p50_us - 1) < 1.0 / 1024);
    assert_true(fabs(bounded.lateness_p99_us / whole.lateness_p99_us - 1) < 1.0 / 1024);
    for (unsigned i = 0; i < 3; i++) { // intervals are of fewer, hence wider, and about the same
        const struct quantile_interval *of_all = &whole.latency.interval[i],
                                       *of_kept = &bounded.latency.interval[i];
        assert_true(of_all->known && of_kept->known);
        assert_true(of_kept->low <= bounded.latency.us[i] &&
                    bounded.latency.us[i] <= of_kept->high);
        assert_true(of_kept->low <= whole.latency.us[i] && whole.latency.us[i] <= of_kept->high);
        assert_true(of_kept->high - of_kept->low > of_all->high - of_all->low);
    }
    sample_totals_free(totals);
    free(samples);
}

static void what_fits_is_all_kept(void **state)
{
    (void)state;
    enum { FEW = 5000 };
    struct sample *samples = all_requests(FEW);
    struct sample_totals *totals = totals_of(samples, FEW, 5, NULL);
    assert_int_equal(totals->every, 1);
    assert_int_equal(totals->kept_count, FEW);
    assert_memory_equal(totals->kept, samples, FEW * sizeof *samples);
    sample_totals_free(totals);
    free(samples);
}

// Every n-th stretch, from the first to the last, each whole; with any room, odd or even.
static void whole_stretches_are_kept(void **state)
{
    (void)state;
    struct sample *samples = all_requests(REQUESTS);
    for (size_t stretches = 2; stretches < 10; stretches++) {
        struct sample_totals *totals = totals_of(samples, REQUESTS, stretches, NULL);
        const size_t step = totals->every * TOTALS_STRETCH;
        size_t expected = 0;
        assert_true(totals->every > REQUESTS / TOTALS_STRETCH / stretches / 2);
        for (size_t from = 0; from < REQUESTS; from += step) {
            size_t count = REQUESTS - from < TOTALS_STRETCH ? REQUESTS - from : TOTALS_STRETCH;
            assert_memory_equal(totals->kept + expected, samples + from, count * sizeof *samples);
            expected += count;
        }
        assert_int_equal(totals->kept_count, expected);
        assert_true(expected <= stretches * TOTALS_STRETCH);
        sample_totals_free(totals);
    }
    free(samples);
}

static int slowest_first(const void *a, const void *b)
{
    const uint64_t one = sample_latency_ticks(a), other = sample_latency_ticks(b);
    return one < other ? 1 : one > other ? -1 : 0;
}

static void the_slowest_are_kept_whole(void **state)
{
    (void)state;
    enum { SOME = 20000 }; // of which 40 have no reply
    struct sample *samples = all_requests(REQUESTS);
    struct sample_totals *totals = totals_of(samples, SOME, 2, NULL);
    assert_int_equal(totals->slow_left_out, 0);
    assert_int_equal(totals->slow_count, TOTALS_SLOWEST);
    qsort(samples, SOME, sizeof *samples, slowest_first);
    for (size_t i = 0; i < TOTALS_SLOWEST; i++) {
        const struct sample *slow = &totals->slowest[i], origin = request_of(slow->key);
        assert_int_equal(sample_latency_ticks(slow), sample_latency_ticks(&samples[i]));
        assert_memory_equal(slow, &origin, sizeof origin);
    }
    sample_totals_free(totals);
    free(samples);
    samples = all_requests(REQUESTS); // 600 have none
    totals = totals_of(samples, REQUESTS, 2, NULL);
    assert_int_equal(totals->slow_left_out, REQUESTS / 500 - TOTALS_SLOWEST);
    assert_false(sample_is_answered(&totals->slowest[TOTALS_SLOWEST - 1]));
    sample_totals_free(totals);
    free(samples);
}

static char path[] = "/tmp/taillight-totals-XXXXXX";

static size_t spooled(const struct sample *samples, uint64_t dropped)
{
    struct log_reader reader;
    struct error err;
    if (log_reader_open(&reader, path, LOG_SAMPLES, SAMPLE_LOG_VERSION, sizeof *samples, &err) < 0)
        fail_msg("%s", err.text);
    size_t count = reader.count;
    assert_memory_equal(reader.records, samples, count * sizeof *samples);
    assert_int_equal(reader.header.dropped, dropped);
    log_reader_close(&reader);
    return count;
}

static void all_are_in_the_file(void **state)
{
    (void)state;
    enum { SOME = 12345 };
    struct sample *samples = all_requests(SOME);
    struct sample_totals *totals = totals_of(samples, SOME, 2, path);
    assert_int_equal(totals->spool_count, SOME);
    assert_int_equal(spooled(samples, 0), SOME);
    sample_totals_free(totals);
    free(samples);
}

// It keeps what it took, and how many it did not is known; all else is as without it.
static void a_full_disk_is_told(void **state)
{
    (void)state;
    enum { SOME = 12345 };
    struct sample *samples = all_requests(SOME);
    const rlim_t sizes[] = {128, 100000, SOME * sizeof *samples + 100};
    signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct rlimit before, few;
        getrlimit(RLIMIT_FSIZE, &before);
        few = (struct rlimit){sizes[i], before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
        struct sample_totals *totals = totals_of(samples, SOME, 2, path);
        setrlimit(RLIMIT_FSIZE, &before);
        assert_int_equal(totals->counts.scheduled, SOME);
        assert_int_equal(totals->spool_count, (sizes[i] - 128) / sizeof *samples);
        assert_int_equal(spooled(samples, SOME - totals->spool_count), totals->spool_count);
        assert_non_null(strstr(totals->spool_why.text, "cannot write"));
        sample_totals_free(totals);
    }
    free(samples);
}

static long peak_kib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void memory_does_not_grow(void **state)
{
    (void)state;
    enum { BLOCK = 1 << 16, BLOCKS = 64 };
    struct sample *samples = all_requests(BLOCK);
    struct error err;
    struct sample_totals *totals;
    assert_int_equal(sample_totals_new(2 << 20, NULL, &totals, &err), 0);
    long before = 0;
    for (size_t block = 0; block < BLOCKS; block++) {
        for (size_t i = 0; i < BLOCK; i++)
            sample_totals_add(totals, &samples[i]);
        before = block == 1 ? peak_kib() : before; // all pages were touched by then
    }
    assert_true(peak_kib() - before < 300);
    assert_int_equal(totals->counts.scheduled, (uint64_t)BLOCK * BLOCKS);
    sample_totals_free(totals);
    free(samples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_does_not_grow),
        cmocka_unit_test(figures_are_those_of_all_samples),
        cmocka_unit_test(what_fits_is_all_kept),
        cmocka_unit_test(whole_stretches_are_kept),
        cmocka_unit_test(the_slowest_are_kept_whole),
        cmocka_unit_test(all_are_in_the_file),
        cmocka_unit_test(a_full_disk_is_told),
    };
    close(mkstemp(path));
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
