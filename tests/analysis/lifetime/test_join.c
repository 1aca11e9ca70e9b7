// SPDX-License-Identifier: MIT
//
// The join against scenarios whose every stamp is known.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analysis/lifetime/join.h"
#include "tests/analysis/lifetime/joined.h"

static void assert_sums(const struct joined *j)
{
    for (size_t i = 0; i < j->lives.count; i++) {
        double sum = 0;
        for (int k = 0; k < STAGES; k++) {
            assert_true(j->lives.items[i].stage_ns[k] >= 0);
            sum += j->lives.items[i].stage_ns[k];
        }
        if (j->lives.items[i].latency_ns < 1e15) // doubles count whole ns that far
            assert_true(fabs(sum - j->lives.items[i].latency_ns) < 1);
    }
}

static void assert_exact(const struct joined *j)
{
    for (size_t i = 0; i < j->lives.count; i++) {
        const struct lifetime *life = &j->lives.items[i];
        const struct scenario_request *r = &j->scenario.requests.items[i];
        const int64_t truth[STAMP_KINDS] = {r->intended,  r->send,        r->tx,    r->nic,
                                            r->handoff,   r->application, r->reply, r->server_tx,
                                            r->client_rx, r->read};
        assert_int_equal(life->state, LIFETIME_WHOLE);
        assert_int_equal(life->present, (1 << STAMP_KINDS) - 1);
        for (int k = 0; k < STAMP_KINDS; k++)
            assert_int_equal(life->stamp_ns[k], truth[k]);
        assert_int_equal(life->thread, SERVER_THREAD);
        assert_int_equal(life->stamp_core[STAMP_HANDOFF], 1);
        assert_int_equal(life->stamp_core[STAMP_APPLICATION], 0);
        assert_int_equal(life->connection, r->connection);
        assert_true(life->batch > 0);
    }
    assert_int_equal(j->counts.disorder.violations, 0);
    assert_int_equal(j->counts.connections_without_socket, 0);
    assert_int_equal(j->counts.connections_without_calls, 0);
    assert_sums(j);
}

static void plain_run_is_exact(void **state)
{
    (void)state;
    struct joined j;
    build(&j, &plain);
    assert_exact(&j);
    for (size_t i = 0; i < j.lives.count; i++)
        assert_int_equal(j.lives.items[i].sharing, 1);
    release(&j);
}

// Every tenth reply takes two send calls: its life knows when the first one returned, others have
// no such time.
static void replies_in_two_parts_are_known(void **state)
{
    (void)state;
    struct joined j = {0};
    scenario_build(&j.scenario, &plain);
    struct scenario *s = &j.scenario;
    const size_t calls = s->calls.count;
    for (size_t i = 0, sends = 0; i < calls; i++) {
        struct call *call = &s->calls.items[i];
        if (call->kind != CALL_SEND || ++sends % 10)
            continue;
        struct call rest = *call;
        call->length /= 2;
        call->exit_tsc = call->entry_tsc + 1;
        rest.offset += call->length;
        rest.length -= call->length;
        rest.entry_tsc = call->exit_tsc + 1;
        SCENARIO_PUSH(&s->calls, rest);
    }
    const struct join_input join = input_of(&j);
    join_all(&j, &join);
    size_t begun = 0;
    for (size_t i = 0; i < j.lives.count; i++) {
        const struct lifetime *life = &j.lives.items[i];
        begun += life->in_part_ns != 0;
        if (life->in_part_ns)
            assert_true(life->in_part_ns > life->stamp_ns[STAMP_APPLICATION] &&
                        life->in_part_ns <= life->stamp_ns[STAMP_REPLY]);
    }
    // Of a connection's first reply it is not known where it begins.
    assert_true(begun <= plain.requests / 10 && begun + plain.connections >= plain.requests / 10);
    release(&j);
}

