// SPDX-License-Identifier: MIT
//
// The time budget of a server's threads, from events and socket calls of known truth: an event loop
// (thread 7) with its requests, preempted, throttled, faulting and blocked; a worker (8) that gets
// its jobs from the loop; a thread that ends.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analysis/diagnosis/time_budget.h"
#include "analysis/timeline/pauses.h"
#include "analysis/timeline/timeline.h"
#include "tests/analysis/diagnosis/scenario.h"

enum { LOOP = 7, WORKER = 8, HOG = 9, FUTEX = 202, FDATASYNC = 75 };

static struct scenario events;
static struct host_timeline host;
static struct application_calls calls;
static struct busy_time_array busy;
static struct service_order order;
static struct time_budget budget;

static void comes(int64_t at, uint32_t thread, uint8_t flags)
{
    char name[16] = "server";
    if (thread == 0 || thread == HOG)
        snprintf(name, sizeof name, "%s", thread ? "yes" : "swapper");
    scenario_switch(&events, at, 0, thread, name);
    events.events.items[events.events.count - 1].flags = flags;
}

static void sleeps_in(int64_t at, uint32_t thread, uint64_t call)
{
    scenario_event(&events, at, EVENT_BLOCKED, 0, thread)->payload.a = call;
}

static void woken(int64_t at, uint32_t thread)
{
    scenario_event(&events, at, EVENT_WAKING, 0, thread);
}

static void calls_made(uint8_t kind, uint32_t thread, uint32_t batch, int64_t entry, int64_t exit)
{
    struct application_call call = {
        .kind = kind, .thread = thread, .batch = batch, .entry_ns = entry, .exit_ns = exit};
    assert_int_equal(array_push(&calls, call), 0);
}

static const struct thread_budget *budget_of(uint32_t thread)
{
    for (size_t i = 0; i < budget.threads.count; i++)
        if (budget.threads.items[i].thread == thread)
            return &budget.threads.items[i];
    fail_msg("thread %u has no budget", thread);
    return NULL;
}

static void build(int64_t from, int64_t to, bool has_calls, const struct lifetime *lives,
                  size_t count)
{
    static const uint32_t threads[] = {LOOP};
    struct time_source clock = scenario_clock();
    struct error err = {0};
    assert_int_equal(
        host_timeline_build(events.events.items, events.events.count, &clock, &host, &err), 0);
    assert_int_equal(busy_times_build(&busy, &calls, lives, count), 0);
    assert_int_equal(service_order_build(&order, lives, count, &calls, &host), 0);
    const struct time_budget_input in = {.host = &host,
                                         .threads = threads,
                                         .thread_count = 1,
                                         .busy = has_calls ? &busy : NULL,
                                         .order = &order,
                                         .begin_ns = from,
                                         .end_ns = to};
    assert_int_equal(time_budget_build(&budget, &in), 0);
    for (size_t i = 0; i < budget.threads.count; i++) {
        double sum = 0;
        for (int state = 0; state < BUDGET_STATES; state++)
            sum += budget.threads.items[i].ns[state];
        assert_true(fabs(sum - budget.threads.items[i].whole_ns) < 1e-6);
    }
}

static int reset(void **state)
{
    (void)state;
    time_budget_free(&budget);
    host_timeline_free(&host);
    array_free(&events.events);
    array_free(&calls);
    array_free(&busy);
    service_order_free(&order);
    events = (struct scenario){0};
    host = (struct host_timeline){0};
    budget = (struct time_budget){0};
    return 0;
}

#define assert_state(of, state, wanted) assert_int_equal((int64_t)(of)->ns[state], wanted)

// One request: received at 1,100, answered at 1,900. Before and after it the loop works for itself.
static void requests_and_own_work(void **state)
{
    (void)state;
    comes(1000, LOOP, 0);
    calls_made(CALL_WAIT, LOOP, 1, 900, 1050);
    calls_made(CALL_RECEIVE, LOOP, 1, 1100, 1200);
    calls_made(CALL_SEND, LOOP, 1, 1800, 1900);
    comes(2000, 0, SWITCH_WAITS);
    woken(5000, LOOP);
    comes(5300, LOOP, 0);
    comes(5400, 0, SWITCH_WAITS);
    woken(6000, LOOP);
    comes(6000, LOOP, 0);
    build(1000, 6000, true, NULL, 0);
    const struct thread_budget *of = budget_of(LOOP);
    assert_state(of, BUDGET_REQUESTS, 800);
    assert_state(of, BUDGET_OWN, 100 + 100 + 100);
    assert_state(of, BUDGET_IDLE, 3000 + 600);
    assert_state(of, BUDGET_READY, 300);
    assert_int_equal((int64_t)of->busy_ns, 1400);
    assert_string_equal(of->name, "server");
}

