// SPDX-License-Identifier: MIT
//
// What a scraper asks for is what it gets, and a value lies in its buckets. (What is written is
// read by others: test_watch.sh, test_long_prometheus.sh.)
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "experiments/watch/metric_formats.h"

static void the_best_liked_format_is_taken(void **state)
{
    (void)state;
    static const struct {
        const char *accept;
        const struct metric_format *format;
    } cases[] = {
        {NULL, &metric_openmetrics},
        {"", &metric_openmetrics},
        {"text/html", &metric_openmetrics},
        {"application/vnd.google.protobuf", &metric_protobuf},
        // Prometheus 2.42 with and without native histograms
        {"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;"
         "encoding=delimited,application/openmetrics-text;version=1.0.0;q=0.8,"
         "application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,"
         "*/*;q=0.1",
         &metric_protobuf},
        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
         "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         &metric_openmetrics},
        {"application/openmetrics-text; version=1.0.0; q=0.6, APPLICATION/vnd.google.protobuf; "
         "Q=0.5",
         &metric_openmetrics},
        {"application/openmetrics-text;q=0.5,application/vnd.google.protobuf;q=0.6",
         &metric_protobuf},
        {"application/vnd.google.protobuffer", &metric_openmetrics},
        {"application/vnd.google.protobuf;q=0", &metric_openmetrics},
        {"application/vnd.google.protobuf;q=", &metric_openmetrics},
        {",,;q=,application/vnd.google.protobuf;;;q=nan", &metric_openmetrics},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (metric_format_accepted(cases[i].accept) != cases[i].format)
            fail_msg("Accept: %s", cases[i].accept ? cases[i].accept : "(none)");
}

static struct metric_histogram histogram;

static int only_bucket(const uint64_t *counts, int count)
{
    int at = -1;
    for (int i = 0; i < count; i++)
        if (counts[i]) {
            assert_int_equal(at, -1);
            at = i;
        }
    return at;
}

static void a_value_lies_in_its_buckets(void **state)
{
    (void)state;
    for (double seconds = 1e-9; seconds < 1e5; seconds *= 1.037) {
        histogram = (struct metric_histogram){0};
        metric_observe(&histogram, seconds);
        assert_true(histogram.sum == seconds);
        int bucket = only_bucket(histogram.counts, METRIC_BOUNDS + 1);
        assert_true(bucket == METRIC_BOUNDS || seconds <= metric_bound(bucket));
        assert_true(bucket == 0 || seconds > metric_bound(bucket - 1));
        int native = only_bucket(histogram.native, METRIC_NATIVE);
        assert_int_equal(histogram.zeros, seconds <= METRIC_ZERO_SECONDS);
        assert_int_equal(native < 0, seconds <= METRIC_ZERO_SECONDS);
        if (native < 0)
            continue;
        int number = native + METRIC_NATIVE_FIRST;
        assert_true(seconds > exp2((number - 1) / 8.0));
        assert_true(number == METRIC_NATIVE_LAST || seconds <= exp2(number / 8.0));
    }
    histogram = (struct metric_histogram){0};
    metric_observe(&histogram, 0);
    metric_observe(&histogram, 0x1p-10); // a bound belongs to the bucket below it
    assert_int_equal(histogram.zeros, 1);
    assert_int_equal(only_bucket(histogram.native, METRIC_NATIVE) + METRIC_NATIVE_FIRST, -80);
}

// Worked out by hand from metrics.proto and the rules for native histograms.
static void spans_and_differences_say_the_buckets(void **state)
{
    (void)state;
    static const struct metric_family family = {"x_seconds", "seconds", "h", METRIC_HISTOGRAM};
    static const double values[] = {0x1p-10, 0x1p-10, 0x1.01p-10, 0x1p-8, 0x1p-8, 0x1p-8, 0};
    static const uint8_t tail[] = {
        0x28, 6,                                        // schema: 3, zigzag
        0x31, 0, 0,    0,    0,    0,    0, 0x40, 0x3e, // zero threshold: 2^-27
        0x38, 1,                                        // zero count
        0x62, 5, 0x08, 0x9f, 0x01, 0x10, 2,             // span: from bucket -80, two
        0x62, 4, 0x08, 0x1c, 0x10, 1,                   // span: 14 further, one: bucket -64
        0x68, 4, 0x68, 1,    0x68, 4,                   // 2, 1 (-1), 3 (+2)
    };
    histogram = (struct metric_histogram){0};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        metric_observe(&histogram, values[i]);
    struct evbuffer *text = evbuffer_new();
    assert_non_null(text);
    struct metric_output out = {.format = &metric_protobuf, .text = text};
    out.format->begin(&out, &family);
    out.format->histogram(&out, &(struct metric_labels){0}, &histogram);
    out.format->end(&out);
    out.format->finish(&out);
    assert_false(out.failed);
    size_t count = evbuffer_get_length(text);
    const uint8_t *bytes = evbuffer_pullup(text, -1);
    static const uint8_t name[] = "\x0a\x13taillight_x_seconds\x12\x01h\x18\x04\x22";
    assert_true(count > sizeof tail + sizeof name + 2);
    assert_memory_equal(bytes + 2, name, sizeof name - 1); // behind the length, of two bytes
    assert_int_equal((bytes[0] & 0x7f) | bytes[1] << 7, count - 2);
    assert_memory_equal(bytes + count - sizeof tail, tail, sizeof tail);
    evbuffer_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_liked_format_is_taken),
        cmocka_unit_test(a_value_lies_in_its_buckets),
        cmocka_unit_test(spans_and_differences_say_the_buckets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
