// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/critical_path.h"

#include <stdio.h>
#include <string.h>

#include "analysis/diagnosis/peer_turn.h"
#include "analysis/timeline/call_files.h"
#include "analysis/timeline/detours.h"
#include "analysis/timeline/disks.h"
#include "analysis/timeline/pauses.h"
#include "analysis/timeline/thread_states.h"
#include "base/array.h"
#include "base/text.h"

enum {
    MOST_HOPS = 6, // from waker to waker
    MOST_TIERS = 6,
    // A core takes that long to be told that it is to run another thread, whatever it does.
    MAKES_WAY_NS = 50000,
};

// Along a thread's time: the message's own thread, or one that it waits for.
struct path {
    struct sweep sweep;
    const char *wait;  // what the message's thread waits for meanwhile, "lock wait (futex): held by
                       // worker-2"; NULL: it is this thread that has the message
    const char *sleep; // what it went to sleep in, "lock wait (futex)"
    bool helper;       // this thread hands the message on to the one that has it next
    bool in_gap;       // it did not run just now
    bool at_once;      // as soon as it was ready, whatever had its core had to make way
    unsigned hops;
};

static void path_follow(struct path *path, int64_t begin_ns, int64_t end_ns);
static void add_waiting_for(struct path *path, const struct peer_wait *wait, const char *form,
                            int64_t begin_ns, int64_t end_ns);

// --- pieces of a core's time ---------------------------------------------------------------------