// The program says that it works for itself from 1,300 to 1,700, with a request in its hands.
static void own_work_before_the_reply(void **state)
{
    (void)state;
    comes(1000, LOOP, 0);
    calls_made(CALL_RECEIVE, LOOP, 1, 1100, 1200);
    struct event *work = scenario_event(&events, 1700, EVENT_DETOUR, 0, LOOP);
    work->flags = DETOUR_OWN_WORK;
    work->payload.a = 1300 + MONOTONIC_AHEAD_NS;
    calls_made(CALL_SEND, LOOP, 1, 1800, 1900);
    comes(2000, 0, SWITCH_WAITS);
    comes(5000, LOOP, 0);
    build(1000, 2000, true, NULL, 0);
    const struct thread_budget *of = budget_of(LOOP);
    assert_state(of, BUDGET_REQUESTS, 800 - 400);
    assert_state(of, BUDGET_OWN, 100 + 400 + 100);
}

// A loop reads from two connections before it replies to both. In each fourth turn it works for
// itself in between, behind the last that it read, which its place tells alone.
static void own_work_told_by_its_place(void **state)
{
    (void)state;
    enum { TURNS = 80, EVERY = 4, READ = 5000, REPLY = 5000, OWN = 100000 };
    struct lifetime lives[2 * TURNS];
    int64_t at = 1000;
    comes(at, LOOP, 0);
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        uint32_t first = (uint32_t)calls.count + 1;
        calls_made(CALL_WAIT, LOOP, turn, at, at + 100);
        at += 100;
        for (uint32_t i = 0; i < 4; i++) {
            calls_made(i < 2 ? CALL_RECEIVE : CALL_SEND, LOOP, turn, at, at + 1000);
            calls.items[calls.count - 1].connection = i % 2;
            at += 1000 + (i < 2 ? READ : i == 3 ? 0 : REPLY);
            at += i == 1 && turn % EVERY == 0 ? OWN : 0;
        }
        for (uint32_t i = 0; i < 2; i++)
            lives[2 * turn + i] =
                (struct lifetime){.receive_call = first + i, .send_call = first + 2 + i};
    }
    comes(at, 0, SWITCH_WAITS);
    comes(at + 1000, LOOP, 0);
    build(1000, at, true, lives, 2 * TURNS);
    const struct thread_budget *of = budget_of(LOOP);
    assert_state(of, BUDGET_OWN, TURNS * 100 + TURNS / EVERY * OWN);
    assert_state(of, BUDGET_REQUESTS, TURNS * (4 * 1000 + 2 * READ + REPLY));
}

// Preempted by a hog, then by a quota; both are not the hog's doing while it sleeps.
static void ready_and_throttled(void **state)
{
    (void)state;
    comes(1000, LOOP, 0);
    comes(2000, HOG, SWITCH_PREEMPTED);
    comes(3000, LOOP, SWITCH_PREEMPTED);
    comes(4000, 0, SWITCH_PREEMPTED | SWITCH_THROTTLED);
    comes(9000, LOOP, 0);
    comes(9500, HOG, SWITCH_WAITS);
    comes(10000, 0, 0);
    build(1000, 10000, false, NULL, 0);
    const struct thread_budget *of = budget_of(LOOP);
    assert_int_equal(budget.threads.count, 1); // not the hog's
    assert_state(of, BUDGET_RUNS, 2500);
    assert_state(of, BUDGET_READY, 1000);
    assert_state(of, BUDGET_THROTTLED, 5000);
    assert_state(of, BUDGET_IDLE, 500);
}

// Swap: the thread sleeps in page faults for most of the time, with no request ever answered.
static void page_faults(void **state)
{
    (void)state;
    enum { TIMES = 10, CYCLE = 100000, FAULT = 49000 };
    comes(1000, LOOP, 0);
    for (int64_t at = 1000; at < 1000 + TIMES * CYCLE; at += CYCLE) {
        scenario_event(&events, at + CYCLE - FAULT, EVENT_PAGE_FAULT, 0, LOOP);
        sleeps_in(at + CYCLE - FAULT + 500, LOOP, (uint64_t)-1);
        comes(at + CYCLE - FAULT + 500, 0, 0);
        woken(at + CYCLE, LOOP);
        comes(at + CYCLE, LOOP, 0);
        scenario_event(&events, at + CYCLE, EVENT_FAULT_END, 0, LOOP);
    }
    build(1000, 1000 + TIMES * CYCLE, false, NULL, 0);
    const struct thread_budget *of = budget_of(LOOP);
    const int64_t returns = (TIMES - 1) * PAGE_FAULT_RETURN_NS;
    assert_state(of, BUDGET_FAULTS, TIMES * FAULT + returns);
    assert_state(of, BUDGET_RUNS, TIMES * (CYCLE - FAULT) - returns);
    struct budget_part parts[4];
    assert_int_equal(thread_budget_parts(of, 0.005, parts, 4), 2);
    assert_string_equal(parts[1].name, "page faults");
}

