// SPDX-License-Identifier: MIT
#include "analysis/decomposition/path_core.h"

#include <stdio.h>
#include <string.h>

#include "analysis/decomposition/peer_turn.h"
#include "analysis/decomposition/sleep_names.h"
#include "analysis/decomposition/tracers.h"
#include "analysis/timeline/detours.h"
#include "analysis/timeline/pauses.h"
#include "base/array.h"
#include "base/text.h"

enum {
    // A core takes that long to be told that it is to run another thread, whatever it does.
    MAKES_WAY_NS = 50000,
};

// --- pieces of a core's time ---------------------------------------------------------------------

static int64_t component_waited_for(const struct path *path, const char *what)
{
    const struct diagnosis_input *in = path->sweep.decomposer->in;
    struct component_table *table = path->sweep.decomposer->table;
    char name[CAUSE_NAME_BYTES] = "";
    text_append(name, sizeof name, "%s%s", path->wait ? path->wait : "", what);
    return path->peer ? component_of_peer(table, name, peer_turn_tier(in, path->peer),
                                          peer_turn_category(path->peer))
                      : component_of_wait(table, name);
}

void path_add_wait(struct path *path, const char *what, int64_t begin_ns, int64_t end_ns)
{
    sweep_add(&path->sweep, component_waited_for(path, what), begin_ns, end_ns);
}

// A share of the time, of which is not known when it was.
static void path_add_share(struct path *path, const char *what, double ns)
{
    if (ns != 0)
        decomposer_add(path->sweep.decomposer, component_waited_for(path, what), ns);
}

void path_add_waiting_for(struct path *path, const struct peer_wait *wait, const char *form,
                          int64_t begin_ns, int64_t end_ns)
{
    const struct diagnosis_input *in = path->sweep.decomposer->in;
    char what[PEER_TURN_BYTES], text[CAUSE_NAME_BYTES];
    peer_turn_what(in, wait, what, sizeof what);
    snprintf(text, sizeof text, form, what);
    sweep_add(&path->sweep,
              component_of_peer(path->sweep.decomposer->table, text, peer_turn_tier(in, wait),
                                peer_turn_category(wait)),
              begin_ns, end_ns);
}

static void add_receiver(struct sweep *sweep, int64_t begin_ns, int64_t end_ns)
{
    sweep_add_context(sweep, sweep->receiver, begin_ns, end_ns);
}

static bool known_context(struct sweep *sweep, const struct span *context, int64_t begin_ns,
                          int64_t end_ns)
{
    if (context && context->kind != SPAN_UNKNOWN)
        return true;
    sweep_add(sweep, component_of_unknown(sweep->decomposer->table, context, ROLE_A), begin_ns,
              end_ns);
    return false;
}

// What has the core from *begin_ns on, past what is the capture's own; NULL: nobody knows, which is
// added.
static const struct span *context_of_piece(struct sweep *sweep, const struct span *const *open,
                                           unsigned depth, int64_t *begin_ns, int64_t end_ns)
{
    const struct span *context = sweep_context(sweep, open, depth);
    *begin_ns = sweep_overhead(sweep, *begin_ns, end_ns);
    return known_context(sweep, context, *begin_ns, end_ns) ? context : NULL;
}

// What interrupts whoever has the core.
static void add_interruption(struct sweep *sweep, const struct span *context, int64_t begin_ns,
                             int64_t end_ns)
{
    sweep->receiver = context;
    if (sweep_receives(sweep, context))
        begin_ns = sweep_add_packets(sweep, begin_ns, end_ns, context->end_ns, add_receiver);
    sweep_add_context(sweep, context, begin_ns, end_ns);
}

// The thread that the message waits for runs; its page faults, or the call that it is in, say what
// for.
static void add_waker_running(struct path *path, int64_t begin_ns, int64_t end_ns)
{
    struct decomposer *decomposer = path->sweep.decomposer;
    while (begin_ns < end_ns) {
        char name[CAUSE_NAME_BYTES] = ", ";
        int64_t until = end_ns;
        if (decomposer_kernel_work(decomposer, path->sweep.thread, begin_ns, &until, name + 2,
                                   sizeof name - 2)) {
            path_add_wait(path, name, begin_ns, until);
        } else {
            struct page_time pages =
                decomposer_page_time(decomposer, path->sweep.thread, begin_ns, until);
            path_add_wait(path, "", begin_ns, until);
            path_add_share(path, "", -pages.faults_ns - pages.copies_ns);
            path_add_share(path, ", page faults", pages.faults_ns);
            path_add_share(path, ", page faults (copy on write after a fork)", pages.copies_ns);
        }
        begin_ns = until;
    }
}

