// SPDX-License-Identifier: MIT
#include "experiments/keeper/keeper.h"

#include <errno.h>
#include <fnmatch.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "experiments/common/command_log.h"
#include "experiments/common/supervisor.h"
#include "experiments/keeper/keeper_request.h"
#include "base/clock.h"
#include "base/text.h"

enum { ANSWER_TIMEOUT_MS = 10000, END_TIMEOUT_MS = 2000, CLOCK_ROUND_TRIPS = 16 };

// --- the run's side ------------------------------------------------------------------------------

// The error for a keeper that is gone. Of one behind a link, the last line of the link's log says
// why.
static int gone_error(struct keeper *keeper, struct error *err)
{
    char last[700] = "";
    int status = 0;
    struct error ignored;
    if (!keeper->link_log)
        return error_set(
            err, ERROR_FAILED,
            "the keeper of a host (process %d) is gone; `taillight doctor %s--restore` "
            "undoes what it had changed",
            keeper->pid, keeper->serves_far ? "HOST " : "");
    bool ended =
        keeper->link.pid > 0 && process_wait(&keeper->link, END_TIMEOUT_MS, &status, &ignored) > 0;
    command_log_last_line(keeper->link_log, last, sizeof last);
    bool told = strncmp(last, "taillight: ", 11) == 0;
    if (ended && WIFEXITED(status) && WEXITSTATUS(status) == 0 && !told)
        return error_set(err, ERROR_INPUT,
                         "the keeper of %s ended before it was told to: is that machine what it "
                         "should be?",
                         keeper->host);
    enum error_kind kind = ended && WIFEXITED(status) && WEXITSTATUS(status) == ERROR_INPUT
                               ? ERROR_INPUT
                               : ERROR_FAILED;
    if (!last[0])
        return error_set(err, kind, "the link to %s is gone", keeper->host);
    return error_of(err, kind, keeper->host, told ? last + 11 : last);
}

// What another machine answers is believed only as far as it can be: a known number, and a text
// that ends, whose characters are what they look like.
static int check_answer(const struct keeper *keeper, struct keeper_answer *answer,
                        struct error *err)
{
    enum { NUMBERS = 4096 }; // errno's end below that
    char clean[KEEPER_TEXT_BYTES];
    if (answer->number < 0 || answer->number >= NUMBERS ||
        !memchr(answer->text, '\0', sizeof answer->text))
        return error_set(err, ERROR_INPUT,
                         "what the keeper of %s answers cannot be: is that machine what it should "
                         "be?",
                         keeper->host);
    text_clean(answer->text, false, clean, sizeof clean);
    memcpy(answer->text, clean, sizeof clean);
    return 0;
}

// Reads one answer: a socket delivers it whole, a stream perhaps in several reads. may_leave: a
// person who interrupts does not wait for it; no other answer can then be had from that keeper.
static int receive_answer(struct keeper *keeper, struct keeper_answer *answer, int timeout_ms,
                          bool may_leave, struct error *err)
{
    enum { LOOK_UP_MS = 200 };
    int fd = keeper->link_log ? keeper->link.output : keeper->channel;
    size_t have = 0;
    for (int waited_ms = 0; have < sizeof *answer;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int polled = poll(&ready, 1, LOOK_UP_MS);
        if (polled < 0 && errno == EINTR)
            continue;
        if (polled == 0 && may_leave && process_is_interrupted())
            return error_set(err, ERROR_FAILED, "interrupted");
        if (polled == 0 && (waited_ms += LOOK_UP_MS) < timeout_ms)
            continue;
        if (polled == 0)
            return error_set(err, ERROR_FAILED,
                             "the keeper of %s (process %d here) has not answered for %d s",
                             keeper->link_log ? keeper->host : "a host",
                             keeper->link_log ? keeper->link.pid : keeper->pid, timeout_ms / 1000);
        ssize_t got = read(fd, (char *)answer + have, sizeof *answer - have);
        if (got <= 0)
            return gone_error(keeper, err);
        have += (size_t)got;
    }
    return keeper->link_log ? check_answer(keeper, answer, err) : 0;
}

