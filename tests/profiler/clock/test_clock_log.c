// SPDX-License-Identifier: MIT
//
// The clock map against synthetic clocks whose truth is known (steady, slewed, stepped), against
// hostile readings, and against the clocks of this host.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log_file.h"
#include "base/tsc.h"
#include "profiler/clock/clock_log.h"
#include "profiler/clock/clock_map.h"
#include "profiler/clock/clock_recorder.h"

enum { KNOTS = 200 };
static const double hz = 2.1e9;
static const uint64_t tsc_begin = UINT64_C(987654321012);
static const int64_t raw_begin = 470000000000, mono_begin = 470001234567;
static const int64_t real_begin = 1700000000123456789;
static const double knot_seconds = 0.01;

// A synthetic host. MONOTONIC and REALTIME are slewed by +ppm and -ppm in turn, every period.
struct world {
    double ppm;
    double period_s;
    double step_s; // when REALTIME steps, seconds from the beginning
    double step_ns;
    unsigned width; // of the sandwiches, cycles
};

static double slewed(const struct world *world, double seconds)
{
    if (world->ppm == 0)
        return seconds;
    double period = world->period_s, gone = 0, factor = 1 + world->ppm * 1e-6;
    for (double at = 0; at < seconds; at += period) {
        double part = fmin(period, seconds - at);
        gone += part * factor;
        factor = 2 - factor;
    }
    return gone;
}

static int64_t truth(const struct world *world, enum host_clock clock, double seconds)
{
    double ns = slewed(world, seconds) * 1e9;
    switch (clock) {
    case HOST_CLOCK_RAW:
        return raw_begin + (int64_t)floor(seconds * 1e9);
    case HOST_CLOCK_MONOTONIC:
        return mono_begin + (int64_t)floor(ns);
    default:
        if (world->step_ns != 0 && seconds >= world->step_s)
            ns += world->step_ns;
        return real_begin + (int64_t)floor(ns);
    }
}

static double random_unit(void)
{
    return (double)rand() / (double)RAND_MAX;
}

static uint64_t tsc_of(double seconds)
{
    return tsc_begin + (uint64_t)(seconds * hz);
}

// A knot at that time; the clock is read anywhere inside its sandwich.
static void make_knot(const struct world *world, double seconds, struct clock_reading *out)
{
    for (int clock = HOST_CLOCK_RAW; clock < HOST_CLOCKS; clock++) {
        double middle = seconds + 1e-6 * clock;
        double inside = (random_unit() - 0.5) * 0.98 * world->width / hz;
        out[clock - 1] = (struct clock_reading){
            .clock = (uint32_t)clock,
            .width = world->width,
            .tsc = tsc_of(middle),
            .ns = truth(world, (enum host_clock)clock, middle + inside),
        };
    }
}

static struct clock_map *make_map(const struct world *world)
{
    static struct clock_reading readings[KNOTS * 3];
    struct error err;
    struct clock_map *map;
    for (int i = 0; i < KNOTS; i++)
        make_knot(world, 0.5 + i * knot_seconds, &readings[i * 3]);
    if (clock_map_build(readings, KNOTS * 3, &map, &err) < 0)
        fail_msg("%s", err.text);
    return map;
}

// Converts many values of every clock; each must be within its stated bound of the truth.
static double check_all(const struct world *world, const struct clock_map *map, double from,
                        double to)
{
    double worst = 0;
    for (int i = 0; i < 100000; i++) {
        double seconds = from + (to - from) * random_unit();
        for (int clock = HOST_CLOCK_TSC; clock < HOST_CLOCKS; clock++) {
            uint64_t value = clock == HOST_CLOCK_TSC
                                 ? tsc_of(seconds)
                                 : (uint64_t)truth(world, (enum host_clock)clock, seconds);
            int64_t host = clock_map_to_host(map, (enum host_clock)clock, value);
            double off = fabs((double)(host - truth(world, HOST_CLOCK_RAW, seconds)));
            double bound = clock_map_error_ns(map, (enum host_clock)clock, value);
            if (off > bound + 2) // the truth itself is rounded to whole ns, twice
                fail_msg("clock %d at %.9f s: off by %.1f ns, stated bound %.1f", clock, seconds,
                         off, bound);
            worst = fmax(worst, off);
        }
    }
    return worst;
}

