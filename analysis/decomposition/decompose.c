// SPDX-License-Identifier: MIT
#include "analysis/decomposition/decompose.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/decomposition/client_path.h"
#include "analysis/decomposition/critical_path.h"
#include "analysis/decomposition/decomposer.h"
#include "analysis/decomposition/goroutine_path.h"
#include "analysis/decomposition/goroutine_sweep.h"
#include "analysis/decomposition/hand_overs.h"
#include "analysis/decomposition/hop_path.h"
#include "analysis/decomposition/machine_path.h"
#include "analysis/decomposition/peer_turn.h"
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
    } else if (context->kind == SPAN_TASK) {
        sweep_add_task(sweep, context, begin_ns, end_ns);
    } else {
        sweep_add_context(sweep, context, begin_ns, end_ns);
    }
}

// When the core last began to handle interrupts, of those pieces that were visited, and when first.
struct interrupts {
    bool now;
    int64_t since_ns, first_ns; // INT64_MAX: there was none
};

static void visit_interrupts(const struct span *const *open, unsigned depth, int64_t begin_ns,
                             int64_t end_ns, void *opaque)
{
    struct interrupts *interrupts = opaque;
    bool now = false;
    (void)end_ns;
    for (unsigned i = 0; i < depth; i++)
        now |= open[i]->kind == SPAN_IRQ || open[i]->kind == SPAN_SOFTIRQ ||
               open[i]->kind == SPAN_VECTOR;
    if (now && !interrupts->now)
        interrupts->since_ns = begin_ns;
    if (now && interrupts->first_ns == INT64_MAX)
        interrupts->first_ns = begin_ns;
    interrupts->now = now;
}

static struct interrupts interrupts_until(const struct core_timeline *core, int64_t begin_ns,
                                          int64_t end_ns)
{
    struct interrupts interrupts = {.since_ns = INT64_MAX, .first_ns = INT64_MAX};
    core_timeline_stacks(core, begin_ns, end_ns, visit_interrupts, &interrupts);
    return interrupts;
}

// Until when the NIC kept a packet to itself, as it does to tell of several by one interrupt: the
// begin of the interrupts in which the kernel then took the packet. Nothing that the core runs
// before holds an interrupt up, so it is no cause. Where it was in none then, but was as it handed
// the data over, another core took the packet and sent it on to this one (RPS): its own interrupts
// before say nothing. Where a thread did all of it (ksoftirqd, busy polling) the first was the one.
static int64_t told_by_nic(const struct core_timeline *core, const struct lifetime *life,
                           int64_t begin_ns, int64_t end_ns)
{
    int64_t told = life->told_ns < end_ns ? life->told_ns : end_ns;
    int64_t handoff = life->stamp_ns[STAMP_HANDOFF];
    if (told <= begin_ns)
        return begin_ns;
    struct interrupts interrupts = interrupts_until(core, begin_ns, told);
    if (interrupts.now)
        return interrupts.since_ns;
    bool passed_on = interrupts_until(core, handoff - 1, handoff).now;
    return passed_on || interrupts.first_ns == INT64_MAX ? told : interrupts.first_ns;
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
    int64_t told_ns = told_by_nic(core, life, begin_ns, end_ns);
    sweep_add(&sweep, COMPONENT_INTERRUPT_DELIVERY, begin_ns, told_ns);
    core_timeline_stacks(core, told_ns, end_ns, visit_receive_core, &sweep);
}

// --- the whole life ------------------------------------------------------------------------------

// The thread that sent the reply.
static uint32_t replying_thread(const struct decomposer *decomposer, const struct lifetime *life)
{
    const struct application_calls *calls = decomposer->in->calls;
    return calls && life->send_call != NO_CALL ? calls->items[life->send_call].thread
                                               : life->thread;
}

// When another thread than the receiving one turned to the message: when it had sent what it sent
// before. Parts of the same reply do not count.
static int64_t turned_to(const struct decomposer *decomposer, const struct lifetime *life,
                         int64_t received_ns)
{
    const struct application_call *calls = decomposer->in->calls->items;
    const struct application_call *reply = &calls[life->send_call];
    uint32_t at = life->send_call;
    while (at > 0 && calls[at - 1].thread == reply->thread &&
           calls[at - 1].connection == reply->connection && calls[at - 1].entry_ns > received_ns)
        at--;
    return at > 0 && calls[at - 1].thread == reply->thread ? calls[at - 1].exit_ns : INT64_MIN;
}