// Of every tenth request a half is ready before the rest: since when, and until the thread took it.
static void requests_in_two_parts_are_known(void **state)
{
    (void)state;
    struct joined j = {0};
    scenario_build(&j.scenario, &plain);
    struct scenario *s = &j.scenario;
    const size_t requests = s->requests.count;
    for (size_t i = 5; i < requests; i += 10) {
        const struct scenario_request *r = &s->requests.items[i];
        scenario_stream(s, r->handoff - 500, EVENT_HANDOFF, 1, r->connection + 500,
                        r->begin + REQUEST_BYTES / 2, r->begin);
    }
    const struct join_input join = input_of(&j);
    join_all(&j, &join);
    for (size_t i = 0; i < j.lives.count; i++) {
        const struct lifetime *life = &j.lives.items[i];
        const struct scenario_request *r = &s->requests.items[i];
        const bool half = i % 10 == 5;
        const bool behind = i && life->part_read_ns && life->part_read_ns == life[-1].part_read_ns;
        assert_int_equal(life->part_read_ns > life->part_ready_ns,
                         half || (behind && r->connection == r[-1].connection));
        if (half) {
            assert_int_equal(life->part_ready_ns, r->handoff - 500);
            assert_int_equal(life->part_read_ns, life->stamp_ns[STAMP_APPLICATION]);
        }
    }
    release(&j);
}

// Two requests in one record of TLS, which the server takes in two parts: none is there before all
// of it is, and both were so for as long.
static void requests_in_one_record_are_in_parts_together(void **state)
{
    (void)state;
    struct joined j = {0};
    scenario_build(&j.scenario, &plain);
    struct scenario *s = &j.scenario;
    const size_t requests = s->requests.count;
    size_t *other = calloc(requests, sizeof *other), pairs = 0;
    assert_non_null(other);
    for (size_t i = 5; i < requests; i += 50) {
        size_t next = i + 1;
        while (next < requests &&
               s->requests.items[next].connection != s->requests.items[i].connection)
            next++;
        if (next == requests)
            break;
        other[i] = next;
        s->samples.items[i].request_end = s->samples.items[next].request_end;
        s->samples.items[next].request_begin = s->samples.items[i].request_begin;
    }
    const struct join_input join = input_of(&j);
    join_all(&j, &join);
    for (size_t i = 0; i < requests; i++) {
        const struct lifetime *life = &j.lives.items[i], *with = &j.lives.items[other[i]];
        if (!other[i])
            continue;
        pairs++;
        assert_true(life->part_read_ns > life->part_ready_ns);
        assert_int_equal(life->part_ready_ns, with->part_ready_ns);
        assert_int_equal(life->part_read_ns, with->part_read_ns);
        assert_int_equal(life->receive_call, with->receive_call);
    }
    assert_true(pairs > 0);
    free(other);
    release(&j);
}

// Of every tenth request a half is ready and read, then a quarter, which is left for longer.
static void what_lies_unread_longest_is_known(void **state)
{
    enum { READY = 400, QUARTER = 300 }; // before the rest was
    (void)state;
    struct joined j = {0};
    scenario_build(&j.scenario, &plain);
    struct scenario *s = &j.scenario;
    for (size_t i = 5; i < s->requests.count; i += 10) {
        const struct scenario_request *r = &s->requests.items[i];
        const uint64_t half = r->begin + REQUEST_BYTES / 2;
        scenario_stream(s, r->handoff - READY, EVENT_HANDOFF, 1, r->connection + 500, half,
                        r->begin);
        scenario_stream(s, r->handoff - QUARTER, EVENT_HANDOFF, 1, r->connection + 500,
                        half + REQUEST_BYTES / 4, half);
        scenario_call(s, CALL_RECEIVE, r->handoff - READY + 10, r->handoff - READY + 20,
                      r->connection + 7, r->begin, half - r->begin, 1, 0);
    }
    const struct join_input join = input_of(&j);
    join_all(&j, &join);
    for (size_t i = 5; i < j.lives.count; i += 10) {
        const struct lifetime *life = &j.lives.items[i];
        assert_int_equal(life->part_ready_ns, s->requests.items[i].handoff - QUARTER);
        assert_int_equal(life->part_read_ns, life->stamp_ns[STAMP_APPLICATION]);
    }
    release(&j);
}