static void check_order(const struct world *world, const struct clock_map *map)
{
    for (int clock = HOST_CLOCK_TSC; clock < HOST_CLOCKS; clock++) {
        int64_t last = INT64_MIN;
        for (double seconds = 0.3; seconds < 2.9; seconds += 17e-6) {
            uint64_t value = clock == HOST_CLOCK_TSC
                                 ? tsc_of(seconds)
                                 : (uint64_t)truth(world, (enum host_clock)clock, seconds);
            int64_t host = clock_map_to_host(map, (enum host_clock)clock, value);
            assert_true(host >= last);
            last = host;
        }
    }
}

static void test_steady(void **state)
{
    (void)state;
    struct world world = {.width = 60};
    struct clock_map *map = make_map(&world);
    double worst = check_all(&world, map, 0.5, 0.5 + (KNOTS - 1) * knot_seconds);
    print_message("steady: worst %.1f ns, stated %.1f\n", worst, clock_map_worst_error_ns(map));
    assert_true(clock_map_worst_error_ns(map) < 100);
    assert_true(fabs(clock_map_tsc_hz(map) - hz) < 100);
    check_order(&world, map);
    check_all(&world, map, 0.0, 4.0); // beyond both ends
    assert_true(clock_map_error_ns(map, HOST_CLOCK_RAW, 5) == 0);
    assert_int_equal(clock_map_to_host(map, HOST_CLOCK_RAW, 5), 5);
    clock_map_free(map);
}

static void test_slewed(void **state)
{
    (void)state;
    const double ppms[] = {10, -10, 50, -50, 500, -500};
    for (size_t i = 0; i < sizeof ppms / sizeof *ppms; i++) {
        struct world world = {.width = 60, .ppm = ppms[i], .period_s = 0.137};
        struct clock_map *map = make_map(&world);
        double worst = check_all(&world, map, 0.5, 0.5 + (KNOTS - 1) * knot_seconds);
        print_message("%+.0f ppm: worst %.1f ns, stated %.1f\n", ppms[i], worst,
                      clock_map_worst_error_ns(map));
        // A change of 2 x 500 ppm inside a knot's 10 ms would bend the line by 5 us, were it not
        // found where that was.
        assert_true(worst < 150);
        assert_true(clock_map_worst_error_ns(map) < 400);
        check_order(&world, map);
        // Just beyond the ends, where the clock may have changed its rate unseen.
        check_all(&world, map, 0.47, 0.5);
        check_all(&world, map, 0.5 + (KNOTS - 1) * knot_seconds, 0.53 + (KNOTS - 1) * knot_seconds);
        clock_map_free(map);
    }
}

static void test_stepped(void **state)
{
    (void)state;
    const double steps[] = {1e6, -1e6, 3600e9, -3600e9, 1500};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct world world = {.width = 60, .step_s = 1.2341, .step_ns = steps[i]};
        struct clock_map *map = make_map(&world);
        double end = 0.5 + (KNOTS - 1) * knot_seconds;
        check_all(&world, map, 0.5, end);
        // The step must not smear: a knot away from it the bound is as good as ever, unless the
        // clock showed the value twice.
        double after = world.step_s + 2 * knot_seconds, before = world.step_s - 2 * knot_seconds;
        double tight = 0;
        for (double s = after; s < end; s += 1e-4)
            if (steps[i] > 0 || s > after + 2e-3)
                tight = fmax(tight,
                             clock_map_error_ns(map, HOST_CLOCK_REALTIME,
                                                (uint64_t)truth(&world, HOST_CLOCK_REALTIME, s)));
        for (double s = 0.5; s < before; s += 1e-4)
            tight =
                fmax(tight, clock_map_error_ns(map, HOST_CLOCK_REALTIME,
                                               (uint64_t)truth(&world, HOST_CLOCK_REALTIME, s)));
        print_message("step %+.0f ns: away from it stated %.1f ns\n", steps[i], tight);
        assert_true(tight < 100);
        // A small step leaves values that both sides can have shown; a large one does not.
        uint64_t inside = (uint64_t)truth(&world, HOST_CLOCK_REALTIME, world.step_s + 2e-3);
        double bound = clock_map_error_ns(map, HOST_CLOCK_REALTIME, inside);
        assert_true(fabs(steps[i]) < 5e6 ? bound >= fabs(steps[i]) * 0.99 : bound < 1e4);
        assert_true(
            clock_map_error_ns(map, HOST_CLOCK_MONOTONIC,
                               (uint64_t)truth(&world, HOST_CLOCK_MONOTONIC, world.step_s)) < 100);
        clock_map_free(map);
    }
}