// Pipes take up to PIPE_BUF bytes in one write.
_Static_assert(sizeof(struct keeper_request) <= 4096, "a request is written whole");

static int ask_within(struct keeper *keeper, const struct keeper_request *request, int timeout_ms,
                      struct keeper_answer *answer, struct error *err)
{
    *answer = (struct keeper_answer){.number = 0, .text = "?"};
    if (keeper->dry)
        return 0;
    ssize_t sent = keeper->link_log ? write(keeper->link.input, request, sizeof *request)
                                    : send(keeper->channel, request, sizeof *request, MSG_NOSIGNAL);
    return sent == sizeof *request
               ? receive_answer(keeper, answer, timeout_ms, keeper->link_log, err)
               : gone_error(keeper, err);
}

int keeper_ask(struct keeper *keeper, const struct keeper_request *request,
               struct keeper_answer *answer, struct error *err)
{
    return ask_within(keeper, request, ANSWER_TIMEOUT_MS, answer, err);
}

// Closes the channel, upon which the keeper ends by itself, and waits for that; in the end it is
// killed.
static void reap_keeper(struct keeper *keeper)
{
    if (keeper->link_log)
        process_stop(&keeper->link, keeper->hurried || process_is_interrupted() ? INTERRUPT_GRACE_MS
                                                                                : END_TIMEOUT_MS);
    if (keeper->channel >= 0)
        close(keeper->channel);
    for (int waited_ms = 0; keeper->pid > 0; waited_ms += 2) {
        pid_t pid = waitpid(keeper->pid, NULL, WNOHANG);
        if (pid == keeper->pid || (pid < 0 && errno != EINTR))
            break;
        if (waited_ms >= ANSWER_TIMEOUT_MS)
            kill(keeper->pid, SIGKILL);
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    *keeper = (struct keeper){.channel = -1, .link = {.input = -1, .output = -1}};
}

int keeper_start(struct keeper *keeper, bool isolated, struct error *err)
{
    int pair[2];
    struct keeper_answer answer;
    *keeper =
        (struct keeper){.channel = -1, .isolated = isolated, .link = {.input = -1, .output = -1}};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot make a socket for a host's keeper");
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        keeper_become(pair[1], isolated);
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return error_set_errno(err, ERROR_FAILED, "cannot start a host's keeper");
    }
    keeper->pid = pid;
    keeper->channel = pair[0];
    // The kernel may have it wait for seconds, behind other namespaces that come and go.
    int result = receive_answer(keeper, &answer, ANSWER_TIMEOUT_MS, true, err);
    if (result == 0 && answer.number)
        result = error_set(err, ERROR_FAILED,
                           "cannot make a network namespace: %s (it takes root, or CAP_SYS_ADMIN)",
                           strerror(answer.number));
    if (result < 0) {
        kill(pid, SIGKILL); // it has changed nothing yet
        reap_keeper(keeper);
    }
    return result;
}

static int copy_text(char *to, const char *from, const char *what, struct error *err)
{
    if (strlen(from) >= KEEPER_TEXT_BYTES)
        return error_set(err, ERROR_FAILED, "%s is longer than %d bytes: %.60s...", what,
                         KEEPER_TEXT_BYTES - 1, from);
    snprintf(to, KEEPER_TEXT_BYTES, "%s", from);
    return 0;
}

int keeper_tune(struct keeper *keeper, enum keeper_knob knob, const char *name, const char *text,
                char old[KEEPER_TEXT_BYTES], int *number, struct error *err)
{
    struct keeper_request request = {.verb = VERB_SET, .knob = knob};
    struct keeper_answer answer;
    int result = copy_text(request.path, name, "a path", err);
    if (result == 0)
        result = copy_text(request.text, text, "a value", err);
    if (result == 0)
        result = keeper_ask(keeper, &request, &answer, err);
    if (result < 0)
        return result;
    *number = answer.number;
    if (old)
        memcpy(old, answer.text, KEEPER_TEXT_BYTES);
    return 0;
}