static void add_running(struct path *path, int64_t begin_ns, int64_t end_ns)
{
    struct sweep *sweep = &path->sweep;
    if (path->wait)
        add_waker_running(path, begin_ns, end_ns);
    else if (sweep->replied)
        sweep_add(sweep, COMPONENT_SERVER_STACK, begin_ns, end_ns);
    else if (path->helper)
        decompose_own_time(sweep->decomposer, sweep->thread, begin_ns, end_ns, 1);
    else
        decompose_thread_time(sweep->decomposer, sweep->life, sweep->thread, begin_ns, end_ns);
}

void path_add_detour(struct path *path, const struct detour *detour, int64_t begin_ns,
                     int64_t end_ns)
{
    const struct host_timeline *host = path->sweep.decomposer->in->server;
    char name[CAUSE_NAME_BYTES] = ", ";
    detour_name(host, detour, name + 2, sizeof name - 2);
    path_add_wait(path, path->wait ? name : name + 2, begin_ns, end_ns);
}

// The thread runs, for itself or for the kernel's memory. Functions show the latter themselves.
static void divide_running(struct path *path, int64_t begin_ns, int64_t end_ns)
{
    const struct host_timeline *host = path->sweep.decomposer->in->server;
    while (begin_ns < end_ns) {
        int64_t until;
        const struct detour *detour = detour_at(host, path->sweep.thread, begin_ns, &until);
        until = until < end_ns ? until : end_ns;
        if (detour && path->sweep.decomposer->stack.count == 0)
            path_add_detour(path, detour, begin_ns, until);
        else
            add_running(path, begin_ns, until);
        begin_ns = until;
    }
}

static void visit_running(const struct span *const *open, unsigned depth, int64_t begin_ns,
                          int64_t end_ns, void *opaque)
{
    struct path *path = opaque;
    struct sweep *sweep = &path->sweep;
    const struct span *context = context_of_piece(sweep, open, depth, &begin_ns, end_ns);
    if (!context)
        return;
    if (context->kind != SPAN_TASK && context->kind != SPAN_IDLE)
        add_interruption(sweep, context, begin_ns, end_ns);
    else
        divide_running(path, begin_ns, end_ns);
}

void path_add_throttled(struct path *path, int64_t begin_ns, int64_t end_ns)
{
    struct sweep *sweep = &path->sweep;
    const struct host_timeline *host = sweep->decomposer->in->server;
    char what[CAUSE_NAME_BYTES] = ", throttled (CPU quota)";
    const char *group = thread_quota_group(host, sweep->thread, sweep->before, end_ns);
    if (group)
        snprintf(what, sizeof what, ", throttled (CPU quota of %s)", group);
    if (path->wait || group)
        path_add_wait(path, path->wait ? what : what + 2, begin_ns, end_ns);
    else
        sweep_add(sweep, COMPONENT_THROTTLED, begin_ns, end_ns);
}

// The core ran nothing though the thread was ready. If it had been preempted, it was not allowed to
// go on; if it had been woken, the core took its time to notice.
static void add_idle(struct path *path, int64_t begin_ns, int64_t end_ns)
{
    struct sweep *sweep = &path->sweep;
    bool held_back = sweep->before && sweep->before->left == STINT_PREEMPTED && !sweep->moved;
    if (held_back)
        path_add_throttled(path, begin_ns, end_ns);
    else if (path->wait)
        path_add_wait(path, ", being woken", begin_ns, end_ns);
    else
        sweep_add(sweep, COMPONENT_WAKE_UP, begin_ns, end_ns);
}

// Another program has the core. If it is a server at work for what the message's own server asked
// of it, that is not another server's load: the message is behind the request it works for.
static void add_task(struct path *path, const struct span *task, int64_t begin_ns, int64_t end_ns)
{
    struct sweep *sweep = &path->sweep;
    const struct diagnosis_input *in = sweep->decomposer->in;
    while (begin_ns < end_ns) {
        struct peer_turn turn;
        bool works = peer_turn_works(in, sweep->life, task, begin_ns, end_ns, &turn);
        sweep_add_task(sweep, task, begin_ns, turn.begin_ns);
        if (works)
            path_add_waiting_for(path, turn.wait,
                                 turn.own ? "waiting for %s"
                                          : "head-of-line blocking: waiting for %s",
                                 turn.begin_ns, turn.end_ns);
        begin_ns = turn.end_ns;
    }
}

// Something that is not the thread has its core: another program, an interrupt.
static void add_context(struct path *path, const struct span *context, int64_t begin_ns,
                        int64_t end_ns)
{
    if (context->kind == SPAN_TASK)
        add_task(path, context, begin_ns, end_ns);
    else
        add_interruption(&path->sweep, context, begin_ns, end_ns);
}

// The thread is on a core that something else has, and not on the one that it ran on before.
struct elsewhere {
    struct path *path;
    const struct span *has_it;
};

