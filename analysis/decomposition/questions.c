// SPDX-License-Identifier: MIT
#include "analysis/decomposition/questions.h"

#include <string.h>

#include "analysis/decomposition/sleep_names.h"
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

// Whether it is one of those that follow at once: of what came with one call several may be
// answers.
static bool soon_replies(const struct diagnosis_input *in, const struct lifetime *life,
                         uint32_t thread, int64_t time_ns)
{
    size_t count = 0;
    const struct application_call *calls = application_calls_of(in->calls, thread, &count);
    size_t next = calls ? application_calls_after(calls, count, time_ns) : 0;
    for (; next < count && calls[next].kind == CALL_SEND; next++)
        if (life->send_call != NO_CALL && &calls[next] == &in->calls->items[life->send_call])
            return true;
    return false;
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

// The same where several requests share the connection, as those of an event loop's only one: what
// had been asked last on it by a thread that had just read the request, if the reply follows the
// answer.
static const struct server_question *shared_question(const struct diagnosis_input *in,
                                                     const struct lifetime *life, size_t first,
                                                     size_t at)
{
    const struct server_question *all = in->server->questions.items;
    if (!soon_replies(in, life, all[at].thread, all[at].time_ns))
        return NULL;
    for (size_t i = at; i > first; i--)
        if (all[i - 1].socket == all[at].socket && !all[i - 1].answered &&
            had_read(in, life, all[i - 1].thread, all[i - 1].time_ns))
            return &all[i - 1];
    return NULL;
}

// The first that was asked for the message and was not answered before begin_ns, if before end_ns;
// with its answer. NULL: none is known.
static const struct server_question *own_question(const struct diagnosis_input *in,
                                                  const struct lifetime *life, int64_t begin_ns,
                                                  int64_t end_ns,
                                                  const struct server_question **its_answer)
{
    const struct question_array *all = in->server ? &in->server->questions : NULL;
    const struct server_question *found = NULL;
    if (!all || !in->calls || !lifetime_has(life, STAMP_APPLICATION) ||
        !lifetime_has(life, STAMP_REPLY))
        return NULL;
    size_t first =
        array_bound(0, all->count, at, all->items[at].time_ns < life->stamp_ns[STAMP_APPLICATION]);
    for (size_t at = first; at < all->count && at < first + MOST_QUESTIONS; at++) {
        const struct server_question *answer = &all->items[at], *question;
        if (answer->time_ns > life->stamp_ns[STAMP_REPLY])
            break;
        if (!answer->answered || answer->time_ns <= begin_ns ||
            !(question =
                  question_of(all->items, first, at) ?: shared_question(in, life, first, at)) ||
            question->time_ns >= end_ns || (found && question->time_ns >= found->time_ns) ||
            (!had_read(in, life, question->thread, question->time_ns) &&
             !then_replies(in, life, answer->thread, answer->time_ns)))
            continue;
        found = question;
        *its_answer = answer;
    }
    return found;
}

static void name_asked(const struct server_question *question, char whom[CONNECTION_TEXT_BYTES])
{
    struct connection other = {.protocol = CONNECTION_TCP, .peer_port = question->port};
    memcpy(other.peer, question->address, sizeof other.peer);
    connection_peer_text(&other, whom);
}

bool question_for(const struct diagnosis_input *in, const struct lifetime *life, int64_t begin_ns,
                  int64_t end_ns, struct asked_time *asked)
{
    const struct server_question *answer;
    const struct server_question *question = own_question(in, life, begin_ns, end_ns, &answer);
    if (!question)
        return false;
    asked->begin_ns = question->time_ns > begin_ns ? question->time_ns : begin_ns;
    asked->end_ns = answer->time_ns < end_ns ? answer->time_ns : end_ns;
    name_asked(question, asked->whom);
    return true;
}

// When the thread itself took the answer to a question. INT64_MAX: it did not, within the life.
static int64_t answered_ns(const struct question_array *all, size_t question, int64_t until_ns)
{
    const struct server_question *asked = &all->items[question];
    for (size_t at = question + 1; at < all->count && at <= question + MOST_QUESTIONS; at++) {
        const struct server_question *one = &all->items[at];
        if (one->time_ns > until_ns)
            break;
        if (one->socket == asked->socket && one->answered)
            return one->thread == asked->thread ? one->time_ns : INT64_MAX;
    }
    return INT64_MAX;
}

bool question_only(const struct diagnosis_input *in, const struct lifetime *life, uint32_t thread,
                   int64_t begin_ns, int64_t end_ns, struct asked_time *asked)
{
    const struct question_array *all = in->server ? &in->server->questions : NULL;
    const struct server_question *only = NULL;
    if (!all || !lifetime_has(life, STAMP_REPLY))
        return false;
    size_t after = array_bound(0, all->count, at, all->items[at].time_ns < end_ns);
    asked->begin_ns = INT64_MAX;
    asked->end_ns = INT64_MIN;
    for (size_t at = after; at > 0 && after - at < MOST_QUESTIONS; at--) {
        const struct server_question *one = &all->items[at - 1];
        if (one->thread != thread || one->answered)
            continue;
        int64_t until_ns = answered_ns(all, at - 1, life->stamp_ns[STAMP_REPLY]);
        if (until_ns <= begin_ns || until_ns == INT64_MAX)
            continue;
        if (only && (one->port != only->port ||
                     memcmp(one->address, only->address, sizeof one->address) != 0))
            return false;
        only = one;
        if (one->time_ns < asked->begin_ns)
            asked->begin_ns = one->time_ns;
        if (until_ns > asked->end_ns)
            asked->end_ns = until_ns;
    }
    if (!only)
        return false;
    if (asked->begin_ns < begin_ns)
        asked->begin_ns = begin_ns;
    if (asked->end_ns > end_ns)
        asked->end_ns = end_ns;
    name_asked(only, asked->whom);
    return true;
}

// How many connections the process of `one` had to the same server, of which each had been asked
// something by that time and not answered. 0: one was free, which was used again later.
static unsigned all_taken(const struct host_timeline *host, const struct server_question *one,
                          int64_t time_ns)
{
    enum { MOST_CONNECTIONS = 64 };
    const struct question_array *all = &host->questions;
    uint64_t sockets[MOST_CONNECTIONS];
    unsigned known = 0, taken = 0;
    size_t after = array_bound(0, all->count, at, all->items[at].time_ns < time_ns);
    for (size_t i = after; i > 0 && after - i < MOST_QUESTIONS; i--) {
        const struct server_question *last = &all->items[i - 1];
        unsigned at = 0;
        while (at < known && sockets[at] != last->socket)
            at++;
        if (at < known || last->port != one->port ||
            memcmp(last->address, one->address, sizeof one->address) != 0 ||
            !sleep_same_process(host, last->thread, one->thread))
            continue;
        if (known == MOST_CONNECTIONS)
            return 0;
        sockets[known++] = last->socket;
        taken += !last->answered;
        for (size_t later = after; last->answered && later < all->count; later++)
            if (later >= after + MOST_QUESTIONS || all->items[later].socket == last->socket)
                return 0;
    }
    return taken;
}

bool question_for_want_of(const struct diagnosis_input *in, const struct lifetime *life,
                          int64_t begin_ns, int64_t end_ns, struct taken_time *taken)
{
    const struct server_question *answer, *before;
    const struct server_question *own = own_question(in, life, begin_ns, end_ns, &answer);
    if (!own)
        return false;
    const struct server_question *first = in->server->questions.items;
    for (before = own; before > first && before[-1].time_ns > begin_ns; before--)
        if (before[-1].socket == own->socket && before[-1].answered)
            break;
    if (before == first || before[-1].time_ns <= begin_ns)
        return false;
    taken->end_ns = before[-1].time_ns;
    taken->count = all_taken(in->server, own, begin_ns + (taken->end_ns - begin_ns) / 2);
    name_asked(own, taken->whom);
    return taken->count > 0;
}