// When the receiving thread turned to something else, at the latest.
static int64_t turned_away(const struct decomposer *decomposer, const struct lifetime *life)
{
    const struct application_calls *calls = decomposer->in->calls;
    uint32_t next = life->receive_call + 1;
    bool known = life->receive_call != NO_CALL && next < calls->count &&
                 calls->items[next].thread == life->thread;
    return known ? calls->items[next].entry_ns : INT64_MAX;
}

// Where a life's stages end, with stamps that are out of order already clamped.
struct stage_ends {
    int64_t at[STAGES];
    int64_t left;  // the receiving thread had handed the message over
    int64_t taken; // the replying thread turned to it
    int64_t sent;  // the call that sends the reply returned, or the reply was transmitted
};

static int64_t clamp_time(int64_t time_ns, int64_t from_ns, int64_t to_ns)
{
    return time_ns < from_ns ? from_ns : time_ns > to_ns ? to_ns : time_ns;
}

static struct stage_ends stage_ends_of(const struct decomposer *decomposer,
                                       const struct lifetime *life)
{
    struct stage_ends ends;
    ends.at[STAMP_INTENDED] = life->stamp_ns[STAMP_INTENDED];
    for (int kind = STAMP_SEND; kind < STAGES; kind++)
        ends.at[kind] = ends.at[kind - 1] + (int64_t)life->stage_ns[kind];
    int64_t received = ends.at[STAMP_APPLICATION], reply = ends.at[STAMP_REPLY];
    ends.left = ends.taken = reply;
    if (replying_thread(decomposer, life) != life->thread) {
        ends.taken = clamp_time(turned_to(decomposer, life, received), received, reply);
        ends.left = clamp_time(turned_away(decomposer, life), received, ends.taken);
    }
    ends.sent = ends.at[STAMP_SERVER_TX];
    if (decomposer->in->calls && life->send_call != NO_CALL)
        ends.sent =
            clamp_time(decomposer->in->calls->items[life->send_call].exit_ns, reply, ends.sent);
    return ends;
}

// Restricts the life to one of its parts: the stages before and after get no time.
static void keep_part(struct stage_ends *ends, enum lifetime_part part)
{
    int64_t from = ends->at[lifetime_part_begin(part)], to = ends->at[lifetime_part_end(part)];
    for (int kind = 0; kind < STAGES; kind++)
        ends->at[kind] = clamp_time(ends->at[kind], from, to);
    ends->left = clamp_time(ends->left, from, to);
    ends->taken = clamp_time(ends->taken, from, to);
    ends->sent = clamp_time(ends->sent, from, to);
}

// Cuts the next hold-up out of [*at_ns, to_ns): its time goes to its cause, and *at_ns moves behind
// it. Returns how far from there on nothing holds the message up.
static int64_t cut_holdups(struct decomposer *decomposer, int64_t *at_ns, int64_t to_ns)
{
    for (size_t i = 0; i < decomposer->holdup_count; i++) {
        const struct holdup *holdup = &decomposer->holdups[i];
        if (holdup->end_ns <= *at_ns)
            continue;
        if (*at_ns >= to_ns)
            return to_ns;
        if (holdup->begin_ns > *at_ns)
            return holdup->begin_ns < to_ns ? holdup->begin_ns : to_ns;
        int64_t until = holdup->end_ns < to_ns ? holdup->end_ns : to_ns;
        decomposer_add(decomposer, component_of_holdup(decomposer->table, holdup),
                       (double)(until - *at_ns));
        *at_ns = until;
    }
    return to_ns;
}

static void add_between(struct decomposer *decomposer, enum fixed_component component,
                        int64_t begin_ns, int64_t end_ns)
{
    while (begin_ns < end_ns) {
        int64_t until = cut_holdups(decomposer, &begin_ns, end_ns);
        if (until > begin_ns)
            decomposer_add(decomposer, component, (double)(until - begin_ns));
        begin_ns = until;
    }
}

// The same with a stay between two hops.
static int64_t cut_stays(struct decomposer *decomposer, const struct lifetime *life, int64_t *at_ns,
                         int64_t to_ns)
{
    for (size_t i = 0; i < decomposer->stay_count; i++) {
        const struct hop_stay *stay = &decomposer->stays[i];
        if (stay->end_ns <= *at_ns)
            continue;
        if (*at_ns >= to_ns)
            return to_ns;
        if (stay->begin_ns > *at_ns)
            return stay->begin_ns < to_ns ? stay->begin_ns : to_ns;
        int64_t until = stay->end_ns < to_ns ? stay->end_ns : to_ns;
        if (stay->tap < HOPS_MAX && stay->part != STAY_IN_QUEUE)
            machine_path_sweep(decomposer, life, stay, *at_ns, until);
        else
            hop_path_sweep(decomposer, life, stay, *at_ns, until);
        *at_ns = until;
    }
    return to_ns;
}

