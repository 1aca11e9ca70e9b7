// SPDX-License-Identifier: MIT
#include "analysis/decomposition/client_path.h"

#include <stdio.h>

#include "analysis/decomposition/sleep_names.h"
#include "analysis/timeline/thread_states.h"

struct client_path {
    struct sweep sweep; // its thread: the one of the load
    const struct host_timeline *host;
    enum fixed_component stage;
    int64_t full_ns;   // until then no connection had room for the message
    int64_t others_ns; // until then the thread sent and read for other requests
};

// Among so many moments before a time the reply is looked for that made room: after a server's
// stall a thread reads the replies of all of its connections before it sends again.
enum { MOMENTS_BACK = 4096 };

static void add_to_turns(struct client_path *path, int64_t begin_ns, int64_t end_ns)
{
    const int64_t bounds[] = {path->full_ns, path->others_ns};
    const enum fixed_component before[] = {COMPONENT_CLIENT_FULL, COMPONENT_CLIENT_OTHERS};
    for (size_t i = 0; i < 2 && begin_ns < end_ns; i++) {
        int64_t until = bounds[i] < end_ns ? bounds[i] : end_ns;
        sweep_add(&path->sweep, before[i], begin_ns, until);
        begin_ns = until > begin_ns ? until : begin_ns;
    }
    sweep_add(&path->sweep, path->stage, begin_ns, end_ns);
}

// A request that is due while the thread has nothing in flight waits for a connection, also where
// the one that takes it in the end was opened later, and the one that it waited for never.
static void add_to_stage(struct client_path *path, int64_t begin_ns, int64_t end_ns)
{
    const struct client_turns *turns = path->sweep.decomposer->in->client_turns;
    const int64_t moved_ns = path->sweep.life->client_moved_ns;
    while (path->stage == COMPONENT_CLIENT_QUEUE && begin_ns < end_ns) {
        int64_t until;
        const bool bare = client_turns_bare(turns, path->sweep.thread, begin_ns + moved_ns, &until);
        until = until < end_ns + moved_ns ? until - moved_ns : end_ns;
        if (bare)
            sweep_add(&path->sweep, COMPONENT_CLIENT_OPENING, begin_ns, until);
        else
            add_to_turns(path, begin_ns, until);
        begin_ns = until;
    }
    add_to_turns(path, begin_ns, end_ns);
}

// Another thread of the load works for other requests, too.
static bool is_of_load(const struct client_path *path, const struct span *context)
{
    return context->kind == SPAN_TASK &&
           client_turns_has(path->sweep.decomposer->in->client_turns, context->id);
}

static void add_context(struct client_path *path, const struct span *context, int64_t begin_ns,
                        int64_t end_ns)
{
    if (is_of_load(path, context)) {
        sweep_add(&path->sweep, COMPONENT_CLIENT_OTHERS, begin_ns, end_ns);
        return;
    }
    sweep_add(&path->sweep, component_of_client(path->sweep.decomposer->table, context), begin_ns,
              end_ns);
}

// --- the thread ----------------------------------------------------------------------------------

static void visit_running(const struct span *const *open, unsigned depth, int64_t begin_ns,
                          int64_t end_ns, void *opaque)
{
    struct client_path *path = opaque;
    const struct span *context = sweep_context(&path->sweep, open, depth);
    bool interrupted = context && context->kind != SPAN_TASK && context->kind != SPAN_IDLE &&
                       context->kind != SPAN_UNKNOWN;
    if (interrupted)
        add_context(path, context, begin_ns, end_ns);
    else
        add_to_stage(path, begin_ns, end_ns);
}

static void visit_ready(const struct span *const *open, unsigned depth, int64_t begin_ns,
                        int64_t end_ns, void *opaque)
{
    struct client_path *path = opaque;
    const struct span *context = sweep_context(&path->sweep, open, depth);
    if (!context || context->kind == SPAN_UNKNOWN)
        sweep_add(&path->sweep, path->stage, begin_ns, end_ns);
    else if (context->kind == SPAN_IDLE)
        sweep_add(&path->sweep, COMPONENT_CLIENT_WAKE_UP, begin_ns, end_ns);
    else
        add_context(path, context, begin_ns, end_ns);
}

