// SPDX-License-Identifier: MIT
//
// Requests that hops saw, in runs that are known: the network's time is divided among the links it
// passed on, and the diagnosis blames the link that was slow.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "analysis/diagnosis/diagnosis.h"
#include "analysis/lifetime/hop_stays.h"
#include "analysis/run/run_hops.h"
#include "analysis/timeline/timeline.h"
#include "base/log_file.h"
#include "profiler/bpf/packet_head.h"
#include "tests/analysis/lifetime/joined.h"

enum { CLIENT, IN, OUT, SERVER, HOPS };
static const struct hop_place places[HOPS] = {{.name = "eth0@client"},
                                              {.name = "in", .is_ingress = true},
                                              {.name = "out"},
                                              {.name = "eth0@server", .is_ingress = true}};

static const struct hop_place queueing[HOPS] = {{.name = "eth0@client", .qdisc = "fq"},
                                                {.name = "in", .is_ingress = true},
                                                {.name = "out", .qdisc = "tbf"},
                                                {.name = "eth0@server", .is_ingress = true}};

#define KEY 0x1234567890abcdefULL
// Of connection 0 the sequence numbers begin again at 0 within the run.
#define FIRST_NUMBER(connection) (UINT32_MAX - 3000u + 100000u * (connection))

struct seen {
    struct joined joined;
    struct ARRAY_OF(struct hop_record) records;
    struct hop_stays stays;
    bool without_opening; // no SYN was recorded
    uint32_t one_in;
    const struct hop_place *places; // NULL: as above
};

static uint64_t flow_of(const struct connection *c, bool back)
{
    struct packet_head head = {.protocol = c->protocol};
    memcpy(&head.source, back ? c->peer : c->local, 16);
    memcpy(&head.destination, back ? c->local : c->peer, 16);
    head.source_port = back ? c->peer_port : c->local_port;
    head.destination_port = back ? c->local_port : c->peer_port;
    return packet_flow(&head, KEY);
}

static void pass(struct seen *s, uint32_t connection, bool back, uint8_t hop, int64_t time_ns,
                 uint64_t from, uint64_t to)
{
    struct hop_record record = {.time = (uint64_t)(time_ns + MONOTONIC_AHEAD_NS),
                                .flow = flow_of(&s->joined.scenario.client.items[connection], back),
                                .first = FIRST_NUMBER(connection) + (uint32_t)from,
                                .end = FIRST_NUMBER(connection) + (uint32_t)to,
                                .hop = hop,
                                .protocol = PACKET_TCP,
                                .flags = from == to ? HOP_OPENS : 0};
    SCENARIO_PUSH(&s->records, record);
}

static int by_time(const void *a, const void *b)
{
    const struct hop_record *x = a, *y = b;
    return order_of(x->time, y->time);
}

static void make(struct seen *s, const struct scenario_options *options)
{
    build(&s->joined, options);
    for (uint32_t c = 0; c < options->connections && !s->without_opening; c++)
        for (uint8_t hop = 0; hop < HOPS; hop++) {
            pass(s, c, false, hop, SCENARIO_BEGIN_NS - 90000 + hop * 1000, 0, 0);
            pass(s, c, true, hop, SCENARIO_BEGIN_NS - 60000 - hop * 1000, 0, 0);
        }
    s->one_in = s->one_in ? s->one_in : 1;
}

// The same over UDP, where the datagram of request n begins with n.
static void pass_datagram(struct seen *s, uint32_t connection, bool back, uint8_t hop,
                          int64_t time_ns, uint64_t number)
{
    pass(s, connection, back, hop, time_ns, number, number + 1);
    struct hop_record *record = &s->records.items[s->records.count - 1];
    record->protocol = PACKET_UDP;
    record->first = (uint16_t)number;
    record->end = record->first + 1;
}

static void find(struct seen *s)
{
    struct scenario *scenario = &s->joined.scenario;
    array_sort(&s->records, by_time);
    const struct hop_machine machine = {.records = s->records.items,
                                        .record_count = s->records.count,
                                        .hop_count = HOPS,
                                        .flow_key = KEY,
                                        .one_in = s->one_in,
                                        .clock = scenario_clock()};
    const struct hop_stays_input in = {.machines = &machine,
                                       .machine_count = 1,
                                       .hop_count = HOPS,
                                       .places = s->places ? s->places : places,
                                       .samples = scenario->samples.items,
                                       .connections = scenario->client.items,
                                       .connection_count = scenario->client.count,
                                       .lives = s->joined.lives.items,
                                       .life_count = s->joined.lives.count};
    assert_int_equal(hop_stays_find(&in, &s->stays), 0);
}

