// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/time_budget.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/decomposition/components.h"
#include "analysis/timeline/pauses.h"
#include "analysis/timeline/thread_states.h"

static const struct {
    const char *name, *colour;
    bool busy;
} states[] = {
#define BUDGET_STATE(NAME, name, busy, colour, means) {name, colour, busy},
#include "analysis/diagnosis/time_budget.tbl.h"
};

const char *budget_state_name(enum budget_state state)
{
    return states[state].name;
}

const char *budget_state_colour(enum budget_state state)
{
    return states[state].colour;
}

// --- which threads -------------------------------------------------------------------------------

static size_t process_name_length(const char *name)
{
    return strcspn(name, ":");
}

static bool is_same_process_name(const char *a, const char *b)
{
    size_t length = process_name_length(a);
    return process_name_length(b) == length && strncmp(a, b, length) == 0;
}

struct named_thread {
    uint32_t thread, name;
};
struct named_thread_array ARRAY_OF(struct named_thread);

static int compare_named(const void *left, const void *right)
{
    const struct named_thread *a = left, *b = right;
    return order_of(a->thread, b->thread);
}

// Every thread that ran, by its number, with the name it had last.
static int gather_threads(const struct host_timeline *host, struct named_thread_array *out)
{
    struct map places = {0};
    int result = 0;
    for (size_t c = 0; c < host->cores.count; c++) {
        const struct span_array *spans = &host->cores.items[c].spans;
        for (size_t i = 0; i < spans->count && result == 0; i++) {
            const struct span *span = &spans->items[i];
            if (span->kind != SPAN_TASK || span->depth > 0)
                continue;
            uint32_t at = map_find(&places, span->id, k, out->items[k].thread == span->id);
            if (at != MAP_NONE)
                out->items[at].name = span->name;
            else if (array_push(out, (struct named_thread){span->id, span->name}) < 0 ||
                     map_add(&places, span->id, out->count - 1) < 0)
                result = -1;
        }
    }
    map_free(&places);
    array_sort(out, compare_named);
    return result;
}

static const struct named_thread *find_named(const struct named_thread_array *all, uint32_t thread)
{
    size_t at = array_bound(0, all->count, i, all->items[i].thread < thread);
    return at < all->count && all->items[at].thread == thread ? &all->items[at] : NULL;
}

static void keep_members(const struct time_budget_input *in, struct named_thread_array *all)
{
    size_t kept = 0;
    for (size_t i = 0; i < all->count; i++)
        if (application_of_thread(in->applications, all->items[i].thread) != NO_APPLICATION)
            all->items[kept++] = all->items[i];
    all->count = kept;
}

// Keeps the servers' threads: those that made socket calls, and others of their processes' names.
static void keep_namesakes(const struct time_budget_input *in, struct named_thread_array *all)
{
    const struct name_array *names = &in->host->names;
    bool *servers = calloc(names->count + 1, sizeof *servers);
    size_t kept = 0;
    for (size_t i = 0; servers && i < in->thread_count; i++) {
        const struct named_thread *one = find_named(all, in->threads[i]);
        for (size_t k = 0; one && !servers[one->name] && k < names->count; k++)
            servers[k] |= is_same_process_name(names->items[one->name], names->items[k]);
    }
    for (size_t i = 0; servers && i < all->count; i++)
        if (servers[all->items[i].name])
            all->items[kept++] = all->items[i];
    all->count = kept;
    free(servers);
}

// --- one thread ----------------------------------------------------------------------------------

struct account {
    const struct time_budget_input *in;
    struct thread_budget *budget;
    const struct busy_time *busy; // those that are not over yet
    size_t busy_count;
    struct thread_pages pages;
    bool has_loop; // it waits in epoll_wait or the like
    bool failed;
};

static void add_state(struct account *account, enum budget_state state, double ns)
{
    account->budget->ns[state] += ns;
}

static void add_wait(struct account *account, uint32_t pause, double ns)
{
    struct thread_budget *budget = account->budget;
    size_t at = 0;
    add_state(account, BUDGET_BLOCKED, ns);
    while (at < budget->waits.count && budget->waits.items[at].pause != pause)
        at++;
    if (at == budget->waits.count &&
        array_push(&budget->waits, (struct budget_wait){.pause = pause}) < 0) {
        account->failed = true;
        return;
    }
    budget->waits.items[at].times++;
    budget->waits.items[at].ns += ns;
}

// Whether the thread works for itself, and until when that is so.
static bool own_turn_at(const struct account *account, int64_t time_ns, int64_t *until_ns)
{
    const struct service_order *order = account->in->order;
    size_t end, at = service_order_after(order, account->budget->thread, time_ns, &end);
    *until_ns = INT64_MAX;
    if (at == end)
        return false;
    const struct turn *turn = &order->turns.items[at];
    bool begun = turn->begin_ns <= time_ns;
    *until_ns = begun ? turn->end_ns : turn->begin_ns;
    return begun && turn->service == TURN_SERVER;
}