static void retransmits_and_fin_change_nothing(void **state)
{
    (void)state;
    struct joined j;
    struct scenario_options options = plain;
    options.retransmits = options.fin = true;
    build(&j, &options);
    assert_exact(&j);
    assert_true(j.counts.segments_repeated > 10);
    assert_int_equal(j.counts.segments_without_stamp, plain.connections); // the FINs
    release(&j);
}

static void pipelined_requests_share_records(void **state)
{
    (void)state;
    for (int separate = 0; separate < 2; separate++) {
        struct joined j;
        struct scenario_options options = plain;
        options.pipelined = 4;
        options.separate_sends = separate;
        build(&j, &options);
        assert_exact(&j);
        for (size_t i = 0; i < j.lives.count; i++)
            assert_int_equal(j.lives.items[i].sharing, separate ? 1 : 4);
        release(&j);
    }
}

// Of two requests that came together the server's answers change places: as the streams of HTTP/2,
// which are answered in any order.
static void swap_replies(struct scenario *s, size_t i, size_t k)
{
    struct sample *one = &s->samples.items[i], *other = &s->samples.items[k];
    struct scenario_request *first = &s->requests.items[i], *second = &s->requests.items[k];
    const struct sample sample = *one;
    const struct scenario_request request = *first;
    one->reply_begin = other->reply_begin, other->reply_begin = sample.reply_begin;
    one->reply_end = other->reply_end, other->reply_end = sample.reply_end;
    one->reply_tsc = other->reply_tsc, other->reply_tsc = sample.reply_tsc;
    one->rx_ns = other->rx_ns, other->rx_ns = sample.rx_ns;
    first->reply = second->reply, second->reply = request.reply;
    first->server_tx = second->server_tx, second->server_tx = request.server_tx;
    first->client_rx = second->client_rx, second->client_rx = request.client_rx;
    first->read = second->read, second->read = request.read;
}

static void replies_may_come_in_any_order(void **state)
{
    (void)state;
    struct joined j = {0};
    struct scenario_options options = plain;
    options.pipelined = 4;
    options.separate_sends = true;
    scenario_build(&j.scenario, &options);
    for (size_t i = 0; i + 4 <= j.scenario.requests.count; i += 4) {
        swap_replies(&j.scenario, i, i + 3);
        swap_replies(&j.scenario, i + 1, i + 2);
    }
    struct join_input input = input_of(&j);
    join_all(&j, &input);
    assert_exact(&j);
    assert_int_equal(j.counts.calls_unseen + j.counts.transmits_unseen, 0);
    release(&j);
}

// Forgets every other hand-off of a socket.
static void halve_handoffs(struct scenario *s)
{
    uint64_t seen[8] = {0};
    size_t kept = 0;
    for (size_t i = 0; i < s->events.count; i++) {
        struct event *event = &s->events.items[i];
        if (event->kind == EVENT_HANDOFF && seen[event->id - 500]++ % 2 == 0)
            continue;
        s->events.items[kept++] = *event;
    }
    s->events.count = kept;
}

// One hand-off announces what several segments brought, none of it read yet.
static void one_handoff_covers_many(void **state)
{
    (void)state;
    struct joined j = {0};
    scenario_build(&j.scenario, &plain);
    struct scenario *s = &j.scenario;
    halve_handoffs(s);
    for (size_t i = 0; i < s->events.count; i++)
        if (s->events.items[i].kind == EVENT_HANDOFF)
            s->events.items[i].payload.b = 0;
    struct join_input input = input_of(&j);
    join_all(&j, &input);
    unsigned later = 0, without = 0;
    for (size_t i = 0; i < j.lives.count; i++) {
        const struct lifetime *life = &j.lives.items[i];
        without += !lifetime_has(life, STAMP_HANDOFF);
        if (lifetime_has(life, STAMP_HANDOFF) &&
            life->stamp_ns[STAMP_HANDOFF] > s->requests.items[i].handoff)
            later++;
    }
    assert_true(later > plain.requests / 3);
    assert_true(without <= plain.connections);     // at most the last of each stream
    assert_true(j.counts.disorder.violations > 0); // M(a) now lies before "M(h)": said, not hidden
    assert_int_equal(j.counts.handoffs_unseen, 0);
    assert_sums(&j);
    release(&j);
}

