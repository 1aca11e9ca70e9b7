// SPDX-License-Identifier: MIT
#include "analysis/decomposition/goroutine_path.h"

#include "analysis/decomposition/lock_waits.h"
#include "analysis/decomposition/questions.h"
#include "analysis/decomposition/runtime_turns.h"
#include "analysis/decomposition/sleep_names.h"
#include "analysis/timeline/pauses.h"
#include "base/array.h"

// Whether a thread slept until there was work for it: for sockets and timers, or parked.
static bool awaits_work(const struct host_timeline *host, const struct thread_stint *before)
{
    uint32_t pause;
    return before->left == STINT_WAITS ||
           (before->left == STINT_SLEEPS && pause_after(host, before, &pause) &&
            pause == PAUSE_PARKED);
}

// --- whether it waited ---------------------------------------------------------------------------

struct work_awaited {
    const struct host_timeline *host;
    bool found;
};

static void look_for_awaited_work(const struct thread_period *period, void *context)
{
    struct work_awaited *look = context;
    look->found |= period->state == THREAD_SLEEPS && awaits_work(look->host, period->before);
}

bool goroutine_waited(const struct diagnosis_input *in, const struct lifetime *life,
                      uint32_t replier, int64_t begin_ns, int64_t end_ns)
{
    struct work_awaited look = {.host = in->server, .found = replier != life->thread};
    if (!in->server || begin_ns >= end_ns)
        return false;
    if (!look.found)
        thread_periods(in->server, replier, begin_ns, end_ns, look_for_awaited_work, &look);
    return look.found && go_schedules(in->server, replier, end_ns);
}

// --- back along what had it go on ----------------------------------------------------------------

struct last_sleep {
    struct thread_period sleep; // end_ns 0: none
    bool unknown;               // at first nobody knows what the thread did
    int64_t begin_ns;
};

static void keep_last_sleep(const struct thread_period *period, void *context)
{
    struct last_sleep *last = context;
    if (period->state == THREAD_SLEEPS)
        last->sleep = *period;
    if (period->state == THREAD_UNKNOWN && period->begin_ns == last->begin_ns)
        last->unknown = true;
}

static void add_piece(struct goroutine_path *path, struct goroutine_piece piece)
{
    if (piece.begin_ns < piece.end_ns && path->count < GOROUTINE_PIECES)
        path->pieces[path->count++] = piece;
}

// Whether what ended a wait for sockets was a request, as far as its thread knew: it was handed
// over just before. The goroutine has read its own already.
static bool was_request(const struct host_timeline *host, const struct waking *waking)
{
    enum { AT_ONCE_NS = 20000 };
    const struct core_timeline *core = host_timeline_core(host, waking->from);
    size_t before = core ? core_timeline_handoffs_before(core, waking->time_ns + 1) : 0;
    return before > 0 && waking->time_ns - core->handoffs.items[before - 1] < AT_ONCE_NS;
}

// What had a thread go on that waited for work.
struct word {
    int kind;        // of the piece up to then, if it is nobody's
    uint32_t thread; // whose time counts up to then; 0: nobody's
    uint32_t child;  // GOROUTINE_CHILD
    int64_t time_ns;
};

struct ended_sleep {
    const struct host_timeline *host;
    int64_t until_ns;
    int64_t timer_ns; // a timer ended a wait for work then; 0: none did
    int64_t last_ns;  // the last sleep ended then; 0: none did
};

static void look_for_end(const struct thread_period *period, void *context)
{
    struct ended_sleep *look = context;
    if (period->state != THREAD_SLEEPS || period->end_ns >= look->until_ns)
        return;
    look->last_ns = period->end_ns;
    if (period->waking && awaits_work(look->host, period->before) &&
        waker_of(look->host, period->waking).kind == WAKER_TIMER)
        look->timer_ns = period->end_ns;
}

