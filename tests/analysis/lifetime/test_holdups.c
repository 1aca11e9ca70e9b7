// SPDX-License-Identifier: MIT
//
// What TCP and queueing disciplines held back, in runs that are known: to whom, for how long, and
// that the diagnosis blames it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analysis/diagnosis/diagnosis.h"
#include "analysis/lifetime/join.h"
#include "analysis/timeline/timeline.h"
#include "tests/analysis/lifetime/joined.h"

enum { HOLD_NS = 5000000, EVERY = 400 };

static const struct scenario_options usual = {
    .requests = 4000, .connections = 16, .gap_ns = 60000, .pipelined = 1, .seed = 7};

// A record about a connection's stream, on the core that receives.
static void record(struct scenario *s, int64_t time, uint8_t kind, uint8_t flags,
                   const struct scenario_request *r, uint64_t a, uint64_t b)
{
    scenario_stream(s, time, kind, 1, r->connection + 500, a, b);
    s->events.items[s->events.count - 1].flags = flags;
}

static int by_core_and_time(const void *left, const void *right)
{
    const struct event *a = left, *b = right;
    int order = order_of(a->core, b->core);
    return order ? order : order_of(a->time, b->time);
}

// Replies reach the client at `until` at the earliest, if they were sent from `from` on.
static void delay_replies(struct scenario *s, uint32_t connection, int64_t from, int64_t until)
{
    for (size_t i = 0; i < s->requests.count; i++) {
        struct scenario_request *r = &s->requests.items[i];
        if (r->connection != connection || r->server_tx < from || r->read >= until)
            continue;
        r->fault_ns = until - r->read;
        r->read = until;
        s->samples.items[i].reply_tsc = (uint64_t)r->read * CYCLES_PER_NS;
        if (r->server_tx == from) // of those behind it, only the application notices
            s->samples.items[i].rx_ns = (uint64_t)(until - 2000 + REALTIME_AHEAD_NS);
    }
}

// A reply leaves the server HOLD_NS later, those after it on its connection no earlier, and a
// record of each says why.
static void delay_transmits(struct scenario *s, const struct scenario_request *first, uint8_t kind,
                            uint8_t flags)
{
    const uint32_t connection = first->connection;
    const int64_t from = first->server_tx, until = from + HOLD_NS;
    for (size_t e = 0, events = s->events.count; e < events; e++) {
        struct event *event = &s->events.items[e];
        int64_t left = (int64_t)event->time - MONOTONIC_AHEAD_NS;
        if (event->kind != EVENT_TRANSMIT || event->id != connection + 500 || left < from ||
            left >= until)
            continue;
        event->time = (uint64_t)(until + MONOTONIC_AHEAD_NS);
        uint64_t end = event->payload.a;
        if (kind == EVENT_QUEUED)
            record(s, until, kind, flags, first, end, (uint64_t)(left + MONOTONIC_AHEAD_NS));
        if (kind == EVENT_SEGMENT_DROPPED)
            record(s, left, kind, flags, first, (uint32_t)end,
                   (uint64_t)LOSS_QDISC_OVERLIMIT << 32 | REPLY_BYTES);
        for (int held = 0; kind == EVENT_HELD && held < 2; held++)
            record(s, until - 1000 - held * HOLD_NS / 2, kind, flags, first, end - 1, end);
    }
    for (size_t i = 0; i < s->requests.count; i++) {
        struct scenario_request *r = &s->requests.items[i];
        if (r->connection != connection || r->server_tx < from || r->server_tx >= until)
            continue;
        r->fault_ns = until - r->server_tx;
        r->read += r->fault_ns;
        r->server_tx = until;
        s->samples.items[i].reply_tsc = (uint64_t)r->read * CYCLES_PER_NS;
        s->samples.items[i].rx_ns = (uint64_t)(until + 3000 + REALTIME_AHEAD_NS);
    }
}