// The same records missing, but what is left says that the application had read on: they were lost.
static void lost_handoffs_are_known(void **state)
{
    (void)state;
    struct joined j = {0};
    scenario_build(&j.scenario, &plain);
    halve_handoffs(&j.scenario);
    struct join_input input = input_of(&j);
    join_all(&j, &input);
    unsigned whole = 0, without = 0;
    for (size_t i = 0; i < j.lives.count; i++) {
        const struct lifetime *life = &j.lives.items[i];
        whole += life->state == LIFETIME_WHOLE;
        without += life->state == LIFETIME_NO_HANDOFF;
        if (lifetime_has(life, STAMP_HANDOFF))
            assert_int_equal(life->stamp_ns[STAMP_HANDOFF], j.scenario.requests.items[i].handoff);
    }
    assert_int_equal(whole + without, plain.requests);
    assert_true(whole > 900 && without > 900);
    assert_true(j.counts.handoffs_unseen >= without - plain.connections);
    assert_int_equal(j.counts.disorder.violations, 0);
    release(&j);
}

// Forgets every other transmit, segment and call: what is left is not taken for what is lost.
static void other_lost_records_are_known(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct joined j = {0};
        scenario_build(&j.scenario, &plain);
        struct scenario *s = &j.scenario;
        size_t kept = 0, seen = 0;
        for (size_t i = 0; i < s->events.count; i++)
            if (!(s->events.items[i].kind == (kind == 0 ? EVENT_TRANSMIT : EVENT_SEGMENT) &&
                  kind < 2 && seen++ % 2))
                s->events.items[kept++] = s->events.items[i];
        s->events.count = kept;
        kept = 0;
        for (size_t i = 0; i < s->calls.count; i++)
            if (!(kind == 2 && s->calls.items[i].kind == CALL_RECEIVE && seen++ % 2))
                s->calls.items[kept++] = s->calls.items[i];
        s->calls.count = kept;
        struct join_input input = input_of(&j);
        join_all(&j, &input);
        const enum stamp_kind stamp = kind == 0   ? STAMP_SERVER_TX
                                      : kind == 1 ? STAMP_NIC
                                                  : STAMP_APPLICATION;
        unsigned without = 0;
        for (size_t i = 0; i < j.lives.count; i++) {
            const struct lifetime *life = &j.lives.items[i];
            const struct scenario_request *r = &s->requests.items[i];
            const int64_t truth[] = {r->server_tx, r->nic, r->application};
            without += !lifetime_has(life, stamp);
            if (lifetime_has(life, stamp))
                assert_int_equal(life->stamp_ns[stamp], truth[kind]);
        }
        assert_int_equal(without, plain.requests / 2);
        const uint64_t counted[] = {j.counts.transmits_unseen, j.counts.segments_unseen,
                                    j.counts.calls_unseen};
        assert_true(counted[kind] >= without - plain.connections); // but for the streams' ends
        assert_int_equal(j.counts.disorder.violations, 0);
        release(&j);
    }
}

