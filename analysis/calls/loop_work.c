// SPDX-License-Identifier: MIT
#include "analysis/calls/loop_work.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/quantile.h"

// One turn of the loop that read requests, from all of which it had read before it replied.
struct loop_turn {
    uint32_t first, last; // its receive calls
    uint32_t end;         // of its calls
    uint32_t readers;     // connections that it read from
    bool is_suspect;      // what is long may come with one of them
    bool is_long;         // behind the last
    double tail_ns;       // how long the thread ran behind the last, before the first reply
};

// A turn read from a connection.
struct reader {
    uint32_t connection;
    bool is_long;
};

struct loop {
    const struct application_calls *calls;
    const struct host_timeline *host;
    struct ARRAY_OF(struct loop_turn) turns;
    struct ARRAY_OF(struct reader) readers;
    struct ARRAY_OF(double) gaps, work;
    size_t mixed;              // turns that read again after they had replied
    double usual_ns, bound_ns; // behind the last: what is usual, and what is far longer
    double usual_between_ns, bound_between_ns; // the same behind one, before another is read
};

// That all of so many long ones were behind the last by chance has odds of one in 2^this.
#define PROOF_BITS 10
// So little of what would prove the opposite is there by chance: interrupts, other readings.
#define CHANCE_SHARE 0.1

static double ran_after(const struct loop *loop, size_t call)
{
    const struct application_call *now = &loop->calls->items[call];
    return thread_running_ns(loop->host, now->thread, NO_CORE, now->exit_ns, now[1].entry_ns);
}

// Calls [first, end) follow a wait, up to the next.
static int take_turn(struct loop *loop, size_t first, size_t end, const bool *is_guest)
{
    const struct application_call *calls = loop->calls->items;
    struct loop_turn turn = {.first = (uint32_t)first, .end = (uint32_t)end};
    size_t at = first;
    for (; at < end && calls[at].kind == CALL_RECEIVE; at++) {
        turn.readers += at == first || calls[at].connection != calls[at - 1].connection;
        turn.is_suspect |= is_guest[at];
    }
    if (at == first || at == end || calls[at].kind != CALL_SEND)
        return 0;
    turn.last = (uint32_t)at - 1;
    for (; at < end; at++)
        if (calls[at].kind == CALL_RECEIVE) {
            loop->mixed++;
            return 0;
        }
    turn.tail_ns = ran_after(loop, turn.last);
    return array_push(&loop->turns, turn);
}

static int find_turns(struct loop *loop, size_t first, size_t end, const bool *is_guest)
{
    const struct application_call *calls = loop->calls->items;
    int result = 0;
    for (size_t from = first, to; from < end && result == 0; from = to + 1) {
        for (to = from; to < end && calls[to].kind != CALL_WAIT;)
            to++;
        // the first and the last may not be whole
        if (from > first && to < end)
            result = take_turn(loop, from, to, is_guest);
    }
    return result;
}

// What is usual, and what is far longer: by six standard deviations, and at least as much again.
static int find_bound(struct loop *loop, double *usual_ns, double *bound_ns)
{
    size_t count = loop->gaps.count;
    if (array_reserve(&loop->work, count + 1) < 0)
        return -1;
    if (count == 0)
        return 0;
    *usual_ns = quantile_of(loop->gaps.items, count, 0.5, loop->work.items);
    for (size_t i = 0; i < count; i++)
        loop->gaps.items[i] = fabs(loop->gaps.items[i] - *usual_ns);
    double spread = quantile_of(loop->gaps.items, count, 0.5, loop->work.items);
    *bound_ns = *usual_ns + fmax(6 * 1.4826 * spread, fmax(*usual_ns, OWN_WORK_LEAST_NS));
    return 0;
}

// Whether the thread turned from one connection to another behind a receive call.
static bool is_between(const struct loop *loop, const struct loop_turn *turn, size_t call)
{
    const struct application_call *now = &loop->calls->items[call];
    return call < turn->last && now->connection != now[1].connection;
}

static int find_bounds(struct loop *loop)
{
    for (size_t i = 0; i < loop->turns.count; i++)
        if (array_push(&loop->gaps, loop->turns.items[i].tail_ns) < 0)
            return -1;
    if (find_bound(loop, &loop->usual_ns, &loop->bound_ns) < 0)
        return -1;
    loop->gaps.count = 0;
    for (size_t i = 0; i < loop->turns.count; i++) {
        struct loop_turn *turn = &loop->turns.items[i];
        turn->is_long = turn->tail_ns > loop->bound_ns;
        for (size_t call = turn->first; call < turn->last; call++)
            if (is_between(loop, turn, call) && array_push(&loop->gaps, ran_after(loop, call)) < 0)
                return -1;
    }
    return find_bound(loop, &loop->usual_between_ns, &loop->bound_between_ns);
}

