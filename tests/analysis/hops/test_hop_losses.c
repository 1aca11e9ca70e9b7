// SPDX-License-Identifier: MIT
//
// Datagrams that were lost on the way, in runs that are known, have a place between two hops.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/analysis/hops/seen.h"

// What no hop behind one saw was lost behind it, by the way that others took.
static void lost_datagrams_have_a_place(void **state)
{
    (void)state;
    enum { UNSEEN, BEHIND_IN, BEHIND_SERVER, BEHIND_REPLY, ANSWERED = 8 };
    struct seen s = {.without_opening = true};
    uint64_t next[64] = {0};
    make(&s, &plain);
    struct scenario *scenario = &s.joined.scenario;
    for (size_t c = 0; c < scenario->client.count; c++)
        scenario->client.items[c].protocol = CONNECTION_UDP;
    for (size_t i = 0; i < plain.requests; i++) {
        const struct scenario_request *r = &scenario->requests.items[i];
        uint64_t number = next[r->connection]++, fate = i % ANSWERED;
        scenario->samples.items[i].request_end = number + 1;
        scenario->samples.items[i].reply_end = fate <= BEHIND_REPLY ? 0 : number + 1;
        if (fate <= BEHIND_REPLY)
            s.joined.lives.items[i].state = LIFETIME_UNANSWERED;
        if (fate == UNSEEN)
            continue;
        pass_datagram(&s, r->connection, false, CLIENT, r->tx - 500, number);
        pass_datagram(&s, r->connection, false, IN, r->tx + 200, number);
        if (fate == BEHIND_IN)
            continue;
        pass_datagram(&s, r->connection, false, SERVER, r->nic + 300, number);
        if (fate == BEHIND_SERVER)
            continue;
        pass_datagram(&s, r->connection, true, SERVER, r->server_tx - 200, number);
        if (fate == BEHIND_REPLY)
            continue;
        pass_datagram(&s, r->connection, true, CLIENT, r->client_rx + 50, number);
    }
    find(&s);
    const struct hop_loss expected[] = {
        {WAY_TO_SERVER, IN, SERVER, plain.requests / ANSWERED},
        {WAY_TO_SERVER, SERVER, HOPS_MAX, plain.requests / ANSWERED},
        {WAY_TO_CLIENT, SERVER, CLIENT, plain.requests / ANSWERED}};
    assert_int_equal(s.losses.places.count, 3);
    for (size_t i = 0; i < 3; i++) {
        const struct hop_loss *loss = &s.losses.places.items[i];
        assert_int_equal(loss->way, expected[i].way);
        assert_int_equal(loss->after, expected[i].after);
        assert_int_equal(loss->before, expected[i].before);
        assert_int_equal(loss->requests, expected[i].requests);
    }
    assert_int_equal(s.losses.unseen, plain.requests / ANSWERED);
    finish(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lost_datagrams_have_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