// Without MONOTONIC beside it a step shows by its rate alone.
static void test_step_by_rate(void **state)
{
    (void)state;
    struct world world = {.width = 60, .step_s = 1.2341, .step_ns = 1e6};
    static struct clock_reading readings[KNOTS * 2];
    struct clock_reading knot[3];
    struct error err;
    struct clock_map *map;
    for (int i = 0; i < KNOTS; i++) {
        make_knot(&world, 0.5 + i * knot_seconds, knot);
        readings[i * 2] = knot[0];
        readings[i * 2 + 1] = knot[2];
    }
    assert_int_equal(clock_map_build(readings, KNOTS * 2, &map, &err), 0);
    for (double s = 0.6; s < 2.4; s += 1e-3) {
        uint64_t value = (uint64_t)truth(&world, HOST_CLOCK_REALTIME, s);
        double bound = clock_map_error_ns(map, HOST_CLOCK_REALTIME, value);
        double off = fabs((double)(clock_map_to_host(map, HOST_CLOCK_REALTIME, value) -
                                   truth(&world, HOST_CLOCK_RAW, s)));
        assert_true(off <= bound + 2);
        assert_true(fabs(s - world.step_s) < 2 * knot_seconds || bound < 100);
    }
    assert_true(clock_map_error_ns(map, HOST_CLOCK_MONOTONIC, 1) == (double)INFINITY);
    clock_map_free(map);
}

static void expect_refused(const struct clock_reading *readings, size_t count, const char *why)
{
    struct error err = {0};
    struct clock_map *map = NULL;
    assert_int_equal(clock_map_build(readings, count, &map, &err), -ERROR_INPUT);
    assert_null(map);
    if (!strstr(err.text, why))
        fail_msg("expected \"%s\" in: %s", why, err.text);
}

static void test_refused(void **state)
{
    (void)state;
    struct world world = {.width = 60};
    struct clock_reading r[9];
    for (int i = 0; i < 3; i++)
        make_knot(&world, 1 + i, &r[i * 3]);
    expect_refused(r, 0, "0 readings");
    expect_refused(r, 3, "1 readings");
    struct clock_reading unsorted[6] = {r[3], r[4], r[5], r[0], r[1], r[2]};
    expect_refused(unsorted, 6, "TSC ran backwards");
    struct clock_reading bad = r[0];
    bad.clock = 7;
    expect_refused(&bad, 1, "number 7");
    bad.clock = HOST_CLOCK_TSC;
    expect_refused(&bad, 1, "number 0");
    struct clock_reading back[9];
    memcpy(back, r, sizeof back);
    back[3].ns = r[0].ns - 5;
    expect_refused(back, 9, "CLOCK_MONOTONIC_RAW ran backwards by 5 ns");
    memcpy(back, r, sizeof back);
    back[4].ns = 1;
    expect_refused(back, 9, "CLOCK_MONOTONIC ran backwards");
    memcpy(back, r, sizeof back);
    back[6].ns = INT64_C(4000000000000000000);
    expect_refused(back, 9, "cannot be");
    back[6].ns = -1;
    expect_refused(back, 9, "cannot be");
    struct clock_reading twice[4] = {r[0], r[0], r[0], r[0]};
    expect_refused(twice, 4, "1 readings");
}

// Any bytes: refused or usable, never a crash (the sanitizer build watches).
static void test_any_bytes(void **state)
{
    (void)state;
    size_t built = 0;
    for (int round = 0; round < 20000; round++) {
        struct clock_reading r[40];
        size_t count = (size_t)(rand() % 40);
        uint64_t tsc = (uint64_t)rand();
        for (size_t i = 0; i < count; i++) {
            r[i].clock = 1 + (uint32_t)(rand() % 3);
            r[i].width = rand() % 10 ? (uint32_t)rand() % 1000 : UINT32_MAX;
            tsc += rand() % 20 ? (uint64_t)rand() : (uint64_t)rand() << 27;
            r[i].tsc = tsc;
            r[i].ns = (int64_t)(tsc / 2);
            if (rand() % 30 == 0)
                r[i].ns = ((int64_t)rand() << 31) + rand();
        }
        struct clock_map *map;
        struct error err;
        if (clock_map_build(r, count, &map, &err) < 0)
            continue;
        built++;
        for (int i = 0; i < 50; i++) {
            uint64_t value = ((uint64_t)rand() << 33) ^ (uint64_t)rand() << rand() % 33;
            if (i < 4)
                value = (const uint64_t[]){0, UINT64_MAX, UINT64_C(1) << 63, INT64_MAX}[i];
            for (int clock = 0; clock < HOST_CLOCKS; clock++) {
                clock_map_to_host(map, (enum host_clock)clock, value);
                assert_true(clock_map_error_ns(map, (enum host_clock)clock, value) >= 0);
            }
        }
        clock_map_free(map);
    }
    print_message("random readings: %zu maps built\n", built);
    assert_true(built > 100);
}