// The same where OUT and SERVER are on the server's machine and the others on the client's, whose
// clock is behind the server's by that, and its hops by `late_ns` more than its requests say.
static void find_apart(struct seen *s, int64_t behind_ns, int64_t late_ns)
{
    struct scenario *scenario = &s->joined.scenario;
    struct ARRAY_OF(struct hop_record) parts[HOP_MACHINES] = {0};
    array_sort(&s->records, by_time);
    for (size_t i = 0; i < s->records.count; i++) {
        struct hop_record record = s->records.items[i];
        bool on_client = record.hop < OUT;
        record.hop = (uint8_t)(record.hop % OUT);
        record.time -= on_client ? (uint64_t)(behind_ns - late_ns) : 0;
        SCENARIO_PUSH(&parts[on_client], record);
    }
    for (size_t i = 0; i < s->joined.lives.count; i++)
        s->joined.lives.items[i].client_moved_ns = behind_ns;
    const struct hop_machine machines[HOP_MACHINES] = {{.records = parts[0].items,
                                                        .record_count = parts[0].count,
                                                        .hop_count = OUT,
                                                        .flow_key = KEY,
                                                        .one_in = 1,
                                                        .clock = scenario_clock()},
                                                       {.records = parts[1].items,
                                                        .record_count = parts[1].count,
                                                        .first_hop = OUT,
                                                        .hop_count = OUT,
                                                        .flow_key = KEY,
                                                        .one_in = 1,
                                                        .clock = scenario_clock(),
                                                        .is_client = true}};
    const struct hop_stays_input in = {.machines = machines,
                                       .machine_count = HOP_MACHINES,
                                       .hop_count = HOPS,
                                       .places = places,
                                       .samples = scenario->samples.items,
                                       .connections = scenario->client.items,
                                       .connection_count = scenario->client.count,
                                       .lives = s->joined.lives.items,
                                       .life_count = s->joined.lives.count};
    assert_int_equal(hop_stays_find(&in, &s->stays), 0);
    array_free(&parts[0]);
    array_free(&parts[1]);
}

static void finish(struct seen *s)
{
    hop_stays_free(&s->stays);
    array_free(&s->records);
    release(&s->joined);
}

// A request's way there: the client's qdisc, the bridge, and the fault on one of the links, of
// which the last ends behind M(n), as it does where another core takes packets in.
static void pass_there(struct seen *s, size_t i, unsigned slow_link)
{
    const struct scenario_request *r = &s->joined.scenario.requests.items[i];
    const int64_t late = r->nic - r->tx > 100000 ? r->nic - r->tx - 1500 : 0;
    uint64_t end = r->begin + REQUEST_BYTES;
    pass(s, r->connection, false, CLIENT, r->tx - 500, r->begin, end);
    pass(s, r->connection, false, IN, r->tx + 200 + (slow_link == CLIENT ? late : 0), r->begin,
         end);
    pass(s, r->connection, false, OUT, r->tx + 500 + (slow_link <= IN ? late : 0), r->begin, end);
    pass(s, r->connection, false, SERVER, r->nic + 300, r->begin, end);
}

static void pass_back(struct seen *s, size_t i)
{
    const struct scenario_request *r = &s->joined.scenario.requests.items[i];
    uint64_t end = r->reply_begin + REPLY_BYTES;
    pass(s, r->connection, true, SERVER, r->server_tx - 200, r->reply_begin, end);
    pass(s, r->connection, true, OUT, r->server_tx + 700, r->reply_begin, end);
    pass(s, r->connection, true, IN, r->server_tx + 900, r->reply_begin, end);
    pass(s, r->connection, true, CLIENT, r->client_rx + 50, r->reply_begin, end);
}