// A transmit of bytes that TCP had counted as sent may be a late one held back, or a retransmission
// whose first transmission was not recorded: the client's stamp tells them apart.
static void retransmissions_do_not_stand_for_lost_transmits(void **state)
{
    (void)state;
    struct joined j = {0};
    scenario_build(&j.scenario, &plain);
    struct scenario *s = &j.scenario;
    unsigned late = 0, seen = 0;
    for (size_t i = 0; i < s->events.count; i++) {
        struct event *event = &s->events.items[i];
        if (event->kind != EVENT_TRANSMIT)
            continue;
        event->flags = TRANSMIT_AGAIN;
        if (seen++ % 10 == 0) {
            event->time += 50000000;
            late++;
        }
    }
    struct join_input input = input_of(&j);
    join_all(&j, &input);
    unsigned without = 0;
    for (size_t i = 0; i < j.lives.count; i++) {
        const struct lifetime *life = &j.lives.items[i];
        without += !lifetime_has(life, STAMP_SERVER_TX);
        assert_int_equal(life->state, LIFETIME_WHOLE);
        if (lifetime_has(life, STAMP_SERVER_TX))
            assert_int_equal(life->stamp_ns[STAMP_SERVER_TX], s->requests.items[i].server_tx);
    }
    assert_true(without > 0 && without <= late);
    assert_int_equal(j.counts.transmits_unseen, without);
    assert_int_equal(j.counts.disorder.violations, 0);
    release(&j);
}

// Where the kernel delivered nothing, the arrival on a virtual link and TCP's own note of the last
// segment are as good: every stamp is had, at its true time, and what was missing is counted.
static void unseen_requests_are_recovered(void **state)
{
    (void)state;
    struct joined j = {0};
    scenario_build(&j.scenario, &plain);
    struct scenario *s = &j.scenario;
    size_t kept = 0, seen = 0, on_receive_core = 0;
    for (size_t i = 0; i < s->events.count; i++) {
        struct event *event = &s->events.items[i];
        bool message = event->kind == EVENT_SEGMENT || event->kind == EVENT_HANDOFF;
        // Two in a row: a segment and its hand-off.
        if (!message || seen++ / 2 % 2)
            s->events.items[kept++] = *event;
    }
    s->events.count = kept;
    for (size_t i = 0; i < s->requests.count; i++) {
        const struct scenario_request *r = &s->requests.items[i];
        uint64_t end = s->samples.items[i].request_end;
        scenario_stream(s, r->nic - 2000, EVENT_ARRIVAL, 0, r->connection + 500, end, 0);
        scenario_stream(s, r->application, EVENT_TAKEN, 1, r->connection + 500, end,
                        (uint64_t)(r->handoff + MONOTONIC_AHEAD_NS));
    }
    struct join_input input = input_of(&j);
    join_all(&j, &input);
    for (size_t i = 0; i < j.lives.count; i++) {
        const struct lifetime *life = &j.lives.items[i];
        const struct scenario_request *r = &s->requests.items[i];
        assert_int_equal(life->state, LIFETIME_WHOLE);
        assert_int_equal(life->stamp_ns[STAMP_NIC], r->nic - 2000); // earlier than the skb's stamp
        assert_int_equal(life->stamp_ns[STAMP_HANDOFF], r->handoff);
        // the core that received for the connection before, as soon as that is known
        on_receive_core += life->stamp_core[STAMP_HANDOFF] == 1;
        assert_true(life->stamp_core[STAMP_HANDOFF] <= 1);
    }
    assert_true(on_receive_core > plain.requests - 4 * plain.connections);
    assert_true(j.counts.segments_recovered > plain.requests / 3);
    assert_true(j.counts.handoffs_recovered > plain.requests / 3);
    assert_int_equal(j.counts.disorder.violations, 0);
    release(&j);
}