static uint64_t tsc_fenced(void)
{
    _mm_lfence();
    uint64_t cycles = tsc_now();
    _mm_lfence();
    return cycles;
}

// NSight's check (§5.1): interleaved readings of two clocks, converted, always advance. Here on the
// clocks as they are; test_long_clock.c slews them meanwhile.
static void test_live(void **state)
{
    (void)state;
    enum { PAIRS = 500000 };
    uint64_t(*pairs)[2] = calloc(PAIRS, sizeof *pairs);
    struct clock_recorder recorder;
    struct clock_map *map;
    struct error err = {0};
    assert_non_null(pairs);
    assert_int_equal(clock_recorder_start(&recorder, 5000000, 1000, &err), 0);
    for (size_t i = 0; i < PAIRS; i++) {
        struct timespec now;
        pairs[i][0] = tsc_fenced();
        clock_gettime(CLOCK_REALTIME, &now);
        pairs[i][1] = (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
        if (i % 1000 == 0)
            clock_recorder_poll(&recorder);
    }
    char path[] = "/tmp/prof-clock-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(clock_recorder_write(&recorder, path, &err), 0);
    assert_int_equal(clock_map_open(path, &map, &err), 0);
    size_t backwards = 0, beyond = 0;
    int64_t last = INT64_MIN, largest_jump = 0;
    for (size_t i = 0; i < PAIRS; i++)
        for (int side = 0; side < 2; side++) {
            enum host_clock clock = side ? HOST_CLOCK_REALTIME : HOST_CLOCK_TSC;
            int64_t host = clock_map_to_host(map, clock, pairs[i][side]);
            if (host < last) {
                backwards++;
                if (last - host > largest_jump)
                    largest_jump = last - host;
                beyond +=
                    (double)(last - host) > clock_map_error_ns(map, clock, pairs[i][side]) + 1;
            }
            last = host;
        }
    print_message("%d readings, %zu knots: %zu backwards, largest %lld ns; beyond the stated "
                  "bound: %zu; worst bound %.1f ns\n",
                  2 * PAIRS, recorder.knots, backwards, (long long)largest_jump, beyond,
                  clock_map_worst_error_ns(map));
    assert_int_equal(beyond, 0);
    clock_map_free(map);
    clock_recorder_free(&recorder);
    unlink(path);
    free(pairs);
}

// A full recorder keeps its first knot, its last and the order, at a doubled interval.
static void test_recorder_thins_out(void **state)
{
    (void)state;
    struct clock_recorder recorder;
    struct error err = {0};
    assert_int_equal(clock_recorder_start(&recorder, 1, 8, &err), 0);
    uint64_t first = recorder.readings[0].tsc;
    for (int i = 0; i < 100; i++)
        clock_recorder_poll(&recorder);
    assert_true(recorder.knots <= 8 && recorder.knots >= 4);
    assert_true(recorder.interval_ns > 1);
    assert_true(recorder.readings[0].tsc == first);
    for (size_t i = 1; i < recorder.knots; i++)
        assert_true(recorder.readings[i * 3].tsc > recorder.readings[i * 3 - 1].tsc);
    clock_recorder_free(&recorder);
}

static void test_open_refuses_other_files(void **state)
{
    (void)state;
    struct error err = {0};
    struct clock_map *map;
    assert_int_equal(clock_map_open("/tmp/prof-no-such-file", &map, &err), -ERROR_INPUT);
    assert_int_equal(clock_map_open("/proc/self/exe", &map, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "/proc/self/exe"));
}

int main(void)
{
    srand(42);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steady),
        cmocka_unit_test(test_slewed),
        cmocka_unit_test(test_stepped),
        cmocka_unit_test(test_step_by_rate),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_live),
        cmocka_unit_test(test_recorder_thins_out),
        cmocka_unit_test(test_open_refuses_other_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
