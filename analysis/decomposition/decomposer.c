// SPDX-License-Identifier: MIT
#include "analysis/decomposition/decomposer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/timeline/collections.h"
#include "analysis/timeline/detours.h"
#include "analysis/timeline/pauses.h"
#include "base/array.h"
#include "base/hash.h"

// --- paths of calls ------------------------------------------------------------------------------

// A zeroed struct has no paths.
static void call_paths_free(struct call_paths *paths)
{
    array_free(&paths->nodes);
    array_free(&paths->touched);
    map_free(&paths->numbers);
    *paths = (struct call_paths){0};
}

// The node of a function called at `parent`. NO_PATH: no memory.
static uint32_t find_or_add(struct call_paths *paths, uint32_t parent, uint32_t component,
                            uint32_t name)
{
    uint64_t hash = hash_pair((uint64_t)parent << 32 | name, component);
    const struct path_node *nodes = paths->nodes.items;
    uint32_t node = map_find(&paths->numbers, hash, at,
                             nodes[at].parent == parent && nodes[at].name == name &&
                                 nodes[at].component == component);
    if (node != MAP_NONE)
        return node;
    struct path_node one = {.parent = parent, .component = component, .name = name};
    if (array_push(&paths->nodes, one) < 0 ||
        map_add(&paths->numbers, hash, paths->nodes.count - 1) < 0)
        return NO_PATH;
    return (uint32_t)paths->nodes.count - 1;
}

// Neighbouring pieces share most of their open calls, so these are not looked up again.
static uint32_t node_at(struct call_paths *paths, unsigned level, uint32_t component, uint32_t name)
{
    if (level < paths->last_count && paths->last_component == component &&
        paths->last_name[level] == name)
        return paths->last[level];
    uint32_t parent = level ? paths->last[level - 1] : NO_PATH;
    uint32_t node = find_or_add(paths, parent, component, name);
    paths->last[level] = node;
    paths->last_name[level] = name;
    paths->last_count = level + 1; // the calls below belonged to another function
    paths->last_component = component;
    return node;
}

// The message spent [begin_ns, end_ns), or `share` of it, in the innermost of `count` functions,
// each called by the one before. A function counts as called where its span begins with the piece;
// one that begins together with its context was only continued and does not count. -1: no memory.
static int call_paths_add(struct call_paths *paths, uint32_t component,
                          const struct span *const *functions, unsigned count, int64_t begin_ns,
                          int64_t end_ns, double share, int64_t context_begin_ns)
{
    double ns = (double)(end_ns - begin_ns) * share;
    for (unsigned level = 0; level < count; level++) {
        uint32_t at = node_at(paths, level, component, functions[level]->name);
        if (at == NO_PATH)
            return -1;
        struct path_node *node = &paths->nodes.items[at];
        if (node->ns <= 0 && node->calls == 0 && array_push(&paths->touched, at) < 0)
            return -1;
        node->kernel = functions[level]->id & SPAN_ID_KERNEL;
        node->ns += ns;
        node->calls += functions[level]->begin_ns == begin_ns && begin_ns != context_begin_ns;
    }
    return 0;
}

static int compare_paths(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return order_of(a, b);
}

int call_paths_take(struct call_paths *paths, struct path_share_array *out)
{
    int result = 0;
    if (out)
        array_sort(&paths->touched, compare_paths);
    for (size_t i = 0; i < paths->touched.count; i++) {
        struct path_node *node = &paths->nodes.items[paths->touched.items[i]];
        if (out && array_push(out, (struct path_share){.path = paths->touched.items[i],
                                                       .calls = node->calls,
                                                       .ns = node->ns}) < 0)
            result = -1;
        node->ns = 0;
        node->calls = 0;
    }
    paths->touched.count = 0;
    return result;
}

// --- the decomposer ------------------------------------------------------------------------------

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

static void add_time(struct decomposer *decomposer, int64_t component, double ns)
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

// Time of which nothing is known at another server is what it was without that one: waiting.
static int64_t component_there(struct decomposer *decomposer, int64_t component)
{
    static const char waits[] = "another host or server";
    struct component_table *table = decomposer->table;
    if (!decomposer->tier || component < 0)
        return component;
    switch (component) {
    case COMPONENT_IDLE_R:
    case COMPONENT_IDLE_A:
    case COMPONENT_UNKNOWN_R:
    case COMPONENT_UNKNOWN_A:
    case COMPONENT_UNKNOWN_WAIT:
        return component_of_peer(table, decomposer->waited, decomposer->tier, waits);
    default:
        break;
    }
    if (strncmp(table->components.items[component].name, "lost records", 12) == 0)
        return component_of_peer(table, decomposer->waited, decomposer->tier, waits);
    return component_of_tier(table, (uint32_t)component, decomposer->tier);
}