// For a while the capture does without hand-offs and departures: the segment's record has to do,
// and none of these counts as lost.
static void spared_requests_are_whole(void **state)
{
    (void)state;
    struct joined j = {0};
    scenario_build(&j.scenario, &plain);
    struct scenario *s = &j.scenario;
    const int64_t from = s->requests.items[plain.requests / 4].nic,
                  until = s->requests.items[plain.requests / 2].nic;
    size_t kept = 0, within = 0, spared = 0;
    for (size_t i = 0; i < s->events.count; i++) {
        struct event *event = &s->events.items[i];
        const int64_t at = (int64_t)event->time - MONOTONIC_AHEAD_NS;
        bool message = event->kind == EVENT_HANDOFF || event->kind == EVENT_TRANSMIT;
        if (!message || at < from || at >= until)
            s->events.items[kept++] = *event;
    }
    s->events.count = kept;
    scenario_stream(s, until, EVENT_SPARING, 0, 0, 0, 0);
    scenario_stream(s, from, EVENT_SPARING, 1, 0, 0, 0);
    s->events.items[s->events.count - 1].flags = SPARING_BEGINS;
    struct join_input input = input_of(&j);
    join_all(&j, &input);
    for (size_t i = 0; i < j.lives.count; i++) {
        const struct lifetime *life = &j.lives.items[i];
        const struct scenario_request *r = &s->requests.items[i];
        const bool missing = r->handoff >= from && r->handoff < until;
        within += missing;
        assert_int_equal(life->state, LIFETIME_WHOLE);
        assert_true(life->stamp_ns[STAMP_HANDOFF] >= life->stamp_ns[STAMP_NIC]);
        assert_true(life->stamp_ns[STAMP_HANDOFF] <= r->handoff);
        if (!missing)
            assert_int_equal(life->stamp_ns[STAMP_HANDOFF], r->handoff);
        else
            assert_int_equal(life->stamp_core[STAMP_HANDOFF], life->stamp_core[STAMP_NIC]);
        spared += life->fallback >> STAMP_HANDOFF & 1;
    }
    assert_true(within > plain.requests / 8);
    assert_int_equal(spared, within);
    assert_int_equal(j.counts.spared, within);
    assert_int_equal(j.counts.disorder.violations, 0);
    assert_sums(&j);
    release(&j);
}

static void missing_logs_are_reasons(void **state)
{
    (void)state;
    struct joined j = {0};
    scenario_build(&j.scenario, &plain);
    struct join_input input = input_of(&j);
    struct join_input variant = input;
    variant.calls = NULL;
    join_all(&j, &variant);
    for (size_t i = 0; i < j.lives.count; i++)
        assert_int_equal(j.lives.items[i].state, LIFETIME_NO_APPLICATION);
    assert_int_equal(j.counts.connections_without_calls, plain.connections);
    assert_sums(&j);
    array_free(&j.lives);

    variant = input;
    variant.events = NULL;
    variant.event_count = 0;
    join_all(&j, &variant);
    for (size_t i = 0; i < j.lives.count; i++)
        assert_int_equal(j.lives.items[i].state, LIFETIME_WHOLE); // with what the shim has
    assert_int_equal(j.counts.without_arrivals, plain.requests);
    assert_sums(&j);
    array_free(&j.lives);

    variant = input;
    variant.calls = NULL;
    variant.events = NULL;
    variant.event_count = 0;
    join_all(&j, &variant);
    for (size_t i = 0; i < j.lives.count; i++)
        assert_int_equal(j.lives.items[i].state, LIFETIME_NO_CONNECTION);
    assert_sums(&j);
    array_free(&j.lives);

    // Half of the connections the kernel does not know, and one the shim does not.
    variant = input;
    variant.socket_count = 4;
    variant.shim_connection_count = 7;
    join_all(&j, &variant);
    assert_int_equal(j.counts.connections_without_socket, 4);
    assert_int_equal(j.counts.connections_without_calls, 1);
    unsigned states[LIFETIME_STATES] = {0};
    for (size_t i = 0; i < j.lives.count; i++)
        states[j.lives.items[i].state]++;
    assert_true(states[LIFETIME_WHOLE] > 800 && states[LIFETIME_NO_SOCKET] > 700);
    assert_true(states[LIFETIME_NO_CONNECTION] > 100); // the one that neither knows
    assert_int_equal(states[LIFETIME_WHOLE] + states[LIFETIME_NO_SOCKET] +
                         states[LIFETIME_NO_CONNECTION],
                     plain.requests);
    array_free(&j.lives);

    // One that only the shim does not know.
    variant.socket_count = input.socket_count;
    join_all(&j, &variant);
    memset(states, 0, sizeof states);
    for (size_t i = 0; i < j.lives.count; i++)
        states[j.lives.items[i].state]++;
    assert_true(states[LIFETIME_NO_CALLS] > 100);
    assert_int_equal(states[LIFETIME_WHOLE] + states[LIFETIME_NO_CALLS], plain.requests);
    release(&j);
}

