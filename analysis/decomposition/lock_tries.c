// SPDX-License-Identifier: MIT
#include "analysis/decomposition/lock_tries.h"

#include "analysis/timeline/pauses.h"
#include "base/array.h"
#include "base/text.h"
#include "profiler/bpf/event_log.h"

// --- two tries with nothing but a sleep in between -----------------------------------------------

// The tries of one thread.
static const struct file_lock_try *tries_of(const struct host_timeline *host, uint32_t thread,
                                            size_t *count)
{
    const struct file_lock_try *all = host->lock_tries.items;
    size_t from = array_bound(0, host->lock_tries.count, at, all[at].thread < thread);
    *count = array_bound(from, host->lock_tries.count, at, all[at].thread <= thread) - from;
    return all + from;
}

// Whether a stint ended with a sleep for a time, or with a wait for sockets.
static bool is_pause_between(const struct host_timeline *host, const struct thread_stint *stint)
{
    uint32_t pause;
    return stint->left == STINT_WAITS ||
           (pause_after(host, stint, &pause) && pause_is_for_time(pause));
}

// Whether the thread did so between two moments.
static bool pauses_between(const struct host_timeline *host, uint32_t thread, int64_t begin_ns,
                           int64_t end_ns)
{
    enum { MOST_STINTS = 64 };
    size_t count;
    const struct thread_stint *stints = host_timeline_stints(host, thread, &count);
    size_t first = array_bound(0, count, at, stints[at].end_ns < begin_ns), at = first;
    while (at < count && at < first + MOST_STINTS && stints[at].end_ns < end_ns &&
           !is_pause_between(host, &stints[at]))
        at++;
    return at < count && stints[at].end_ns < end_ns;
}

const struct file_lock_try *lock_try_before(const struct host_timeline *host,
                                            const struct thread_period *period)
{
    size_t count;
    const uint32_t thread = period->before->thread;
    const struct file_lock_try *tries = tries_of(host, thread, &count);
    size_t after = array_bound(0, count, at, tries[at].time_ns <= period->before->end_ns);
    size_t next = after;
    // What SQLite took on its way to what it is refused it gives back.
    while (after > 0 && tries[after - 1].how & FILE_LOCK_RELEASED)
        after--;
    if (after == 0 || !(tries[after - 1].how & FILE_LOCK_REFUSED) ||
        !is_pause_between(host, period->before))
        return NULL;
    const struct file_lock_try *refused = &tries[after - 1];
    while (next < count &&
           (tries[next].file != refused->file || tries[next].how & FILE_LOCK_RELEASED))
        next++;
    return next == count || !period->next ||
                   pauses_between(host, thread, refused->time_ns, period->before->end_ns) ||
                   pauses_between(host, thread, period->next->begin_ns, tries[next].time_ns)
               ? NULL
               : refused;
}

void lock_try_name(const struct host_timeline *host, const struct file_lock_try *refused,
                   char out[CAUSE_NAME_BYTES])
{
    out[0] = '\0';
    text_append(out, CAUSE_NAME_BYTES, "lock wait (%s)",
                refused->how & FILE_LOCK_FILE    ? "lock file"
                : refused->how & FILE_LOCK_FLOCK ? "flock tries"
                                                 : "fcntl tries");
    if (refused->name != NO_FILE_NAME)
        text_append(out, CAUSE_NAME_BYTES, " of %s", host->names.items[refused->name]);
}

// --- who had it ----------------------------------------------------------------------------------

// Whether an event is that a process which has it gives it back. A file that is a lock is gone by
// whoever removes it.
static bool gives_back(const struct file_lock_try *event, const struct lock_turn *turn)
{
    return event->how & FILE_LOCK_RELEASED &&
           (event->how & FILE_LOCK_FILE || event->process == turn->process);
}

struct lock_turn lock_turn_at(const struct host_timeline *host, const struct file_lock_try *refused,
                              int64_t begin_ns, int64_t end_ns)
{
    const struct file_lock_try *all = host->lock_turns.items;
    size_t count = host->lock_turns.count;
    size_t at = array_bound(0, count, i,
                            all[i].file < refused->file || (all[i].file == refused->file &&
                                                            all[i].time_ns <= refused->time_ns));
    struct lock_turn turn = {.process = refused->process,
                             .thread = refused->holder ? refused->holder : refused->process,
                             .taken = refused->process || refused->how & FILE_LOCK_FILE};
    for (; at < count && all[at].file == refused->file && all[at].time_ns < end_ns; at++) {
        const struct file_lock_try *event = &all[at];
        bool gives = turn.taken && gives_back(event, &turn);
        bool takes =
            !turn.taken && event->how & FILE_LOCK_GRANTED && event->thread != refused->thread;
        if (!gives && !takes)
            continue;
        if (gives) {
            turn.process = event->process;
            turn.thread = event->thread;
        }
        if (event->time_ns > begin_ns) {
            turn.end_ns = event->time_ns;
            return turn;
        }
        turn.taken = takes;
        turn.process = takes ? event->process : 0;
        turn.thread = takes ? event->thread : 0;
    }
    turn.end_ns = end_ns;
    for (; turn.taken && at < count && all[at].file == refused->file; at++)
        if (gives_back(&all[at], &turn)) {
            turn.process = all[at].process;
            turn.thread = all[at].thread;
            break;
        }
    return turn;
}