void decomposer_add(struct decomposer *decomposer, int64_t component, double ns)
{
    add_time(decomposer, component_there(decomposer, component), ns);
}

// Whether a component is that of time in which the core runs what the server has it run, for this
// message or another one, or what interrupts that.
static bool runs_server(const struct component_table *table, int64_t component)
{
    switch (component) {
    case COMPONENT_BLOCKING_R:
    case COMPONENT_BLOCKING_A:
    case COMPONENT_BLOCKING_CONNECTION_A:
    case COMPONENT_BLOCKING_THREAD_A:
    case COMPONENT_OWN_WORK:
    case COMPONENT_APPLICATION:
    case COMPONENT_SERVER_STACK:
        return true;
    default:
        return table->components.items[component].functions &&
               table->components.items[component].interrupts;
    }
}

// Where the core spins for a lock that another one holds, that is what keeps the message waiting,
// whoever asked for it. A task that is none of the server's has the core all the same.
static int64_t component_or_spin(struct decomposer *decomposer, int64_t component)
{
    const struct decomposer_stack *stack = &decomposer->stack;
    struct component_table *table = decomposer->table;
    if (stack->count == 0 || component < 0 || !runs_server(table, component) ||
        !component_spins(table, stack->functions[stack->count - 1]))
        return component;
    return component_of_spin(table, stack->functions, stack->count,
                             table->components.items[component].role);
}