static void unanswered_requests_stay_infinite(void **state)
{
    (void)state;
    struct joined j = {0};
    scenario_build(&j.scenario, &plain);
    struct sample *samples = j.scenario.samples.items;
    samples[10].status = SAMPLE_UNSENT;
    samples[10].send_tsc = samples[10].sent_tsc = samples[10].reply_tsc = 0;
    samples[10].tx_ns = samples[10].rx_ns = 0;
    samples[11].status = SAMPLE_TIMED_OUT;
    samples[11].reply_tsc = samples[11].rx_ns = samples[11].reply_begin = samples[11].reply_end = 0;
    samples[12].connection = 4711;
    struct join_input input = input_of(&j);
    join_all(&j, &input);
    assert_int_equal(j.lives.items[10].state, LIFETIME_UNANSWERED);
    assert_true(isinf(j.lives.items[10].latency_ns));
    assert_true(isnan(j.lives.items[10].uncorrected_latency_ns));
    assert_int_equal(j.lives.items[11].state, LIFETIME_UNANSWERED);
    assert_true(isinf(j.lives.items[11].uncorrected_latency_ns));
    assert_true(lifetime_has(&j.lives.items[11], STAMP_NIC)); // it did arrive
    assert_int_equal(j.lives.items[12].state, LIFETIME_NO_CONNECTION);
    assert_int_equal(j.counts.unknown_connections, 1);
    assert_int_equal(j.lives.items[13].state, LIFETIME_WHOLE);
    release(&j);
}

static void a_reused_port_is_told_apart_by_time(void **state)
{
    (void)state;
    struct joined j = {0};
    scenario_build(&j.scenario, &plain);
    // An earlier connection with the same addresses and ports, long before.
    struct connection old = j.scenario.sockets.items[0];
    uint32_t port_owner = old.id;
    old.id = 4000;
    SCENARIO_PUSH(&j.scenario.sockets, old);
    scenario_stream(&j.scenario, 1000, EVENT_SEGMENT, 1, 4000, 1u << 30, 0);
    scenario_stream(&j.scenario, 2000, EVENT_HANDOFF, 1, 4000, 1u << 30, 0);
    assert_int_equal(port_owner, 500 + plain.connections - 1);
    struct join_input input = input_of(&j);
    join_all(&j, &input);
    assert_exact(&j);
    release(&j);
}

// The application reads the connection before of the same ends when the client has opened the next
// one: the cookie, not the time, tells them apart.
static void a_reused_port_is_told_apart_by_cookie(void **state)
{
    (void)state;
    struct joined j = {0};
    struct scenario *s = &j.scenario;
    scenario_build(s, &plain);
    for (size_t i = 0; i < s->sockets.count; i++)
        s->sockets.items[i].cookie = s->shim.items[i].cookie = s->sockets.items[i].id;
    struct connection old = s->shim.items[0];
    uint32_t client = (uint32_t)plain.connections - 1;
    assert_int_equal(old.id, client + 7);
    old.id = 4000;
    old.cookie = 5000;
    SCENARIO_PUSH(&s->shim, old);
    size_t first = 0;
    while (s->requests.items[first].connection != client)
        first++;
    int64_t sent = s->requests.items[first].send;
    scenario_call(s, CALL_RECEIVE, sent + 1, sent + 2, old.id, 1u << 30, 10, 0, 0);
    struct join_input input = input_of(&j);
    join_all(&j, &input);
    assert_exact(&j);
    release(&j);
}