static void ways_are_divided(void **state)
{
    (void)state;
    struct seen s = {.one_in = 0};
    make(&s, &plain);
    for (size_t i = 0; i < plain.requests; i++) {
        pass_there(&s, i, OUT);
        pass_back(&s, i);
    }
    find(&s);
    assert_int_equal(s.stays.whole, plain.requests);
    assert_int_equal(s.stays.divided[WAY_TO_SERVER], plain.requests);
    assert_int_equal(s.stays.divided[WAY_TO_CLIENT], plain.requests);
    assert_int_equal(s.stays.all.count, 6 * (size_t)plain.requests);
    for (size_t i = 0; i < plain.requests; i++) {
        static const uint8_t way[] = {CLIENT, IN, OUT, SERVER, SERVER, OUT, IN, CLIENT};
        const struct lifetime *lives = s.joined.lives.items;
        size_t count;
        const struct hop_stay *stays = hop_stays_of(&s.stays, i, &count);
        assert_int_equal(count, 6);
        for (size_t k = 0; k < count; k++) {
            assert_int_equal(stays[k].from, way[k + k / 3]);
            assert_int_equal(stays[k].to, way[k + k / 3 + 1]);
            assert_int_equal(hop_stay_way(&stays[k], &lives[i]), k / 3);
            if (k % 3)
                assert_true(stays[k].begin_ns == stays[k - 1].end_ns);
        }
        // They begin before the client's own stamp, and end at M(n): together they are the way.
        int64_t begin, end;
        assert_true(hop_way_of(&s.stays, lives, i, WAY_TO_SERVER, &begin, &end));
        assert_true(begin == stays[0].begin_ns && end == stays[2].end_ns);
        assert_true(end == lives[i].stamp_ns[STAMP_NIC]);
        assert_true(begin == lives[i].stamp_ns[STAMP_CLIENT_TX] - 500);
        assert_true(hop_way_of(&s.stays, lives, i, WAY_TO_CLIENT, &begin, &end));
        assert_true(begin == stays[3].begin_ns && end == stays[5].end_ns);
        assert_true(end - begin == (int64_t)lives[i].stage_ns[STAMP_CLIENT_RX]);
    }
    finish(&s);
}

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
    assert_int_equal(s.stays.losses.count, 3);
    for (size_t i = 0; i < 3; i++) {
        const struct hop_loss *loss = &s.stays.losses.items[i];
        assert_int_equal(loss->way, expected[i].way);
        assert_int_equal(loss->after, expected[i].after);
        assert_int_equal(loss->before, expected[i].before);
        assert_int_equal(loss->requests, expected[i].requests);
    }
    assert_int_equal(s.stays.losses_unseen, plain.requests / ANSWERED);
    finish(&s);
}

// Bytes are followed, whatever packets they travel in: pairs of requests of a segment are divided
// and merged on the way.
// Whatever the clocks of two machines are apart, their hops divide the ways as one machine's do,
// and the packets show the offset; where they contradict the requests, that is counted.
static void machines_are_put_together(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 2; wrong++) {
        const int64_t behind_ns = 5000000000;
        struct seen s = {.one_in = 0};
        make(&s, &plain);
        for (size_t i = 0; i < plain.requests; i++) {
            pass_there(&s, i, OUT);
            pass_back(&s, i);
        }
        find_apart(&s, behind_ns, wrong ? 4000 : 0);
        const struct packet_clock *clock = &s.stays.clock;
        assert_int_equal(clock->exchanges, plain.requests);
        assert_int_equal(clock->compared, plain.requests);
        if (wrong) {
            assert_int_equal(s.stays.backwards, plain.requests);
            assert_int_equal(clock->disagreeing, plain.requests);
            assert_true(clock->difference_p50_ns > 3000 && clock->difference_max_ns < 5000);
        } else {
            assert_int_equal(s.stays.divided[WAY_TO_SERVER], plain.requests);
            assert_int_equal(s.stays.divided[WAY_TO_CLIENT], plain.requests);
            assert_int_equal(s.stays.all.count, 6 * (size_t)plain.requests);
            assert_int_equal(s.stays.backwards + clock->disagreeing, 0);
            assert_true(clock->bound_p99_ns < 1000);
            assert_true(llabs(clock->offset_ns - behind_ns) <= (int64_t)clock->bound_p99_ns);
        }
        finish(&s);
    }
}

