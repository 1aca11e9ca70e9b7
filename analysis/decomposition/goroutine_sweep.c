// SPDX-License-Identifier: MIT
#include "analysis/decomposition/goroutine_sweep.h"

#include <stdio.h>
#include <string.h>

#include "analysis/decomposition/goroutine_path.h"
#include "analysis/decomposition/path_walk.h"
#include "analysis/decomposition/questions.h"
#include "base/text.h"

// "waiting for web (another goroutine)": the thread by its name, as far as that is known.
static void name_goroutine_wait(const struct host_timeline *host, uint32_t thread, int64_t end_ns,
                                const char *what, char out[CAUSE_NAME_BYTES])
{
    const struct span *span = thread_span_before(host, thread, end_ns);
    const char *name = span && span->kind == SPAN_TASK ? host->names.items[span->name] : NULL;
    if (name && what[0] && strncmp(name, "beam.smp", 8) == 0)
        what = "another Erlang process";
    if (name && what[0])
        snprintf(out, CAUSE_NAME_BYTES, "waiting for %.*s (%s)", component_family_length(name),
                 name, what);
    else if (name)
        snprintf(out, CAUSE_NAME_BYTES, "waiting for %.*s", component_family_length(name), name);
    else
        snprintf(out, CAUSE_NAME_BYTES, "waiting for %s", what[0] ? what : "another process");
}

static void sweep_goroutine_piece(struct decomposer *decomposer, const struct lifetime *life,
                                  const struct goroutine_piece *piece, const char *wait)
{
    struct path path = {
        .sweep = {.decomposer = decomposer, .life = life, .role = ROLE_A, .thread = piece->thread},
        .sleep = ""};
    struct thread_period sleep = piece->sleep;
    char child[CAUSE_NAME_BYTES];
    switch (piece->kind) {
    case GOROUTINE_AT_WORK:
        path.wait = wait;
        path_follow(&path, piece->begin_ns, piece->end_ns);
        break;
    case GOROUTINE_CHILD:
        name_goroutine_wait(decomposer->in->server, piece->thread, piece->end_ns, "", child);
        path.wait = child;
        path_follow(&path, piece->begin_ns, piece->end_ns);
        break;
    case GOROUTINE_TIMER:
        decomposer->core = NO_CORE;
        path_add_wait(&path, "waiting for a timer", piece->begin_ns, piece->end_ns);
        break;
    case GOROUTINE_AWAITS:
        // Whatever the thread did before, it was that which the goroutine waited for.
        sleep.begin_ns = piece->begin_ns;
        path.sweep.begin_ns = piece->begin_ns;
        path.sweep.before = sleep.before;
        path_sleep(&path, &sleep);
        break;
    case GOROUTINE_UNKNOWN:
        decomposer->core = NO_CORE;
        path_add_wait(&path, "unknown wait", piece->begin_ns, piece->end_ns);
        break;
    }
}

// The goroutine waited for a connection to another server first, and all were taken: until when.
static int64_t add_taken_connections(struct decomposer *decomposer, const struct lifetime *life,
                                     int64_t begin_ns, int64_t end_ns)
{
    struct path path = {.sweep = {.decomposer = decomposer, .life = life, .role = ROLE_A}};
    struct taken_time taken;
    char all[32] = "the only one waits", name[CAUSE_NAME_BYTES] = "";
    if (!question_for_want_of(decomposer->in, life, begin_ns, end_ns, &taken))
        return begin_ns;
    if (taken.count > 1)
        snprintf(all, sizeof all, "all %u wait", taken.count);
    text_append(name, sizeof name, "waiting for a free connection: %s for %s", all, taken.whom);
    decomposer->core = NO_CORE;
    path_add_wait(&path, name, begin_ns, taken.end_ns);
    return taken.end_ns;
}

void goroutine_sweep(struct decomposer *decomposer, const struct lifetime *life, uint32_t replier,
                     int64_t begin_ns, int64_t end_ns)
{
    struct goroutine_path path;
    char wait[CAUSE_NAME_BYTES];
    begin_ns = add_taken_connections(decomposer, life, begin_ns, end_ns);
    goroutine_path_find(decomposer->in, life, replier, begin_ns, end_ns, &path);
    name_goroutine_wait(decomposer->in->server, replier, end_ns, "another goroutine", wait);
    for (size_t i = path.count; i > 0; i--)
        sweep_goroutine_piece(decomposer, life, &path.pieces[i - 1], path.others ? wait : NULL);
}
