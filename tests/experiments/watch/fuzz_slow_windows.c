// SPDX-License-Identifier: MIT
//
// Any requests of two intervals, and the windows that the flight recorder saves of them: they lie
// in their interval one behind the other, no request in two of them, and each slow one lies in one.
// The input: how many windows at most, then 4 bytes a request.
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "experiments/watch/slow_windows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { REQUEST_BYTES = 4, INTERVAL_NS = 4096, ABOVE_NS = 100, MOST_REQUESTS = 200 };

static void must(bool holds)
{
    if (!holds)
        abort();
}

static int by_begin(const void *left, const void *right)
{
    const struct lifetime *a = left, *b = right;
    return order_of(a->stamp_ns[STAMP_INTENDED], b->stamp_ns[STAMP_INTENDED]);
}

// Answered in the interval that begins at from_ns, or never.
static struct lifetime request_of(const uint8_t *bytes, int64_t from_ns)
{
    struct lifetime life = {0};
    const int64_t end_ns = from_ns + 1 + (bytes[0] | bytes[1] << 8) % INTERVAL_NS;
    life.latency_ns = (double)((uint32_t)(bytes[2] & 31) << (bytes[3] & 7));
    life.stamp_ns[STAMP_INTENDED] = end_ns - (int64_t)life.latency_ns;
    if (bytes[3] & 128)
        life.latency_ns = bytes[3] & 64 ? INFINITY : NAN;
    return life;
}

static bool is_slow(const struct lifetime *life)
{
    return isfinite(life->latency_ns) && life->latency_ns > ABOVE_NS;
}

static const struct slow_window *window_at(const struct slow_windows *windows, int64_t ns)
{
    for (size_t i = 0; i < windows->count; i++)
        if (ns > windows->items[i].from_ns && ns <= windows->items[i].until_ns)
            return &windows->items[i];
    return NULL;
}

static void check(const struct slow_windows *windows, struct lifetime_array *lives, size_t most,
                  int64_t from_ns, int64_t ended_before_ns, int64_t ended_ns)
{
    size_t stretches = 0, expected = 0;
    must(windows->count <= most);
    for (size_t i = 0; i < windows->count; i++) {
        const struct slow_window *one = &windows->items[i];
        must(one->from_ns <= one->until_ns && one->stretches >= 1);
        must(one->from_ns >= from_ns && one->slowest_ns > ABOVE_NS);
        must(i == 0 || one->from_ns == one[-1].until_ns);
        must(!one->goes_on || (i == 0 && one->from_ns == from_ns));
        must(i + 1 == windows->count || one->stretches == 1);
        stretches += one->stretches;
    }
    must(windows->count == 0 ||
         windows->items[windows->count - 1].until_ns == from_ns + INTERVAL_NS);
    // Once more, in words: who begins after all slow ones before have ended begins a stretch.
    if (lives->count)
        qsort(lives->items, lives->count, sizeof *lives->items, by_begin);
    for (size_t i = 0; i < lives->count; i++) {
        const struct lifetime *life = &lives->items[i];
        const int64_t begin_ns = life->stamp_ns[STAMP_INTENDED];
        if (!is_slow(life))
            continue;
        const int64_t end_ns = begin_ns + (int64_t)life->latency_ns;
        const struct slow_window *window = window_at(windows, end_ns);
        must(window && window->slowest_ns >= life->latency_ns);
        const bool first = expected == 0, begins = begin_ns > ended_before_ns;
        must(!first || windows->items[0].goes_on == !begins);
        expected += first || begins;
        ended_before_ns = end_ns > ended_before_ns ? end_ns : ended_before_ns;
    }
    must(stretches == expected && ended_ns == ended_before_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    int64_t ended_ns = INT64_MIN;
    if (bytes < 1)
        return 0;
    const size_t most = 1 + data[0] % 8, all = (bytes - 1) / REQUEST_BYTES;
    const size_t count = all < MOST_REQUESTS ? all : MOST_REQUESTS;
    for (size_t interval = 0; interval < 2; interval++) {
        const int64_t from_ns = (int64_t)interval * INTERVAL_NS, before_ns = ended_ns;
        const size_t first = interval ? count / 2 : 0, end = interval ? count : count / 2;
        struct lifetime_array lives = {0};
        struct slow_windows windows = {0};
        for (size_t i = first; i < end; i++)
            if (array_push(&lives, request_of(data + 1 + i * REQUEST_BYTES, from_ns)) < 0)
                abort();
        if (slow_windows_find(&lives, ABOVE_NS, from_ns, from_ns + INTERVAL_NS, most, &ended_ns,
                              &windows) < 0)
            abort();
        check(&windows, &lives, most, from_ns, before_ns, ended_ns);
        array_free(&windows);
        array_free(&lives);
    }
    return 0;
}