// Running time is divided by whether a request was in the thread's hands, and what the thread did
// for itself meanwhile is for none; page faults are apart.
static void add_running(struct account *account, int64_t begin_ns, int64_t end_ns)
{
    while (begin_ns < end_ns) {
        while (account->busy_count && account->busy->end_ns <= begin_ns)
            account->busy++, account->busy_count--;
        bool has = account->busy_count && account->busy->begin_ns <= begin_ns;
        int64_t until = !account->busy_count ? end_ns
                        : has                ? account->busy->end_ns
                                             : account->busy->begin_ns;
        until = until < end_ns ? until : end_ns;
        int64_t turn_until;
        bool own = has && own_turn_at(account, begin_ns, &turn_until);
        until = has && turn_until < until ? turn_until : until;
        double faults = page_fault_ns(&account->pages, begin_ns, until) +
                        page_copy_ns(&account->pages, begin_ns, until);
        add_state(account, BUDGET_FAULTS, faults);
        add_state(account,
                  !account->in->busy ? BUDGET_RUNS
                  : has && !own      ? BUDGET_REQUESTS
                                     : BUDGET_OWN,
                  (double)(until - begin_ns) - faults);
        begin_ns = until;
    }
}

// Whether a request was in the thread's hands when it went to sleep.
static bool had_request(const struct account *account, int64_t slept_ns)
{
    size_t count = 0;
    const struct busy_time *times =
        account->in->busy ? busy_times_of(account->in->busy, account->budget->thread, &count)
                          : NULL;
    size_t after = array_bound(0, count, at, times[at].begin_ns <= slept_ns);
    return after && times[after - 1].had_ns <= slept_ns && times[after - 1].end_ns > slept_ns;
}

static bool is_among(uint32_t call, const uint32_t *calls, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (calls[i] == call)
            return true;
    return false;
}

// Waits for sockets to become ready, where the capture recorded them as any call: poll, select,
// epoll_wait, pselect6, ppoll, epoll_pwait, epoll_pwait2.
static bool is_of_loop(uint32_t call)
{
    static const uint32_t calls[] = {7, 23, 232, 270, 271, 281, 441};
    return is_among(call, calls, sizeof calls / sizeof *calls);
}

static void add_sleep(struct account *account, const struct thread_period *period)
{
    double ns = (double)(period->end_ns - period->begin_ns);
    uint32_t pause;
    bool has = period->before && had_request(account, period->before->end_ns);
    bool named = period->before && pause_after(account->in->host, period->before, &pause);
    if (named ? is_of_loop(pause) : period->before && period->before->left == STINT_WAITS)
        add_state(account, has ? BUDGET_AWAITS : BUDGET_IDLE, ns);
    else if (!named)
        add_state(account, BUDGET_UNKNOWN, ns);
    else if (pause == PAUSE_NO_CALL)
        add_state(account, BUDGET_FAULTS, ns);
    else if (!has && !account->has_loop && pause_may_await_work(pause))
        add_state(account, BUDGET_IDLE, ns);
    else
        add_wait(account, pause, ns);
}

static void add_period(const struct thread_period *period, void *context)
{
    struct account *account = context;
    double ns = (double)(period->end_ns - period->begin_ns);
    if (period->before && period->before->left == STINT_EXITED && period->state != THREAD_RUNS)
        return; // it is over
    if (!period->before && period->state == THREAD_UNKNOWN)
        return; // it has not been seen yet
    account->budget->whole_ns += ns;
    switch (period->state) {
    case THREAD_RUNS:
        add_running(account, period->begin_ns, period->end_ns);
        break;
    case THREAD_READY:
        add_state(account, BUDGET_READY, ns);
        break;
    case THREAD_THROTTLED:
        add_state(account, BUDGET_THROTTLED, ns);
        break;
    case THREAD_SLEEPS:
        add_sleep(account, period);
        break;
    case THREAD_UNKNOWN:
        add_state(account, BUDGET_UNKNOWN, ns);
        break;
    }
}

static int longest_wait_first(const void *left, const void *right)
{
    const struct budget_wait *a = left, *b = right;
    return order_of(b->ns, a->ns) ?: order_of(a->pause, b->pause);
}

static void settle(struct thread_budget *budget)
{
    budget->busy_ns = 0;
    for (int state = 0; state < BUDGET_STATES; state++)
        budget->busy_ns += states[state].busy ? budget->ns[state] : 0;
    array_sort(&budget->waits, longest_wait_first);
}

static int account_of_thread(const struct time_budget_input *in, struct thread_budget *budget)
{
    struct account account = {
        .in = in, .budget = budget, .pages = thread_pages_of(in->host, budget->thread)};
    size_t count;
    const struct thread_stint *stints = host_timeline_stints(in->host, budget->thread, &count);
    if (in->busy)
        account.busy = busy_times_of(in->busy, budget->thread, &account.busy_count);
    for (size_t i = 0; i < count && !account.has_loop; i++)
        account.has_loop = stints[i].left == STINT_WAITS;
    thread_periods(in->host, budget->thread, in->begin_ns, in->end_ns, add_period, &account);
    settle(budget);
    return account.failed ? -1 : 0;
}