// Where no queueing discipline lies between two ends of a link, the core that takes a
// packet in is what it waits for; where one does, or nobody knows, it is not.
static void cores_and_queues_are_known(void **state)
{
    (void)state;
    static const struct {
        const char *qdisc, *told;
        int peer;
        bool has_core;
    } cases[] = {{"", "", 7, false},
                 {"noqueue", "", 7, true},
                 {"noqueue", "", 6, false},
                 {"noqueue", "", 0, false},
                 {"tbf", "tbf", 7, false}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct seen s = {.one_in = 0};
        struct hop_place at[HOPS];
        memcpy(at, places, sizeof at);
        snprintf(at[OUT].qdisc, sizeof at[OUT].qdisc, "%s", cases[c].qdisc);
        at[OUT].number = at[SERVER].peer = 3;
        at[OUT].peer = cases[c].peer;
        at[SERVER].number = 7;
        make(&s, &plain);
        for (size_t i = 0; i < plain.requests; i++)
            pass_there(&s, i, OUT);
        for (size_t i = 0; i < s.records.count; i++)
            s.records.items[i].core_after = (uint8_t)(s.records.items[i].hop + 1);
        s.places = at;
        find(&s);
        for (size_t i = 0; i < s.stays.all.count; i++) {
            const struct hop_stay *stay = &s.stays.all.items[i];
            bool known = stay->from == OUT && cases[c].has_core;
            assert_int_equal(stay->sent_core, known ? OUT : HOP_NO_CORE);
            assert_int_equal(stay->taken_core, known ? SERVER : HOP_NO_CORE);
            assert_string_equal(hop_stay_qdisc(stay, at), stay->from == OUT ? cases[c].told : "");
        }
        assert_int_equal(s.stays.all.count, 3 * (size_t)plain.requests);
        finish(&s);
    }
}

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
    assert_int_equal(strange.stays.strange, strange.records.count);
    assert_true(sampled.stays.divided[WAY_TO_SERVER] > plain.requests / 16);
    assert_true(sampled.stays.divided[WAY_TO_SERVER] < plain.requests * 10 / 16);
    for (size_t k = 0; k < 3; k++)
        finish(all[k]);
}

// --- and the diagnosis ---------------------------------------------------------------------------

enum { DELAY_NS = 2000000 };

static const char *first_cause(const struct diagnosis *found, uint64_t lifetime, float *ns)
{
    const char *name = "nothing";
    *ns = 0;
    for (size_t i = 0; i < found->attributions.count; i++) {
        const struct attribution *one = &found->attributions.items[i];
        if (one->lifetime == lifetime && one->ns > *ns) {
            *ns = one->ns;
            name = found->causes.items[one->cause].name;
        }
    }
    return name;
}

// What one of the links is slow for; queued: where in a queue, of which it is known how long it
// held the packet, but for the last microsecond.
static void check_causes(const char *const causes[3], bool queued)
{
    struct scenario_options options = plain;
    options.fault = FAULT_NETWORK;
    options.faults = 20;
    options.fault_ns = DELAY_NS;
    for (unsigned link = 0; link < 3; link++) {
        struct seen s = {.one_in = 0};
        struct diagnosis found = {0};
        struct host_timeline server;
        const struct scenario *scenario = &s.joined.scenario;
        const struct time_source clock = scenario_clock();
        static const uint32_t threads[] = {SERVER_THREAD};
        struct error err = {0};
        make(&s, &options);
        for (size_t i = 0; i < options.requests; i++) {
            size_t first = s.records.count;
            pass_there(&s, i, link);
            struct hop_record *slow = &s.records.items[first + link];
            slow->queued_ns = queued && link != IN ? slow[1].time - slow->time - 100 : 0;
            pass_back(&s, i);
        }
        find(&s);
        const struct diagnosis_slice slow = {.high = 1, .min_latency_ns = DELAY_NS};
        assert_int_equal(host_timeline_build(scenario->events.items, scenario->events.count, &clock,
                                             &server, &err),
                         0);
        const struct diagnosis_input in = {.server = &server,
                                           .application_threads = threads,
                                           .application_thread_count = 1,
                                           .lifetimes = s.joined.lives.items,
                                           .lifetime_count = s.joined.lives.count,
                                           .hops = &s.stays,
                                           .hop_places = queued ? queueing : places,
                                           .granularity_ns = 500,
                                           .calls = &s.joined.calls};
        assert_int_equal(diagnose(&in, &slow, &found, &err), 0);
        assert_string_equal(found.reason, "");
        assert_true(found.messages.count >= options.faults);
        for (size_t i = 0; i < found.messages.count; i++) {
            float ns;
            assert_string_equal(first_cause(&found, found.messages.items[i].lifetime, &ns),
                                causes[link]);
            assert_true(fabs((double)ns - DELAY_NS) < 0.05 * DELAY_NS);
        }
        assert_int_equal(found.causes.items[0].role, ROLE_NETWORK);
        assert_string_equal(found.causes.items[0].category,
                            queued && link != IN ? "queueing discipline" : "network");
        diagnosis_free(&found);
        host_timeline_free(&server);
        finish(&s);
    }
}