static enum fixed_component component_of_way_in(const struct lifetime *life)
{
    return life->untaken >> STAMP_NIC & 1 ? COMPONENT_WAY_IN : COMPONENT_NETWORK_TO_SERVER;
}

static enum fixed_component component_of_way_back(const struct lifetime *life)
{
    bool undivided = (life->untaken >> STAMP_SERVER_TX & 1) != 0;
    if (!isfinite(life->hosts_error_ns))
        return undivided ? COMPONENT_BOTH_WAYS : COMPONENT_NETWORK_BOTH_WAYS;
    return undivided ? COMPONENT_WAY_BACK : COMPONENT_NETWORK_TO_CLIENT;
}

// Cuts the next time out of [*at_ns, to_ns) in which the server had not read what it had of the
// request already: it is the thread's, whatever the client did, which could not send the rest.
static int64_t cut_unread(struct decomposer *decomposer, const struct lifetime *life,
                          int64_t *at_ns, int64_t to_ns)
{
    int64_t ready = life->part_ready_ns, read = life->part_read_ns;
    if (read <= *at_ns || ready >= to_ns || ready >= read)
        return to_ns;
    if (ready > *at_ns)
        return ready;
    int64_t until = read < to_ns ? read : to_ns;
    critical_path_sweep(decomposer, life, life->thread, *at_ns, until, false);
    *at_ns = until;
    return to_ns;
}

static void add_stage(struct decomposer *decomposer, const struct lifetime *life,
                      const struct stage_ends *ends, enum stamp_kind stage,
                      enum fixed_component component)
{
    int64_t at = ends->at[stage - 1], to = ends->at[stage];
    while (at < to) {
        int64_t until = cut_holdups(decomposer, &at, to);
        until = cut_stays(decomposer, life, &at, until);
        if (stage <= STAMP_NIC)
            until = cut_unread(decomposer, life, &at, until);
        if (until > at && stage != STAMP_NIC)
            client_path_sweep(decomposer, life, component, at, until);
        else if (until > at)
            decomposer_add(decomposer, component, (double)(until - at));
        at = until;
    }
}

static void sweep_receiving(struct decomposer *decomposer, const struct lifetime *life,
                            const struct stage_ends *ends)
{
    int64_t at = ends->at[STAMP_NIC], to = ends->at[STAMP_HANDOFF];
    while (at < to) {
        int64_t until = cut_holdups(decomposer, &at, to);
        if (until > at)
            sweep_receive_core(decomposer, life, at, until);
        at = until;
    }
}

// From the hand-off until the thread that read the message turned to it, as far as its connection
// lay in a queue until then. Returns up to when.
static int64_t sweep_queued(struct decomposer *decomposer, const struct lifetime *life,
                            int64_t begin_ns, int64_t received_ns)
{
    struct queued_connection queued;
    if (!queued_connection_find(decomposer->in, life, begin_ns, received_ns, &queued))
        return begin_ns;
    critical_path_sweep(decomposer, life, life->thread, begin_ns, queued.begin_ns, false);
    critical_path_free_worker(decomposer, life, life->thread, queued.begin_ns, queued.end_ns, true);
    return queued.end_ns;
}

static void sweep_service(struct decomposer *decomposer, const struct lifetime *life,
                          const struct stage_ends *ends)
{
    uint32_t replier = replying_thread(decomposer, life);
    int64_t received = ends->at[STAMP_APPLICATION], reply = ends->at[STAMP_REPLY];
    int64_t begin = sweep_queued(decomposer, life, ends->at[STAMP_HANDOFF], received);
    struct hand_over over;
    if (goroutine_waited(decomposer->in, life, replier, received, reply)) {
        critical_path_sweep(decomposer, life, life->thread, begin, received, false);
        goroutine_sweep(decomposer, life, replier, received, reply);
    } else if (hand_over_find(decomposer->in, life, replier, received, ends->left, ends->taken,
                              reply, &over)) {
        critical_path_sweep(decomposer, life, life->thread, begin, over.left_ns, false);
        critical_path_given(decomposer, life, &over.sleep, over.left_ns, over.sleep.begin_ns);
        critical_path_sweep(decomposer, life, replier, over.sleep.begin_ns, reply, false);
    } else {
        critical_path_sweep(decomposer, life, life->thread, begin, ends->left, false);
        critical_path_free_worker(decomposer, life, replier, ends->left, ends->taken, false);
        critical_path_sweep(decomposer, life, replier, ends->taken, reply, false);
    }
    critical_path_sweep(decomposer, life, replier, ends->at[STAMP_REPLY], ends->sent, true);
    add_between(decomposer, COMPONENT_SEND_QUEUE, ends->sent, ends->at[STAMP_SERVER_TX]);
}

