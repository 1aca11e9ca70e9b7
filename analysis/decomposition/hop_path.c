// SPDX-License-Identifier: MIT
#include "analysis/decomposition/hop_path.h"

struct hop_path {
    struct sweep sweep;
    const struct hop_stay *stay;
    const struct span *sender; // the task that sent the packet, if it was on the core at hand
};

// Whether the context does something else than to bring the packet on its way. Receive processing
// does that, or brings those before it. Who sends a packet goes through the whole link itself where
// the core is the same.
static bool is_in_the_way(const struct hop_path *path, const struct span *context)
{
    if (!context || context->kind == SPAN_UNKNOWN || context->kind == SPAN_IDLE)
        return false;
    if (sweep_receives(&path->sweep, context))
        return false;
    return context->kind != SPAN_TASK || !path->sender || path->sender->id != context->id;
}

static void visit_taking_core(const struct span *const *open, unsigned depth, int64_t begin_ns,
                              int64_t end_ns, void *opaque)
{
    struct hop_path *path = opaque;
    struct decomposer *decomposer = path->sweep.decomposer;
    const struct span *context = sweep_context(&path->sweep, open, depth);
    const struct hop_place *places = decomposer->in->hop_places;
    decomposer_add(decomposer,
                   is_in_the_way(path, context)
                       ? component_of_hop_behind(decomposer->table, path->stay, places, context)
                       : component_of_hop(decomposer->table, path->stay, places),
                   (double)(end_ns - begin_ns));
}

static void visit_sender(const struct span *const *open, unsigned depth, int64_t begin_ns,
                         int64_t end_ns, void *opaque)
{
    struct hop_path *path = opaque;
    (void)begin_ns, (void)end_ns;
    if (depth > 0 && open[0]->kind == SPAN_TASK && !path->sender)
        path->sender = open[0];
}

void hop_path_sweep(struct decomposer *decomposer, const struct lifetime *life,
                    const struct hop_stay *stay, int64_t begin_ns, int64_t end_ns)
{
    const struct host_timeline *server = decomposer->in->server;
    const struct core_timeline *core = server && stay->taken_core != HOP_NO_CORE
                                           ? host_timeline_core(server, stay->taken_core)
                                           : NULL;
    struct hop_path path = {.sweep = {.decomposer = decomposer,
                                      .life = life,
                                      .core = core,
                                      .begin_ns = begin_ns,
                                      .role = ROLE_NETWORK},
                            .stay = stay};
    if (!core || !core->scheduled) {
        decomposer_add(decomposer,
                       component_of_hop(decomposer->table, stay, decomposer->in->hop_places),
                       (double)(end_ns - begin_ns));
        return;
    }
    if (stay->sent_core == stay->taken_core)
        core_timeline_stacks(core, stay->begin_ns, stay->begin_ns + 1, visit_sender, &path);
    core_timeline_stacks(core, begin_ns, end_ns, visit_taking_core, &path);
}
