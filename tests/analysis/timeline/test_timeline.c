// SPDX-License-Identifier: MIT
//
// Timelines from events: nesting, lost records, the edges of a capture, and the tiling of
// intervals.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "analysis/timeline/other_recordings.h"
#include "analysis/timeline/timeline.h"
#include "tests/analysis/diagnosis/scenario.h"

struct fixture {
    struct scenario scenario; // only its events are used
    struct host_timeline host;
};

static void build(struct fixture *f)
{
    struct time_source clock = scenario_clock();
    struct error err = {0};
    assert_int_equal(host_timeline_build(f->scenario.events.items, f->scenario.events.count, &clock,
                                         &f->host, &err),
                     0);
}

static void release(struct fixture *f)
{
    scenario_free(&f->scenario);
    host_timeline_free(&f->host);
}

static const struct span *span_at(const struct fixture *f, size_t index)
{
    assert_true(index < f->host.cores.items[0].spans.count);
    return &f->host.cores.items[0].spans.items[index];
}

static void assert_span(const struct fixture *f, size_t index, enum span_kind kind, int64_t begin,
                        int64_t end, unsigned depth, const char *name)
{
    const struct span *span = span_at(f, index);
    assert_int_equal(span->kind, kind);
    assert_int_equal(span->begin_ns, begin);
    assert_int_equal(span->end_ns, end);
    assert_int_equal(span->depth, depth);
    assert_string_equal(f->host.names.items[span->name], name);
}

// Every span lies in the one it is nested in; spans are ordered; siblings do not overlap.
static void assert_well_formed(const struct host_timeline *host)
{
    for (size_t c = 0; c < host->cores.count; c++) {
        const struct core_timeline *core = &host->cores.items[c];
        const struct span *open[64] = {0};
        for (size_t i = 0; i < core->spans.count; i++) {
            const struct span *span = &core->spans.items[i];
            assert_true(span->end_ns >= span->begin_ns);
            assert_true(i == 0 || core->spans.items[i - 1].begin_ns <= span->begin_ns);
            assert_true(span->depth < 63);
            if (span->depth > 0) {
                const struct span *parent = open[span->depth - 1];
                assert_non_null(parent);
                assert_true(span->begin_ns >= parent->begin_ns && span->end_ns <= parent->end_ns);
            }
            if (open[span->depth])
                assert_true(open[span->depth]->end_ns <= span->begin_ns);
            for (size_t d = span->depth + 1u; d < 64; d++)
                open[d] = NULL;
            open[span->depth] = span;
        }
    }
}

static void interrupts_nest_in_tasks(void **state)
{
    (void)state;
    struct fixture f = {0};
    struct scenario *s = &f.scenario;
    scenario_switch(s, 1000, 2, 0, "swapper/2");
    scenario_event(s, 1100, EVENT_IRQ_ENTRY, 2, 27)->payload.text[0] = 'n';
    scenario_event(s, 1150, EVENT_IRQ_EXIT, 2, 27);
    scenario_event(s, 1150, EVENT_SOFTIRQ_ENTRY, 2, 3);
    scenario_event(s, 1160, EVENT_VECTOR_ENTRY, 2, VECTOR_LOCAL_TIMER);
    scenario_event(s, 1170, EVENT_VECTOR_EXIT, 2, VECTOR_LOCAL_TIMER);
    scenario_event(s, 1200, EVENT_SOFTIRQ_EXIT, 2, 3);
    scenario_switch(s, 1300, 2, 5, "memcached");
    scenario_switch(s, 1400, 2, 0, "swapper/2");
    scenario_switch(s, 1500, 2, 5, "memcached");
    build(&f);
    assert_int_equal(f.host.unpaired, 0);
    assert_int_equal(f.host.lost_intervals, 0);
    assert_span(&f, 1, SPAN_IDLE, 1000, 1300, 0, "idle");
    assert_span(&f, 2, SPAN_IRQ, 1100, 1150, 1, "n");
    assert_span(&f, 3, SPAN_SOFTIRQ, 1150, 1200, 1, "NET_RX");
    assert_span(&f, 4, SPAN_VECTOR, 1160, 1170, 2, "local timer");
    assert_span(&f, 5, SPAN_TASK, 1300, 1400, 0, "memcached");
    assert_int_equal(span_at(&f, 5)->name, span_at(&f, 7)->name); // one name, one number
    assert_well_formed(&f.host);
    size_t count;
    const struct thread_stint *stints = host_timeline_stints(&f.host, 5, &count);
    assert_int_equal(count, 2);
    assert_int_equal(stints[0].begin_ns, 1300);
    assert_int_equal(stints[0].end_ns, 1400);
    assert_null(host_timeline_stints(&f.host, 6, &count));
    assert_null(host_timeline_core(&f.host, 0));
    assert_non_null(host_timeline_core(&f.host, 2));
    release(&f);
}