static void add_wait(struct path *path, const char *what, int64_t begin_ns, int64_t end_ns)
{
    char name[CAUSE_NAME_BYTES] = "";
    text_append(name, sizeof name, "%s%s", path->wait ? path->wait : "", what);
    sweep_add(&path->sweep, component_of_wait(path->sweep.decomposer->table, name), begin_ns,
              end_ns);
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

// What interrupts whoever has the core.
static void add_interruption(struct sweep *sweep, const struct span *context, int64_t begin_ns,
                             int64_t end_ns)
{
    sweep->receiver = context;
    if (sweep_receives(sweep, context))
        begin_ns = sweep_add_packets(sweep, begin_ns, end_ns, context->end_ns, add_receiver);
    sweep_add_context(sweep, context, begin_ns, end_ns);
}

static void add_running(struct path *path, int64_t begin_ns, int64_t end_ns)
{
    struct sweep *sweep = &path->sweep;
    if (path->wait)
        add_wait(path, "", begin_ns, end_ns);
    else if (sweep->replied)
        sweep_add(sweep, COMPONENT_SERVER_STACK, begin_ns, end_ns);
    else if (path->helper)
        sweep_add(sweep, COMPONENT_APPLICATION, begin_ns, end_ns);
    else
        decompose_thread_time(sweep->decomposer, sweep->life, sweep->thread, begin_ns, end_ns);
}

static void add_detour(struct path *path, const struct detour *detour, int64_t begin_ns,
                       int64_t end_ns)
{
    char name[CAUSE_NAME_BYTES];
    snprintf(name, sizeof name, "%s%s", path->wait ? ", " : "", detour_name(detour->kind));
    add_wait(path, name, begin_ns, end_ns);
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
            add_detour(path, detour, begin_ns, until);
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
    const struct span *context = sweep_context(sweep, open, depth);
    begin_ns = sweep_overhead(sweep, begin_ns, end_ns);
    if (!known_context(sweep, context, begin_ns, end_ns))
        return;
    if (context->kind != SPAN_TASK && context->kind != SPAN_IDLE)
        add_interruption(sweep, context, begin_ns, end_ns);
    else
        divide_running(path, begin_ns, end_ns);
}

// The thread was not allowed to run: by the quota of the control group that the kernel named last.
static void add_throttled(struct path *path, int64_t begin_ns, int64_t end_ns)
{
    struct sweep *sweep = &path->sweep;
    const struct host_timeline *host = sweep->decomposer->in->server;
    char what[CAUSE_NAME_BYTES] = ", throttled (CPU quota)";
    size_t count = 0;
    const struct thread_moment *quotas = thread_moments_of(&host->quotas, sweep->thread, &count);
    size_t after = quotas ? thread_moments_before(quotas, count, end_ns) : 0;
    bool named = after > 0 && sweep->before && quotas[after - 1].time_ns > sweep->before->begin_ns;
    if (named)
        snprintf(what, sizeof what, ", throttled (CPU quota of %s)",
                 host->names.items[quotas[after - 1].value]);
    if (path->wait || named)
        add_wait(path, path->wait ? what : what + 2, begin_ns, end_ns);
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
        add_throttled(path, begin_ns, end_ns);
    else if (path->wait)
        add_wait(path, ", being woken", begin_ns, end_ns);
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
            add_waiting_for(path, turn.wait,
                            turn.own ? "waiting for %s" : "head-of-line blocking: waiting for %s",
                            turn.begin_ns, turn.end_ns);
        begin_ns = turn.end_ns;
    }
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

static void visit_ready(const struct span *const *open, unsigned depth, int64_t begin_ns,
                        int64_t end_ns, void *opaque)
{
    struct path *path = opaque;
    struct sweep *sweep = &path->sweep;
    const struct span *context = sweep_context(sweep, open, depth);
    begin_ns = sweep_overhead(sweep, begin_ns, end_ns);
    if (!known_context(sweep, context, begin_ns, end_ns))
        return;
    bool makes_way = path->at_once && context->kind == SPAN_TASK && is_preempted(path, context);
    if (context->kind == SPAN_IDLE || makes_way) {
        add_idle(path, begin_ns, end_ns);
    } else if (path->wait) {
        char behind[CAUSE_NAME_BYTES] = "";
        text_append(behind, sizeof behind, ", behind %s",
                    sweep->decomposer->in->server->names.items[context->name]);
        add_wait(path, behind, begin_ns, end_ns);
    } else if (context->kind != SPAN_TASK) {
        add_interruption(sweep, context, begin_ns, end_ns);
    } else if (sweep->moved) {
        sweep_add(sweep, COMPONENT_MIGRATION, begin_ns, end_ns);
    } else {
        add_task(path, context, begin_ns, end_ns);
    }
}

// Nobody knows why the thread did not run: only whether the core's records are missing as well.
static void visit_unknown(const struct span *const *open, unsigned depth, int64_t begin_ns,
                          int64_t end_ns, void *opaque)
{
    struct path *path = opaque;
    const struct span *context = sweep_context(&path->sweep, open, depth);
    if (path->wait)
        add_wait(path, "", begin_ns, end_ns);
    else if (known_context(&path->sweep, context, begin_ns, end_ns))
        sweep_add(&path->sweep,
                  context->kind == SPAN_IDLE ? COMPONENT_IDLE_A : COMPONENT_UNKNOWN_WAIT, begin_ns,
                  end_ns);
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

// A thread that is ready to run waits for the core that it ran on, or that the scheduler moved it
// to; at last for the one on which it goes on.
static void sweep_ready(struct path *path, const struct thread_period *period)
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
    }
    sweep->moved = before && core != before->core;
    if (!sweep->moved)
        core = next     ? next->core
               : before ? before->core
                        : sweep->life->stamp_core[STAMP_APPLICATION];
    sweep_core(path, core, begin_ns, period->end_ns, visit_ready);
    sweep->moved = false;
}

// --- asleep --------------------------------------------------------------------------------------

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

// The function in which a thread left its core, where functions are traced; NULL: not known.
static const char *function_left_in(struct sweep *sweep, const struct thread_stint *before)
{
    const struct core_timeline *core =
        host_timeline_core(sweep->decomposer->in->server, before->core);
    sweep->gap_function = NULL;
    if (core && core_timeline_traced(core, before->end_ns - 1, before->end_ns))
        core_timeline_stacks(core, before->end_ns - 1, before->end_ns, find_function, sweep);
    return sweep->gap_function;
}