static void a_slow_link_is_the_cause(void **state)
{
    (void)state;
    static const char *const causes[] = {"hop eth0@client -> in", "hop in -> out",
                                         "hop out -> eth0@server"};
    check_causes(causes, false);
}

static void a_queue_that_holds_packets_is_the_cause(void **state)
{
    (void)state;
    static const char *const causes[] = {"in the queue of eth0@client (fq)", "hop in -> out",
                                         "in the queue of out (tbf)"};
    check_causes(causes, true);
}

// A queue's part is cut to the way as all is, and where a packet by another clock is at the next
// hop before it left, nothing is behind the queue.
static void a_queue_is_a_part_of_the_link(void **state)
{
    (void)state;
    struct seen s = {.one_in = 0};
    make(&s, &plain);
    for (size_t i = 0; i < plain.requests; i++) {
        size_t first = s.records.count;
        pass_there(&s, i, OUT);
        s.records.items[first + CLIENT].queued_ns = 100;
        s.records.items[first + OUT].queued_ns = UINT32_MAX;
    }
    find(&s);
    assert_int_equal(s.stays.divided[WAY_TO_SERVER], plain.requests);
    for (size_t i = 0; i < plain.requests; i++) {
        const struct scenario_request *r = &s.joined.scenario.requests.items[i];
        size_t count;
        const struct hop_stay *stays = hop_stays_of(&s.stays, i, &count);
        assert_int_equal(count, 4);
        assert_int_equal(stays[0].part, STAY_IN_QUEUE);
        assert_int_equal(stays[0].end_ns - stays[0].begin_ns, 100);
        assert_int_equal(stays[1].part, STAY_BEHIND_QUEUE);
        assert_int_equal(stays[1].begin_ns, stays[0].end_ns);
        assert_int_equal(stays[1].end_ns - stays[1].begin_ns, 600);
        assert_string_equal(hop_stay_qdisc(&stays[0], queueing), "fq");
        assert_string_equal(hop_stay_qdisc(&stays[1], queueing), "");
        assert_int_equal(stays[2].part, STAY_WHOLE);
        assert_int_equal(stays[3].part, STAY_IN_QUEUE);
        assert_int_equal(stays[3].end_ns, r->nic);
    }
    finish(&s);
}

// --- and the table -------------------------------------------------------------------------------

