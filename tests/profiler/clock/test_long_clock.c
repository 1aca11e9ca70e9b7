// SPDX-License-Identifier: MIT
//
// NSight's clock check (§5.1), made harder: interleaved readings of TSC and REALTIME, converted to
// host time, always advance: with no slew, while adjtimex slews the clock by +-10, +-50 and
// +-500 ppm in turn, and across a step of 1 ms and back.
//
//     test_long_clock [READINGS] [slew]      10,000,000 readings a scenario; "slew": no steps
//
// It changes the clock of the whole machine for some seconds. A parent that does nothing else puts
// frequency and offset back however the test ends. Where a time daemon keeps the clock it is
// skipped, for the two would fight.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/tsc.h"
#include "profiler/clock/clock_log.h"
#include "profiler/clock/clock_map.h"
#include "profiler/clock/clock_recorder.h"
#include "tests/profiler/clock/clock_disturbance.h"

enum { SLEW_PERIOD_MS = 100, KNOT_INTERVAL_NS = 2000000 };

struct disturbance {
    const char *name;
    long ppm;       // slewed by +ppm and -ppm in turn
    long step_ns;   // stepped by this and back in turn
    int changes;    // made so far
    bool stop;      // atomic
    long base_freq; // the clock's own correction, adjtimex units
};

struct background {
    struct clock_recorder recorder;
    bool stop; // atomic
};

static void *disturb(void *context)
{
    struct disturbance *d = context;
    long sign = 1;
    // Half a period first, so that an even number of equal changes leaves the clock where it was.
    for (long wait = SLEW_PERIOD_MS / 2; !__atomic_load_n(&d->stop, __ATOMIC_RELAXED);
         wait = SLEW_PERIOD_MS, sign = -sign) {
        for (long ms = 0; ms < wait && !__atomic_load_n(&d->stop, __ATOMIC_RELAXED); ms++)
            sleep_us(1000);
        if (d->ppm)
            set_frequency(d->base_freq + sign * d->ppm * 65536); // the kernel stops at 500 ppm
        if (d->step_ns)
            step_clock(sign * d->step_ns);
        d->changes += d->ppm || d->step_ns;
    }
    if (d->ppm)
        set_frequency(d->base_freq);
    if (d->step_ns && d->changes % 2)
        step_clock(-d->step_ns);
    return NULL;
}

static void *record(void *context)
{
    struct background *background = context;
    while (!__atomic_load_n(&background->stop, __ATOMIC_RELAXED)) {
        uint64_t left = clock_recorder_poll(&background->recorder);
        sleep_us(left > 500000 ? 500 : (long)(left / 1000) + 1);
    }
    clock_recorder_take(&background->recorder);
    return NULL;
}

static uint64_t tsc_fenced(void)
{
    _mm_lfence();
    uint64_t cycles = tsc_now();
    _mm_lfence();
    return cycles;
}

// Counts readings that go backwards, and those that do so by more than the map admits.
static int judge(const struct disturbance *d, const struct clock_recorder *recorder,
                 uint64_t (*pairs)[2], size_t count)
{
    struct error err;
    struct clock_map *map;
    if (clock_map_build(recorder->readings, recorder->knots * (HOST_CLOCKS - 1), &map, &err) < 0) {
        printf("%s: %s\n", d->name, err.text);
        return 1;
    }
    size_t backwards = 0, beyond = 0;
    int64_t last = INT64_MIN, largest = 0;
    double last_error = 0;
    for (size_t i = 0; i < count; i++)
        for (int side = 0; side < 2; side++) {
            enum host_clock clock = side ? HOST_CLOCK_REALTIME : HOST_CLOCK_TSC;
            int64_t host = clock_map_to_host(map, clock, pairs[i][side]);
            double error = 0;
            if (host < last) {
                error = clock_map_error_ns(map, clock, pairs[i][side]);
                backwards++;
                largest = last - host > largest ? last - host : largest;
                beyond += (double)(last - host) > error + last_error + 1;
            } else {
                last = host;
                last_error = side ? clock_map_error_ns(map, clock, pairs[i][side]) : 0;
            }
        }
    printf("%-14s %zu readings, %zu knots, %d changes: %zu backwards, largest jump %lld ns; "
           "%zu beyond the stated bound (worst bound %.0f ns)\n",
           d->name, 2 * count, recorder->knots, d->changes, backwards, (long long)largest, beyond,
           clock_map_worst_error_ns(map));
    clock_map_free(map);
    return beyond != 0;
}

static int run_scenario(struct disturbance *d, size_t count)
{
    struct background background = {.stop = false};
    struct error err;
    pthread_t disturber, poller;
    uint64_t(*pairs)[2] = malloc(count * sizeof *pairs);
    if (!pairs || clock_recorder_start(&background.recorder, KNOT_INTERVAL_NS, 1 << 16, &err) < 0)
        return 1;
    memset(pairs, 0, count * sizeof *pairs); // no page faults between readings
    if (pthread_create(&poller, NULL, record, &background) ||
        pthread_create(&disturber, NULL, disturb, d))
        return 1;
    for (size_t i = 0; i < count; i++) {
        pairs[i][0] = tsc_fenced();
        pairs[i][1] = (uint64_t)clock_ns(CLOCK_REALTIME);
    }
    // The poller goes first and takes the last knot, before the clock is put back.
    __atomic_store_n(&background.stop, true, __ATOMIC_RELAXED);
    pthread_join(poller, NULL);
    __atomic_store_n(&d->stop, true, __ATOMIC_RELAXED);
    pthread_join(disturber, NULL);
    int failed = judge(d, &background.recorder, pairs, count);
    clock_recorder_free(&background.recorder);
    free(pairs);
    return failed;
}

static int run_all(size_t count, bool steps, long base_freq)
{
    struct disturbance scenarios[] = {
        {.name = "no slew"},
        {.name = "+-10 ppm", .ppm = 10},
        {.name = "+-50 ppm", .ppm = 50},
        {.name = "+-500 ppm", .ppm = 500},
        {.name = "1 ms steps", .step_ns = 1000000},
    };
    int failed = 0;
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        scenarios[i].base_freq = base_freq;
        if (!scenarios[i].step_ns || steps)
            failed |= run_scenario(&scenarios[i], count);
        fflush(stdout);
    }
    return failed;
}

int main(int argc, char **argv)
{
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) / 2 : 5000000;
    bool steps = argc < 3 || strcmp(argv[2], "slew") != 0;
    if (count < 1000 || count > 100000000) {
        fprintf(stderr, "usage: test_long_clock [READINGS] [slew]\n");
        return 2;
    }
    struct clock_state saved;
    int skipped = clock_state_save(&saved);
    if (skipped)
        return skipped;
    signal(SIGINT, SIG_IGN); // the child ends, the parent restores
    signal(SIGTERM, SIG_IGN);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGINT, SIG_DFL);
        alarm(240);
        exit(run_all(count, steps, saved.frequency));
    }
    int status = -1;
    if (child > 0)
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
    clock_state_restore(&saved);
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
