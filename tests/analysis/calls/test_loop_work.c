// SPDX-License-Identifier: MIT
//
// Whose the time is between the last request that an event loop read and its first reply: of loops
// whose work is known, calls and all.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "analysis/calls/loop_work.h"
#include "analysis/lifetime/service_order.h"

enum {
    TURNS = 4000,
    MOST_CALLS = TURNS * 7 + 1,
    THREAD = 7,
    CONNECTIONS = 16,
    FAVOURITE = 3,
    GUEST = 99
};
enum { SHORT_NS = 5000, HEAVY_NS = 800000, CALL_NS = 2000 };

struct loop_made {
    struct application_call calls[MOST_CALLS];
    bool is_guest[MOST_CALLS];
    int64_t own_from[MOST_CALLS];
    bool is_truth[MOST_CALLS]; // the loop works for itself behind this call
    size_t count;
    int64_t now_ns;
};

struct loop_kind {
    unsigned own_every;   // turns: the loop then works for itself behind the last read
    unsigned heavy_every; // requests: one is heavy, wherever it is read
    unsigned guest_every; // turns: a guest alone, heavy, whom nobody saw before
    bool favourite;       // all requests of one connection are heavy, and it comes last of its turn
    bool late;            // parses as it reads, and works for each just before its reply
    bool reads_only;      // works for all requests together, when all are read
};

static void call(struct loop_made *made, uint8_t kind, uint32_t connection)
{
    made->is_guest[made->count] = connection >= GUEST;
    made->own_from[made->count] = NO_OWN_WORK;
    made->calls[made->count++] = (struct application_call){.entry_ns = made->now_ns,
                                                           .exit_ns = made->now_ns + CALL_NS,
                                                           .connection = connection,
                                                           .length = 10,
                                                           .thread = THREAD,
                                                           .kind = kind};
    made->now_ns += CALL_NS;
}

static int64_t work_of(const struct loop_kind *kind, uint32_t connection)
{
    bool heavy = kind->heavy_every && rand() % (int)kind->heavy_every == 0;
    return heavy || connection >= GUEST || (kind->favourite && connection == FAVOURITE) ? HEAVY_NS
                                                                                        : SHORT_NS;
}

static void turn(struct loop_made *made, const struct loop_kind *kind, unsigned number)
{
    uint32_t readers = 1 + (uint32_t)(rand() % 3), read[3];
    int64_t work_ns[3], all_ns = 0;
    bool by_guest = kind->guest_every && number % kind->guest_every == 0;
    readers = by_guest ? 1 : readers;
    call(made, CALL_WAIT, 0);
    made->now_ns += 1000;
    for (uint32_t i = 0; i < readers; i++)
        read[i] = by_guest ? GUEST + number : (number * 3 + i) % CONNECTIONS;
    for (uint32_t i = 0; i + 1 < readers; i++)
        if (kind->favourite && read[i] == FAVOURITE) {
            read[i] = read[readers - 1];
            read[readers - 1] = FAVOURITE;
        }
    for (uint32_t i = 0; i < readers; i++) {
        work_ns[i] = work_of(kind, read[i]);
        all_ns += work_ns[i];
        call(made, CALL_RECEIVE, read[i]);
        made->now_ns += kind->late ? 2 * SHORT_NS : kind->reads_only ? 500 : work_ns[i];
    }
    made->now_ns += kind->reads_only ? all_ns : 0;
    if (kind->own_every && !by_guest && rand() % (int)kind->own_every == 0) {
        made->is_truth[made->count - 1] = true;
        made->now_ns += HEAVY_NS;
    }
    for (uint32_t i = 0; i < readers; i++) {
        made->now_ns += kind->late ? work_ns[i] : 500;
        call(made, CALL_SEND, read[i]);
    }
    made->now_ns += 1000;
}

static struct loop_made *judged(const struct loop_kind *kind)
{
    struct loop_made *made = calloc(1, sizeof *made);
    assert_non_null(made);
    srand(1);
    for (unsigned i = 0; i < TURNS; i++)
        turn(made, kind, i);
    call(made, CALL_WAIT, 0); // a turn is whole when the next one begins
    struct thread_stint stint = {.end_ns = made->now_ns, .thread = THREAD};
    const struct host_timeline host = {.stints = {.items = &stint, .count = 1}};
    const struct application_calls calls = {.items = made->calls, .count = made->count};
    assert_int_equal(loop_work_mark(&calls, 0, made->count, &host, made->is_guest, made->own_from),
                     0);
    return made;
}

static void the_loops_own_work_is_found(void **state)
{
    (void)state;
    static const struct loop_kind kinds[] = {{.own_every = 20},
                                             {.own_every = 20, .guest_every = 15}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct loop_made *made = judged(&kinds[k]);
        size_t found = 0;
        for (size_t i = 0; i + 1 < made->count; i++) {
            assert_int_equal(made->own_from[i] != NO_OWN_WORK, made->is_truth[i]);
            if (made->own_from[i] == NO_OWN_WORK)
                continue;
            // a request's usual time is left to the one that was read last
            assert_in_range(made->own_from[i] - made->calls[i].exit_ns, SHORT_NS, 2 * SHORT_NS);
            found++;
        }
        assert_true(found > TURNS / 30);
        free(made);
    }
}

static void heavy_requests_keep_their_time(void **state)
{
    (void)state;
    static const struct loop_kind kinds[] = {
        {.heavy_every = 40},
        {.heavy_every = 40, .late = true},
        {.heavy_every = 40, .reads_only = true},
        {.favourite = true},
        {.guest_every = 10},
        {.heavy_every = 40, .own_every = 40}, // both: nobody can tell them apart
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct loop_made *made = judged(&kinds[k]);
        for (size_t i = 0; i < made->count; i++)
            if (made->own_from[i] != NO_OWN_WORK)
                fail_msg("kind %zu: call %zu", k, i);
        free(made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loops_own_work_is_found),
        cmocka_unit_test(heavy_requests_keep_their_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
