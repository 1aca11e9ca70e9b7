// SPDX-License-Identifier: MIT
//
// What hops saw of requests is found by connection and bytes, whatever packets these travelled in,
// and what cannot be found is counted.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/analysis/hops/seen.h"

// Over UDP, without a SYN: by numbers of which the datagrams have the low 16 bits.
static void datagrams_are_divided(void **state)
{
    (void)state;
    enum { STEP = 3000 }; // with few under way at once
    struct seen s = {.without_opening = true};
    uint64_t next[64] = {0};
    make(&s, &plain);
    struct scenario *scenario = &s.joined.scenario;
    for (size_t c = 0; c < scenario->client.count; c++)
        scenario->client.items[c].protocol = CONNECTION_UDP;
    for (size_t i = 0; i < plain.requests; i++) {
        const struct scenario_request *r = &scenario->requests.items[i];
        uint64_t number = next[r->connection];
        next[r->connection] += STEP;
        scenario->samples.items[i].request_end = number + 1;
        scenario->samples.items[i].reply_end = i + 1; // in the order in which they came
        pass_datagram(&s, r->connection, false, CLIENT, r->tx - 500, number);
        pass_datagram(&s, r->connection, false, IN, r->tx + 200, number);
        pass_datagram(&s, r->connection, false, SERVER, r->nic + 300, number);
        if (i % 2) // the reply is two datagrams, of which the last counts
            pass_datagram(&s, r->connection, true, SERVER, r->server_tx - 400, number);
        pass_datagram(&s, r->connection, true, SERVER, r->server_tx - 200, number);
        pass_datagram(&s, r->connection, true, CLIENT, r->client_rx + 50, number);
    }
    assert_true(next[0] > 4 * (uint64_t)UINT16_MAX);
    find(&s);
    assert_int_equal(s.stays.whole, plain.requests);
    assert_int_equal(s.stays.divided[WAY_TO_SERVER], plain.requests);
    assert_int_equal(s.stays.divided[WAY_TO_CLIENT], plain.requests);
    assert_int_equal(s.stays.all.count, 3 * (size_t)plain.requests);
    for (size_t i = 0; i < plain.requests; i++) {
        const int64_t *at = s.joined.lives.items[i].stamp_ns;
        size_t count;
        const struct hop_stay *stays = hop_stays_of(&s.stays, i, &count);
        assert_int_equal(count, 3);
        assert_true(stays[0].begin_ns == at[STAMP_CLIENT_TX] - 500);
        assert_true(stays[1].end_ns == at[STAMP_NIC]);
        assert_true(stays[2].begin_ns == at[STAMP_SERVER_TX]);
    }
    finish(&s);
}

// Bytes are followed, whatever packets they travel in: pairs of requests of a segment are divided
// and merged on the way.
static void bytes_are_followed(void **state)
{
    (void)state;
    struct seen s = {.one_in = 0};
    struct scenario_options pairs = plain;
    pairs.pipelined = 2;
    make(&s, &pairs);
    for (size_t i = 0; i < pairs.requests; i += 2) {
        const struct scenario_request *r = &s.joined.scenario.requests.items[i];
        uint64_t end = r->begin + 2 * REQUEST_BYTES;
        pass(&s, r->connection, false, CLIENT, r->tx - 500, r->begin, end);
        pass(&s, r->connection, false, IN, r->tx + 200, r->begin, r->begin + 30);
        pass(&s, r->connection, false, IN, r->tx + 210, r->begin + 30, r->begin + 50);
        pass(&s, r->connection, false, IN, r->tx + 220, r->begin + 50, end);
        pass(&s, r->connection, false, OUT, r->tx + 500, r->begin, end);
    }
    find(&s);
    assert_int_equal(s.stays.divided[WAY_TO_SERVER], pairs.requests);
    assert_int_equal(s.stays.divided[WAY_TO_CLIENT], 0);
    for (size_t i = 0; i < pairs.requests; i++) {
        const struct scenario_request *r = &s.joined.scenario.requests.items[i];
        size_t count;
        const struct hop_stay *stays = hop_stays_of(&s.stays, i, &count);
        assert_int_equal(count, 2);
        assert_true(stays[0].end_ns == r->tx + (i % 2 ? 220 : 210)); // its last byte
    }
    finish(&s);
}

// What was lost behind a hop, and sent again, is followed as it got through; what was sent again
// for nothing is not.
static void what_got_through_is_followed(void **state)
{
    (void)state;
    struct seen s = {.one_in = 0};
    make(&s, &plain);
    for (size_t i = 0; i < plain.requests; i++) {
        const struct scenario_request *r = &s.joined.scenario.requests.items[i];
        uint64_t end = r->begin + REQUEST_BYTES;
        pass_there(&s, i, OUT);
        if (i % 2) // the first copy was lost behind the switch's first hop
            pass(&s, r->connection, false, IN, r->tx - 100, r->begin, end);
        else
            for (uint8_t hop = 0; hop < HOPS; hop++)
                pass(&s, r->connection, false, hop, r->nic + 400 + hop, r->begin, end);
    }
    find(&s);
    for (size_t i = 0; i < plain.requests; i++) {
        const struct scenario_request *r = &s.joined.scenario.requests.items[i];
        size_t count;
        const struct hop_stay *stays = hop_stays_of(&s.stays, i, &count);
        assert_int_equal(count, 3);
        assert_true(stays[0].begin_ns == r->tx - 500);
        assert_true(stays[0].end_ns == r->tx + 200);
        assert_true(stays[2].end_ns == r->nic);
    }
    finish(&s);
}

static void what_lacks_stamps_is_counted(void **state)
{
    (void)state;
    struct seen unknown = {.without_opening = true}, sampled = {.one_in = 4}, strange = {0};
    struct seen *const all[] = {&unknown, &sampled, &strange};
    for (size_t k = 0; k < 3; k++) {
        make(all[k], &plain);
        for (size_t i = 0; i < plain.requests; i++)
            pass_there(all[k], i, OUT);
        for (size_t i = 0; k == 2 && i < all[k]->records.count; i++)
            all[k]->records.items[i].hop = (uint8_t)(HOPS + i % 200);
        find(all[k]);
        assert_int_equal(all[k]->stays.whole, plain.requests);
    }
    assert_int_equal(unknown.stays.divided[WAY_TO_SERVER], 0);
    assert_int_equal(strange.stays.divided[WAY_TO_SERVER], 0);
    assert_int_equal(strange.strange, strange.records.count);
    assert_true(sampled.stays.divided[WAY_TO_SERVER] > plain.requests / 16);
    assert_true(sampled.stays.divided[WAY_TO_SERVER] < plain.requests * 10 / 16);
    for (size_t k = 0; k < 3; k++)
        finish(all[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(datagrams_are_divided),
        cmocka_unit_test(bytes_are_followed),
        cmocka_unit_test(what_got_through_is_followed),
        cmocka_unit_test(what_lacks_stamps_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