int keeper_set(struct keeper *keeper, const char *path, const char *text,
               char old[KEEPER_TEXT_BYTES], struct error *err)
{
    int number, result = keeper_tune(keeper, KEEPER_FILE, path, text, old, &number, err);
    if (result == 0 && number)
        result = error_set(err, ERROR_FAILED, "cannot write \"%s\" to %s: %s", text, path,
                           strerror(number));
    return result;
}

int keeper_find(struct keeper *keeper, const char *pattern, unsigned index,
                char path[KEEPER_TEXT_BYTES], struct error *err)
{
    struct keeper_request request = {.verb = VERB_FIND, .index = index};
    struct keeper_answer answer;
    int result = copy_text(request.path, pattern, "a pattern", err);
    if (result == 0 && keeper->dry) { // a dry run finds one path, the pattern itself
        memcpy(path, request.path, KEEPER_TEXT_BYTES);
        return index == 0;
    }
    if (result == 0)
        result = keeper_ask(keeper, &request, &answer, err);
    if (result < 0 || answer.number)
        return result;
    if (fnmatch(pattern, answer.text, FNM_PATHNAME) != 0)
        return error_set(err, ERROR_INPUT,
                         "%s was asked for %s, and found %s, which is none: is that machine what "
                         "it should be?",
                         keeper->link_log ? keeper->host : "a host", pattern, answer.text);
    memcpy(path, answer.text, KEEPER_TEXT_BYTES);
    return 1;
}

static int ask_directory(struct keeper *keeper, enum keeper_verb verb, const char *path,
                         uint64_t bytes, const char *what, struct error *err)
{
    struct keeper_request request = {.verb = verb};
    struct keeper_answer answer;
    snprintf(request.text, sizeof request.text, "%llu", (unsigned long long)bytes);
    int result = copy_text(request.path, path, "a path", err);
    if (result == 0)
        result = keeper_ask(keeper, &request, &answer, err);
    if (result == 0 && answer.number)
        result = error_set(err, ERROR_FAILED, "cannot %s the directory %s: %s", what, path,
                           strerror(answer.number));
    return result;
}

int keeper_make_directory(struct keeper *keeper, const char *path, struct error *err)
{
    return ask_directory(keeper, VERB_MAKE_DIRECTORY, path, 0, "make", err);
}

int keeper_make_results(struct keeper *keeper, const char *path, struct error *err)
{
    return ask_directory(keeper, VERB_MAKE_RESULTS, path, 0, "make", err);
}

int keeper_make_shim_directory(struct keeper *keeper, const char *path, uint64_t memory_bytes,
                               struct error *err)
{
    return ask_directory(keeper, VERB_MAKE_SHIM_DIRECTORY, path, memory_bytes, "make", err);
}

int keeper_adopt_directory(struct keeper *keeper, const char *path, struct error *err)
{
    return ask_directory(keeper, VERB_ADOPT_DIRECTORY, path, 0, "take over", err);
}

int keeper_own(struct keeper *keeper, const char *mark, struct error *err)
{
    struct keeper_request request = {.verb = VERB_OWN};
    struct keeper_answer answer;
    int result = copy_text(request.text, mark, "a mark", err);
    return result < 0 ? result : keeper_ask(keeper, &request, &answer, err);
}

int keeper_probe(struct keeper *keeper, const char *address, uint16_t port, struct error *err)
{
    struct keeper_request request = {.verb = VERB_PROBE, .port = port};
    struct keeper_answer answer;
    int result = copy_text(request.path, address, "an address", err);
    if (result == 0)
        result = keeper_ask(keeper, &request, &answer, err);
    if (result < 0)
        return result;
    if (answer.number == 0)
        return !keeper->dry;
    if (answer.number == ECONNREFUSED || answer.number == ETIMEDOUT ||
        answer.number == EHOSTUNREACH)
        return 0;
    return error_set(err, ERROR_FAILED, "cannot connect to %s:%u: %s", address, port,
                     strerror(answer.number));
}