static void add_way_in(struct decomposer *decomposer, const struct lifetime *life, int64_t begin_ns,
                       int64_t end_ns)
{
    while (begin_ns < end_ns) {
        int64_t until = cut_holdups(decomposer, &begin_ns, end_ns);
        until = cut_unread(decomposer, life, &begin_ns, until);
        if (until > begin_ns)
            decomposer_add(decomposer, component_of_way_in(life), (double)(until - begin_ns));
        begin_ns = until;
    }
}

// What became of a request at the server that it was passed on to, between two instants.
static void follow_to_peer(struct decomposer *decomposer, const struct peer_wait *wait,
                           int64_t begin_ns, int64_t end_ns)
{
    const struct diagnosis_input *in = decomposer->in;
    const struct lifetime *life = &in->peers->lives.items[wait->life];
    const struct decomposer above = *decomposer;
    struct stage_ends ends = stage_ends_of(decomposer, life);
    char waited[CAUSE_NAME_BYTES];
    snprintf(waited, sizeof waited, "waiting for %s", peer_turn_name(in, wait));
    for (int kind = 0; kind < STAGES; kind++)
        ends.at[kind] = clamp_time(ends.at[kind], begin_ns, end_ns);
    ends.left = clamp_time(ends.left, begin_ns, end_ns);
    ends.taken = clamp_time(ends.taken, begin_ns, end_ns);
    ends.sent = clamp_time(ends.sent, begin_ns, end_ns);
    decomposer->tier = peer_turn_tier(in, wait);
    decomposer->waited = waited;
    decomposer->asker = wait->thread;
    decomposer->tiers++;
    decomposer->holdups = holdups_of(&in->peers->holdups, wait->life, &decomposer->holdup_count);
    add_way_in(decomposer, life, begin_ns, ends.at[STAMP_NIC]);
    sweep_receiving(decomposer, life, &ends);
    sweep_service(decomposer, life, &ends);
    add_between(decomposer, component_of_way_back(life), ends.at[STAMP_SERVER_TX], end_ns);
    decomposer->tier = above.tier;
    decomposer->waited = above.waited;
    decomposer->asker = above.asker;
    decomposer->tiers = above.tiers;
    decomposer->holdups = above.holdups;
    decomposer->holdup_count = above.holdup_count;
}

int decompose(struct decomposer *decomposer, uint64_t lifetime, struct component_share_array *out,
              struct path_share_array *paths)
{
    const struct lifetime *life = &decomposer->in->lifetimes[lifetime];
    struct stage_ends ends = stage_ends_of(decomposer, life);
    keep_part(&ends, decomposer->in->part);
    decomposer->follow = follow_to_peer;
    decomposer->holdup_count = 0;
    if (decomposer->in->holdups)
        decomposer->holdups =
            holdups_of(decomposer->in->holdups, lifetime, &decomposer->holdup_count);
    decomposer->stay_count = 0;
    if (decomposer->in->hops)
        decomposer->stays = hop_stays_of(decomposer->in->hops, lifetime, &decomposer->stay_count);
    decomposer->traced = decomposer->in->server != NULL;
    add_stage(decomposer, life, &ends, STAMP_SEND, COMPONENT_CLIENT_QUEUE);
    add_stage(decomposer, life, &ends, STAMP_CLIENT_TX, COMPONENT_CLIENT_STACK);
    add_stage(decomposer, life, &ends, STAMP_NIC, component_of_way_in(life));
    add_stage(decomposer, life, &ends, STAMP_CLIENT_RX, component_of_way_back(life));
    add_stage(decomposer, life, &ends, STAMP_REPLY_READ, COMPONENT_CLIENT_RECEIVE);
    sweep_receiving(decomposer, life, &ends);
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