// --- all of them ---------------------------------------------------------------------------------

static int busiest_first(const void *left, const void *right)
{
    const struct thread_budget *a = left, *b = right;
    return order_of(b->busy_ns, a->busy_ns) ?: order_of(a->thread, b->thread);
}

static int add_to_name(struct thread_budget *sum, const struct thread_budget *one)
{
    sum->threads += one->threads;
    sum->whole_ns += one->whole_ns;
    for (int state = 0; state < BUDGET_STATES; state++)
        sum->ns[state] += one->ns[state];
    for (size_t i = 0; i < one->waits.count; i++) {
        const struct budget_wait *wait = &one->waits.items[i];
        size_t at = 0;
        while (at < sum->waits.count && sum->waits.items[at].pause != wait->pause)
            at++;
        if (at == sum->waits.count &&
            array_push(&sum->waits, (struct budget_wait){.pause = wait->pause}) < 0)
            return -1;
        sum->waits.items[at].times += wait->times;
        sum->waits.items[at].ns += wait->ns;
    }
    settle(sum);
    return 0;
}

static int sum_by_name(struct time_budget *budget)
{
    for (size_t i = 0; i < budget->threads.count; i++) {
        const struct thread_budget *one = &budget->threads.items[i];
        size_t at = 0;
        while (at < budget->names.count && strcmp(budget->names.items[at].name, one->name) != 0)
            at++;
        if (at == budget->names.count) {
            struct thread_budget empty = {0};
            memcpy(empty.name, one->name, sizeof empty.name);
            if (array_push(&budget->names, empty) < 0)
                return -1;
        }
        if (add_to_name(&budget->names.items[at], one) < 0)
            return -1;
    }
    array_sort(&budget->names, busiest_first);
    return 0;
}

int time_budget_build(struct time_budget *out, const struct time_budget_input *in)
{
    struct named_thread_array threads = {0};
    int result = gather_threads(in->host, &threads);
    *out =
        (struct time_budget){.begin_ns = in->begin_ns, .end_ns = in->end_ns, .has_calls = in->busy};
    if (in->applications && in->host->owners.count)
        keep_members(in, &threads);
    else
        keep_namesakes(in, &threads);
    for (size_t i = 0; i < threads.count && result == 0; i++) {
        struct thread_budget one = {.thread = threads.items[i].thread, .threads = 1};
        bool forked = in->applications &&
                      membership_of_thread(in->applications, one.thread) == MEMBERSHIP_FORKED;
        const char *name = in->host->names.items[threads.items[i].name];
        int length = component_family_length(name);
        snprintf(one.name, sizeof one.name, "%.*s%s", length < 40 ? length : 40, name,
                 forked ? " (forked child)" : "");
        result = account_of_thread(in, &one);
        if (result < 0 || !(one.whole_ns > one.ns[BUDGET_UNKNOWN]) ||
            (result = array_push(&out->threads, one)) < 0)
            array_free(&one.waits);
    }
    array_sort(&out->threads, busiest_first);
    if (result == 0)
        result = sum_by_name(out);
    array_free(&threads);
    return result;
}

static void free_budgets(struct thread_budget_array *budgets)
{
    for (size_t i = 0; i < budgets->count; i++)
        array_free(&budgets->items[i].waits);
    array_free(budgets);
}

void time_budget_free(struct time_budget *budget)
{
    free_budgets(&budget->threads);
    free_budgets(&budget->names);
}

// --- its parts -----------------------------------------------------------------------------------

static void add_part(const struct thread_budget *budget, double share, struct budget_part part,
                     struct budget_part *out, size_t *count, size_t most)
{
    size_t at = *count;
    if (!(part.ns > 0) || part.ns < share * budget->whole_ns)
        return;
    while (at > 0 && out[at - 1].ns < part.ns)
        at--;
    if (at == most)
        return;
    size_t moved = *count - at < most - 1 - at ? *count - at : most - 1 - at;
    memmove(&out[at + 1], &out[at], moved * sizeof *out);
    out[at] = part;
    *count += *count < most;
}

size_t thread_budget_parts(const struct thread_budget *budget, double share,
                           struct budget_part *out, size_t most)
{
    size_t count = 0;
    for (int state = 0; state < BUDGET_STATES; state++) {
        struct budget_part part = {.state = (enum budget_state)state, .ns = budget->ns[state]};
        snprintf(part.name, sizeof part.name, "%s", states[state].name);
        if (state != BUDGET_BLOCKED)
            add_part(budget, share, part, out, &count, most);
    }
    for (size_t i = 0; i < budget->waits.count; i++) {
        struct budget_part part = {.state = BUDGET_BLOCKED, .ns = budget->waits.items[i].ns};
        pause_name(budget->waits.items[i].pause, part.name, sizeof part.name);
        add_part(budget, share, part, out, &count, most);
    }
    return count;
}