// What the thread went to sleep in: "lock wait (futex)"; "" where it waits for sockets to become
// ready, or nobody knows.
static void sleep_name(struct path *path, const struct thread_stint *before,
                       char out[CAUSE_NAME_BYTES])
{
    const struct host_timeline *host = path->sweep.decomposer->in->server;
    uint32_t pause;
    const char *function;
    out[0] = '\0';
    if (before->left == STINT_WAITS)
        return;
    if (pause_after(host, before, &pause)) {
        pause_name(pause, out, CAUSE_NAME_BYTES);
        call_file_append(host, before, pause, out, CAUSE_NAME_BYTES);
    } else if ((function = function_left_in(&path->sweep, before))) {
        snprintf(out, CAUSE_NAME_BYTES, "asleep in %s", function);
    }
}

static bool is_lock(const char *sleep)
{
    return strncmp(sleep, "lock wait", 9) == 0;
}

static bool awaits_thread(const char *sleep)
{
    return is_lock(sleep) || strncmp(sleep, "condition wait", 14) == 0;
}

// A packet ended the sleep: what it brought, or made room for, on which connection.
static void name_packet(const char *sleep, char out[CAUSE_NAME_BYTES])
{
    const char *from = strstr(sleep, " from "), *to = strstr(sleep, " to ");
    size_t call = from ? (size_t)(from - sleep) : to ? (size_t)(to - sleep) : strlen(sleep);
    bool sends = memmem(sleep, call, "write", 5) || memmem(sleep, call, "send", 4);
    out[0] = '\0';
    text_append(out, CAUSE_NAME_BYTES, "%s%s",
                sends ? "waiting for room to send" : "waiting for a packet", from ?: to ?: "");
}

