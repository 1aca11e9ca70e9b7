// SPDX-License-Identifier: MIT
#include "loadgen/engine/engine_worker_run.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "base/tsc.h"
#include "loadgen/client/client_datagram.h"
#include "loadgen/client/client_socket.h"
#include "loadgen/client/client_streams.h"
#include "loadgen/client/connection_counts.h"
#include "loadgen/engine/engine_worker_places.h"
#include "loadgen/engine/engine_worker_send.h"
#include "loadgen/engine/engine_worker_stamps.h"

enum {
    EVENTS_AT_ONCE = 64, // of one round
    NEAR_NS = 2000,      // a request due this soon: spin instead of polling
    QUIET_NS = 30000,    // nothing due for this long: there is time to read TX stamps
    LOOK_NS = 1000000,   // so often one connection in LOOKED_AT is looked at without an event
    LOOKED_AT = 1000,
    STAMP_PATIENCE_NS = 1000000000, // after the send call: then a sample goes without its TX stamp
    RELEASED_AT_ONCE = 256,         // samples, in a round: more than it sends
    GAP_NS = 100000,                // that a closed loop leaves replies unread, at most ...
    GAPS_OF_LATENCY = 16,           // ... and of what a request takes
    NAP_NS = 10000,      // what is left of that, at least, for a thread that sleeps to set a timer
    LONG_GAP_NS = 50000, // the same for one that spins, whose timer is early by AWAKE_NS: one that
    AWAKE_NS = 12000,    // is late costs more of the rate than it saves where gaps are shorter
    LAST_READ_NS = 20000000, // of the processor's time, at most, for what has come at the end
    EMPTY_ROUNDS = 201,      // rounds timed before the start, to know the cost of an idle one ...
    EMPTY_ROUNDS_NS = 10000000, // ... for no longer than this
};

// --- reading -------------------------------------------------------------------------------------

// Sometimes replies wait on many connections; a request that is due waits for at most one of them
// to be read.
static void take_readiness(struct engine_worker *worker, struct client_connection *connection,
                           uint32_t events)
{
    connection_ready(connection, events);
    worker->readinesses++;
    engine_worker_list_room(worker, connection);
    engine_worker_send_between_reads(worker, connection);
    engine_worker_end_opening(worker, connection);
}

void engine_worker_read_again(struct engine_worker *worker, struct client_connection *connection)
{
    if (connection->unread)
        return;
    connection_queue_push(&worker->unread, connection);
    connection->unread = true;
}

void engine_worker_open_again(struct engine_worker *worker, struct client_connection *connection)
{
    if (connection->reopening)
        return;
    connection_queue_push(&worker->reopening, connection);
    connection->reopening = true;
}

// Before a round's events are asked for, so that each of them is of the socket that there is now.
static void open_ended(struct engine_worker *worker)
{
    for (uint32_t left = worker->reopening.count; left; left--) {
        struct client_connection *connection = connection_queue_pop(&worker->reopening);
        connection->reopening = false;
        if (connection->state == CONNECTION_PAUSING)
            connection_retry(-1, 0, connection);
    }
}

static bool is_stopped(const struct engine_worker *worker)
{
    return atomic_load_explicit(&worker->shared->stop, memory_order_relaxed);
}

// How long a round lasts depends on how much the servers send: neither a person nor the load's end
// waits for that.
static bool is_cut_off(const struct engine_worker *worker)
{
    return is_stopped(worker) || (worker->deadline_tsc && tsc_now() > worker->deadline_tsc);
}

// A connection may end meanwhile; only its timer opens it again, which is not looked at here.
static void take_events(struct engine_worker *worker, const struct epoll_event *events, int count)
{
    for (int i = 0; i < count && !is_cut_off(worker); i++)
        take_readiness(worker, events[i].data.ptr, events[i].events);
    for (uint32_t left = worker->unread.count; left && !is_cut_off(worker); left--) {
        struct client_connection *connection = connection_queue_pop(&worker->unread);
        connection->unread = false;
        if (connection_is_open(connection))
            take_readiness(worker, connection, EPOLLIN);
    }
}

void engine_worker_poll(struct engine_worker *worker)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    open_ended(worker);
    take_events(worker, events, epoll_wait(worker->context.epoll_fd, events, EVENTS_AT_ONCE, 0));
}