// Joins what was made, and explains what took longer by a fifth of HOLD_NS or more.
static void judge(struct joined *j, const char *name, enum holdup_kind kind)
{
    static const uint32_t threads[] = {SERVER_THREAD};
    struct scenario *s = &j->scenario;
    struct host_timeline server;
    struct diagnosis found = {0};
    struct error err = {0};
    const struct diagnosis_slice slow = {.low = 0, .high = 1, .min_latency_ns = HOLD_NS / 5};
    array_sort(&s->events, by_core_and_time);
    const struct join_input join = input_of(j);
    join_all(j, &join);
    assert_int_equal(
        host_timeline_build(s->events.items, s->events.count, &join.clock, &server, &err), 0);
    const struct diagnosis_input in = {.lifetimes = j->lives.items,
                                       .lifetime_count = j->lives.count,
                                       .holdups = &j->holdups,
                                       .server = &server,
                                       .application_threads = threads,
                                       .application_thread_count = 1,
                                       .granularity_ns = 500,
                                       .calls = &j->calls};
    assert_int_equal(diagnose(&in, &slow, &found, &err), 0);
    assert_true(found.messages.count >= usual.requests / EVERY - 1);
    size_t at = 0;
    for (size_t i = 0; i < found.messages.count; i++) {
        const struct diagnosed_message *message = &found.messages.items[i];
        const struct scenario_request *r = &s->requests.items[message->lifetime];
        float top = 0, sum = 0;
        const char *blamed = "nothing";
        for (; at < found.attributions.count &&
               found.attributions.items[at].lifetime == message->lifetime;
             at++) {
            const struct attribution *one = &found.attributions.items[at];
            const char *cause = found.causes.items[one->cause].name;
            sum += strcmp(cause, name) == 0 ? one->ns : 0;
            if (one->ns > top) {
                top = one->ns;
                blamed = cause;
            }
        }
        assert_string_equal(blamed, name);
        assert_true(fabs((double)sum - (double)r->fault_ns) < 0.02 * (double)r->fault_ns + 10000);
        size_t count;
        const struct holdup *holdups = holdups_of(&j->holdups, message->lifetime, &count);
        assert_true(count > 0);
        assert_int_equal(holdups[0].kind, kind);
        for (size_t h = 1; h < count; h++)
            assert_true(holdups[h].begin_ns >= holdups[h - 1].end_ns);
    }
    diagnosis_free(&found);
    host_timeline_free(&server);
    release(j);
}

// A reply is lost: it and those behind it arrive when it was sent again. That the first of the two
// transmissions was seen at the device does not matter.
static void lost_reply(void **state)
{
    (void)state;
    static const struct {
        uint8_t flags;
        enum holdup_kind kind;
        const char *name;
        bool unseen;
    } ways[] = {
        {RETRANSMIT_TIMEOUT, HOLDUP_TIMEOUT_TO_CLIENT, "sent again to the client (timeout)", false},
        {RETRANSMIT_TIMEOUT, HOLDUP_TIMEOUT_TO_CLIENT, "sent again to the client (timeout)", true},
        {RETRANSMIT_FAST, HOLDUP_FAST_TO_CLIENT, "sent again to the client (fast retransmit)",
         false},
        {0, HOLDUP_PROBE_TO_CLIENT, "sent again to the client (loss probe)", false},
    };
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        struct joined j = {0};
        scenario_build(&j.scenario, &usual);
        struct scenario *s = &j.scenario;
        for (size_t i = EVERY / 2; i < s->requests.count; i += EVERY) {
            struct scenario_request *r = &s->requests.items[i];
            int64_t again = r->server_tx + HOLD_NS;
            uint64_t end = r->reply_begin + REPLY_BYTES;
            delay_replies(s, r->connection, r->server_tx, again + 6000);
            record(s, again, EVENT_RETRANSMIT, ways[w].flags, r, end, REPLY_BYTES);
            if (ways[w].unseen)
                for (size_t e = 0; e < s->events.count; e++)
                    if (s->events.items[e].kind == EVENT_TRANSMIT &&
                        s->events.items[e].id == r->connection + 500 &&
                        s->events.items[e].payload.a == end)
                        s->events.items[e].kind = 0;
            record(s, again + 1000, EVENT_TRANSMIT, TRANSMIT_AGAIN, r, end, REPLY_BYTES);
        }
        judge(&j, ways[w].name, ways[w].kind);
    }
}

// An acknowledgement that was lost makes TCP send again what has long been read.
static void needless_retransmission(void **state)
{
    (void)state;
    struct joined j = {0};
    scenario_build(&j.scenario, &usual);
    struct scenario *s = &j.scenario;
    for (size_t i = EVERY / 2; i < s->requests.count; i += EVERY) {
        const struct scenario_request *r = &s->requests.items[i];
        record(s, r->read + 200000, EVENT_RETRANSMIT, RETRANSMIT_TIMEOUT, r,
               r->reply_begin + REPLY_BYTES, REPLY_BYTES);
        record(s, r->read + 200000, EVENT_RETRANSMIT, RETRANSMIT_TIMEOUT | RETRANSMIT_BY_CLIENT, r,
               r->begin + REQUEST_BYTES, REQUEST_BYTES);
    }
    const struct join_input join = input_of(&j);
    join_all(&j, &join);
    assert_int_equal(j.holdups.count, 0);
    assert_int_equal(j.counts.resent_to_client + j.counts.resent_to_server, 0);
    release(&j);
}

