// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/decomposer.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum { SOFTIRQ_NET_RX = 3 }; // include/linux/interrupt.h

void decomposer_init(struct decomposer *decomposer, const struct diagnosis_input *input,
                     struct component_table *table)
{
    *decomposer = (struct decomposer){.in = input, .table = table, .core = NO_CORE};
}

void decomposer_fini(struct decomposer *decomposer)
{
    free(decomposer->ns);
    decomposer->ns = NULL;
    call_paths_free(&decomposer->paths);
}

void decomposer_add(struct decomposer *decomposer, int64_t component, double ns)
{
    if (component < 0) {
        decomposer->out_of_memory = true;
        return;
    }
    size_t wanted = (size_t)component + 1;
    if (wanted > decomposer->capacity) {
        size_t capacity = wanted + 64;
        double *grown = realloc(decomposer->ns, capacity * sizeof *grown);
        if (!grown) {
            decomposer->out_of_memory = true;
            return;
        }
        memset(grown + decomposer->capacity, 0, (capacity - decomposer->capacity) * sizeof *grown);
        decomposer->ns = grown;
        decomposer->capacity = capacity;
    }
    decomposer->ns[component] += ns;
}

void decomposer_add_piece(struct decomposer *decomposer, int64_t component, int64_t begin_ns,
                          int64_t end_ns, double share)
{
    const struct decomposer_stack *stack = &decomposer->stack;
    decomposer_add(decomposer, component, (double)(end_ns - begin_ns) * share);
    if (decomposer->piece && component >= 0)
        decomposer->piece((uint32_t)component, decomposer->core, begin_ns, end_ns,
                          decomposer->piece_context);
    if (stack->count == 0 || component < 0 ||
        !decomposer->table->components.items[component].functions)
        return;
    if (call_paths_add(&decomposer->paths, (uint32_t)component, stack->functions, stack->count,
                       begin_ns, end_ns, share, stack->context_begin_ns) < 0)
        decomposer->out_of_memory = true;
}

// --- which component a piece belongs to ----------------------------------------------------------

static bool is_server_thread(const struct diagnosis_input *in, uint32_t thread)
{
    size_t count = in->application_thread_count;
    size_t found = array_bound(0, count, at, in->application_threads[at] < thread);
    return found < count && in->application_threads[found] == thread;
}

uint32_t sweep_application_of(const struct sweep *sweep, uint32_t thread)
{
    const struct diagnosis_input *in = sweep->decomposer->in;
    if (in->applications && in->applications->items.count > 1)
        return application_of_thread(in->applications, thread);
    return is_server_thread(in, thread) ? sweep->life->application : NO_APPLICATION;
}

const struct span *sweep_context(struct sweep *sweep, const struct span *const *open,
                                 unsigned depth)
{
    struct decomposer *decomposer = sweep->decomposer;
    unsigned above = depth; // where the next context begins, or the stack ends
    for (unsigned at = depth; at-- > 0;) {
        const struct span *span = open[at];
        if (span->kind == SPAN_FUNCTION)
            continue;
        if (at == 0 || span->kind == SPAN_UNKNOWN ||
            (double)(span->end_ns - span->begin_ns) >= decomposer->in->granularity_ns) {
            decomposer->stack = (struct decomposer_stack){.functions = open + at + 1,
                                                          .count = above - at - 1,
                                                          .context_begin_ns = span->begin_ns};
            return span;
        }
        above = at;
    }
    decomposer->stack = (struct decomposer_stack){0};
    return NULL;
}

int64_t sweep_overhead(struct sweep *sweep, int64_t begin_ns, int64_t end_ns)
{
    double cost = sweep->decomposer->in->overhead.record_ns;
    bool first = begin_ns <= sweep->begin_ns;
    if (first || cost <= 0 || sweep->decomposer->stack.count > 0)
        return begin_ns;
    int64_t until = begin_ns + (int64_t)cost;
    until = until < end_ns ? until : end_ns;
    decomposer_add(sweep->decomposer,
                   sweep->role == ROLE_A ? COMPONENT_OVERHEAD_A : COMPONENT_OVERHEAD_R,
                   (double)(until - begin_ns));
    return until;
}

bool sweep_receives(const struct sweep *sweep, const struct span *context)
{
    if (context->kind == SPAN_SOFTIRQ)
        return context->id == SOFTIRQ_NET_RX;
    const char *name = sweep->decomposer->in->server->names.items[context->name];
    return context->kind == SPAN_TASK && strncmp(name, "ksoftirqd/", 10) == 0;
}

void sweep_add(struct sweep *sweep, int64_t component, int64_t begin_ns, int64_t end_ns)
{
    if (end_ns > begin_ns)
        decomposer_add_piece(sweep->decomposer, component, begin_ns, end_ns, 1);
}

void sweep_add_context(struct sweep *sweep, const struct span *context, int64_t begin_ns,
                       int64_t end_ns)
{
    sweep_add(sweep, component_of_context(sweep->decomposer->table, context, sweep->role), begin_ns,
              end_ns);
}

void sweep_add_application(struct sweep *sweep, uint32_t application, int64_t begin_ns,
                           int64_t end_ns)
{
    if (end_ns > begin_ns)
        sweep_add(sweep,
                  component_of_application(sweep->decomposer->table,
                                           sweep->decomposer->in->applications, application,
                                           sweep->role),
                  begin_ns, end_ns);
}

int64_t sweep_add_packets(struct sweep *sweep, int64_t begin_ns, int64_t end_ns, int64_t last_ns,
                          sweep_rest *rest)
{
    const struct core_timeline *core = sweep->core;
    bool several = core->handoff_applications.count > 0;
    for (size_t i = core_timeline_handoffs_before(core, begin_ns + 1);
         several && begin_ns < end_ns && i < core->handoffs.count &&
         core->handoffs.items[i] <= last_ns;
         i++) {
        uint32_t whose = core->handoff_applications.items[i];
        int64_t until = core->handoffs.items[i] < end_ns ? core->handoffs.items[i] : end_ns;
        if (whose == NO_APPLICATION || whose == sweep->life->application)
            rest(sweep, begin_ns, until);
        else
            sweep_add_application(sweep, whose, begin_ns, until);
        begin_ns = until;
    }
    return begin_ns;
}
