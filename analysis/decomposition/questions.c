// SPDX-License-Identifier: MIT
#include "analysis/decomposition/questions.h"

#include <string.h>

#include "base/array.h"

enum { MOST_QUESTIONS = 4096 }; // looked at, within a message's life

// Whether the last call of a thread on a client's connection up to a time is the one that read the
// request.
static bool had_read(const struct diagnosis_input *in, const struct lifetime *life, uint32_t thread,
                     int64_t time_ns)
{
    size_t count = 0;
    const struct application_call *calls = application_calls_of(in->calls, thread, &count);
    size_t next = calls ? application_calls_after(calls, count, time_ns) : 0;
    return next > 0 && life->receive_call != NO_CALL &&
           &calls[next - 1] == &in->calls->items[life->receive_call];
}

// Whether the next call is the one that sends the reply.
static bool then_replies(const struct diagnosis_input *in, const struct lifetime *life,
                         uint32_t thread, int64_t time_ns)
{
    size_t count = 0;
    const struct application_call *calls = application_calls_of(in->calls, thread, &count);
    size_t next = calls ? application_calls_after(calls, count, time_ns) : 0;
    return next < count && life->send_call != NO_CALL &&
           &calls[next] == &in->calls->items[life->send_call];
}

// Of the questions [first, at), the one that the answer at `at` is for: the first on its socket
// since the answer before. NULL: it was asked earlier.
static const struct server_question *question_of(const struct server_question *all, size_t first,
                                                 size_t at)
{
    const struct server_question *found = NULL;
    for (size_t i = at; i > first; i--) {
        const struct server_question *one = &all[i - 1];
        if (one->socket != all[at].socket)
            continue;
        if (one->answered)
            break;
        found = one;
    }
    return found;
}

bool question_for(const struct diagnosis_input *in, const struct lifetime *life, int64_t begin_ns,
                  int64_t end_ns, struct asked_time *asked)
{
    const struct question_array *all = in->server ? &in->server->questions : NULL;
    if (!all || !in->calls || !lifetime_has(life, STAMP_APPLICATION) ||
        !lifetime_has(life, STAMP_REPLY))
        return false;
    size_t first =
        array_bound(0, all->count, at, all->items[at].time_ns < life->stamp_ns[STAMP_APPLICATION]);
    bool found = false;
    for (size_t at = first; at < all->count && at < first + MOST_QUESTIONS; at++) {
        const struct server_question *answer = &all->items[at], *question;
        if (answer->time_ns > life->stamp_ns[STAMP_REPLY])
            break;
        if (!answer->answered || answer->time_ns <= begin_ns ||
            !(question = question_of(all->items, first, at)) || question->time_ns >= end_ns ||
            (found && question->time_ns >= asked->begin_ns) ||
            (!had_read(in, life, question->thread, question->time_ns) &&
             !then_replies(in, life, answer->thread, answer->time_ns)))
            continue;
        found = true;
        asked->begin_ns = question->time_ns > begin_ns ? question->time_ns : begin_ns;
        asked->end_ns = answer->time_ns < end_ns ? answer->time_ns : end_ns;
        struct connection other = {.protocol = CONNECTION_TCP, .peer_port = answer->port};
        memcpy(other.peer, answer->address, sizeof other.peer);
        connection_peer_text(&other, asked->whom);
    }
    return found;
}
