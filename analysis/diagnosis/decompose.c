// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/decompose.h"

#include <math.h>
#include <string.h>

#include "analysis/diagnosis/decomposer.h"
#include "analysis/timeline/pauses.h"
#include "base/array.h"

// --- role R: from M(n) to M(h) on the core that did the hand-off ---------------------------------

// Like sweep_overhead, for the records that the message's own segment and hand-off wrote.
static int64_t take_packet_overhead(struct sweep *sweep, int64_t begin_ns, int64_t end_ns)
{
    double cost = sweep->decomposer->in->overhead.packet_ns;
    if (cost <= 0 || sweep->decomposer->stack.count > 0 ||
        end_ns < sweep->life->stamp_ns[STAMP_HANDOFF])
        return begin_ns;
    int64_t until = begin_ns + (int64_t)cost;
    until = until < end_ns ? until : end_ns;
    decomposer_add(sweep->decomposer, COMPONENT_OVERHEAD_R, (double)(until - begin_ns));
    return until;
}

static void add_blocking_r(struct sweep *sweep, int64_t begin_ns, int64_t end_ns)
{
    sweep_add(sweep, COMPONENT_BLOCKING_R, begin_ns, end_ns);
}

static void visit_receive_core(const struct span *const *open, unsigned depth, int64_t begin_ns,
                               int64_t end_ns, void *opaque)
{
    struct sweep *sweep = opaque;
    const struct span *context = sweep_context(sweep, open, depth);
    begin_ns = sweep_overhead(sweep, begin_ns, end_ns);
    if (!context || context->kind == SPAN_UNKNOWN) {
        sweep_add(sweep, component_of_unknown(sweep->decomposer->table, context, ROLE_R), begin_ns,
                  end_ns);
    } else if (context->kind == SPAN_IDLE) {
        sweep_add(sweep, sweep->receiving ? COMPONENT_IDLE_R : COMPONENT_INTERRUPT_DELIVERY,
                  begin_ns, end_ns);
    } else if (sweep_receives(sweep, context)) {
        // What it did up to the previous hand-off was for other messages.
        int64_t turn = sweep->last_handoff_ns;
        turn = turn < begin_ns ? begin_ns : turn > end_ns ? end_ns : turn;
        begin_ns = sweep_add_packets(sweep, begin_ns, turn, sweep->last_handoff_ns, add_blocking_r);
        sweep_add(sweep, COMPONENT_BLOCKING_R, begin_ns, turn);
        turn = take_packet_overhead(sweep, turn, end_ns);
        sweep_add_context(sweep, context, turn, end_ns);
        sweep->receiving = true;
    } else {
        uint32_t whose = context->kind == SPAN_TASK ? sweep_application_of(sweep, context->id)
                                                    : (uint32_t)NO_APPLICATION;
        if (whose == NO_APPLICATION)
            sweep_add_context(sweep, context, begin_ns, end_ns);
        else if (whose == sweep->life->application)
            sweep_add(sweep, COMPONENT_BLOCKING_R, begin_ns, end_ns);
        else
            sweep_add_application(sweep, whose, begin_ns, end_ns);
    }
}

static void sweep_receive_core(struct decomposer *decomposer, const struct lifetime *life,
                               int64_t begin_ns, int64_t end_ns)
{
    const struct host_timeline *server = decomposer->in->server;
    const struct core_timeline *core =
        server ? host_timeline_core(server, life->stamp_core[STAMP_HANDOFF]) : NULL;
    if (!core) {
        decomposer_add(decomposer, COMPONENT_UNKNOWN_R, (double)(end_ns - begin_ns));
        return;
    }
    decomposer->traced &= core_timeline_traced(core, begin_ns, end_ns);
    decomposer->core = core->core;
    size_t before = core_timeline_handoffs_before(core, life->stamp_ns[STAMP_HANDOFF]);
    struct sweep sweep = {.decomposer = decomposer,
                          .life = life,
                          .core = core,
                          .begin_ns = begin_ns,
                          .role = ROLE_R,
                          .last_handoff_ns = before ? core->handoffs.items[before - 1] : INT64_MIN};
    core_timeline_stacks(core, begin_ns, end_ns, visit_receive_core, &sweep);
}

// --- role A: from M(h) on, on the cores that the message's thread ran on -------------------------

// The innermost function that a thread was in, not counting the scheduler's.
static void find_function(const struct span *const *open, unsigned depth, int64_t begin_ns,
                          int64_t end_ns, void *opaque)
{
    struct sweep *sweep = opaque;
    const struct component_table *table = sweep->decomposer->table;
    (void)begin_ns;
    (void)end_ns;
    sweep->gap_function = NULL;
    for (unsigned at = depth; at > 0 && open[at - 1]->kind == SPAN_FUNCTION; at--) {
        const char *name = table->host->names.items[open[at - 1]->name];
        const char *category = categories_of_function(table->categories, name);
        if (category && strcmp(category, "scheduling") == 0)
            continue;
        sweep->gap_function = name;
        return;
    }
}