static void capture_begins_in_the_middle(void **state)
{
    (void)state;
    struct fixture f = {0};
    struct scenario *s = &f.scenario;
    scenario_event(s, 1000, EVENT_SOFTIRQ_EXIT, 0, 3); // entered before the capture
    scenario_event(s, 1500, EVENT_VECTOR_ENTRY, 0, VECTOR_RESCHEDULE);
    scenario_event(s, 1600, EVENT_VECTOR_EXIT, 0, VECTOR_RESCHEDULE);
    scenario_switch(s, 2000, 0, 5, "");
    scenario_event(s, 2100, EVENT_SOFTIRQ_ENTRY, 0, 1); // still open at the end
    build(&f);
    assert_int_equal(f.host.unpaired, 0);
    assert_int_equal(f.host.lost_intervals, 0);
    assert_span(&f, 0, SPAN_UNKNOWN, 1000, 2000, 0, "before the first switch");
    assert_span(&f, 1, SPAN_VECTOR, 1500, 1600, 1, "reschedule");
    assert_span(&f, 2, SPAN_TASK, 2000, 2100, 0, "thread 5");
    assert_span(&f, 3, SPAN_SOFTIRQ, 2100, 2100, 1, "TIMER");
    assert_well_formed(&f.host);
    release(&f);
}

static void lost_records_become_unknown_time(void **state)
{
    (void)state;
    struct fixture f = {0};
    struct scenario *s = &f.scenario;
    scenario_switch(s, 1000, 0, 5, "a");
    scenario_event(s, 1100, EVENT_SOFTIRQ_EXIT, 0, 3);  // its entry is lost
    scenario_event(s, 1200, EVENT_SOFTIRQ_ENTRY, 0, 3); // its exit is lost
    scenario_event(s, 1250, EVENT_PAGE_FAULT, 0, 0);
    scenario_switch(s, 1400, 0, 6, "b");
    scenario_switch(s, 1500, 0, 6, "b"); // what it switched to in between is lost
    scenario_switch(s, 1600, 0, 0, "swapper");
    build(&f);
    assert_int_equal(f.host.unpaired, 3);
    assert_int_equal(f.host.lost_intervals, 3);
    assert_span(&f, 1, SPAN_TASK, 1000, 1250, 0, "a");
    assert_span(&f, 2, SPAN_UNKNOWN, 1000, 1100, 1, "lost records");
    assert_span(&f, 3, SPAN_SOFTIRQ, 1200, 1250, 1, "NET_RX");
    assert_span(&f, 4, SPAN_UNKNOWN, 1250, 1400, 0, "lost records");
    assert_span(&f, 6, SPAN_UNKNOWN, 1400, 1500, 0, "lost records");
    assert_well_formed(&f.host);
    release(&f);
}