static void sweep_core(struct client_path *path, const struct thread_stint *stint, int64_t begin_ns,
                       int64_t end_ns, span_stack_visitor *visit)
{
    const struct core_timeline *core = stint ? host_timeline_core(path->host, stint->core) : NULL;
    if (core && core->scheduled)
        core_timeline_stacks(core, begin_ns, end_ns, visit, path);
    else
        sweep_add(&path->sweep, path->stage, begin_ns, end_ns);
}

// It waits for sockets and for what is due; in any other call it cannot do either.
static void add_sleep(struct client_path *path, const struct thread_period *period)
{
    char call[CAUSE_NAME_BYTES] = "", name[CAUSE_NAME_BYTES + 16];
    int64_t component =
        path->stage == COMPONENT_CLIENT_QUEUE ? COMPONENT_CLIENT_TIMER : COMPONENT_CLIENT_ASLEEP;
    if (period->before && sleep_call_name(path->host, period->before, call)) {
        snprintf(name, sizeof name, "client asleep: %s", call);
        component = component_of_client_sleep(path->sweep.decomposer->table, name);
    }
    sweep_add(&path->sweep, component, period->begin_ns, period->end_ns);
}

static void visit_period(const struct thread_period *period, void *opaque)
{
    struct client_path *path = opaque;
    const int64_t begin_ns = period->begin_ns, end_ns = period->end_ns;
    switch (period->state) {
    case THREAD_RUNS:
        sweep_core(path, period->next, begin_ns, end_ns, visit_running);
        break;
    case THREAD_READY:
        sweep_core(path, period->next ? period->next : period->before, begin_ns, end_ns,
                   visit_ready);
        break;
    case THREAD_THROTTLED:
        sweep_add(&path->sweep, COMPONENT_CLIENT_THROTTLED, begin_ns, end_ns);
        break;
    case THREAD_SLEEPS:
        add_sleep(path, period);
        break;
    case THREAD_UNKNOWN:
        add_to_stage(path, begin_ns, end_ns);
        break;
    }
}

// Until when every connection was full: the one that took the message was, after the message was
// due, until the latest reply before which as many requests were in flight on it as may be. How
// many were is counted back from the message's own send.
static int64_t full_until(const struct client_path *path, const struct thread_moment *moments,
                          size_t from, size_t to)
{
    const struct diagnosis_input *in = path->sweep.decomposer->in;
    const struct lifetime *life = path->sweep.life;
    const uint64_t depth = in->client_turns->depth;
    uint64_t in_flight = life->in_flight;
    if (depth == 0)
        return INT64_MIN;
    for (size_t i = to; i > from && to - i < MOMENTS_BACK; i--) {
        const struct lifetime *other = &in->lifetimes[moments[i - 1].value];
        if (other->connection != life->connection)
            continue;
        if (moments[i - 1].time_ns != other->stamp_ns[STAMP_REPLY_READ])
            in_flight -= in_flight > 0;
        else if (++in_flight >= depth)
            return moments[i - 1].time_ns;
    }
    return INT64_MIN;
}

static void find_turns(struct client_path *path, int64_t begin_ns, int64_t end_ns)
{
    size_t count;
    const struct thread_moment *moments = thread_moments_of(
        &path->sweep.decomposer->in->client_turns->moments, path->sweep.thread, &count);
    size_t from = moments ? thread_moments_before(moments, count, begin_ns) : 0;
    size_t to = moments ? thread_moments_before(moments, count, end_ns) : 0;
    path->full_ns = path->others_ns = INT64_MIN;
    if (from == to || path->stage == COMPONENT_CLIENT_STACK)
        return;
    path->others_ns = moments[to - 1].time_ns;
    if (path->stage == COMPONENT_CLIENT_QUEUE)
        path->full_ns = full_until(path, moments, from, to);
}

// --- receiving -----------------------------------------------------------------------------------

static void take_innermost(const struct span *innermost, int64_t begin_ns, int64_t end_ns,
                           void *context)
{
    (void)begin_ns;
    (void)end_ns;
    *(const struct span **)context = innermost;
}