// A request woke the thread: the goroutine was ready by the time that it ran, at until_ns, as a
// timer was due meanwhile, for which another thread of the process had waited, or by the doing of
// one that was awake.
static struct word word_meanwhile(const struct host_timeline *host,
                                  const struct thread_period *sleep, int64_t until_ns)
{
    struct word word = {.kind = GOROUTINE_UNKNOWN, .time_ns = sleep->end_ns};
    const uint32_t thread = sleep->before->thread;
    struct ended_sleep look = {.host = host, .until_ns = until_ns};
    struct waker other;
    for (size_t i = 0; i < host->owners.count && look.timer_ns == 0; i++)
        if (host->owners.items[i].thread != thread &&
            sleep_same_process(host, host->owners.items[i].thread, thread))
            thread_periods(host, host->owners.items[i].thread, sleep->end_ns, until_ns,
                           look_for_end, &look);
    if (look.timer_ns) {
        word = (struct word){.kind = GOROUTINE_TIMER, .time_ns = look.timer_ns};
    } else if (runtime_awake_meanwhile(host, thread, sleep->end_ns, until_ns, &other) &&
               !go_watches(host, other.thread, until_ns)) {
        look = (struct ended_sleep){.host = host, .until_ns = until_ns};
        thread_periods(host, other.thread, sleep->end_ns, until_ns, look_for_end, &look);
        word.thread = other.thread;
        word.time_ns = look.last_ns ? look.last_ns : sleep->end_ns;
    }
    return word;
}

// Whether a thread is of a process that the other one's process forked.
static bool is_child_of(const struct host_timeline *host, uint32_t one, uint32_t other)
{
    const struct thread_owner *child = host_timeline_owner(host, one);
    const struct thread_owner *own = host_timeline_owner(host, other);
    return child && own && child->process != own->process && child->parent == own->process;
}

static struct word word_for(const struct diagnosis_input *in, const struct lifetime *life,
                            const struct thread_period *sleep, int64_t begin_ns, int64_t until_ns)
{
    const struct host_timeline *host = in->server;
    const uint32_t thread = sleep->before->thread;
    struct word word = {.kind = GOROUTINE_AWAITS, .time_ns = sleep->end_ns};
    struct asked_time asked;
    struct waker waker = lock_waker(host, sleep->waking);
    if (waker.kind == WAKER_UNKNOWN && is_child_of(host, sleep->waking->waker, thread))
        word = (struct word){
            .kind = GOROUTINE_CHILD, .child = sleep->waking->waker, .time_ns = sleep->end_ns};
    else if (waker.kind == WAKER_TIMER)
        word.kind = GOROUTINE_TIMER;
    else if (waker.kind == WAKER_PACKET && was_request(host, sleep->waking) &&
             !question_for(in, life, begin_ns, sleep->end_ns, &asked))
        word = word_meanwhile(host, sleep, until_ns);
    else if (waker.kind == WAKER_THREAD && waker.thread != thread &&
             sleep_same_process(host, waker.thread, thread) &&
             !go_watches(host, waker.thread, sleep->end_ns))
        word.thread = waker.thread;
    return word;
}

void goroutine_path_find(const struct diagnosis_input *in, const struct lifetime *life,
                         uint32_t replier, int64_t begin_ns, int64_t end_ns,
                         struct goroutine_path *path)
{
    const struct host_timeline *host = in->server;
    uint32_t thread = replier;
    *path = (struct goroutine_path){.count = 0};
    // Each turn adds a piece at most, but for the last. Where records contradict one another, two
    // threads can have woken each other at the same instant: that adds none.
    for (unsigned turns = 0; begin_ns < end_ns; turns++) {
        struct last_sleep last = {.begin_ns = begin_ns};
        struct goroutine_piece piece = {
            .kind = GOROUTINE_AT_WORK, .thread = thread, .begin_ns = begin_ns, .end_ns = end_ns};
        thread_periods(host, thread, begin_ns, end_ns, keep_last_sleep, &last);
        const struct thread_period *sleep = &last.sleep;
        if (sleep->end_ns == 0 || turns + 2 >= GOROUTINE_PIECES) {
            path->others = sleep->end_ns == 0 && thread != life->thread && !last.unknown;
            add_piece(path, piece);
            return;
        }
        // Where nobody saw what ended a wait for work, that is not known for the wait, and no
        // longer.
        if (!awaits_work(host, sleep->before) || !sleep->waking) {
            piece.begin_ns = end_ns = sleep->begin_ns;
            path->others = !awaits_work(host, sleep->before) && sleep->before->end_ns < begin_ns;
            add_piece(path, piece);
            continue;
        }
        struct word word = word_for(in, life, sleep, begin_ns, end_ns);
        piece.begin_ns = end_ns = word.time_ns;
        add_piece(path, piece);
        if (word.thread == 0) {
            piece = (struct goroutine_piece){.kind = word.kind,
                                             .thread = word.child ? word.child : thread,
                                             .begin_ns = begin_ns,
                                             .end_ns = end_ns,
                                             .sleep = *sleep};
            add_piece(path, piece);
            return;
        }
        thread = word.thread;
    }
}