// The kernel delivered nothing while "supervisor" ran, nor the switch to who leaves at 1300.
static void undelivered_switches_leave_the_time_unknown(void **state)
{
    (void)state;
    struct fixture f = {0};
    struct scenario *s = &f.scenario;
    scenario_switch(s, 1000, 0, 5, "a");
    scenario_switch(s, 1100, 0, 6, "supervisor");
    scenario_event(s, 1200, EVENT_SOFTIRQ_ENTRY, 0, 3);
    scenario_event(s, 1250, EVENT_SOFTIRQ_EXIT, 0, 3);
    scenario_switch(s, 1300, 0, 7, "b");
    s->events.items[s->events.count - 1].flags = SWITCH_UNSEEN;
    scenario_switch(s, 1400, 0, 0, "swapper");
    build(&f);
    assert_int_equal(f.host.lost_intervals, 1);
    assert_int_equal(f.host.unpaired, 0);
    assert_span(&f, 1, SPAN_TASK, 1000, 1100, 0, "a");
    assert_span(&f, 2, SPAN_UNKNOWN, 1100, 1300, 0, "unseen since supervisor");
    assert_span(&f, 3, SPAN_SOFTIRQ, 1200, 1250, 1, "NET_RX");
    assert_span(&f, 4, SPAN_TASK, 1300, 1400, 0, "b");
    assert_well_formed(&f.host);
    release(&f);
}

// The same where a record shows before that "b" has the core. What shows it within an interrupt
// counts from the first record after that; what another thread is shown to have done since is not
// its.
static void who_came_unseen_is_known_by_what_it_does(void **state)
{
    (void)state;
    struct fixture f = {0};
    struct scenario *s = &f.scenario;
    scenario_switch(s, 1000, 0, 6, "supervisor");
    scenario_event(s, 1050, EVENT_PAGE_FAULT, 0, 7);
    scenario_event(s, 1060, EVENT_WAKING, 0, 9)->payload.b = 8;
    scenario_event(s, 1100, EVENT_SOFTIRQ_ENTRY, 0, 3);
    scenario_event(s, 1120, EVENT_WAKING, 0, 9)->payload.b = 7;
    scenario_event(s, 1150, EVENT_SOFTIRQ_EXIT, 0, 3);
    scenario_event(s, 1180, EVENT_SENT, 0, 77)->payload.b = 7 | 100ull << 32;
    for (int round = 0; round < 2; round++) {
        struct event *unseen = scenario_event(s, 1300 + 100 * round, EVENT_UNSEEN, 0, 7);
        memcpy(unseen->payload.text, "b", sizeof "b");
        scenario_event(s, 1300 + 100 * round, EVENT_BLOCKED, 0, 7);
        scenario_switch(s, 1300 + 100 * round, 0, 6, "supervisor");
        s->events.items[s->events.count - 1].flags = SWITCH_UNSEEN;
    }
    build(&f);
    assert_span(&f, 1, SPAN_UNKNOWN, 1000, 1180, 0, "unseen since supervisor");
    assert_span(&f, 2, SPAN_SOFTIRQ, 1100, 1150, 1, "NET_RX");
    assert_span(&f, 3, SPAN_TASK, 1180, 1300, 0, "b");
    assert_span(&f, 4, SPAN_UNKNOWN, 1300, 1400, 0, "unseen since supervisor");
    assert_span(&f, 5, SPAN_TASK, 1400, 1400, 0, "supervisor");
    size_t count;
    const struct thread_stint *stints = host_timeline_stints(&f.host, 7, &count);
    assert_int_equal(count, 2);
    assert_int_equal(stints[0].begin_ns, 1180);
    assert_int_equal(stints[0].end_ns, 1300);
    assert_well_formed(&f.host);
    release(&f);
}