static void visit_left_core(const struct span *context, int64_t begin_ns, int64_t end_ns,
                            void *opaque)
{
    const struct elsewhere *elsewhere = opaque;
    if (context && context->kind == SPAN_IDLE)
        sweep_add(&elsewhere->path->sweep, COMPONENT_MIGRATION, begin_ns, end_ns);
    else
        add_context(elsewhere->path, elsewhere->has_it, begin_ns, end_ns);
}

// Where it was is no better while something else runs there as well: then it waits for what it is
// behind, as it would have for the other; unless somebody took that core from it.
static void add_context_elsewhere(struct path *path, const struct span *context, int64_t begin_ns,
                                  int64_t end_ns)
{
    const struct sweep *sweep = &path->sweep;
    const struct core_timeline *left =
        host_timeline_core(sweep->decomposer->in->server, sweep->before->core);
    struct elsewhere elsewhere = {path, context};
    if (sweep->forced)
        sweep_add(&path->sweep, COMPONENT_MIGRATION, begin_ns, end_ns);
    else if (left)
        core_timeline_pieces(left, begin_ns, end_ns, visit_left_core, &elsewhere);
    else
        add_context(path, context, begin_ns, end_ns);
}

// Whether the task that has the core was preempted, not done, when the thread went on.
static bool is_preempted(const struct path *path, const struct span *task)
{
    size_t count;
    const struct thread_stint *stints =
        host_timeline_stints(path->sweep.decomposer->in->server, task->id, &count);
    int64_t end_ns = path->sweep.next->begin_ns;
    size_t at = array_bound(0, count, i, stints[i].end_ns < end_ns);
    return at < count && stints[at].end_ns == end_ns && stints[at].left == STINT_PREEMPTED;
}

// The thread goes on after a stop by a tracer, and its core makes way; or its tracer has the core.
// Either is the tracer's, as the stop is.
static bool add_tracer(struct path *path, const struct span *context, bool free, int64_t begin_ns,
                       int64_t end_ns)
{
    struct sweep *sweep = &path->sweep;
    const struct host_timeline *host = sweep->decomposer->in->server;
    char who[CAUSE_NAME_BYTES], stopped[CAUSE_NAME_BYTES], stop[CAUSE_NAME_BYTES],
        name[CAUSE_NAME_BYTES + 2];
    struct waker tracer;
    bool goes_on = free && !sweep->moved && sweep->before && tracer_stopped(host, sweep->before);
    bool may_be = goes_on || (!free && context->kind == SPAN_TASK);
    if (!may_be || !sweep->before || !tracer_of(host, sweep->thread, end_ns, &tracer) ||
        (!goes_on && tracer.thread != context->id))
        return false;
    sleep_waker_name(sweep, &tracer, sweep->before, who);
    pause_name(PAUSE_TRACED, stopped, sizeof stopped);
    sleep_ended_name(stopped, WAKER_THREAD, who, stop);
    snprintf(name, sizeof name, "%s%s", path->wait ? ", " : "", stop);
    path_add_wait(path, name, begin_ns, end_ns);
    return true;
}

static void visit_ready(const struct span *const *open, unsigned depth, int64_t begin_ns,
                        int64_t end_ns, void *opaque)
{
    struct path *path = opaque;
    struct sweep *sweep = &path->sweep;
    const struct span *context = context_of_piece(sweep, open, depth, &begin_ns, end_ns);
    if (!context)
        return;
    bool makes_way = path->at_once && context->kind == SPAN_TASK && is_preempted(path, context);
    bool free = context->kind == SPAN_IDLE || makes_way;
    if (add_tracer(path, context, free, begin_ns, end_ns))
        return;
    if (free) {
        add_idle(path, begin_ns, end_ns);
    } else if (path->wait) {
        char behind[CAUSE_NAME_BYTES] = "", what[CAUSE_NAME_BYTES];
        component_context_name(sweep->decomposer->in->server->names.items[context->name],
                               context->kind, what, sizeof what);
        text_append(behind, sizeof behind, ", behind %s%s", what,
                    context->kind == SPAN_TASK && sweep_is_forked(sweep, context->id)
                        ? " (forked child)"
                        : "");
        path_add_wait(path, behind, begin_ns, end_ns);
    } else if (sweep->moved) {
        add_context_elsewhere(path, context, begin_ns, end_ns);
    } else {
        add_context(path, context, begin_ns, end_ns);
    }
}

// Nobody knows why the thread did not run: only whether the core's records are missing as well.
static void visit_unknown(const struct span *const *open, unsigned depth, int64_t begin_ns,
                          int64_t end_ns, void *opaque)
{
    struct path *path = opaque;
    const struct span *context = sweep_context(&path->sweep, open, depth);
    if (path->wait)
        path_add_wait(path, "", begin_ns, end_ns);
    else if (known_context(&path->sweep, context, begin_ns, end_ns))
        sweep_add(&path->sweep,
                  context->kind == SPAN_IDLE ? COMPONENT_IDLE_A : COMPONENT_UNKNOWN_WAIT, begin_ns,
                  end_ns);
}