// What was far longer than usual in a turn, but not behind the last that was read: before another
// was, or before a reply but the first.
static double long_elsewhere_ns(const struct loop *loop, const struct loop_turn *turn)
{
    double sum_ns = 0;
    for (size_t call = turn->first; call + 1 < turn->end; call++) {
        double ns = call == turn->last ? 0 : ran_after(loop, call);
        sum_ns += ns > loop->bound_between_ns ? ns : 0;
    }
    return sum_ns;
}

// --- whose it is ---------------------------------------------------------------------------------

static int by_connection(const void *left, const void *right)
{
    const struct reader *a = left, *b = right;
    return order_of(a->connection, b->connection);
}

static int gather_readers(struct loop *loop)
{
    for (size_t i = 0; i < loop->turns.count; i++) {
        const struct loop_turn *turn = &loop->turns.items[i];
        for (size_t call = turn->first; call <= turn->last; call++) {
            const struct reader one = {loop->calls->items[call].connection, turn->is_long};
            if ((call == turn->last || is_between(loop, turn, call)) &&
                array_push(&loop->readers, one) < 0)
                return -1;
        }
    }
    array_sort(&loop->readers, by_connection);
    return 0;
}

// Keeps of the readers those that had far more than their share of the long turns: what is long
// comes with them.
static void keep_heavy_readers(struct loop *loop)
{
    enum { TIMES = 3 };
    struct reader *all = loop->readers.items;
    size_t count = loop->readers.count, kept = 0, all_long = 0;
    for (size_t i = 0; i < count; i++)
        all_long += all[i].is_long;
    for (size_t first = 0, after; first < count; first = after) {
        size_t its_long = 0;
        for (after = first; after < count && all[after].connection == all[first].connection;)
            its_long += all[after++].is_long;
        double others = (double)(all_long - its_long) / (double)(count - (after - first) + 1);
        if ((double)its_long > TIMES * others * (double)(after - first) + TIMES)
            all[kept++] = all[first];
    }
    loop->readers.count = kept;
}

static bool has_heavy_reader(const struct loop *loop, const struct loop_turn *turn)
{
    const struct reader *all = loop->readers.items;
    for (size_t call = turn->first; call <= turn->last; call++) {
        uint32_t connection = loop->calls->items[call].connection;
        size_t at = array_bound(0, loop->readers.count, i, all[i].connection < connection);
        if (at < loop->readers.count && all[at].connection == connection)
            return true;
    }
    return false;
}

// How long at most what is proven to be the loop's own took; 0: nothing is.
static double proven_ns(const struct loop *loop)
{
    double bits = 0, behind_ns = 0, elsewhere_ns = 0, most_ns = 0;
    for (size_t i = 0; i < loop->turns.count; i++) {
        const struct loop_turn *turn = &loop->turns.items[i];
        if (turn->is_suspect || turn->readers < 2)
            continue;
        if (turn->is_long) {
            bits += log2(turn->readers);
            behind_ns += turn->tail_ns;
            most_ns = fmax(most_ns, turn->tail_ns);
        }
        elsewhere_ns += long_elsewhere_ns(loop, turn);
    }
    return bits >= PROOF_BITS && elsewhere_ns <= behind_ns * CHANCE_SHARE ? most_ns : 0;
}

static void mark(const struct loop *loop, double most_ns, int64_t *own_from)
{
    for (size_t i = 0; i < loop->turns.count; i++) {
        const struct loop_turn *turn = &loop->turns.items[i];
        if (turn->is_long && !turn->is_suspect && turn->tail_ns <= most_ns)
            own_from[turn->last] = loop->calls->items[turn->last].exit_ns + (int64_t)loop->usual_ns;
    }
}

static int judge(struct loop *loop, int64_t *own_from)
{
    if (find_bounds(loop) < 0)
        return -1;
    // A loop that only reads, and works for all that it has read afterwards, tells nothing.
    if (loop->usual_between_ns < loop->usual_ns / 2)
        return 0;
    if (gather_readers(loop) < 0)
        return -1;
    keep_heavy_readers(loop);
    for (size_t i = 0; i < loop->turns.count; i++)
        loop->turns.items[i].is_suspect |= has_heavy_reader(loop, &loop->turns.items[i]);
    mark(loop, proven_ns(loop), own_from);
    return 0;
}

int loop_work_mark(const struct application_calls *calls, size_t first, size_t end,
                   const struct host_timeline *host, const bool *is_guest, int64_t *own_from)
{
    struct loop loop = {.calls = calls, .host = host};
    int result = find_turns(&loop, first, end, is_guest);
    if (result == 0 && (double)loop.mixed <= (double)loop.turns.count * CHANCE_SHARE)
        result = judge(&loop, own_from);
    array_free(&loop.turns);
    array_free(&loop.readers);
    array_free(&loop.gaps);
    array_free(&loop.work);
    return result;
}