static void hostile_records_do_no_harm(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct joined j = {0};
        struct scenario_options options = plain;
        options.requests = 300;
        options.seed = seed;
        scenario_build(&j.scenario, &options);
        struct scenario *s = &j.scenario;
        struct join_input input = input_of(&j);
        for (int i = 0; i < 200; i++) { // random bytes anywhere
            char *bytes = (char *)s->samples.items;
            bytes[scenario_random(s) % (s->samples.count * sizeof *s->samples.items)] =
                (char)scenario_random(s);
            bytes = (char *)s->events.items;
            bytes[scenario_random(s) % (s->events.count * sizeof *s->events.items)] =
                (char)scenario_random(s);
            bytes = (char *)s->client.items;
            bytes[scenario_random(s) % (s->client.count * sizeof *s->client.items)] =
                (char)scenario_random(s);
        }
        join_all(&j, &input);
        assert_sums(&j);
        release(&j);
    }
}

// M(n) is the NIC's where it stamped the packet that ends the request; the kernel's otherwise.
static void nic_stamps_go_before_the_kernels(void **state)
{
    (void)state;
    struct joined j = {0};
    scenario_build(&j.scenario, &plain);
    struct scenario *s = &j.scenario;
    scenario_nic_stamps(s, 500);
    struct join_input input = input_of(&j);
    join_all(&j, &input);
    assert_exact(&j);
    assert_int_equal(j.counts.nic_stamps, plain.requests);
    for (size_t i = 0; i < j.lives.count; i++)
        assert_true(j.lives.items[i].told_ns > j.lives.items[i].stamp_ns[STAMP_NIC]);

    // Of three: of an earlier packet, of a time to come, a good one.
    size_t seen = 0, good = 0;
    for (size_t i = 0; i < s->events.count; i++) {
        struct event *event = &s->events.items[i];
        if (event->kind != EVENT_STAMPED)
            continue;
        if (seen % 3 == 0)
            event->flags = STAMPED_MERGED;
        if (seen % 3 == 1)
            event->payload.b += 10000000;
        good += seen++ % 3 == 2;
    }
    array_free(&j.lives);
    array_free(&j.holdups);
    join_all(&j, &input);
    assert_int_equal(seen, plain.requests);
    assert_int_equal(j.counts.nic_stamps, good);
    assert_int_equal(j.counts.without_nic_stamp + j.counts.wrong_nic_stamps, seen - good);
    assert_true(j.counts.wrong_nic_stamps > 600 && j.counts.without_nic_stamp > 600);
    for (size_t i = 0; i < j.lives.count; i++) {
        const struct lifetime *life = &j.lives.items[i];
        int64_t truth = s->requests.items[i].nic;
        assert_int_equal(life->state, LIFETIME_WHOLE);
        if (life->told_ns)
            assert_int_equal(life->stamp_ns[STAMP_NIC], truth);
        else
            assert_true(life->stamp_ns[STAMP_NIC] > truth);
    }
    assert_int_equal(j.counts.disorder.violations, 0);
    release(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_run_is_exact),
        cmocka_unit_test(requests_in_two_parts_are_known),
        cmocka_unit_test(requests_in_one_record_are_in_parts_together),
        cmocka_unit_test(what_lies_unread_longest_is_known),
        cmocka_unit_test(replies_in_two_parts_are_known),
        cmocka_unit_test(retransmits_and_fin_change_nothing),
        cmocka_unit_test(unseen_requests_are_recovered),
        cmocka_unit_test(spared_requests_are_whole),
        cmocka_unit_test(nic_stamps_go_before_the_kernels),
        cmocka_unit_test(retransmissions_do_not_stand_for_lost_transmits),
        cmocka_unit_test(pipelined_requests_share_records),
        cmocka_unit_test(replies_may_come_in_any_order),
        cmocka_unit_test(one_handoff_covers_many),
        cmocka_unit_test(lost_handoffs_are_known),
        cmocka_unit_test(other_lost_records_are_known),
        cmocka_unit_test(missing_logs_are_reasons),
        cmocka_unit_test(unanswered_requests_stay_infinite),
        cmocka_unit_test(a_reused_port_is_told_apart_by_time),
        cmocka_unit_test(a_reused_port_is_told_apart_by_cookie),
        cmocka_unit_test(hostile_records_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