// A core that is recorded from some time on: who has it then is known, and what ends had begun
// before. One that never is has only its messages.
static void cores_are_recorded_from_some_time_on(void **state)
{
    (void)state;
    struct fixture f = {0};
    struct scenario *s = &f.scenario;
    scenario_event(s, 1000, EVENT_ARRIVAL, 1, 77);
    struct event *watched = scenario_event(s, 1100, EVENT_WATCHED, 1, 5);
    watched->flags = WATCHED_LATE;
    memcpy(watched->payload.text, "hog", sizeof "hog");
    scenario_event(s, 1100, EVENT_SEGMENT, 1, 77);
    scenario_event(s, 1120, EVENT_HANDOFF, 1, 77);
    scenario_event(s, 1150, EVENT_SOFTIRQ_EXIT, 1, 3);
    scenario_event(s, 1160, EVENT_VECTOR_EXIT, 1, VECTOR_CALL_FUNCTION_SINGLE);
    scenario_switch(s, 1300, 1, 0, "swapper/1");
    scenario_event(s, 1400, EVENT_SOFTIRQ_EXIT, 1, 3); // now this is a loss
    scenario_event(s, 1000, EVENT_WAKING, 2, 5);
    scenario_event(s, 1500, EVENT_TRANSMIT, 2, 77);
    build(&f);
    assert_int_equal(f.host.unpaired, 1);
    assert_int_equal(f.host.lost_intervals, 1);
    assert_span(&f, 0, SPAN_UNKNOWN, 1000, 1100, 0, "core not recorded");
    assert_span(&f, 1, SPAN_TASK, 1100, 1300, 0, "hog");
    assert_span(&f, 2, SPAN_SOFTIRQ, 1100, 1150, 1, "NET_RX");
    assert_span(&f, 3, SPAN_VECTOR, 1150, 1160, 1, "single function call");
    assert_span(&f, 4, SPAN_IDLE, 1300, 1400, 0, "idle");
    assert_well_formed(&f.host);
    assert_int_equal(f.host.cores.items[0].recorded_ns, 1100);
    assert_true(f.host.cores.items[0].scheduled);
    assert_int_equal(f.host.cores.items[1].recorded_ns, INT64_MAX);
    assert_false(f.host.cores.items[1].scheduled);
    release(&f);
}

// The same of a core that the capture was asked for: what it did before its first event was
// nothing, and nothing of it is missing.
static void cores_asked_for_are_whole(void **state)
{
    (void)state;
    struct fixture f = {0};
    struct scenario *s = &f.scenario;
    struct event *watched = scenario_event(s, 1000, EVENT_WATCHED, 0, 0);
    memcpy(watched->payload.text, "swapper/0", sizeof "swapper/0");
    scenario_event(s, 1000, EVENT_SOFTIRQ_ENTRY, 0, 3);
    scenario_event(s, 1050, EVENT_SOFTIRQ_EXIT, 0, 3);
    build(&f);
    assert_span(&f, 1, SPAN_IDLE, 1000, 1050, 0, "idle");
    assert_span(&f, 2, SPAN_SOFTIRQ, 1000, 1050, 1, "NET_RX");
    assert_int_equal(f.host.cores.items[0].recorded_ns, 0);
    assert_true(f.host.cores.items[0].scheduled);
    assert_int_equal(f.host.unpaired + f.host.lost_intervals, 0);
    assert_well_formed(&f.host);
    release(&f);
}

// The record of a switch names the thread that leaves: its time has that name. Threads have their
// process's.
static void names_tell_what_is_known(void **state)
{
    (void)state;
    struct fixture f = {0};
    struct scenario *s = &f.scenario;
    scenario_switch(s, 1000, 0, 5, "a");
    struct event *unseen = scenario_event(s, 1300, EVENT_UNSEEN, 0, 6);
    memcpy(unseen->payload.text, "supervisor", sizeof "supervisor");
    scenario_switch(s, 1300, 0, 7, "worker");
    s->events.items[s->events.count - 1].flags = SWITCH_UNSEEN;
    struct event *process = scenario_event(s, 1350, EVENT_PROCESS, 0, 8);
    memcpy(process->payload.text, "server", sizeof "server");
    struct event *member = scenario_event(s, 1350, EVENT_MEMBER, 0, 8);
    member->payload.a = 5;
    member->payload.b = 1;
    scenario_switch(s, 1400, 0, 8, "worker");
    scenario_switch(s, 1500, 0, 0, "swapper");
    build(&f);
    assert_span(&f, 1, SPAN_UNKNOWN, 1000, 1300, 0, "unseen since a");
    assert_span(&f, 2, SPAN_TASK, 1300, 1400, 0, "worker");
    assert_span(&f, 3, SPAN_TASK, 1400, 1500, 0, "server:worker");
    const struct thread_owner *owner = host_timeline_owner(&f.host, 8);
    assert_int_equal(owner->process, 5);
    assert_int_equal(owner->parent, 1);
    assert_null(host_timeline_owner(&f.host, 7));
    assert_null(host_timeline_owner(&f.host, 9));
    assert_well_formed(&f.host);
    release(&f);
}