// Idle time of a thread is named after the function in which it left its core, where functions are
// traced.
static int64_t gap_component(struct sweep *sweep)
{
    const struct thread_stint *before = sweep->before;
    const struct core_timeline *core =
        before ? host_timeline_core(sweep->decomposer->in->server, before->core) : NULL;
    sweep->gap_function = NULL;
    if (core && core_timeline_traced(core, before->end_ns - 1, before->end_ns))
        core_timeline_stacks(core, before->end_ns - 1, before->end_ns, find_function, sweep);
    return sweep->gap_function ? component_of_gap(sweep->decomposer->table, sweep->gap_function)
                               : COMPONENT_IDLE_A;
}

static void add_receiver(struct sweep *sweep, int64_t begin_ns, int64_t end_ns)
{
    sweep_add_context(sweep, sweep->receiver, begin_ns, end_ns);
}

static void visit_application_core(const struct span *const *open, unsigned depth, int64_t begin_ns,
                                   int64_t end_ns, void *opaque)
{
    struct sweep *sweep = opaque;
    const struct span *context = sweep_context(sweep, open, depth);
    begin_ns = sweep_overhead(sweep, begin_ns, end_ns);
    if (!context || context->kind == SPAN_UNKNOWN) {
        sweep_add(sweep, component_of_unknown(sweep->decomposer->table, context, ROLE_A), begin_ns,
                  end_ns);
    } else if (context->kind == SPAN_IDLE) {
        int64_t woken = sweep->runnable_since_ns;
        woken = woken < begin_ns ? begin_ns : woken > end_ns ? end_ns : woken;
        if (woken > begin_ns)
            sweep_add(sweep, gap_component(sweep), begin_ns, woken);
        sweep_add(sweep, COMPONENT_WAKE_UP, woken, end_ns);
    } else if (context->kind != SPAN_TASK) {
        sweep->receiver = context;
        if (sweep_receives(sweep, context))
            begin_ns = sweep_add_packets(sweep, begin_ns, end_ns, context->end_ns, add_receiver);
        sweep_add_context(sweep, context, begin_ns, end_ns);
    } else if (context->id == sweep->thread) {
        if (sweep->replied)
            sweep_add(sweep, COMPONENT_SERVER_STACK, begin_ns, end_ns);
        else
            decompose_thread_time(sweep->decomposer, sweep->life, sweep->thread, begin_ns, end_ns);
    } else if (sweep->moved) {
        sweep_add(sweep, COMPONENT_MIGRATION, begin_ns, end_ns);
    } else {
        uint32_t whose = sweep_application_of(sweep, context->id);
        if (whose == NO_APPLICATION)
            sweep_add_context(sweep, context, begin_ns, end_ns);
        else if (whose == sweep->life->application)
            sweep_add(sweep, COMPONENT_BLOCKING_THREAD_A, begin_ns, end_ns);
        else
            sweep_add_application(sweep, whose, begin_ns, end_ns);
    }
}

static void sweep_core(struct sweep *sweep, uint16_t number, int64_t begin_ns, int64_t end_ns)
{
    const struct core_timeline *core = host_timeline_core(sweep->decomposer->in->server, number);
    sweep->decomposer->traced &= core && core_timeline_traced(core, begin_ns, end_ns);
    sweep->decomposer->core = core ? core->core : NO_CORE;
    sweep->core = core;
    sweep->begin_ns = begin_ns;
    if (core && (core->scheduled || !sweep->moved))
        core_timeline_stacks(core, begin_ns, end_ns, visit_application_core, sweep);
    else
        sweep_add(sweep, sweep->moved ? COMPONENT_MIGRATION : COMPONENT_UNKNOWN_A, begin_ns,
                  end_ns);
}

// A thread that sleeps waits for no core, whatever the core does meanwhile. Returns where that
// ends, no earlier than `begin_ns`.
static int64_t sweep_pause(struct sweep *sweep, const struct thread_stint *before, int64_t begin_ns,
                           int64_t resumed_ns)
{
    uint32_t pause;
    int64_t woken = sweep->runnable_since_ns < resumed_ns ? sweep->runnable_since_ns : resumed_ns;
    if (woken <= begin_ns || !pause_after(sweep->decomposer->in->server, before, &pause))
        return begin_ns;
    sweep->decomposer->core = NO_CORE;
    sweep_add(sweep, component_of_pause(sweep->decomposer->table, pause), begin_ns, woken);
    return woken;
}