// Whether it is a thread for which a Java runtime stops all others: its VM thread, and those that
// collect garbage while it waits for them.
static bool stops_the_world(const char *who)
{
    static const char *const names[] = {"VM Thread", "GC Thread#", "G1 ",
                                        "G1_",       "ZWorker",    "ZDriver",
                                        "XWorker",   "XDriver",    "Shenandoah"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(who, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

// The sleep, named by what ended it. who: the waking context's or thread's name, where it has one.
static void name_wait(const char *sleep, enum waker_kind kind, const char *who,
                      char out[CAUSE_NAME_BYTES])
{
    bool known = sleep[0] != '\0';
    const size_t bytes = CAUSE_NAME_BYTES;
    if (strncmp(sleep, "stopped", 7) == 0 || (kind == WAKER_UNKNOWN && known))
        snprintf(out, bytes, "%s", sleep);
    else if (kind == WAKER_UNKNOWN)
        snprintf(out, bytes, "unknown wait");
    else if (kind == WAKER_PACKET)
        name_packet(sleep, out);
    else if (kind == WAKER_TIMER && !known)
        snprintf(out, bytes, "waiting for a timer");
    else if (kind == WAKER_TIMER)
        snprintf(out, bytes, strcmp(sleep, "sleeping") == 0 ? "%s (timer)" : "%s, timed out",
                 sleep);
    else if (kind == WAKER_THREAD && awaits_thread(sleep) && stops_the_world(who))
        snprintf(out, bytes, "stop-the-world pause (%s)", who);
    else if (!known)
        snprintf(out, bytes, "waiting for %s", who);
    else if (kind == WAKER_THREAD)
        snprintf(out, bytes, is_lock(sleep) ? "%s: held by %s" : "%s: %s", sleep, who);
    else
        snprintf(out, bytes, "%s (%s)", sleep, who);
}

// Kernel threads that work for who waits for a disk: a journal's, those that write back.
static bool serves_disks(const struct component_table *table, const char *name)
{
    const char *category = categories_of_context(table->categories, SPAN_TASK, name);
    return strncmp(name, "kworker", 7) == 0 || (category && strcmp(category, "block I/O") == 0);
}

static bool is_kernel_thread(const struct component_table *table, const char *name)
{
    const char *category = categories_of_context(table->categories, SPAN_TASK, name);
    return category && strcmp(category, "OS threads") == 0;
}

static void take_outermost(const struct span *const *open, unsigned depth, int64_t begin_ns,
                           int64_t end_ns, void *context)
{
    (void)begin_ns;
    (void)end_ns;
    *(const struct span **)context = depth ? open[0] : NULL;
}

// The name of the thread that had a stint.
static const char *name_of_stint(const struct host_timeline *host, const struct thread_stint *stint)
{
    const struct core_timeline *core = host_timeline_core(host, stint->core);
    const struct span *task = NULL;
    if (core)
        core_timeline_stacks(core, stint->begin_ns, stint->begin_ns + 1, take_outermost, &task);
    return task ? host->names.items[task->name] : "";
}

// Whether "memcached:mc-worker" and "memcached" are names of one process.
static bool is_of_process(const char *one, const char *other)
{
    size_t length = strcspn(one, ":");
    return strcspn(other, ":") == length && strncmp(one, other, length) == 0;
}

static bool same_process(const struct host_timeline *host, uint32_t one, uint32_t other)
{
    const struct thread_owner *a = host_timeline_owner(host, one);
    const struct thread_owner *b = host_timeline_owner(host, other);
    return a && b && a->process == b->process;
}

// The waking context's name; a thread's own where it is of the sleeping one's process. One that has
// the sleeper's own name is another thread of it, or another process.
static void waker_name(struct path *path, const struct waker *waker,
                       const struct thread_stint *before, char out[CAUSE_NAME_BYTES])
{
    const struct host_timeline *host = path->sweep.decomposer->in->server;
    const char *name = waker->span ? host->names.items[waker->span->name] : "";
    const char *own = strchr(name, ':'), *pool = strchr(name, '/');
    const char *sleeper = waker->kind == WAKER_THREAD ? name_of_stint(host, before) : "";
    if (waker->kind == WAKER_BLOCK)
        snprintf(out, CAUSE_NAME_BYTES, "block device");
    else if (waker->kind == WAKER_KERNEL)
        snprintf(out, CAUSE_NAME_BYTES, "%.50s %s", name, span_kind_word(waker->span->kind));
    else if (waker->kind == WAKER_THREAD && own && is_of_process(name, sleeper))
        snprintf(out, CAUSE_NAME_BYTES, "%s", own + 1);
    else if (waker->kind == WAKER_THREAD && pool && pool != name)
        snprintf(out, CAUSE_NAME_BYTES, "%.*s", (int)(pool - name), name);
    else
        snprintf(out, CAUSE_NAME_BYTES, "%s", name);
    if (name[0] && strcmp(name, sleeper) == 0 && waker->thread != path->sweep.thread)
        text_append(out, CAUSE_NAME_BYTES, " (another %s)",
                    same_process(host, waker->thread, path->sweep.thread) ? "thread" : "process");
}

// Whether the thread that receives the message was waiting for any at all: it has answered the one
// before, and sleeps in a call in which one waits for work, not in one that writes a log.
static bool waits_for_work(const struct path *path, const struct thread_period *period)
{
    const struct sweep *sweep = &path->sweep;
    const struct application_calls *all = sweep->decomposer->in->calls;
    size_t count = 0;
    uint32_t pause;
    if (period->before->left != STINT_WAITS &&
        pause_after(sweep->decomposer->in->server, period->before, &pause) &&
        !pause_may_await_work(pause))
        return false;
    if (!all || path->wait || sweep->thread != sweep->life->thread ||
        period->before->end_ns > sweep->life->stamp_ns[STAMP_HANDOFF])
        return false;
    const struct application_call *calls = application_calls_of(all, sweep->thread, &count);
    size_t next = calls ? application_calls_after(calls, count, period->before->end_ns) : 0;
    return next == 0 || calls[next - 1].kind != CALL_RECEIVE;
}

// --- asleep until a disk has done something ------------------------------------------------------

struct disk_wait {
    struct path *path;
    const char *sleep; // what the thread sleeps in, "" where that is not known
};

static void add_disk_stage(const struct disk_request *request, enum disk_stage stage,
                           int64_t begin_ns, int64_t end_ns, void *context)
{
    const struct disk_wait *wait = context;
    char disk[64], name[CAUSE_NAME_BYTES] = "";
    disk_stage_name(wait->path->sweep.decomposer->in->server, request, stage, disk, sizeof disk);
    if (wait->path->wait)
        text_append(name, sizeof name, ", ");
    if (wait->sleep[0])
        text_append(name, sizeof name, "%s, ", wait->sleep);
    text_append(name, sizeof name, "%s%s", name[0] ? "" : "waiting for ", disk);
    add_wait(wait->path, name, begin_ns, end_ns);
}

// Whether a disk's completion ended the sleep; then its time is told.
static bool sweep_disk_sleep(struct path *path, const struct thread_period *period,
                             const char *sleep)
{
    const struct host_timeline *host = path->sweep.decomposer->in->server;
    const struct disk_request *last =
        period->waking ? disk_request_of_waking(host, period->waking) : NULL;
    if (!last || last->done_ns < period->begin_ns || strncmp(sleep, "stopped", 7) == 0 ||
        (sleep[0] == '\0' && period->before->left == STINT_WAITS))
        return false;
    struct disk_wait wait = {.path = path, .sleep = sleep};
    path->sweep.decomposer->core = NO_CORE;
    disk_stages(host, last, period->begin_ns, period->end_ns, add_disk_stage, &wait);
    return true;
}

// The thread that waits for sockets was woken by one that had asked another server: it had handed
// the request over.
static bool asked_meanwhile(const struct path *path, const struct thread_period *period,
                            uint32_t waker)
{
    struct peer_turn turn;
    return period->before->left == STINT_WAITS &&
           peer_turn_next(path->sweep.decomposer->in, path->sweep.life, waker, period->begin_ns,
                          period->end_ns, &turn);
}

// The time of the thread that woke this one, as long as it kept it waiting.
static void follow_waker(struct path *path, const struct thread_period *period,
                         const struct waker *waker, const char *sleep, const char *who)
{
    char wait[CAUSE_NAME_BYTES];
    struct path other = {.sweep = {.decomposer = path->sweep.decomposer,
                                   .life = path->sweep.life,
                                   .role = ROLE_A,
                                   .thread = waker->thread,
                                   .replied = path->sweep.replied},
                         .hops = path->hops + 1};
    bool receiver = waker->thread == path->sweep.life->thread && !path->sweep.replied;
    other.helper = !receiver && !path->wait && !stops_the_world(who) &&
                   (path->helper || waits_for_work(path, period) ||
                    asked_meanwhile(path, period, waker->thread));
    if (!receiver && !other.helper) {
        // Of several holders behind one another the last one counts.
        other.sleep = path->wait ? path->sleep : sleep;
        name_wait(other.sleep, WAKER_THREAD, who, wait);
        other.wait = wait;
    }
    path_follow(&other, period->begin_ns, period->end_ns);
}

// --- another server's turn -----------------------------------------------------------------------

static void add_waiting_for(struct path *path, const struct peer_wait *wait, const char *form,
                            int64_t begin_ns, int64_t end_ns)
{
    const struct diagnosis_input *in = path->sweep.decomposer->in;
    char text[CAUSE_NAME_BYTES];
    snprintf(text, sizeof text, form, peer_turn_name(in, wait));
    sweep_add(&path->sweep,
              component_of_peer(path->sweep.decomposer->table, text, peer_turn_tier(in, wait)),
              begin_ns, end_ns);
}

static void add_peer_turn(struct path *path, const struct peer_turn *turn)
{
    struct decomposer *decomposer = path->sweep.decomposer;
    char after[CAUSE_NAME_BYTES];
    decomposer->core = NO_CORE;
    if (path->wait) {
        snprintf(after, sizeof after, ", waiting for %s",
                 peer_turn_name(decomposer->in, turn->wait));
        add_wait(path, after, turn->begin_ns, turn->end_ns);
    } else if (!turn->own && !path->helper) {
        add_waiting_for(path, turn->wait, "head-of-line blocking: waiting for %s", turn->begin_ns,
                        turn->end_ns);
    } else if (turn->wait->life != NO_PEER_LIFE && decomposer->tiers < MOST_TIERS) {
        decomposer->follow(decomposer, turn->wait, turn->begin_ns, turn->end_ns);
    } else {
        add_waiting_for(path, turn->wait, "waiting for %s", turn->begin_ns, turn->end_ns);
    }
}

// A thread slept for a connection to another server, and all of them were taken.
static bool add_pool_wait(struct path *path, const struct thread_period *period,
                          const struct waker *waker)
{
    const struct peer_wait *wait;
    char form[64];
    if (path->wait || waker->kind != WAKER_THREAD || period->before->left == STINT_WAITS)
        return false;
    unsigned count = peer_turn_pool(path->sweep.decomposer->in, waker->thread, period->begin_ns,
                                    period->end_ns, &wait);
    if (count == 0)
        return false;
    if (count == 1)
        snprintf(form, sizeof form, "waiting for a free connection: the only one waits for %%s");
    else
        snprintf(form, sizeof form, "waiting for a free connection: all %u wait for %%s", count);
    path->sweep.decomposer->core = NO_CORE;
    add_waiting_for(path, wait, form, period->begin_ns, period->end_ns);
    return true;
}

// An event loop slept with the request unfinished; whatever it waited for came from one peer.
static bool add_only_peer(struct path *path, const struct thread_period *period)
{
    const struct sweep *sweep = &path->sweep;
    if (path->wait || sweep->replied || period->before->left != STINT_WAITS ||
        period->begin_ns < sweep->life->stamp_ns[STAMP_APPLICATION])
        return false;
    const struct peer_wait *wait =
        peer_turn_only(sweep->decomposer->in, sweep->thread, period->begin_ns, period->end_ns);
    if (!wait)
        return false;
    path->sweep.decomposer->core = NO_CORE;
    add_waiting_for(path, wait, "waiting for %s", period->begin_ns, period->end_ns);
    return true;
}

// --- an event loop's workers ---------------------------------------------------------------------

// Whether a thread of its own process woke this one from its wait for events, as workers do that
// have done what an event loop gave them.
static bool worker_woke(const struct host_timeline *host, const struct waking *waking)
{
    struct waker waker = waker_of(host, waking);
    return waker.kind == WAKER_THREAD && waker.thread != waking->thread &&
           same_process(host, waker.thread, waking->thread);
}

// Whether it ended a wait for events.
static bool ends_wait(const struct host_timeline *host, const struct waking *waking)
{
    size_t count;
    const struct thread_stint *stints = host_timeline_stints(host, waking->thread, &count);
    size_t after = array_bound(0, count, at, stints[at].end_ns <= waking->time_ns);
    return after > 0 && stints[after - 1].left == STINT_WAITS;
}

// An event loop that waits with the message unfinished is woken for others as well, by packets and
// timers. When at last a worker wakes it and it answers, that is what the message waited for: the
// worker's waking that follows. NULL: there is none.
static const struct waking *worker_waking(const struct path *path,
                                          const struct thread_period *period)
{
    enum { MOST_WAKINGS = 256 }; // beyond, it is the last worker
    const struct sweep *sweep = &path->sweep;
    const struct lifetime *life = sweep->life;
    const struct host_timeline *host = sweep->decomposer->in->server;
    const struct application_calls *calls = sweep->decomposer->in->calls;
    size_t count;
    if (path->wait || sweep->replied || period->before->left != STINT_WAITS ||
        period->begin_ns < life->stamp_ns[STAMP_APPLICATION] || !calls ||
        life->send_call == NO_CALL || calls->items[life->send_call].thread != sweep->thread)
        return NULL;
    const struct waking *wakings = host_timeline_wakings(host, sweep->thread, &count);
    int64_t reply_ns = life->stamp_ns[STAMP_REPLY];
    size_t first = array_bound(0, count, at, wakings[at].time_ns <= period->end_ns);
    size_t last = array_bound(first, count, at, wakings[at].time_ns < reply_ns);
    while (last > first && !ends_wait(host, &wakings[last - 1]))
        last--;
    if (last == first || !worker_woke(host, &wakings[last - 1]))
        return NULL;
    for (size_t at = first; at + 1 < last && at < first + MOST_WAKINGS; at++)
        if (ends_wait(host, &wakings[at]) && worker_woke(host, &wakings[at]))
            return &wakings[at];
    return &wakings[last - 1];
}

// What ended a sleep, as far as the message is concerned.
static struct waker waker_for_message(const struct path *path, const struct thread_period *period)
{
    const struct host_timeline *host = path->sweep.decomposer->in->server;
    struct waker waker = {.kind = WAKER_UNKNOWN};
    if (period->waking)
        waker = waker_of(host, period->waking);
    if (waker.kind != WAKER_PACKET && waker.kind != WAKER_TIMER)
        return waker;
    const struct waking *worker = worker_waking(path, period);
    return worker ? waker_of(host, worker) : waker;
}

static void sweep_sleep(struct path *path, const struct thread_period *period)
{
    char sleep[CAUSE_NAME_BYTES] = "", who[CAUSE_NAME_BYTES], name[CAUSE_NAME_BYTES];
    struct sweep *sweep = &path->sweep;
    struct waker waker = {.kind = WAKER_UNKNOWN};
    int64_t begin_ns = period->begin_ns, end_ns = period->end_ns;
    if (sweep->replied && !path->wait && period->before->left == STINT_WAITS) {
        sweep->decomposer->core = NO_CORE;
        sweep_add(sweep, COMPONENT_SEND_QUEUE, begin_ns, end_ns);
        return;
    }
    int64_t until;
    const struct detour *detour =
        detour_at(sweep->decomposer->in->server, sweep->thread, begin_ns, &until);
    if (detour)
        snprintf(sleep, sizeof sleep, "%s", detour_name(detour->kind));
    else
        sleep_name(path, period->before, sleep);
    if (sweep_disk_sleep(path, period, sleep))
        return;
    if (detour) {
        sweep->decomposer->core = NO_CORE;
        add_detour(path, detour, begin_ns, end_ns);
        return;
    }
    if (period->waking)
        waker = waker_of(sweep->decomposer->in->server, period->waking);
    if (add_pool_wait(path, period, &waker) ||
        (waker.kind != WAKER_THREAD && add_only_peer(path, period)))
        return;
    waker = waker_for_message(path, period);
    waker_name(path, &waker, period->before, who);
    bool follows = waker.kind == WAKER_THREAD && waker.thread != sweep->thread &&
                   strncmp(sleep, "stopped", 7) != 0 && path->hops < MOST_HOPS &&
                   (serves_disks(sweep->decomposer->table, who)
                        ? sleep[0] || path->wait
                        : !is_kernel_thread(sweep->decomposer->table, who));
    if (follows) {
        follow_waker(path, period, &waker, sleep, who);
        return;
    }
    if (waker.kind > WAKER_THREAD && waker.span->begin_ns < end_ns && !path->wait)
        end_ns = waker.span->begin_ns > begin_ns ? waker.span->begin_ns : begin_ns;
    name_wait(sleep, waker.kind, who, name);
    char after[CAUSE_NAME_BYTES + 2];
    snprintf(after, sizeof after, "%s%s", path->wait ? ", " : "", name);
    sweep->decomposer->core = NO_CORE;
    add_wait(path, after, begin_ns, end_ns);
    sweep->begin_ns = end_ns;
    sweep_core(path, period->waking ? period->waking->from : NO_CORE, end_ns, period->end_ns,
               visit_waker);
}

// --- along a thread ------------------------------------------------------------------------------

static void visit_period(const struct thread_period *period, void *opaque)
{
    struct path *path = opaque;
    struct sweep *sweep = &path->sweep;
    bool runs = period->state == THREAD_RUNS;
    if (!runs || !path->in_gap)
        sweep->begin_ns = period->begin_ns;
    path->in_gap = !runs;
    sweep->before = period->before;
    const struct thread_stint *near = period->next ? period->next : period->before;
    switch (period->state) {
    case THREAD_RUNS:
        sweep_core(path, period->next->core, period->begin_ns, period->end_ns, visit_running);
        break;
    case THREAD_READY:
        sweep_ready(path, period);
        break;
    case THREAD_THROTTLED:
        sweep->decomposer->core = NO_CORE;
        add_throttled(path, period->begin_ns, period->end_ns);
        break;
    case THREAD_SLEEPS:
        sweep_sleep(path, period);
        break;
    case THREAD_UNKNOWN:
        sweep_core(path, near ? near->core : sweep->life->stamp_core[STAMP_APPLICATION],
                   period->begin_ns, period->end_ns, visit_unknown);
        break;
    }
}

static void path_follow(struct path *path, int64_t begin_ns, int64_t end_ns)
{
    const struct sweep *sweep = &path->sweep;
    const struct diagnosis_input *in = sweep->decomposer->in;
    while (begin_ns < end_ns) {
        struct peer_turn turn;
        bool found = !sweep->replied &&
                     peer_turn_next(in, sweep->life, sweep->thread, begin_ns, end_ns, &turn);
        int64_t until = found ? turn.begin_ns : end_ns;
        if (until > begin_ns)
            thread_periods(in->server, sweep->thread, begin_ns, until, visit_period, path);
        if (found)
            add_peer_turn(path, &turn);
        begin_ns = found ? turn.end_ns : end_ns;
    }
}

void critical_path_free_worker(struct decomposer *decomposer, const struct lifetime *life,
                               uint32_t thread, int64_t begin_ns, int64_t end_ns)
{
    struct path path = {.sweep = {.decomposer = decomposer, .life = life, .role = ROLE_A}};
    while (begin_ns < end_ns) {
        struct peer_turn turn;
        bool found = peer_turn_next(decomposer->in, life, thread, begin_ns, end_ns, &turn);
        int64_t until = found ? turn.begin_ns : end_ns;
        decomposer->core = NO_CORE;
        if (until > begin_ns)
            decomposer_add(decomposer, COMPONENT_FREE_WORKER, (double)(until - begin_ns));
        if (found)
            add_waiting_for(&path, turn.wait, "waiting for a free worker, which waits for %s",
                            turn.begin_ns, turn.end_ns);
        begin_ns = found ? turn.end_ns : end_ns;
    }
}

void critical_path_sweep(struct decomposer *decomposer, const struct lifetime *life,
                         uint32_t thread, int64_t begin_ns, int64_t end_ns, bool replied)
{
    struct path path = {.sweep = {.decomposer = decomposer,
                                  .life = life,
                                  .role = ROLE_A,
                                  .thread = thread,
                                  .replied = replied}};
    if (decomposer->in->server)
        path_follow(&path, begin_ns, end_ns);
    else
        sweep_add(&path.sweep, COMPONENT_UNKNOWN_A, begin_ns, end_ns);
}