// What the kernel said it threw away before a request was sent again.
struct thrown_away {
    int bytes_off;      // from the request's end
    bool twice, at_all; // it was sent again before, since then
    const char *name;
};

// Some requests, and those behind them, reach the server HOLD_NS later.
static struct scenario *build_late_requests(struct joined *j)
{
    struct scenario_options options = usual;
    options.fault = FAULT_NETWORK;
    options.faults = options.requests / EVERY;
    options.fault_ns = HOLD_NS;
    scenario_build(&j->scenario, &options);
    return &j->scenario;
}

// A request is lost; what comes after it on its connection waits for it.
static void lose_requests(const struct thrown_away *thrown)
{
    struct joined j = {0};
    struct scenario *s = build_late_requests(&j);
    for (size_t i = 0; i < s->requests.count; i++) {
        struct scenario_request *r = &s->requests.items[i];
        if (r->fault_ns < HOLD_NS) // it is the first of those that are late
            continue;
        const uint64_t end = r->begin + REQUEST_BYTES, dropped = end + (uint64_t)thrown->bytes_off;
        record(s, r->nic - 3000, EVENT_RETRANSMIT, RETRANSMIT_TIMEOUT | RETRANSMIT_BY_CLIENT, r,
               end, REQUEST_BYTES);
        if (thrown->at_all)
            record(s, r->tx + 4000, EVENT_SEGMENT_DROPPED, 0, r, (uint32_t)dropped,
                   (uint64_t)LOSS_NETFILTER_DROP << 32 | REQUEST_BYTES);
        if (thrown->twice)
            record(s, r->tx + 5000, EVENT_RETRANSMIT, RETRANSMIT_TIMEOUT | RETRANSMIT_BY_CLIENT, r,
                   end, REQUEST_BYTES);
        // A firewall may drop what had arrived.
        record(s, r->tx + 3000, EVENT_ARRIVAL, 0, r, r->begin + REQUEST_BYTES, 0);
        record(s, r->nic, EVENT_ARRIVAL, 0, r, r->begin + REQUEST_BYTES, 0);
    }
    judge(&j, thrown->name, HOLDUP_TIMEOUT_TO_SERVER);
}

// Whoever threw the bytes away is named where these very bytes were, and since they were last sent.
static void lost_request(void **state)
{
    (void)state;
    static const struct thrown_away ways[] = {
        {.name = "sent again to the server (timeout)"},
        {.at_all = true,
         .name = "sent again to the server (timeout), dropped by a firewall (NETFILTER_DROP)"},
        {.at_all = true,
         .bytes_off = 1 - REQUEST_BYTES,
         .name = "sent again to the server (timeout), dropped by a firewall (NETFILTER_DROP)"},
        {.at_all = true, .bytes_off = -REQUEST_BYTES, .name = "sent again to the server (timeout)"},
        {.at_all = true, .bytes_off = REQUEST_BYTES, .name = "sent again to the server (timeout)"},
        {.at_all = true, .twice = true, .name = "sent again to the server (timeout)"},
    };
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        lose_requests(&ways[w]);
}

static void held_in_the_send_queue(void **state)
{
    (void)state;
    static const struct {
        enum held_reason reason;
        enum holdup_kind kind;
        const char *name;
    } ways[] = {
        {HELD_WINDOW, HOLDUP_WINDOW, "receive window"},
        {HELD_CONGESTION, HOLDUP_CONGESTION, "congestion window"},
        {HELD_NAGLE, HOLDUP_NAGLE, "Nagle's algorithm"},
        {HELD_CORK, HOLDUP_CORK, "corked"},
        {HELD_PACING, HOLDUP_PACING, "pacing"},
        {HELD_BELOW, HOLDUP_QUEUE, "qdisc (other)"},
    };
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        struct joined j = {0};
        scenario_build(&j.scenario, &usual);
        struct scenario *s = &j.scenario;
        for (size_t i = EVERY / 2; i < usual.requests; i += EVERY)
            delay_transmits(s, &s->requests.items[i], EVENT_HELD, (uint8_t)ways[w].reason);
        judge(&j, ways[w].name, ways[w].kind);
    }
}