// --- on another machine --------------------------------------------------------------------------

int keeper_start_far(struct keeper *keeper, struct process link, const char *link_log,
                     const char *host, int timeout_ms, struct error *err)
{
    struct keeper_answer answer;
    *keeper = (struct keeper){.channel = -1, .link = link, .link_log = link_log, .host = host};
    int result = receive_answer(keeper, &answer, timeout_ms, true, err);
    if (result == 0 && answer.number)
        result =
            error_set(err, ERROR_FAILED, "%s: %s: %s", host, answer.text, strerror(answer.number));
    if (result < 0)
        reap_keeper(keeper);
    return result;
}

int keeper_facts(struct keeper *keeper, const char *nic, char facts[KEEPER_TEXT_BYTES],
                 struct error *err)
{
    struct keeper_request request = {.verb = VERB_FACTS};
    struct keeper_answer answer;
    int result = copy_text(request.path, nic, "a card's name", err);
    if (result == 0)
        result = keeper_ask(keeper, &request, &answer, err);
    if (result < 0)
        return result;
    memcpy(facts, answer.text, KEEPER_TEXT_BYTES);
    return answer.number ? error_set(err, ERROR_FAILED, "%s: %s", keeper->host, facts) : 0;
}

int keeper_clock_offset(struct keeper *keeper, int64_t *offset_ns, uint64_t *bound_ns,
                        struct error *err)
{
    const struct keeper_request request = {.verb = VERB_CLOCK};
    int64_t shortest_ns = INT64_MAX;
    for (int i = 0; i < CLOCK_ROUND_TRIPS; i++) {
        struct keeper_answer answer;
        int64_t before_ns = monotonic_ns();
        int result = keeper_ask(keeper, &request, &answer, err);
        if (result < 0)
            return result;
        int64_t trip_ns = monotonic_ns() - before_ns;
        if (trip_ns >= shortest_ns)
            continue;
        char *end;
        long long there_ns = strtoll(answer.text, &end, 10);
        if (answer.number || end == answer.text || *end || there_ns < 0 || there_ns > INT64_MAX / 4)
            return error_set(err, ERROR_INPUT,
                             "what %s says of its clock cannot be: %.60s; is that machine what it "
                             "should be?",
                             keeper->host, answer.text);
        shortest_ns = trip_ns;
        *offset_ns = (int64_t)there_ns - (before_ns + trip_ns / 2);
    }
    *bound_ns = (uint64_t)shortest_ns / 2;
    return 0;
}

int keeper_end(struct keeper *keeper, struct error *err)
{
    struct keeper_request request = {.verb = VERB_END};
    struct keeper_answer answer;
    if (keeper->pid <= 0 && !keeper->link_log)
        return 0;
    const bool hurried = keeper->hurried && keeper->link_log;
    const long deadline_ms = monotonic_ms() + INTERRUPT_GRACE_MS;
    int result = ask_within(keeper, &request, hurried ? INTERRUPT_GRACE_MS : ANSWER_TIMEOUT_MS,
                            &answer, err);
    if (result < 0 && hurried && monotonic_ms() >= deadline_ms) {
        process_stop(&keeper->link, 0); // it does not answer either
        error_set(err, ERROR_FAILED,
                  "%s has not said within %g s that everything is undone there: its keeper undoes "
                  "it when it notices the end; `taillight doctor HOST --restore` looks for what is "
                  "left",
                  keeper->host, INTERRUPT_GRACE_MS / 1e3);
    }
    if (result == 0 && answer.number)
        result = error_set(err, ERROR_FAILED, "could not undo the change to %s: %s", answer.text,
                           answer.number == EEXIST ? "somebody else has changed it since"
                                                   : strerror(answer.number));
    reap_keeper(keeper);
    return result;
}

void keeper_abandon(struct keeper *keeper)
{
    close(keeper->channel);
    while (keeper->pid > 0 && waitpid(keeper->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *keeper = (struct keeper){.channel = -1, .link = {.input = -1, .output = -1}};
}