// Receive processing that other tasks of its core kept waiting.
static void visit_receiving(const struct span *const *open, unsigned depth, int64_t begin_ns,
                            int64_t end_ns, void *opaque)
{
    struct client_path *path = opaque;
    const struct span *context = sweep_context(&path->sweep, open, depth);
    bool other = context && context->kind != SPAN_IDLE && context->kind != SPAN_UNKNOWN &&
                 !sweep_receives(&path->sweep, context) &&
                 !(context->kind == SPAN_TASK && context->id == path->sweep.thread);
    if (other)
        add_context(path, context, begin_ns, end_ns);
    else
        sweep_add(&path->sweep, path->stage, begin_ns, end_ns);
}

// Between machines the time is the wire's. On one, the reply is there at once, and what keeps it is
// what has the core that receives it: the load's own, if receive processing was there at the end.
static void sweep_network(struct client_path *path, int64_t begin_ns, int64_t end_ns)
{
    const struct diagnosis_input *in = path->sweep.decomposer->in;
    size_t count, at;
    const struct thread_stint *stints =
        host_timeline_stints(path->host, path->sweep.thread, &count);
    const struct core_timeline *core = NULL;
    const struct span *context = NULL;
    at = stints ? array_bound(0, count, i, stints[i].end_ns <= end_ns) : 0;
    if (in->client == in->server && at < count)
        core = host_timeline_core(path->host, stints[at].core);
    if (core && core->scheduled)
        core_timeline_pieces(core, end_ns, end_ns + 1, take_innermost, &context);
    if (context && sweep_receives(&path->sweep, context))
        core_timeline_stacks(core, begin_ns, end_ns, visit_receiving, path);
    else
        sweep_add(&path->sweep, path->stage, begin_ns, end_ns);
}

static void sweep_stage(struct decomposer *decomposer, const struct lifetime *life,
                        enum fixed_component stage, int64_t begin_ns, int64_t end_ns)
{
    const struct diagnosis_input *in = decomposer->in;
    const int64_t moved_ns = life->client_moved_ns;
    struct client_path path = {
        .sweep = {.decomposer = decomposer, .life = life, .role = ROLE_CLIENT},
        .host = in->client,
        .stage = stage};
    size_t count = 0;
    if (in->client && in->client_turns)
        path.sweep.thread = client_turns_thread(in->client_turns, life);
    if (path.sweep.thread)
        host_timeline_stints(in->client, path.sweep.thread, &count);
    decomposer->core = NO_CORE;
    if (count == 0) {
        decomposer_add(decomposer, stage, (double)(end_ns - begin_ns));
        return;
    }
    find_turns(&path, begin_ns, end_ns);
    path.full_ns -= path.full_ns > INT64_MIN ? moved_ns : 0;
    path.others_ns -= path.others_ns > INT64_MIN ? moved_ns : 0;
    if (stage == COMPONENT_NETWORK_TO_CLIENT || stage == COMPONENT_WAY_BACK)
        sweep_network(&path, begin_ns - moved_ns, end_ns - moved_ns);
    else
        thread_periods(in->client, path.sweep.thread, begin_ns - moved_ns, end_ns - moved_ns,
                       visit_period, &path);
}

// A request that has no connection yet waits for that, whatever the load's thread does.
void client_path_sweep(struct decomposer *decomposer, const struct lifetime *life,
                       enum fixed_component stage, int64_t begin_ns, int64_t end_ns)
{
    const int64_t moved_ns = life->client_moved_ns;
    struct opening opening;
    while (stage == COMPONENT_CLIENT_QUEUE &&
           opening_within(decomposer->in->openings, life, begin_ns - moved_ns, end_ns - moved_ns,
                          &opening)) {
        if (opening.begin_ns + moved_ns > begin_ns)
            sweep_stage(decomposer, life, stage, begin_ns, opening.begin_ns + moved_ns);
        decomposer->core = NO_CORE;
        decomposer_add(decomposer, COMPONENT_CLIENT_OPENING,
                       (double)(opening.end_ns - opening.begin_ns));
        begin_ns = opening.end_ns + moved_ns;
    }
    if (begin_ns < end_ns)
        sweep_stage(decomposer, life, stage, begin_ns, end_ns);
}