// A thread that is ready to run may be moved by the scheduler: it then waits for the core it was
// moved to. Returns when it begins to wait for the core on which it runs next.
static int64_t sweep_moves(struct sweep *sweep, const struct thread_stint *before, int64_t begin_ns,
                           int64_t resumed_ns)
{
    size_t count;
    const struct thread_moment *moves =
        thread_moments_of(&sweep->decomposer->in->server->moves, before->thread, &count);
    size_t next = moves ? thread_moments_before(moves, count, before->begin_ns) : 0;
    uint16_t core = before->core;
    for (; next < count && moves[next].time_ns < resumed_ns; next++) {
        int64_t until = moves[next].time_ns;
        sweep->moved = core != before->core;
        if (until > begin_ns) {
            sweep_core(sweep, core, begin_ns, until);
            begin_ns = until;
        }
        core = (uint16_t)moves[next].value;
    }
    sweep->moved = core != before->core;
    if (sweep->moved && resumed_ns > begin_ns) {
        sweep_core(sweep, core, begin_ns, resumed_ns);
        begin_ns = resumed_ns;
    }
    sweep->moved = false;
    return begin_ns;
}

// When the thread, having stopped running at `stopped_ns`, was made runnable again.
static int64_t woken_after(const struct waking *wakings, size_t count, int64_t stopped_ns)
{
    size_t low = array_bound(0, count, at, wakings[at].time_ns < stopped_ns);
    return low < count ? wakings[low].time_ns : INT64_MAX;
}

static size_t first_stint_ending_after(const struct thread_stint *stints, size_t count,
                                       int64_t time_ns)
{
    return array_bound(0, count, at, stints[at].end_ns <= time_ns);
}

// While a thread does not run, it waits for the core that it runs on next.
static void sweep_application_cores(struct decomposer *decomposer, const struct lifetime *life,
                                    uint32_t thread, int64_t begin_ns, int64_t end_ns, bool replied)
{
    const struct host_timeline *server = decomposer->in->server;
    struct sweep sweep = {.decomposer = decomposer,
                          .life = life,
                          .role = ROLE_A,
                          .thread = thread,
                          .replied = replied};
    if (!server) {
        sweep_add(&sweep, COMPONENT_UNKNOWN_A, begin_ns, end_ns);
        return;
    }
    size_t stint_count, waking_count;
    const struct thread_stint *stints = host_timeline_stints(server, thread, &stint_count);
    const struct waking *wakings = host_timeline_wakings(server, thread, &waking_count);
    size_t stint = first_stint_ending_after(stints, stint_count, begin_ns);
    for (; begin_ns < end_ns; stint++) {
        bool known = stint < stint_count;
        int64_t until = known && stints[stint].end_ns < end_ns ? stints[stint].end_ns : end_ns;
        uint16_t core = known ? stints[stint].core : life->stamp_core[STAMP_APPLICATION];
        int64_t stopped = stint > 0 ? stints[stint - 1].end_ns : INT64_MIN;
        sweep.before = stint > 0 ? &stints[stint - 1] : NULL;
        sweep.runnable_since_ns = woken_after(wakings, waking_count, stopped);
        if (stint > 0) {
            int64_t resumed =
                known && stints[stint].begin_ns < until ? stints[stint].begin_ns : until;
            begin_ns = sweep_pause(&sweep, &stints[stint - 1], begin_ns, resumed);
            begin_ns = sweep_moves(&sweep, &stints[stint - 1], begin_ns, resumed);
        }
        sweep_core(&sweep, core, begin_ns, until);
        begin_ns = until;
    }
}

// --- the whole life ------------------------------------------------------------------------------

// The thread that sent the reply.
static uint32_t replying_thread(const struct decomposer *decomposer, const struct lifetime *life)
{
    const struct application_calls *calls = decomposer->in->calls;
    return calls && life->send_call != NO_CALL ? calls->items[life->send_call].thread
                                               : life->thread;
}

// When the receiving thread handed the message to the replying one: when it last woke it before the
// reply. A thread that needed no waking was busy with something else until its call before the
// reply ended.
static int64_t handed_over(const struct decomposer *decomposer, const struct lifetime *life,
                           uint32_t thread, int64_t from_ns, int64_t to_ns)
{
    const struct application_calls *calls = decomposer->in->calls;
    size_t count = 0;
    const struct waking *wakings =
        decomposer->in->server ? host_timeline_wakings(decomposer->in->server, thread, &count)
                               : NULL;
    while (count > 0 && wakings[count - 1].time_ns > to_ns)
        count--;
    if (count > 0 && wakings[count - 1].time_ns > from_ns)
        return wakings[count - 1].time_ns;
    if (life->send_call > 0 && calls->items[life->send_call - 1].thread == thread &&
        calls->items[life->send_call - 1].exit_ns > from_ns)
        return calls->items[life->send_call - 1].exit_ns;
    return from_ns;
}