static void write_folder(const char *dir, const struct seen *s, char boot_id[40])
{
    char path[200];
    struct error err;
    struct log_reader log;
    snprintf(path, sizeof path, "%s/server", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/server/capsule.json", dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "{\"flow_key\": \"%016llx\", \"one_in\": 1, \"hops\": [", KEY);
    for (size_t i = 0; i < HOPS; i++)
        fprintf(file,
                "%s{\"name\": \"%s\", \"role\": \"looks\", \"direction\": \"%s\", "
                "\"qdisc\": \"%s\"}",
                i ? ", " : "", queueing[i].name, queueing[i].is_ingress ? "ingress" : "egress",
                queueing[i].qdisc);
    fputs("]}", file);
    assert_int_equal(fclose(file), 0);
    snprintf(path, sizeof path, "%s/server/hops.tlog", dir);
    assert_int_equal(log_write(path, LOG_HOPS, HOP_LOG_VERSION, sizeof *s->records.items,
                               s->records.items, s->records.count, 0, &err),
                     0);
    assert_int_equal(
        log_reader_open(&log, path, LOG_HOPS, HOP_LOG_VERSION, sizeof *s->records.items, &err), 0);
    memcpy(boot_id, log.header.boot_id, 40);
    log_reader_close(&log);
}

// A clock's two knots, a minute apart.
static struct clock_map *knots_from(int64_t ns)
{
    struct clock_reading readings[4];
    struct clock_map *map;
    struct error err;
    for (int i = 0; i < 4; i++) {
        const int64_t at = ns + i / 2 * INT64_C(60000000000);
        readings[i] = (struct clock_reading){.clock = i % 2 ? HOST_CLOCK_MONOTONIC : HOST_CLOCK_RAW,
                                             .width = 20,
                                             .tsc = (uint64_t)at * CYCLES_PER_NS,
                                             .ns = at + (i % 2 ? MONOTONIC_AHEAD_NS : 0)};
    }
    assert_int_equal(clock_map_build(readings, 4, &map, &err), 0);
    return map;
}

// A queue that is known of those messages only that came late to it is where it is, not where they
// were when the others had passed it.
static void the_table_is_in_the_order_of_the_way(void **state)
{
    (void)state;
    static const char *const names[] = {
        "before the first hop",      "eth0@client -> in",  "in -> out",
        "in the queue of out (tbf)", "out -> eth0@server", "behind the last hop",
        "all of the way to server"};
    char dir[] = "/tmp/hop-table-XXXXXX", boot_id[40], path[200];
    struct scenario_options options = plain;
    struct seen s = {.one_in = 0};
    struct run_hops hops;
    struct error err;
    options.fault = FAULT_NETWORK;
    options.faults = 20;
    options.fault_ns = DELAY_NS;
    make(&s, &options);
    for (size_t i = 0; i < options.requests; i++) {
        const struct scenario_request *r = &s.joined.scenario.requests.items[i];
        size_t first = s.records.count;
        pass_there(&s, i, CLIENT);
        s.records.items[first + OUT].queued_ns = r->nic - r->tx > DELAY_NS / 2 ? 100 : 0;
    }
    array_sort(&s.records, by_time);
    assert_non_null(mkdtemp(dir));
    write_folder(dir, &s, boot_id);
    struct clock_map *of_run = knots_from(SCENARIO_BEGIN_NS / 2);
    struct clock_map *of_another = knots_from(SCENARIO_BEGIN_NS * 20);
    struct run_hops_input in = {.run_dir = dir,
                                .boot_id = boot_id,
                                .clock = scenario_clock(),
                                .clock_map = of_run,
                                .stays = {.samples = s.joined.scenario.samples.items,
                                          .connections = s.joined.scenario.client.items,
                                          .connection_count = s.joined.scenario.client.count,
                                          .lives = s.joined.lives.items,
                                          .life_count = s.joined.lives.count}};
    assert_int_equal(run_hops_add(&in, &hops, &err), 0);
    assert_string_equal(hops.problem, "");
    assert_true(hops.rows.count >= sizeof names / sizeof *names);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_string_equal(hops.rows.items[i].name, names[i]);
    assert_true(hops.rows.items[3].messages >= options.faults &&
                hops.rows.items[3].messages < options.requests);
    run_hops_free(&hops);
    // Beside the clock log of another run of the same boot they are not used.
    in.clock_map = of_another;
    assert_int_equal(run_hops_add(&in, &hops, &err), 0);
    assert_non_null(strstr(hops.problem, "server/hops.tlog is of another run than the clock.tlog"));
    assert_int_equal(hops.rows.count, 0);
    run_hops_free(&hops);
    clock_map_free(of_run);
    clock_map_free(of_another);
    finish(&s);
    for (const char *const *file = (const char *const[]){"hops.tlog", "capsule.json", NULL}; *file;
         file++) {
        snprintf(path, sizeof path, "%s/server/%s", dir, *file);
        remove(path);
    }
    snprintf(path, sizeof path, "%s/server", dir);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ways_are_divided),
        cmocka_unit_test(datagrams_are_divided),
        cmocka_unit_test(lost_datagrams_have_a_place),
        cmocka_unit_test(machines_are_put_together),
        cmocka_unit_test(cores_and_queues_are_known),
        cmocka_unit_test(bytes_are_followed),
        cmocka_unit_test(what_got_through_is_followed),
        cmocka_unit_test(what_lacks_stamps_is_counted),
        cmocka_unit_test(a_queue_is_a_part_of_the_link),
        cmocka_unit_test(a_slow_link_is_the_cause),
        cmocka_unit_test(a_queue_that_holds_packets_is_the_cause),
        cmocka_unit_test(the_table_is_in_the_order_of_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
