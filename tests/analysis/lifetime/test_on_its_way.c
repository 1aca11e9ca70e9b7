// SPDX-License-Identifier: MIT
//
// Which late messages a fault of the network is judged by (tests/faults/score.c).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/faults/on_its_way.h"

static struct lifetime message(uint32_t connection, int64_t sent_ns, int64_t read_ns)
{
    struct lifetime life = {.state = LIFETIME_WHOLE, .connection = connection};
    life.stamp_ns[STAMP_SEND] = sent_ns;
    life.stamp_ns[STAMP_REPLY_READ] = read_ns;
    return life;
}

static void only_those_on_their_way_and_behind_them(void **state)
{
    (void)state;
    const struct fault_time faults[] = {{1000, 1500}};
    const struct lifetime lives[] = {
        message(1, 1100, 3000), // lost, and sent again
        message(1, 2900, 3100), // behind it, and behind that one
        message(1, 3050, 3200), //
        message(1, 3200, 5000), // late for a reason of its own, when all was read
        message(2, 1600, 4000), // the same, on a connection that lost nothing
        message(2, 900, 1001),  // on its way, but not late: nobody is behind it
        message(2, 1501, 1700), //
        message(3, 100, 1000),  // read before
        {.state = LIFETIME_UNANSWERED, .connection = 1},
    };
    const bool wanted[] = {true, true, true, false, false, true, false, false, false};
    bool *found = find_on_their_way(lives, sizeof lives / sizeof *lives, faults, 1);
    assert_non_null(found);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (found[i] != wanted[i])
            fail_msg("message %zu: %d", i, found[i]);
    free(found);
    found = find_on_their_way(lives, 0, NULL, 0);
    assert_non_null(found);
    free(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_those_on_their_way_and_behind_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