// An event loop that waits for a lock or a disk is blocked, a worker between jobs is not; with a
// job it is, and while it has one its loop is not held responsible.
static void blocked_and_idle_workers(void **state)
{
    (void)state;
    comes(1000, LOOP, 0);
    calls_made(CALL_RECEIVE, LOOP, 1, 1100, 1200);
    sleeps_in(1500, LOOP, FDATASYNC);
    comes(1500, 0, 0);
    woken(2500, LOOP);
    comes(2500, LOOP, 0);
    calls_made(CALL_SEND, LOOP, 1, 2600, 2700);
    comes(3000, WORKER, SWITCH_WAITS);
    sleeps_in(3100, WORKER, FUTEX); // no job
    comes(3100, 0, 0);
    woken(4000, WORKER);
    comes(4000, WORKER, 0);
    sleeps_in(4500, WORKER, FUTEX); // a lock, with the job that the loop took at 3,900
    comes(4500, LOOP, 0);
    calls_made(CALL_RECEIVE, LOOP, 2, 4550, 4560);
    comes(4800, 0, SWITCH_WAITS);
    woken(5000, WORKER);
    comes(5000, WORKER, 0);
    calls_made(CALL_SEND, WORKER, 0, 5100, 5200);
    comes(5500, 0, SWITCH_EXITED);
    comes(9000, LOOP, 0);
    const struct lifetime life = {.receive_call = 0, .send_call = 1},
                          handed = {.receive_call = 2, .send_call = 3};
    calls.items[2].entry_ns = 3900, calls.items[2].exit_ns = 3950;
    build(1000, 9000, true, (const struct lifetime[]){life, handed}, 2);
    const struct thread_budget *loop = budget_of(LOOP), *worker = budget_of(WORKER);
    assert_state(loop, BUDGET_BLOCKED, 1000);
    assert_int_equal(loop->waits.items[0].pause, FDATASYNC);
    assert_int_equal(loop->waits.items[0].times, 1);
    assert_state(loop, BUDGET_IDLE, 1500 + 4200);
    assert_state(worker, BUDGET_IDLE, 900);
    assert_state(worker, BUDGET_BLOCKED, 500);
    assert_state(worker, BUDGET_REQUESTS, 500 + 200);
    assert_state(worker, BUDGET_OWN, 100 + 300);
    assert_int_equal((int64_t)worker->whole_ns, 5500 - 3000); // from when it was seen to its end
    assert_state(worker, BUDGET_UNKNOWN, 0);
    assert_int_equal(budget.names.count, 1);
    assert_int_equal(budget.names.items[0].threads, 2);
    assert_int_equal((int64_t)budget.names.items[0].ns[BUDGET_BLOCKED], 1500);
}

// A proxy: back in its event loop with the request unfinished.
static void awaits_a_backend(void **state)
{
    (void)state;
    comes(1000, LOOP, 0);
    calls_made(CALL_RECEIVE, LOOP, 1, 1100, 1200);
    comes(2000, 0, SWITCH_WAITS);
    woken(7000, LOOP);
    comes(7000, LOOP, 0);
    calls_made(CALL_SEND, LOOP, 2, 7100, 7200);
    comes(8000, 0, SWITCH_WAITS);
    woken(9000, LOOP);
    comes(9000, LOOP, 0);
    const struct lifetime life = {.receive_call = 0, .send_call = 1};
    build(1000, 9000, true, &life, 1);
    const struct thread_budget *of = budget_of(LOOP);
    assert_state(of, BUDGET_AWAITS, 5000);
    assert_state(of, BUDGET_IDLE, 1000);
    assert_state(of, BUDGET_REQUESTS, 900 + 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(requests_and_own_work, reset),
        cmocka_unit_test_teardown(own_work_before_the_reply, reset),
        cmocka_unit_test_teardown(own_work_told_by_its_place, reset),
        cmocka_unit_test_teardown(ready_and_throttled, reset),
        cmocka_unit_test_teardown(page_faults, reset),
        cmocka_unit_test_teardown(blocked_and_idle_workers, reset),
        cmocka_unit_test_teardown(awaits_a_backend, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