// Assigns a `share` of a piece of a core's time, also to the functions that were open in it.
static void decomposer_add_piece(struct decomposer *decomposer, int64_t component, int64_t begin_ns,
                                 int64_t end_ns, double share)
{
    const struct decomposer_stack *stack = &decomposer->stack;
    component = component_there(decomposer, component_or_spin(decomposer, component));
    add_time(decomposer, component, (double)(end_ns - begin_ns) * share);
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

// A thread's application. Where there is only one, every thread of the server has the message's.
// NO_APPLICATION for all other threads.
static uint32_t application_of_sweep(const struct sweep *sweep, uint32_t thread)
{
    const struct diagnosis_input *in = sweep->decomposer->in;
    if (in->applications && in->applications->items.count > 0)
        return application_of_thread(in->applications, thread);
    return is_server_thread(in, thread) ? sweep->life->application : NO_APPLICATION;
}

// Whether the kernel calls softirqs' handlers from that function. The tracepoint at which their
// context begins is in it.
static bool runs_softirqs(const struct host_timeline *host, const struct span *function)
{
    static const char *const names[] = {"handle_softirqs", "__do_softirq",
                                        "__softirqentry_text_start"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(host->names.items[function->name], names[i]) == 0)
            return true;
    return false;
}

// The functions that were open in a context. A trace that begins in an interrupt's middle shows
// what that interrupted, too, as open since its own begin: that is not the interrupt's.
static struct decomposer_stack functions_in(const struct sweep *sweep, const struct span *context,
                                            const struct span *const *functions, unsigned count)
{
    const bool interrupts =
        context->kind == SPAN_SOFTIRQ || context->kind == SPAN_IRQ || context->kind == SPAN_VECTOR;
    unsigned first = 0;
    while (interrupts && first < count && !(functions[first]->id & SPAN_ID_KERNEL))
        first++;
    if (first == count) // in a made trace no code is the kernel's
        first = 0;
    for (unsigned at = first; at + 1 < count && context->kind == SPAN_SOFTIRQ; at++)
        if (runs_softirqs(sweep->decomposer->in->server, functions[at]))
            first = at + 1;
    return (struct decomposer_stack){.functions = functions + first,
                                     .count = count - first,
                                     .context_begin_ns = context->begin_ns};
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
            decomposer->stack = functions_in(sweep, span, open + at + 1, above - at - 1);
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

// Kernel threads in which packets are processed: softirqs that were put off, NAPI that is threaded
// (/sys/class/net/*/threaded), what RPS gives to a core where its backlog is.
static const char *const receiving_threads[] = {"ksoftirqd/", "napi/", "backlog_napi/"};

bool sweep_receives(const struct sweep *sweep, const struct span *context)
{
    if (context->kind == SPAN_SOFTIRQ)
        return context->id == SOFTIRQ_NET_RX;
    const char *name = sweep->decomposer->in->server->names.items[context->name];
    for (size_t i = 0; i < sizeof receiving_threads / sizeof *receiving_threads; i++)
        if (context->kind == SPAN_TASK &&
            strncmp(name, receiving_threads[i], strlen(receiving_threads[i])) == 0)
            return true;
    return false;
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

static void add_application(struct sweep *sweep, uint32_t application, int64_t begin_ns,
                            int64_t end_ns)
{
    if (end_ns > begin_ns)
        sweep_add(sweep,
                  component_of_application(sweep->decomposer->table,
                                           sweep->decomposer->in->applications, application,
                                           sweep->role),
                  begin_ns, end_ns);
}

// Another process may have the name of the message's server: it is told apart by its number.
static int64_t component_of_bystander(const struct sweep *sweep, const struct span *task)
{
    const struct diagnosis_input *in = sweep->decomposer->in;
    const struct thread_owner *owner = host_timeline_owner(in->server, task->id);
    const char *name = in->server->names.items[task->name];
    const char *server =
        in->applications && sweep->life->application < in->applications->items.count
            ? in->applications->items.items[sweep->life->application].name
            : "";
    size_t length = strcspn(name, ":");
    if (owner && strcspn(server, ":") == length && strncmp(name, server, length) == 0)
        return component_of_process(sweep->decomposer->table, task, sweep->role, owner->process);
    return component_of_context(sweep->decomposer->table, task, sweep->role);
}

bool sweep_is_forked(const struct sweep *sweep, uint32_t thread)
{
    const struct applications *all = sweep->decomposer->in->applications;
    return all && application_of_sweep(sweep, thread) == sweep->life->application &&
           membership_of_thread(all, thread) == MEMBERSHIP_FORKED;
}

static int64_t component_of_task(const struct sweep *sweep, const struct span *task)
{
    const struct diagnosis_input *in = sweep->decomposer->in;
    struct component_table *table = sweep->decomposer->table;
    uint32_t whose = application_of_sweep(sweep, task->id);
    enum membership membership =
        in->applications ? membership_of_thread(in->applications, task->id) : MEMBERSHIP_SERVES;
    if (whose == NO_APPLICATION)
        return component_of_bystander(sweep, task);
    if (whose != sweep->life->application)
        return component_of_application(table, in->applications, whose, sweep->role);
    if (membership == MEMBERSHIP_OWN || membership == MEMBERSHIP_FORKED)
        return component_of_own_thread(table, task, sweep->role, membership == MEMBERSHIP_FORKED);
    return sweep->role == ROLE_R ? COMPONENT_BLOCKING_R : COMPONENT_BLOCKING_THREAD_A;
}

void sweep_add_task(struct sweep *sweep, const struct span *task, int64_t begin_ns, int64_t end_ns)
{
    if (end_ns > begin_ns)
        sweep_add(sweep, component_of_task(sweep, task), begin_ns, end_ns);
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
            add_application(sweep, whose, begin_ns, until);
        begin_ns = until;
    }
    return begin_ns;
}

// --- waiting for other messages ------------------------------------------------------------------
// A thread's time is cut at the entries and exits of its socket calls. The time in a call, and
// after it until the next, belongs to the call's connection; more precisely, what lies between a
// receive or a send and a following send on the same connection is the work for the requests that
// this send answers.

enum owner { OWNER_SELF, OWNER_SHARED, OWNER_NOBODY, OWNER_SERVER, OWNER_CONNECTION, OWNER_OTHER };

// A request may come in several receive calls, and its reply go in several send calls: headers, and
// then a body.
static bool same_exchange(const struct diagnosis_input *in, const struct lifetime *life,
                          uint32_t call)
{
    const uint32_t *exchanges = in->order ? in->order->service_of_call : NULL;
    uint32_t last = life->send_call == NO_CALL ? life->receive_call : life->send_call;
    return exchanges && exchanges[call] != NOT_SERVED && exchanges[call] == exchanges[last];
}

// Whom the time inside a call belongs to.
static enum owner owner_of_call(const struct diagnosis_input *in, const struct lifetime *life,
                                uint32_t call)
{
    const struct application_calls *calls = in->calls;
    if (call == life->receive_call || call == life->send_call || same_exchange(in, life, call))
        return OWNER_SELF;
    if (calls->items[call].kind == CALL_WAIT)
        return OWNER_NOBODY;
    return calls->items[call].connection == calls->items[life->receive_call].connection
               ? OWNER_CONNECTION
               : OWNER_OTHER;
}

// Whom the time between a call and the thread's next call (NO_CALL: none) belongs to.
static enum owner owner_after_call(const struct diagnosis_input *in, const struct lifetime *life,
                                   uint32_t call, uint32_t next)
{
    const struct application_calls *calls = in->calls;
    const struct application_call *now = &calls->items[call];
    if (next != NO_CALL && next == life->send_call && now->thread != life->thread)
        return OWNER_SELF; // another thread took it over: it received nothing on this connection
    bool answers = next != NO_CALL && calls->items[next].kind == CALL_SEND &&
                   (calls->items[next].connection == now->connection || now->kind != CALL_RECEIVE);
    enum owner owner = owner_of_call(in, life, answers ? next : call);
    // A receive may return the bytes of several requests, and a send may answer several: work after
    // such a receive, or before such a send, is shared by all of them.
    bool common = answers || now->kind == CALL_RECEIVE;
    return owner == OWNER_SELF && common && life->sharing > 1 ? OWNER_SHARED : owner;
}

static const struct thread_pages *pages_of(struct decomposer *decomposer, uint32_t thread)
{
    struct decomposer_pages *pages = &decomposer->last_pages;
    if (!pages->valid || pages->thread != thread)
        *pages = (struct decomposer_pages){thread_pages_of(decomposer->in->server, thread), thread,
                                           true};
    return &pages->of;
}

struct page_time decomposer_page_time(struct decomposer *decomposer, uint32_t thread,
                                      int64_t begin_ns, int64_t end_ns)
{
    const struct host_timeline *host = decomposer->in->server;
    if (decomposer->stack.count > 0 || !host)
        return (struct page_time){0};
    const struct thread_pages *pages = pages_of(decomposer, thread);
    double whole = (double)(end_ns - begin_ns);
    double faults = page_fault_ns(pages, begin_ns, end_ns);
    double copies = fmin(page_copy_ns(pages, begin_ns, end_ns), whole - faults);
    bool forked = copies > 0 && forked_before(host, thread, begin_ns);
    return (struct page_time){.faults_ns = forked ? faults : faults + copies,
                              .copies_ns = forked ? copies : 0};
}

static int64_t earlier_time(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// Gives a component the page faults of a thread's running time, or a `share` of them, and returns
// how long they were. What a fork has its process copy is the fork's, whomever the thread works
// for: it costs all that the process serves. So does the memory that is new because a collector is
// at work.
static double add_page_faults(struct decomposer *decomposer, enum fixed_component component,
                              uint32_t thread, int64_t begin_ns, int64_t end_ns, double share)
{
    double sum = 0;
    while (begin_ns < end_ns) {
        int64_t until;
        bool collects = collector_at_work(decomposer->in->server, thread, begin_ns, &until);
        until = earlier_time(until, end_ns);
        struct page_time pages = decomposer_page_time(decomposer, thread, begin_ns, until);
        if (collects && pages.faults_ns > 0)
            decomposer_add(decomposer, component_of_collectors_pages(decomposer->table),
                           pages.faults_ns * share);
        else
            decomposer_add(decomposer, component, pages.faults_ns * share);
        if (pages.copies_ns > 0)
            decomposer_add(decomposer, COMPONENT_PAGE_COPIES, pages.copies_ns * share);
        sum += (pages.faults_ns + pages.copies_ns) * share;
        begin_ns = until;
    }
    return sum;
}

// A thread's running time, without its page faults.
static void add_running_time(struct decomposer *decomposer, enum fixed_component component,
                             enum fixed_component faulting, uint32_t thread, int64_t begin_ns,
                             int64_t end_ns, double share)
{
    double faults = add_page_faults(decomposer, faulting, thread, begin_ns, end_ns, share);
    decomposer_add_piece(decomposer, component, begin_ns, end_ns, share);
    decomposer_add(decomposer, component, -faults);
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

bool decomposer_kernel_work(struct decomposer *decomposer, uint32_t thread, int64_t begin_ns,
                            int64_t *end_ns, char *name, size_t name_bytes)
{
    int64_t until;
    char call_name[64];
    if (decomposer->stack.count)
        return false;
    const struct detour *call = call_at(decomposer->in->server, thread, begin_ns, &until);
    *end_ns = earlier_time(until, *end_ns);
    if (!call || (pause_moves_bytes(call->kind) && !decomposer->in->calls))
        return false;
    // With a call on a socket of its own in between, it was another one of the same kind.
    const struct decomposer_calls *made = calls_at(decomposer, thread, call->begin_ns);
    if (made->next < made->count && made->items[made->next].entry_ns < call->end_ns)
        return false;
    system_call_name(call->kind, call_name, sizeof call_name);
    snprintf(name, name_bytes, "kernel work in %s", call_name);
    return true;
}

void decompose_own_time(struct decomposer *decomposer, uint32_t thread, int64_t begin_ns,
                        int64_t end_ns, double share)
{
    while (begin_ns < end_ns) {
        char name[CAUSE_NAME_BYTES];
        int64_t until = end_ns;
        if (decomposer_kernel_work(decomposer, thread, begin_ns, &until, name, sizeof name))
            decomposer_add_piece(decomposer, component_of_wait(decomposer->table, name), begin_ns,
                                 until, share);
        else
            add_running_time(decomposer, COMPONENT_APPLICATION, COMPONENT_PAGE_FAULTS, thread,
                             begin_ns, until, share);
        begin_ns = until;
    }
}

// Whoever stands behind a request that takes page faults waits for pages, too, and is told so.
static void add_owned_time(struct decomposer *decomposer, const struct lifetime *life,
                           uint32_t thread, enum owner owner, int64_t begin_ns, int64_t end_ns)
{
    const enum fixed_component ahead = COMPONENT_BLOCKING_CONNECTION_FAULTS_A;
    double share = 1, rest, faults;
    switch (owner) {
    case OWNER_CONNECTION:
        add_running_time(decomposer, COMPONENT_BLOCKING_CONNECTION_A, ahead, thread, begin_ns,
                         end_ns, 1);
        return;
    case OWNER_SERVER:
        add_running_time(decomposer, COMPONENT_OWN_WORK, COMPONENT_OWN_WORK, thread, begin_ns,
                         end_ns, 1);
        return;
    case OWNER_OTHER:
        add_running_time(decomposer, COMPONENT_BLOCKING_A, COMPONENT_BLOCKING_FAULTS_A, thread,
                         begin_ns, end_ns, 1);
        return;
    case OWNER_SHARED: // in which order they were served is unknown: each gets an equal part
        share = 1.0 / life->sharing;
        rest = 1 - share;
        faults = add_page_faults(decomposer, ahead, thread, begin_ns, end_ns, rest);
        decomposer_add(decomposer, COMPONENT_BLOCKING_CONNECTION_A,
                       (double)(end_ns - begin_ns) * rest - faults);
        break;
    case OWNER_SELF:
    case OWNER_NOBODY:
        break;
    }
    decompose_own_time(decomposer, thread, begin_ns, end_ns, share);
}

// What the program says it does for itself is that, between whichever calls.
static void add_thread_time(struct decomposer *decomposer, const struct lifetime *life,
                            uint32_t thread, enum owner owner, int64_t begin_ns, int64_t end_ns)
{
    while (begin_ns < end_ns) {
        int64_t until;
        bool own = own_work_at(decomposer->in->server, thread, begin_ns, &until);
        until = earlier_time(until, end_ns);
        add_owned_time(decomposer, life, thread, own ? OWNER_SERVER : owner, begin_ns, until);
        begin_ns = until;
    }
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
        add_thread_time(decomposer, life, thread, owner_of_call(decomposer->in, life, call),
                        begin_ns, exit);
        if (exit > begin_ns)
            begin_ns = exit;
        bool last = i + 1 == count;
        int64_t entry = last ? end_ns : earlier_time(calls[i + 1].entry_ns, end_ns);
        const struct service_order *order = decomposer->in->order;
        int64_t own_from = order && order->own_from ? order->own_from[call] : NO_OWN_WORK;
        own_from = earlier_time(own_from > begin_ns ? own_from : begin_ns, entry);
        add_thread_time(decomposer, life, thread,
                        owner_after_call(decomposer->in, life, call, last ? NO_CALL : call + 1),
                        begin_ns, own_from);
        add_thread_time(decomposer, life, thread, OWNER_SERVER, own_from, entry);
        if (entry > begin_ns)
            begin_ns = entry;
    }
}