// What the host of a virtual machine took is the end of the time since the record before, and no
// more than that.
// A shell's child becomes its program; what another thread is called does not matter here.
static void a_new_name_is_that_of_the_whole_stint(void **state)
{
    (void)state;
    struct fixture f = {0};
    struct scenario *s = &f.scenario;
    scenario_switch(s, 1000, 0, 7, "sh");
    strcpy(scenario_event(s, 1200, EVENT_RENAMED, 0, 7)->payload.text, "yes");
    strcpy(scenario_event(s, 1300, EVENT_RENAMED, 0, 8)->payload.text, "other");
    scenario_switch(s, 2000, 0, 0, "swapper/0");
    strcpy(scenario_event(s, 2100, EVENT_RENAMED, 0, 7)->payload.text, "late");
    scenario_switch(s, 3000, 0, 7, "yes");
    build(&f);
    assert_span(&f, 1, SPAN_TASK, 1000, 2000, 0, "yes");
    assert_span(&f, 2, SPAN_IDLE, 2000, 3000, 0, "idle");
    release(&f);
}

// Who records is told by its processes, not by its name.
static void other_recordings_are_told_apart(void **state)
{
    (void)state;
    enum { OWN = 100, CHILD = 101, OTHER = 200, UNKNOWN = 300, SERVER = 400, STEP_NS = 1000 };
    static const struct {
        uint32_t thread, process, parent; // process 0: not on record
        const char *name, *becomes;
    } tasks[] = {
        {OWN, OWN, 1, "taillight", "taillight"},
        {CHILD + 1000, CHILD, OWN, "load-1", "load-1"},
        {CHILD, CHILD, OWN, "taillight", "taillight"},
        {OTHER, OTHER, 1, "taillight", "another taillight"},
        {OTHER + 1, OTHER + 1, OTHER, "taillight-keep", "another taillight"},
        {OTHER + 2, OTHER + 2, OTHER, "perf", "another perf"},
        {UNKNOWN, 0, 0, "taillight", "taillight"},
        {SERVER, SERVER, 1, "perfection", "perfection"},
    };
    enum { TASKS = sizeof tasks / sizeof *tasks };
    json_t *own = json_pack("[i]", OWN);
    struct fixture f = {0};
    for (int i = 0; i < TASKS; i++) {
        if (tasks[i].process) {
            struct event *member =
                scenario_event(&f.scenario, i * STEP_NS, EVENT_MEMBER, 0, tasks[i].thread);
            member->payload.a = tasks[i].process;
            member->payload.b = tasks[i].parent;
        }
        scenario_switch(&f.scenario, i * STEP_NS, 0, tasks[i].thread, tasks[i].name);
    }
    build(&f);
    assert_int_equal(other_recordings_name(&f.host, NULL), 0); // of an older capture
    for (int known = 0; known < 2; known++) {
        size_t found = 0;
        for (size_t i = 0; i < f.host.cores.items[0].spans.count; i++) {
            const struct span *span = span_at(&f, i);
            if (span->kind != SPAN_TASK)
                continue;
            assert_true(found < TASKS);
            assert_string_equal(f.host.names.items[span->name],
                                known ? tasks[found].becomes : tasks[found].name);
            found++;
        }
        assert_int_equal(found, TASKS);
        assert_int_equal(other_recordings_name(&f.host, own), 0);
    }
    json_decref(own);
    release(&f);
}

