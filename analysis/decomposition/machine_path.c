// SPDX-License-Identifier: MIT
#include "analysis/decomposition/machine_path.h"

#include <stdio.h>

#include "analysis/decomposition/sleep_names.h"
#include "analysis/timeline/pauses.h"
#include "analysis/timeline/thread_states.h"

struct machine_path {
    struct sweep sweep;
    const struct hop_stay *stay;
    const struct hop_place *places;
    const struct tap_holder *holder;
    const struct host_timeline *host; // of the machine that the tap is on
    enum tap_core known;              // of the thread that is best known to be the core at hand
    const struct tap_thread *thread;  // that is held back,
    struct thread_period period;      // and how
};

// Threads of which one has to run.
enum crew { READERS, CORES };
enum crew_state { CREW_SLEEPS, CREW_HELD_BACK, CREW_RUNS };

static void add_to_link(struct machine_path *path, int64_t begin_ns, int64_t end_ns)
{
    struct decomposer *decomposer = path->sweep.decomposer;
    decomposer_add(decomposer, component_of_hop(decomposer->table, path->stay, path->places),
                   (double)(end_ns - begin_ns));
}

static void add_to(struct machine_path *path, const struct span *context, const char *why,
                   int64_t begin_ns, int64_t end_ns)
{
    struct decomposer *decomposer = path->sweep.decomposer;
    decomposer_add(decomposer,
                   component_of_hop_machine(decomposer->table, path->stay, path->places,
                                            path->thread->name, path->host, context, why),
                   (double)(end_ns - begin_ns));
}

// --- a thread that is held back ------------------------------------------------------------------

static void add_throttled(struct machine_path *path, int64_t begin_ns, int64_t end_ns)
{
    char why[CAUSE_NAME_BYTES];
    const char *group = thread_quota_group(path->host, path->thread->thread, path->period.before,
                                           path->period.end_ns);
    snprintf(why, sizeof why, "throttled (CPU quota%s%.100s)", group ? " of " : "", group ?: "");
    add_to(path, NULL, why, begin_ns, end_ns);
}

static void visit_ready(const struct span *const *open, unsigned depth, int64_t begin_ns,
                        int64_t end_ns, void *opaque)
{
    struct machine_path *path = opaque;
    const struct span *context = sweep_context(&path->sweep, open, depth);
    if (!context || context->kind == SPAN_UNKNOWN ||
        (context->kind == SPAN_TASK && context->id == path->thread->thread))
        add_to_link(path, begin_ns, end_ns);
    else if (context->kind != SPAN_IDLE)
        add_to(path, context, NULL, begin_ns, end_ns);
    else if (path->period.before && path->period.before->left == STINT_PREEMPTED)
        add_throttled(path, begin_ns, end_ns); // it may not go on, though nobody has the core
    else
        add_to_link(path, begin_ns, end_ns); // the core takes its time to notice
}

static void add_ready(struct machine_path *path, int64_t begin_ns, int64_t end_ns)
{
    const struct thread_stint *at = path->period.next ?: path->period.before;
    const struct core_timeline *core = at ? host_timeline_core(path->host, at->core) : NULL;
    if (core && core->scheduled)
        core_timeline_stacks(core, begin_ns, end_ns, visit_ready, path);
    else
        add_to_link(path, begin_ns, end_ns);
}

static void add_held_back(struct machine_path *path, int64_t begin_ns, int64_t end_ns)
{
    char why[CAUSE_NAME_BYTES];
    if (path->period.state == THREAD_READY) {
        add_ready(path, begin_ns, end_ns);
    } else if (path->period.state == THREAD_THROTTLED) {
        add_throttled(path, begin_ns, end_ns);
    } else {
        sleep_call_name(path->host, path->period.before, why);
        add_to(path, NULL, why, begin_ns, end_ns);
    }
}

// --- which thread a packet waits for -------------------------------------------------------------

static bool is_held_back(const struct host_timeline *host, const struct thread_period *period)
{
    uint32_t pause;
    return period->state == THREAD_READY || period->state == THREAD_THROTTLED ||
           (period->state == THREAD_SLEEPS && period->before &&
            pause_after(host, period->before, &pause) && pause_is_stop(pause));
}

// Who the machine's cores are, as well as their names say it: the one that had the packet, else
// any, else any other thread.
static bool is_of_crew(const struct machine_path *path, const struct tap_thread *thread,
                       enum crew crew)
{
    return (crew == READERS) == thread->reads &&
           (thread->reads || tap_thread_core(thread, path->stay->machine_core) >= path->known);
}

// What a crew does at a time, and until when it surely does the same. Who is held back while
// another one of the crew runs is not missed.
static enum crew_state look(struct machine_path *path, enum crew crew, int64_t at_ns,
                            int64_t *until_ns)
{
    enum crew_state state = CREW_SLEEPS;
    for (size_t i = 0; i < path->holder->thread_count; i++) {
        const struct tap_thread *thread = &path->holder->threads[i];
        if (!is_of_crew(path, thread, crew))
            continue;
        const struct thread_period period =
            thread_period_at(path->host, thread->thread, at_ns, *until_ns);
        *until_ns = period.end_ns;
        if (period.state == THREAD_RUNS) {
            state = CREW_RUNS;
        } else if (state == CREW_SLEEPS && is_held_back(path->host, &period)) {
            state = CREW_HELD_BACK;
            path->thread = thread;
            path->period = period;
        }
    }
    return state;
}

// Into the machine a packet waits for a reader first, and for a core of the machine once a reader
// has run and sleeps again: it has taken what there was. Out of it, for whichever is held back.
void machine_path_sweep(struct decomposer *decomposer, const struct lifetime *life,
                        const struct hop_stay *stay, int64_t begin_ns, int64_t end_ns)
{
    const struct diagnosis_input *in = decomposer->in;
    const struct hop_place *tap = &in->hop_places[stay->tap];
    struct machine_path path = {
        .sweep = {.decomposer = decomposer, .life = life, .role = ROLE_NETWORK},
        .stay = stay,
        .places = in->hop_places,
        .holder = &tap->holder,
        .host = tap->at_client ? in->client : in->server};
    const int64_t moved_ns = tap->at_client ? life->client_moved_ns : 0;
    const bool enters = stay->tap == stay->from;
    bool has_read = false, handed = false;
    if (!path.host) {
        add_to_link(&path, begin_ns, end_ns);
        return;
    }
    for (size_t i = 0; i < path.holder->thread_count; i++) {
        const struct tap_thread *thread = &path.holder->threads[i];
        const enum tap_core core = tap_thread_core(thread, stay->machine_core);
        path.known = !thread->reads && core > path.known ? core : path.known;
    }
    begin_ns -= moved_ns;
    end_ns -= moved_ns;
    for (int64_t at_ns = stay->begin_ns - moved_ns, until_ns; at_ns < end_ns; at_ns = until_ns) {
        until_ns = end_ns;
        enum crew_state state = handed ? CREW_SLEEPS : look(&path, READERS, at_ns, &until_ns);
        has_read |= state == CREW_RUNS;
        handed |= enters && has_read && state == CREW_SLEEPS;
        if (state == CREW_SLEEPS)
            state = look(&path, CORES, at_ns, &until_ns);
        const int64_t from_ns = at_ns > begin_ns ? at_ns : begin_ns;
        if (until_ns > from_ns && state == CREW_HELD_BACK)
            add_held_back(&path, from_ns, until_ns);
        else if (until_ns > from_ns)
            add_to_link(&path, from_ns, until_ns);
    }
}