static void queueing_discipline(void **state)
{
    (void)state;
    struct joined j = {0};
    scenario_build(&j.scenario, &usual);
    struct scenario *s = &j.scenario;
    for (size_t i = EVERY / 2; i < usual.requests; i += EVERY)
        delay_transmits(s, &s->requests.items[i], EVENT_QUEUED, QUEUE_TBF);
    judge(&j, "qdisc (tbf)", HOLDUP_QUEUE);
}

// The client's own queueing discipline has requests, on the server's machine.
static void queueing_discipline_of_the_client(void **state)
{
    (void)state;
    struct joined j = {0};
    struct scenario *s = build_late_requests(&j);
    for (size_t i = 0; i < s->requests.count; i++) {
        const struct scenario_request *r = &s->requests.items[i];
        if (r->fault_ns > 0)
            record(s, r->nic - 500, EVENT_QUEUED, QUEUE_TBF | QUEUED_BY_CLIENT, r,
                   r->begin + REQUEST_BYTES,
                   (uint64_t)(r->nic - r->fault_ns - 500 + MONOTONIC_AHEAD_NS));
    }
    judge(&j, "qdisc (tbf)", HOLDUP_CLIENT_QUEUE);
}

// What TCP says of the bytes is no name of a queueing discipline or a loss, though one had them
// after.
static void held_before_a_queue(void **state)
{
    (void)state;
    struct joined j = {0};
    scenario_build(&j.scenario, &usual);
    struct scenario *s = &j.scenario;
    for (size_t i = EVERY / 2; i < usual.requests; i += EVERY) {
        const struct scenario_request *r = &s->requests.items[i];
        const uint64_t end = r->reply_begin + REPLY_BYTES;
        delay_transmits(s, r, EVENT_HELD, HELD_CONGESTION);
        record(s, r->server_tx, EVENT_QUEUED, QUEUE_TBF, r, end,
               (uint64_t)(r->server_tx - 800 + MONOTONIC_AHEAD_NS));
    }
    judge(&j, "congestion window", HOLDUP_CONGESTION);
}

// The server's own machine throws a reply away before it leaves: TCP does not send it again, it has
// not sent it. Where it does send it again, the bytes had left.
static void thrown_away_before_it_left(void **state)
{
    (void)state;
    struct joined j = {0};
    scenario_build(&j.scenario, &usual);
    struct scenario *s = &j.scenario;
    for (size_t i = EVERY / 2; i < usual.requests; i += EVERY)
        delay_transmits(s, &s->requests.items[i], EVENT_SEGMENT_DROPPED, DROPPED_TO_CLIENT);
    judge(&j,
          "sent again to the client (local drop), dropped by a full queueing discipline "
          "(QDISC_OVERLIMIT)",
          HOLDUP_LOCAL_TO_CLIENT);
}

// The same of a reply's last bytes while those before them are sent again.
static void thrown_away_while_others_are_sent_again(void **state)
{
    (void)state;
    enum { LAST = 8, SOON_NS = 10000 };
    struct joined j = {0};
    scenario_build(&j.scenario, &usual);
    struct scenario *s = &j.scenario;
    for (size_t i = EVERY / 2; i < usual.requests; i += EVERY)
        delay_transmits(s, &s->requests.items[i], EVENT_SEGMENT_DROPPED, DROPPED_TO_CLIENT);
    for (size_t e = 0, events = s->events.count; e < events; e++) {
        struct event *lost = &s->events.items[e];
        if (lost->kind != EVENT_SEGMENT_DROPPED)
            continue;
        lost->payload.b = (uint64_t)LOSS_QDISC_OVERLIMIT << 32 | LAST;
        const struct scenario_request of = {.connection = lost->id - 500};
        record(s, (int64_t)lost->time - MONOTONIC_AHEAD_NS + SOON_NS, EVENT_RETRANSMIT,
               RETRANSMIT_TIMEOUT, &of, lost->payload.a - LAST, REPLY_BYTES - LAST);
    }
    judge(&j,
          "sent again to the client (local drop), dropped by a full queueing discipline "
          "(QDISC_OVERLIMIT)",
          HOLDUP_LOCAL_TO_CLIENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lost_reply),
        cmocka_unit_test(needless_retransmission),
        cmocka_unit_test(lost_request),
        cmocka_unit_test(held_in_the_send_queue),
        cmocka_unit_test(queueing_discipline),
        cmocka_unit_test(queueing_discipline_of_the_client),
        cmocka_unit_test(held_before_a_queue),
        cmocka_unit_test(thrown_away_before_it_left),
        cmocka_unit_test(thrown_away_while_others_are_sent_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