static void run_timers(struct engine_worker *worker)
{
    event_base_loop(worker->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

// Of the time that a thread which sleeps has waited it was asleep for as long as the processor's
// clock does not say that it worked. And of any that looks later than it was to, it stood still for
// as long. That clock costs a system call: it is read now and then, not around each wait, whose own
// work counts as waiting until then.
static void note_time(struct engine_worker *worker)
{
    const uint64_t now = tsc_now(), cpu_ns = (uint64_t)clock_now_ns(CLOCK_THREAD_CPUTIME_ID),
                   worked = engine_ticks(worker->shared, cpu_ns - worker->noted_cpu_ns),
                   passed = now - worker->noted_tsc,
                   without = passed > worked ? passed - worked : 0,
                   late = now > worker->look_tsc ? now - worker->look_tsc : 0,
                   still = late < without ? late : without;
    standstill_note(&worker->standstill, (struct standstill){still, now - still});
    worker->asleep_tsc += worker->waited_tsc < without ? worker->waited_tsc : without;
    worker->waited_tsc = 0;
    worker->noted_tsc = now;
    worker->noted_cpu_ns = cpu_ns;
}

// For the live view. What waits for a connection with room is the server's debt.
static void show_debt(struct engine_worker *worker, uint64_t now)
{
    struct live_counters *live = worker->context.live;
    const bool room = worker->room.count && !worker->shared->settings->closed_loop;
    const uint64_t due = room ? engine_worker_next_due(worker) : UINT64_MAX;
    live_set(&live->behind, due && due < now ? now - due : 0);
    live_set(&live->idle, worker->spin_tsc + worker->asleep_tsc);
    live_set(&live->asleep, worker->asleep_tsc);
}

// Each connection is looked at once a second, or more often where they are few.
static void look_in_turn(struct engine_worker *worker, uint64_t now)
{
    if (now < worker->look_tsc)
        return;
    note_time(worker);
    worker->look_tsc = now + engine_ticks(worker->shared, LOOK_NS);
    run_timers(worker);
    if (worker->context.live)
        show_debt(worker, now);
    if (worker->shared->settings->stamps_may_thin)
        engine_worker_thin_stamps(worker, now);
    if (worker->lanes)
        lanes_look(worker->lanes, now);
    for (uint32_t left = worker->connection_count / LOOKED_AT + 1; left; left--) {
        worker->looked = worker->looked + 1 < worker->connection_count ? worker->looked + 1 : 0;
        connection_look(&worker->connections[worker->looked]);
        engine_worker_list_room(worker, &worker->connections[worker->looked]);
    }
}

// --- samples that nothing changes any more -------------------------------------------------------

// A request in flight may be answered, one that is not sent may move; and a TX stamp may come later
// than the reply, for which it has time as long as there is room. It may have come and not be read,
// too, where this thread had no core meanwhile.
static bool is_final(struct engine_worker *worker, const struct sample *sample, uint64_t now)
{
    if (sample->status == SAMPLE_UNSENT || sample->status == SAMPLE_TIMED_OUT)
        return false;
    if (!worker->context.kernel_stamps || !sample_lacks_stamp(sample))
        return true;
    if (worker->next - worker->final <= worker->mask / 2 &&
        now <= sample->sent_tsc + engine_ticks(worker->shared, STAMP_PATIENCE_NS))
        return false;
    if (worker->stamps_taken_tsc <= sample->sent_tsc)
        engine_worker_take_all_stamps(worker, now);
    return true;
}

// Says so of them, a few at a time. In a ring their places are given away.
static void release_samples(struct engine_worker *worker, uint64_t now)
{
    uint64_t *final = &worker->final, begin = *final;
    while (*final < worker->next && *final - begin < RELEASED_AT_ONCE &&
           is_final(worker, engine_worker_sample(worker, *final), now))
        ++*final;
    if (*final == begin)
        return;
    if (worker->ring)
        worker->context.final = *final;
    atomic_store_explicit(&worker->sent->final, *final, memory_order_release);
}

// What an interrupted load never offered is for sample_drain_end() to say.
static void release_rest(struct engine_worker *worker)
{
    if (!worker->sent || worker->end == ENGINE_INTERRUPTED)
        return;
    if (!worker->ring)
        atomic_store_explicit(&worker->sent->final, worker->sample_count, memory_order_release);
    atomic_store_explicit(&worker->sent->ended, true, memory_order_release);
}

// --- the load ------------------------------------------------------------------------------------

// A round that found nothing to do is idle time, up to the duration of a typical idle round. If it
// took longer, something else happened in it (an interrupt, the kernel receiving a reply), and only
// the typical duration counts as idle.
static void note_idle(struct engine_worker *worker, uint64_t spent, uint64_t empty)
{
    worker->spin_tsc += spent <= 2 * empty ? spent : empty;
}

static int compare_tsc(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return order_of(*x, *y);
}

// The median cost of one of EMPTY_ROUNDS rounds, or of fewer: a server that sends before it is
// asked makes rounds that are not empty, and long.
static uint64_t median_round(struct engine_worker *worker, void (*round)(struct engine_worker *))
{
    uint64_t costs[EMPTY_ROUNDS], begin = tsc_now(), now = begin;
    const uint64_t most = engine_ticks(worker->shared, EMPTY_ROUNDS_NS);
    unsigned count = 0;
    while (count < EMPTY_ROUNDS && now - begin <= most) {
        round(worker);
        uint64_t after = tsc_now();
        costs[count++] = after - now;
        now = after;
    }
    qsort(costs, count, sizeof *costs, compare_tsc);
    return costs[count / 2];
}

static void pause_once(struct engine_worker *worker)
{
    (void)worker;
    _mm_pause();
}

// Measures what an idle round costs: medians, of rounds before the start.
static void measure_empty_rounds(struct engine_worker *worker)
{
    worker->empty_poll_tsc = median_round(worker, engine_worker_poll);
    worker->empty_pause_tsc = median_round(worker, pause_once);
}

static void wait_for_events(struct engine_worker *worker, const struct timespec *wait)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    const int epoll_fd = worker->context.epoll_fd;
    open_ended(worker);
    const uint64_t before = tsc_now();
    int count = epoll_pwait2(epoll_fd, events, EVENTS_AT_ONCE, wait, NULL);
    if (count < 0 && errno == ENOSYS) // before Linux 5.11 to the millisecond, rather too early
        count = epoll_wait(epoll_fd, events, EVENTS_AT_ONCE, (int)(wait->tv_nsec / 1000000));
    worker->waited_tsc += tsc_now() - before;
    take_events(worker, events, count);
}

// Waits for a reply, for the next request's time, or for 10 ms, so that the end is noticed.
static void sleep_until(struct engine_worker *worker, uint64_t now, uint64_t due)
{
    const long longest_ns = 10000000;
    double ns = (double)(due - now) / worker->shared->ticks_per_ns;
    const struct timespec wait = {.tv_nsec = ns < (double)longest_ns ? (long)ns : longest_ns};
    if (worker->unread.count || due <= now)
        engine_worker_poll(worker);
    else
        wait_for_events(worker, &wait);
    worker->context.progress = true; // note_time() says which part of it was idle
}

// True when the load is over, with the reason.
static bool is_over(struct engine_worker *worker, uint64_t now)
{
    const struct connection_counts *counts = &worker->counts;
    if (is_stopped(worker))
        worker->end = ENGINE_INTERRUPTED;
    else if (counts->given_up == worker->connection_count && !worker->lanes)
        worker->end = ENGINE_BROKEN;
    else if (!engine_worker_has_more(worker) && counts->in_flight == 0)
        worker->end = ENGINE_COMPLETE;
    else if (now > worker->deadline_tsc)
        worker->end = ENGINE_TIMED_OUT;
    else
        return false;
    return true;
}

uint64_t engine_worker_turn(struct engine_worker *worker, uint64_t now)
{
    uint64_t due = engine_worker_next_due(worker), empty = worker->empty_poll_tsc;
    worker->context.progress = false;
    if (due <= now) {
        engine_worker_send_due(worker, now);
        engine_worker_poll(worker);
    } else if (due - now <= engine_ticks(worker->shared, NEAR_NS)) {
        _mm_pause();
        empty = worker->empty_pause_tsc;
    } else if (worker->shared->settings->sleeps) {
        sleep_until(worker, now, due);
    } else {
        engine_worker_poll(worker);
        if (!worker->context.progress && due - now > engine_ticks(worker->shared, QUIET_NS))
            engine_worker_take_stamps_in_turn(worker, now, false);
    }
    look_in_turn(worker, now);
    if (worker->sent)
        release_samples(worker, now);
    uint64_t after = tsc_now();
    if (!worker->context.progress)
        note_idle(worker, after - now, empty);
    return after;
}

static void run_loop(struct engine_worker *worker, uint64_t start_tsc)
{
    const struct engine_settings *settings = worker->shared->settings;
    worker->deadline_tsc = start_tsc + engine_ticks(worker->shared, settings->duration_ns) +
                           engine_ticks(worker->shared, settings->timeout_ns);
    for (uint64_t now = tsc_now(); !is_over(worker, now);)
        now = engine_worker_turn(worker, now);
}

// When a closed loop has something to do though no reply comes: its end, or a user has thought.
static uint64_t next_of_closed_loop(const struct engine_worker *worker, uint64_t now, uint64_t end)
{
    const struct think_queue *thinking = &worker->thinking;
    const uint64_t next = now < end ? end : UINT64_MAX;
    return thinking->count && thinking->items[0]->wake_tsc < next ? thinking->items[0]->wake_tsc
                                                                  : next;
}

// How long a deep closed loop may leave replies unread: by Little's law, a part of what a request
// takes, in which the server does not run out of others. 0 where a connection has more to do than
// that. A reply waits half of it on average, which only latency without the kernel's stamps
// contains.
static uint64_t reading_gap(const struct engine_worker *worker, uint64_t start_tsc, uint64_t now)
{
    const uint64_t in_flight = worker->counts.in_flight,
                   most = engine_ticks(worker->shared, GAP_NS);
    if (worker->shared->depth == 1 || worker->unread.count || worker->next <= in_flight ||
        worker->context.open < worker->connection_count)
        return 0;
    const double answered = (double)(worker->next - in_flight);
    const double gap = (double)(now - start_tsc) * (double)in_flight / answered / GAPS_OF_LATENCY;
    return gap < (double)most ? (uint64_t)gap : most;
}

// By its own timer a thread wakes without the server, whose core pays for each wake-up by a reply.
static void nap(struct engine_worker *worker, uint64_t length)
{
    const uint64_t before = tsc_now();
    const double ns = (double)length / worker->shared->ticks_per_ns;
    nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
    worker->waited_tsc += tsc_now() - before;
}

// Until `gap` is over since sockets were last asked. Read one by one, each reply is acknowledged
// and followed by a request of its own, which a server at its end pays for.
static void wait_for_more_replies(struct engine_worker *worker, uint64_t polled, uint64_t gap)
{
    const struct engine_shared *shared = worker->shared;
    const uint64_t before = tsc_now(), end = polled + gap;
    if (before >= end)
        return;
    if (shared->settings->sleeps) {
        if (end - before >= engine_ticks(shared, NAP_NS))
            nap(worker, end - before);
        return;
    }
    if (end - before >= engine_ticks(shared, LONG_GAP_NS))
        nap(worker, end - before - engine_ticks(shared, AWAKE_NS));
    const uint64_t awake = tsc_now();
    while (tsc_now() < end)
        _mm_pause();
    if (awake < end)
        worker->spin_tsc += end - awake; // not longer, though others may have had the core
}

// A server that answers all of a connection's requests at once, as Redis, is better off with many
// such connections: what it has answered is read. Until it has answered the next one there is
// nothing to read, and most of that is slept through where it is long.
static void sleep_until_next_replies(struct engine_worker *worker, uint64_t passed, uint64_t gap)
{
    const uint64_t awake = engine_ticks(worker->shared, AWAKE_NS),
                   pause = passed / (worker->readinesses ? worker->readinesses : 1),
                   most = pause - pause / 4, asleep = most < gap ? most : gap;
    if (!worker->shared->settings->sleeps && asleep >= 2 * awake)
        nap(worker, asleep - awake);
}

static void put_reading_off(struct engine_worker *worker, uint64_t start_tsc, uint64_t now,
                            uint64_t polled)
{
    const uint64_t gap = reading_gap(worker, start_tsc, now);
    const double answered = (double)(worker->next - worker->counts.in_flight);
    if (gap == 0)
        return;
    if (2 * answered >= (double)worker->shared->depth * (double)worker->readinesses)
        sleep_until_next_replies(worker, now - start_tsc, gap);
    else
        wait_for_more_replies(worker, polled, gap);
}

static void run_closed_loop(struct engine_worker *worker, uint64_t start_tsc)
{
    const struct engine_settings *settings = worker->shared->settings;
    uint64_t end = start_tsc + engine_ticks(worker->shared, settings->duration_ns);
    uint64_t now;
    uint64_t polled = 0;
    worker->deadline_tsc = end + engine_ticks(worker->shared, settings->timeout_ns);
    while ((now = tsc_now()) < start_tsc)
        _mm_pause();
    if (settings->think)
        engine_worker_begin_thinking(worker, start_tsc);
    while (!is_over(worker, now)) {
        worker->context.progress = false;
        if (now >= end)
            worker->sample_count = worker->next; // no requests are left
        look_in_turn(worker, now);
        engine_worker_fill_connections(worker, now);
        worker->requests_spent |= now < end && worker->next == worker->sample_count;
        if (!settings->think)
            put_reading_off(worker, start_tsc, now, polled);
        polled = tsc_now();
        if (settings->sleeps)
            sleep_until(worker, polled, next_of_closed_loop(worker, polled, end));
        else
            engine_worker_poll(worker);
        if (worker->sent)
            release_samples(worker, now);
        uint64_t after = tsc_now();
        if (!worker->context.progress)
            note_idle(worker, after - now, worker->empty_poll_tsc);
        now = after;
    }
    worker->sample_count = worker->next;
}

// The time is over. Had this thread no core meanwhile, replies may have come that it has not read:
// these are no timeouts. A server that sends without end is not listened to for long.
static void read_last(struct engine_worker *worker)
{
    const uint64_t until = (uint64_t)clock_now_ns(CLOCK_THREAD_CPUTIME_ID) + LAST_READ_NS;
    for (uint32_t i = 0; i < worker->connection_count && worker->counts.in_flight &&
                         (uint64_t)clock_now_ns(CLOCK_THREAD_CPUTIME_ID) < until;
         i++)
        if (connection_is_open(&worker->connections[i]))
            connection_ready(&worker->connections[i], EPOLLIN);
    if (!engine_worker_has_more(worker) && worker->counts.in_flight == 0)
        worker->end = ENGINE_COMPLETE;
}

// Of a closed loop, which did not know how many it would need.
static void return_unused_samples(struct engine_worker *worker)
{
    size_t bytes = (worker->sample_count + 1) * sizeof *worker->samples;
    if (bytes < worker->sample_bytes &&
        mremap(worker->samples, worker->sample_bytes, bytes, 0) == worker->samples)
        worker->sample_bytes = bytes;
}

void engine_worker_run(struct engine_worker *worker, uint64_t start_tsc)
{
    const uint64_t awake = engine_ticks(worker->shared, 2000000);
    bool closed = worker->shared->settings->closed_loop;
    if (worker->ring)
        worker->ready = atomic_load(&worker->ring->drawn.ready);
    for (size_t i = 0; i < worker->ready; i++)
        worker->samples[i].intended_tsc += start_tsc;
    while (tsc_now() + awake < start_tsc && !atomic_load(&worker->shared->stop)) {
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
        engine_worker_poll(worker);
        run_timers(worker);
    }
    measure_empty_rounds(worker);
    uint64_t ready = tsc_now();
    worker->late_tsc = ready > start_tsc ? ready - start_tsc : 0;
    clockid_t core_clock;
    if (worker->context.live && pthread_getcpuclockid(pthread_self(), &core_clock) == 0)
        live_set(&worker->context.live->core_clock, (uint32_t)core_clock);
    uint64_t cpu_ns = (uint64_t)clock_now_ns(CLOCK_THREAD_CPUTIME_ID);
    worker->noted_tsc = ready;
    worker->noted_cpu_ns = cpu_ns;
    worker->look_tsc = ready > start_tsc ? ready : start_tsc;
    if (closed)
        run_closed_loop(worker, start_tsc);
    else
        run_loop(worker, start_tsc);
    if (worker->end == ENGINE_TIMED_OUT)
        read_last(worker);
    worker->cpu_ns = (uint64_t)clock_now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
    if (worker->context.live)
        live_set(&worker->context.live->core_clock, 0);
    // Asleep counts as spinning, in the processor's time, too: what is left is what requests cost.
    note_time(worker);
    worker->spin_tsc += worker->asleep_tsc;
    worker->cpu_ns += (uint64_t)((double)worker->asleep_tsc / worker->shared->ticks_per_ns);
    worker->end_tsc = tsc_now();
    engine_worker_take_last_stamps(worker);
    const bool waited = worker->end == ENGINE_TIMED_OUT || !worker->next;
    for (uint32_t i = 0; waited && i < worker->connection_count; i++)
        if (worker->connections[i].streams)
            client_streams_note_wait(&worker->connections[i]);
    for (uint32_t i = 0; worker->context.datagrams && i < worker->connection_count; i++)
        datagram_take_rest(&worker->connections[i]);
    engine_worker_forget_again(worker);
    if (worker->lanes)
        lanes_end(worker->lanes, worker->fills_begin);
    if (worker->totals)
        engine_worker_take_places(worker);
    else if (closed)
        return_unused_samples(worker);
    release_rest(worker);
    for (uint32_t i = 0; worker->context.datagrams && i < worker->connection_count; i++)
        if (worker->connections[i].socket_fd >= 0)
            connection_note_overruns(&worker->connections[i]);
}