// What the core does is known, or nobody knows whether the sleep was over by then.
static void visit_unended(const struct span *const *open, unsigned depth, int64_t begin_ns,
                          int64_t end_ns, void *opaque)
{
    struct path *path = opaque;
    const struct span *context = sweep_context(&path->sweep, open, depth);
    if (known_context(&path->sweep, context, begin_ns, end_ns))
        sweep_add(&path->sweep, COMPONENT_UNKNOWN_WAIT, begin_ns, end_ns);
}

// What woke the thread was at it already.
static void visit_waker(const struct span *const *open, unsigned depth, int64_t begin_ns,
                        int64_t end_ns, void *opaque)
{
    struct path *path = opaque;
    const struct span *context = sweep_context(&path->sweep, open, depth);
    if (known_context(&path->sweep, context, begin_ns, end_ns))
        sweep_add_context(&path->sweep, context, begin_ns, end_ns);
}

static void sweep_core(struct path *path, uint16_t number, int64_t begin_ns, int64_t end_ns,
                       span_stack_visitor *visit)
{
    struct sweep *sweep = &path->sweep;
    struct decomposer *decomposer = sweep->decomposer;
    const struct core_timeline *core = host_timeline_core(decomposer->in->server, number);
    if (end_ns <= begin_ns)
        return;
    decomposer->traced &= core && core_timeline_traced(core, begin_ns, end_ns);
    decomposer->core = core ? core->core : NO_CORE;
    sweep->core = core;
    if (core && (core->scheduled || !sweep->moved))
        core_timeline_stacks(core, begin_ns, end_ns, visit, path);
    else
        sweep_add(sweep, sweep->moved ? COMPONENT_MIGRATION : COMPONENT_UNKNOWN_A, begin_ns,
                  end_ns);
}

// --- ready to run --------------------------------------------------------------------------------

// Whether the scheduler let the thread go on as soon as it had been woken: then it did not wait for
// its turn, but for its core to be told.
static bool goes_on_at_once(const struct path *path, const struct thread_period *period)
{
    size_t count;
    const struct waking *wakings =
        host_timeline_wakings(path->sweep.decomposer->in->server, path->sweep.thread, &count);
    if (!period->next || !period->before || period->before->left == STINT_PREEMPTED)
        return false;
    size_t after = array_bound(0, count, i, wakings[i].time_ns < period->next->begin_ns);
    return after > 0 && wakings[after - 1].time_ns >= period->before->end_ns &&
           period->next->begin_ns - wakings[after - 1].time_ns <= MAKES_WAY_NS;
}

void path_ready(struct path *path, const struct thread_period *period)
{
    struct sweep *sweep = &path->sweep;
    const struct thread_stint *before = period->before, *next = period->next;
    int64_t begin_ns = period->begin_ns;
    uint16_t core = before ? before->core : 0;
    size_t count = 0;
    const struct thread_moment *moves =
        before ? thread_moments_of(&sweep->decomposer->in->server->moves, sweep->thread, &count)
               : NULL;
    size_t at = moves ? thread_moments_before(moves, count, before->begin_ns) : 0;
    path->at_once = goes_on_at_once(path, period);
    sweep->next = next;
    for (; at < count && moves[at].time_ns < period->end_ns; at++) {
        int64_t until = moves[at].time_ns;
        sweep->moved = core != before->core;
        if (until > begin_ns) {
            sweep_core(path, core, begin_ns, until, visit_ready);
            begin_ns = until;
        }
        core = (uint16_t)moves[at].value;
        sweep->forced = core != before->core && (sweep->forced || moves[at].value & MOVE_FORCED);
    }
    sweep->moved = before && core != before->core;
    if (!sweep->moved)
        core = next     ? next->core
               : before ? before->core
                        : sweep->life->stamp_core[STAMP_APPLICATION];
    sweep_core(path, core, begin_ns, period->end_ns, visit_ready);
    sweep->moved = sweep->forced = false;
}

void path_running(struct path *path, uint16_t core, int64_t begin_ns, int64_t end_ns)
{
    sweep_core(path, core, begin_ns, end_ns, visit_running);
}

void path_unknown(struct path *path, uint16_t core, int64_t begin_ns, int64_t end_ns)
{
    sweep_core(path, core, begin_ns, end_ns, visit_unknown);
}

void path_unended(struct path *path, uint16_t core, int64_t begin_ns, int64_t end_ns)
{
    sweep_core(path, core, begin_ns, end_ns, visit_unended);
}

void path_being_woken(struct path *path, uint16_t core, int64_t begin_ns, int64_t end_ns)
{
    sweep_core(path, core, begin_ns, end_ns, visit_waker);
}