static void stolen_time_is_a_span(void **state)
{
    (void)state;
    struct fixture f = {0};
    struct scenario *s = &f.scenario;
    scenario_switch(s, 1000, 0, 5, "a");
    scenario_event(s, 1200, EVENT_STOLEN, 0, 0)->payload.a = 150;
    scenario_event(s, 1200, EVENT_SOFTIRQ_ENTRY, 0, 3);
    scenario_event(s, 1300, EVENT_STOLEN, 0, 0)->payload.a = 1000000;
    scenario_event(s, 1300, EVENT_SOFTIRQ_EXIT, 0, 3);
    scenario_switch(s, 1400, 0, 0, "swapper");
    build(&f);
    assert_span(&f, 1, SPAN_TASK, 1000, 1400, 0, "a");
    assert_span(&f, 2, SPAN_STOLEN, 1050, 1200, 1, "virtual CPU taken away");
    assert_span(&f, 3, SPAN_SOFTIRQ, 1200, 1300, 1, "NET_RX");
    assert_span(&f, 4, SPAN_STOLEN, 1200, 1300, 2, "virtual CPU taken away");
    assert_int_equal(f.host.unpaired, 0);
    assert_well_formed(&f.host);
    release(&f);
}

struct tiles {
    int64_t cursor, end;
    unsigned count;
    const struct core_timeline *core;
};

static void check_tile(const struct span *innermost, int64_t begin, int64_t end, void *opaque)
{
    struct tiles *tiles = opaque;
    assert_int_equal(begin, tiles->cursor);
    assert_true(end > begin && end <= tiles->end);
    tiles->cursor = end;
    tiles->count++;
    // The slow way: the deepest span that covers the piece.
    const struct span *deepest = NULL;
    for (size_t i = 0; i < tiles->core->spans.count; i++) {
        const struct span *span = &tiles->core->spans.items[i];
        if (span->begin_ns <= begin && span->end_ns >= end && span->end_ns > span->begin_ns &&
            (!deepest || span->depth >= deepest->depth))
            deepest = span;
    }
    assert_ptr_equal(innermost, deepest);
}

static void pieces_tile_any_interval(void **state)
{
    (void)state;
    for (int lose = 0; lose < 2; lose++) {
        struct fixture f = {0};
        struct scenario_options options = {.requests = 150,
                                           .connections = 4,
                                           .gap_ns = 30000,
                                           .fault = FAULT_IRQ,
                                           .faults = 5,
                                           .fault_ns = 50000,
                                           .lose_every = lose ? 20 : 0,
                                           .seed = 5};
        scenario_build(&f.scenario, &options);
        build(&f);
        assert_well_formed(&f.host);
        assert_int_equal(f.host.unpaired > 0, lose);
        for (size_t c = 0; c < f.host.cores.count; c++) {
            struct core_timeline core = f.host.cores.items[c];
            int64_t first = core.spans.items[0].begin_ns - 1000;
            int64_t span = core.spans.items[core.spans.count - 1].end_ns + 1000 - first;
            for (int i = 0; i < 300; i++) {
                int64_t begin = first + (int64_t)(scenario_uniform(&f.scenario) * (double)span);
                int64_t length = (int64_t)(scenario_uniform(&f.scenario) * 200000);
                struct tiles tiles = {.cursor = begin, .end = begin + length, .core = &core};
                core_timeline_pieces(&core, begin, begin + length, check_tile, &tiles);
                assert_int_equal(tiles.cursor, begin + length);
                if (i == 150) // it is only a shortcut
                    core.enclosing.count = 0;
            }
        }
        release(&f);
    }
}

