// SPDX-License-Identifier: MIT
//
// A thread's time is cut at the entries and exits of its socket calls. The time in a call, and
// after it until the next, belongs to the call's connection; more precisely, what lies between a
// receive or a send and a following send on the same connection is the work for the requests that
// this send answers.
#include "analysis/diagnosis/blocking.h"

#include "analysis/timeline/pauses.h"

enum owner { OWNER_SELF, OWNER_SHARED, OWNER_NOBODY, OWNER_CONNECTION, OWNER_OTHER };

// Whom the time inside a call belongs to.
static enum owner owner_of_call(const struct lifetime *life, const struct application_calls *calls,
                                uint32_t call)
{
    if (call == life->receive_call || call == life->send_call)
        return OWNER_SELF;
    if (calls->items[call].kind == CALL_WAIT)
        return OWNER_NOBODY;
    return calls->items[call].connection == calls->items[life->receive_call].connection
               ? OWNER_CONNECTION
               : OWNER_OTHER;
}

// Whom the time between a call and the thread's next call (NO_CALL: none) belongs to.
static enum owner owner_after_call(const struct lifetime *life,
                                   const struct application_calls *calls, uint32_t call,
                                   uint32_t next)
{
    const struct application_call *now = &calls->items[call];
    if (next != NO_CALL && next == life->send_call && now->thread != life->thread)
        return OWNER_SELF; // another thread took it over: it received nothing on this connection
    bool answers = next != NO_CALL && calls->items[next].kind == CALL_SEND &&
                   calls->items[next].connection == now->connection &&
                   (now->kind == CALL_RECEIVE || now->kind == CALL_SEND);
    enum owner owner = owner_of_call(life, calls, answers ? next : call);
    // A receive may return the bytes of several requests, and a send may answer several: work after
    // such a receive, or before such a send, is shared by all of them.
    bool common = answers || now->kind == CALL_RECEIVE;
    return owner == OWNER_SELF && common && life->sharing > 1 ? OWNER_SHARED : owner;
}

static void add_thread_time(struct decomposer *decomposer, const struct lifetime *life,
                            uint32_t thread, enum owner owner, int64_t begin_ns, int64_t end_ns)
{
    if (end_ns <= begin_ns)
        return;
    double share = 1;
    switch (owner) {
    case OWNER_CONNECTION:
        decomposer_add_piece(decomposer, COMPONENT_BLOCKING_CONNECTION_A, begin_ns, end_ns, 1);
        return;
    case OWNER_OTHER:
        decomposer_add_piece(decomposer, COMPONENT_BLOCKING_A, begin_ns, end_ns, 1);
        return;
    case OWNER_SHARED: // in which order they were served is unknown: each gets an equal part
        share = 1.0 / life->sharing;
        decomposer_add(decomposer, COMPONENT_BLOCKING_CONNECTION_A,
                       (double)(end_ns - begin_ns) * (1 - share));
        break;
    case OWNER_SELF:
    case OWNER_NOBODY:
        break;
    }
    double faults = 0; // where functions are traced they show the fault themselves
    if (decomposer->stack.count == 0)
        faults = page_fault_ns(decomposer->in->server, thread, begin_ns, end_ns) * share;
    decomposer_add(decomposer, COMPONENT_PAGE_FAULTS, faults);
    decomposer_add_piece(decomposer, COMPONENT_APPLICATION, begin_ns, end_ns, share);
    decomposer_add(decomposer, COMPONENT_APPLICATION, -faults);
}

static int64_t earlier_time(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// The thread's calls, and the first of them entered after `time_ns`. Pieces come in order of time,
// so the search begins where the last one ended.
static struct decomposer_calls *calls_at(struct decomposer *decomposer, uint32_t thread,
                                         int64_t time_ns)
{
    struct decomposer_calls *calls = &decomposer->last_calls;
    if (!calls->valid || calls->thread != thread) {
        *calls = (struct decomposer_calls){.thread = thread, .valid = true};
        if (decomposer->in->calls)
            calls->items = application_calls_of(decomposer->in->calls, thread, &calls->count);
    }
    bool found = (calls->next == 0 || calls->items[calls->next - 1].entry_ns <= time_ns) &&
                 (calls->next == calls->count || calls->items[calls->next].entry_ns > time_ns);
    if (!found)
        calls->next = application_calls_after(calls->items, calls->count, time_ns);
    return calls;
}

// Takes off what it cost the shim to record a call, unless traced functions show that. Returns
// where the rest begins.
static int64_t take_call_overhead(struct decomposer *decomposer, int64_t begin_ns, int64_t exit_ns)
{
    double cost = decomposer->in->overhead.call_ns;
    if (cost <= 0 || decomposer->stack.count > 0)
        return begin_ns;
    int64_t until = earlier_time(begin_ns + (int64_t)cost, exit_ns);
    if (until <= begin_ns)
        return begin_ns;
    decomposer_add(decomposer, COMPONENT_OVERHEAD_A, (double)(until - begin_ns));
    return until;
}

void decompose_thread_time(struct decomposer *decomposer, const struct lifetime *life,
                           uint32_t thread, int64_t begin_ns, int64_t end_ns)
{
    const struct application_calls *all = decomposer->in->calls;
    if (!all || life->receive_call == NO_CALL) {
        add_thread_time(decomposer, life, thread, OWNER_NOBODY, begin_ns, end_ns);
        return;
    }
    const struct decomposer_calls *found = calls_at(decomposer, thread, begin_ns);
    const struct application_call *calls = found->items;
    size_t count = found->count, next = found->next;
    if (next == 0) { // before the thread's first call
        int64_t until = count ? earlier_time(calls[0].entry_ns, end_ns) : end_ns;
        add_thread_time(decomposer, life, thread, OWNER_NOBODY, begin_ns, until);
        begin_ns = until;
        next = 1;
    }
    for (size_t i = next - 1; i < count && begin_ns < end_ns; i++) {
        uint32_t call = (uint32_t)(calls + i - all->items);
        int64_t exit = earlier_time(calls[i].exit_ns, end_ns);
        if (calls[i].entry_ns >= begin_ns)
            begin_ns = take_call_overhead(decomposer, begin_ns, exit);
        add_thread_time(decomposer, life, thread, owner_of_call(life, all, call), begin_ns, exit);
        if (exit > begin_ns)
            begin_ns = exit;
        bool last = i + 1 == count;
        int64_t entry = last ? end_ns : earlier_time(calls[i + 1].entry_ns, end_ns);
        add_thread_time(decomposer, life, thread,
                        owner_after_call(life, all, call, last ? NO_CALL : call + 1), begin_ns,
                        entry);
        if (entry > begin_ns)
            begin_ns = entry;
    }
}