// Where a life's stages end, with stamps that are out of order already clamped.
struct stage_ends {
    int64_t at[STAGES];
    int64_t over; // when the replying thread had the message
};

static struct stage_ends stage_ends_of(const struct decomposer *decomposer,
                                       const struct lifetime *life)
{
    struct stage_ends ends;
    uint32_t replier = replying_thread(decomposer, life);
    ends.at[STAMP_INTENDED] = life->stamp_ns[STAMP_INTENDED];
    for (int kind = STAMP_SEND; kind < STAGES; kind++)
        ends.at[kind] = ends.at[kind - 1] + (int64_t)life->stage_ns[kind];
    ends.over = ends.at[STAMP_REPLY];
    if (replier != life->thread)
        ends.over = handed_over(decomposer, life, replier, ends.at[STAMP_APPLICATION], ends.over);
    return ends;
}

static int64_t clamp_time(int64_t time_ns, int64_t from_ns, int64_t to_ns)
{
    return time_ns < from_ns ? from_ns : time_ns > to_ns ? to_ns : time_ns;
}

// Restricts the life to one of its parts: the stages before and after get no time.
static void keep_part(struct stage_ends *ends, enum lifetime_part part)
{
    int64_t from = ends->at[lifetime_part_begin(part)], to = ends->at[lifetime_part_end(part)];
    for (int kind = 0; kind < STAGES; kind++)
        ends->at[kind] = clamp_time(ends->at[kind], from, to);
    ends->over = clamp_time(ends->over, from, to);
}

static void add_stage(struct decomposer *decomposer, const struct stage_ends *ends,
                      enum stamp_kind stage, enum fixed_component component)
{
    if (ends->at[stage] > ends->at[stage - 1])
        decomposer_add(decomposer, component, (double)(ends->at[stage] - ends->at[stage - 1]));
}

static void sweep_service(struct decomposer *decomposer, const struct lifetime *life,
                          const struct stage_ends *ends)
{
    uint32_t replier = replying_thread(decomposer, life);
    sweep_application_cores(decomposer, life, life->thread, ends->at[STAMP_HANDOFF], ends->over,
                            false);
    sweep_application_cores(decomposer, life, replier, ends->over, ends->at[STAMP_REPLY], false);
    sweep_application_cores(decomposer, life, replier, ends->at[STAMP_REPLY],
                            ends->at[STAMP_SERVER_TX], true);
}

int decompose(struct decomposer *decomposer, uint64_t lifetime, struct component_share_array *out,
              struct path_share_array *paths)
{
    const struct lifetime *life = &decomposer->in->lifetimes[lifetime];
    struct stage_ends ends = stage_ends_of(decomposer, life);
    keep_part(&ends, decomposer->in->part);
    decomposer->traced = decomposer->in->server != NULL;
    add_stage(decomposer, &ends, STAMP_SEND, COMPONENT_CLIENT_QUEUE);
    add_stage(decomposer, &ends, STAMP_CLIENT_TX, COMPONENT_CLIENT_STACK);
    add_stage(decomposer, &ends, STAMP_NIC, COMPONENT_NETWORK_TO_SERVER);
    add_stage(decomposer, &ends, STAMP_CLIENT_RX,
              isfinite(life->hosts_error_ns) ? COMPONENT_NETWORK_TO_CLIENT
                                             : COMPONENT_NETWORK_BOTH_WAYS);
    add_stage(decomposer, &ends, STAMP_REPLY_READ, COMPONENT_CLIENT_RECEIVE);
    if (ends.at[STAMP_HANDOFF] > ends.at[STAMP_NIC])
        sweep_receive_core(decomposer, life, ends.at[STAMP_NIC], ends.at[STAMP_HANDOFF]);
    sweep_service(decomposer, life, &ends);
    for (size_t i = 0; i < decomposer->capacity; i++) {
        double ns = decomposer->ns[i];
        decomposer->ns[i] = 0;
        if (ns > 0 &&
            array_push(out, (struct component_share){
                                .lifetime = lifetime, .component = (uint32_t)i, .ns = ns}) < 0)
            decomposer->out_of_memory = true;
    }
    if (call_paths_take(&decomposer->paths, decomposer->traced ? paths : NULL) < 0)
        decomposer->out_of_memory = true;
    return decomposer->out_of_memory ? -1 : 0;
}