// With the shortcut and without.
static void parents_follow_from_depths(void **state)
{
    (void)state;
    enum { SPANS = 2000 };
    struct core_timeline core = {0};
    unsigned depth = 0;
    srand(4);
    for (int i = 0; i < SPANS; i++) { // mostly deep inside a few that stay open
        depth = rand() % 300 == 0 ? 0 : 3 + (unsigned)rand() % 9;
        SCENARIO_PUSH(&core.spans, (struct span){.begin_ns = i, .depth = (uint8_t)depth});
    }
    for (int linked = 0; linked < 2; linked++) {
        for (uint32_t i = 0; i < SPANS; i++) {
            uint32_t parent = i;
            while (parent != NO_SPAN && core.spans.items[parent].depth >= core.spans.items[i].depth)
                parent--; // below 0: NO_SPAN
            assert_int_equal(core_timeline_parent(&core, i), parent);
        }
        assert_int_equal(core_timeline_link(&core), 0);
    }
    assert_int_equal(core.enclosing.count, (SPANS + SPAN_BLOCK - 1) / SPAN_BLOCK);
    array_free(&core.spans);
    array_free(&core.enclosing);
}

static void cores_out_of_order_are_sorted(void **state)
{
    (void)state;
    struct fixture f = {0}, g = {0};
    struct scenario_options options = {
        .requests = 200, .connections = 4, .gap_ns = 30000, .seed = 9};
    scenario_build(&f.scenario, &options);
    scenario_build(&g.scenario, &options);
    size_t count = g.scenario.events.count;
    for (size_t i = 0; i + 1 < count; i += 2) { // swap neighbours of different time
        struct event *pair = &g.scenario.events.items[i];
        if (pair[0].time != pair[1].time) {
            struct event kept = pair[0];
            pair[0] = pair[1];
            pair[1] = kept;
        }
    }
    build(&f);
    build(&g);
    assert_int_equal(f.host.cores.count, 2);
    assert_int_equal(g.host.cores.count, 2);
    assert_int_equal(g.host.unpaired, 0);
    for (size_t c = 0; c < 2; c++)
        assert_int_equal(f.host.cores.items[c].spans.count, g.host.cores.items[c].spans.count);
    release(&f);
    release(&g);
}

static void any_bytes_are_taken(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct fixture f = {0};
        struct scenario_options options = {
            .requests = 60, .connections = 3, .gap_ns = 30000, .seed = seed};
        scenario_build(&f.scenario, &options);
        struct scenario *s = &f.scenario;
        size_t bytes = s->events.count * sizeof *s->events.items;
        for (int i = 0; i < 300; i++)
            ((char *)s->events.items)[scenario_random(s) % bytes] = (char)scenario_random(s);
        for (size_t i = 0; i < s->events.count; i++) // times that a clock map could give
            s->events.items[i].time &= (UINT64_C(1) << 62) - 1;
        build(&f);
        assert_well_formed(&f.host);
        assert_true(f.host.damaged + f.host.unpaired > 0);
        for (size_t i = 0; i < f.host.names.count; i++)
            for (const char *at = f.host.names.items[i]; *at; at++)
                assert_true(*at >= ' ' && *at <= '~');
        release(&f);
    }
    struct fixture empty = {0};
    build(&empty);
    assert_int_equal(empty.host.cores.count, 0);
    release(&empty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interrupts_nest_in_tasks),
        cmocka_unit_test(capture_begins_in_the_middle),
        cmocka_unit_test(lost_records_become_unknown_time),
        cmocka_unit_test(undelivered_switches_leave_the_time_unknown),
        cmocka_unit_test(who_came_unseen_is_known_by_what_it_does),
        cmocka_unit_test(cores_are_recorded_from_some_time_on),
        cmocka_unit_test(cores_asked_for_are_whole),
        cmocka_unit_test(names_tell_what_is_known),
        cmocka_unit_test(a_new_name_is_that_of_the_whole_stint),
        cmocka_unit_test(other_recordings_are_told_apart),
        cmocka_unit_test(stolen_time_is_a_span),
        cmocka_unit_test(pieces_tile_any_interval),
        cmocka_unit_test(parents_follow_from_depths),
        cmocka_unit_test(cores_out_of_order_are_sorted),
        cmocka_unit_test(any_bytes_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
