// SPDX-License-Identifier: MIT
#include "experiments/watch/slow_windows.h"

#include <math.h>
#include <stdlib.h>

struct slow_request {
    int64_t begin_ns, end_ns;
};

struct slow_requests ARRAY_OF(struct slow_request);

static int by_begin(const void *left, const void *right)
{
    const struct slow_request *a = left, *b = right;
    return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

static int take_slow(const struct lifetime_array *lives, double above_ns, struct slow_requests *out)
{
    for (size_t i = 0; i < lives->count; i++) {
        const struct lifetime *life = &lives->items[i];
        int64_t begin = life->stamp_ns[STAMP_INTENDED];
        if (!isfinite(life->latency_ns) || life->latency_ns <= above_ns)
            continue;
        if (array_push(out, (struct slow_request){begin, begin + (int64_t)life->latency_ns}) < 0)
            return -1;
    }
    return 0;
}

static int take_slow_answers(const struct answer_array *answers, double above_ns,
                             struct slow_requests *out)
{
    for (size_t i = 0; i < answers->count; i++) {
        const struct answer *one = &answers->items[i];
        if ((double)(one->answered_ns - one->arrived_ns) > above_ns &&
            array_push(out, (struct slow_request){one->arrived_ns, one->answered_ns}) < 0)
            return -1;
    }
    return 0;
}

// Another stretch begins. Half-way to it lies the border: a reply's call may return a little later
// than its last byte left, and both sides keep requests that are not slow to compare with.
static int open_window(struct slow_windows *out, size_t most, int64_t border_ns, int64_t until_ns)
{
    struct slow_window *last = out->count ? &out->items[out->count - 1] : NULL;
    if (out->count == most) {
        last->stretches++;
        return 0;
    }
    if (last)
        last->until_ns = border_ns;
    return array_push(out, (struct slow_window){border_ns, until_ns, 0, 1, false});
}

static int find(struct slow_requests *slow, int64_t from_ns, int64_t until_ns, size_t most,
                int64_t *ended_ns, struct slow_windows *out)
{
    int result = 0;
    array_sort(slow, by_begin);
    for (size_t i = 0; i < slow->count && result == 0; i++) {
        const struct slow_request *request = &slow->items[i];
        double latency_ns = (double)(request->end_ns - request->begin_ns);
        if (request->begin_ns > *ended_ns) {
            int64_t border =
                *ended_ns <= from_ns ? from_ns : *ended_ns + (request->begin_ns - *ended_ns) / 2;
            result = open_window(out, most, border, until_ns);
        } else if (out->count == 0) {
            result = array_push(out, (struct slow_window){from_ns, until_ns, 0, 1, true});
        }
        if (result == 0 && latency_ns > out->items[out->count - 1].slowest_ns)
            out->items[out->count - 1].slowest_ns = latency_ns;
        *ended_ns = request->end_ns > *ended_ns ? request->end_ns : *ended_ns;
    }
    return result;
}

int slow_windows_find(const struct lifetime_array *lives, double above_ns, int64_t from_ns,
                      int64_t until_ns, size_t most, int64_t *ended_ns, struct slow_windows *out)
{
    struct slow_requests slow = {0};
    int result = take_slow(lives, above_ns, &slow);
    if (result == 0)
        result = find(&slow, from_ns, until_ns, most, ended_ns, out);
    array_free(&slow);
    return result;
}

int slow_windows_of_answers(const struct answer_array *answers, double above_ns, int64_t from_ns,
                            int64_t until_ns, size_t most, int64_t *ended_ns,
                            struct slow_windows *out)
{
    struct slow_requests slow = {0};
    int result = take_slow_answers(answers, above_ns, &slow);
    if (result == 0)
        result = find(&slow, from_ns, until_ns, most, ended_ns, out);
    array_free(&slow);
    return result;
}
