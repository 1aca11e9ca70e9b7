// SPDX-License-Identifier: MIT
#include "experiments/keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "experiments/keeper_request.h"

enum { ANSWER_TIMEOUT_MS = 10000 };

// --- the run's side ------------------------------------------------------------------------------

static int receive(struct keeper *keeper, struct answer *answer, struct error *err)
{
    struct pollfd ready = {.fd = keeper->channel, .events = POLLIN};
    int polled;
    do
        polled = poll(&ready, 1, ANSWER_TIMEOUT_MS);
    while (polled < 0 && errno == EINTR);
    if (polled > 0 && read(keeper->channel, answer, sizeof *answer) == sizeof *answer)
        return 0;
    return error_set(err, ERROR_FAILED, "the keeper of a host (process %d) %s", keeper->pid,
                     polled == 0 ? "does not answer" : "is gone");
}

static int ask(struct keeper *keeper, const struct request *request, struct answer *answer,
               struct error *err)
{
    *answer = (struct answer){.number = 0, .text = "?"};
    if (keeper->dry)
        return 0;
    if (send(keeper->channel, request, sizeof *request, MSG_NOSIGNAL) < 0)
        return error_set_errno(err, ERROR_FAILED, "the keeper of a host (process %d) is gone",
                               keeper->pid);
    return receive(keeper, answer, err);
}

// Waits for its end; it must come by itself once the channel is closed.
static void reap(struct keeper *keeper)
{
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
    *keeper = (struct keeper){.channel = -1};
}

int keeper_start(struct keeper *keeper, bool isolated, struct error *err)
{
    int pair[2];
    struct answer answer;
    *keeper = (struct keeper){.channel = -1, .isolated = isolated};
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
    int result = receive(keeper, &answer, err);
    if (result == 0 && answer.number)
        result = error_set(err, ERROR_FAILED,
                           "cannot make a network namespace: %s (it takes root, or CAP_SYS_ADMIN)",
                           strerror(answer.number));
    if (result < 0)
        reap(keeper);
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
    struct request request = {.verb = VERB_SET, .knob = knob};
    struct answer answer;
    int result = copy_text(request.path, name, "a path", err);
    if (result == 0)
        result = copy_text(request.text, text, "a value", err);
    if (result == 0)
        result = ask(keeper, &request, &answer, err);
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
    struct request request = {.verb = VERB_FIND, .index = index};
    struct answer answer;
    int result = copy_text(request.path, pattern, "a pattern", err);
    if (result == 0 && keeper->dry) { // as many as match are one: the pattern
        memcpy(path, request.path, KEEPER_TEXT_BYTES);
        return index == 0;
    }
    if (result == 0)
        result = ask(keeper, &request, &answer, err);
    if (result < 0 || answer.number)
        return result;
    memcpy(path, answer.text, KEEPER_TEXT_BYTES);
    return 1;
}

int keeper_make_directory(struct keeper *keeper, const char *path, struct error *err)
{
    struct request request = {.verb = VERB_MAKE_DIRECTORY};
    struct answer answer;
    int result = copy_text(request.path, path, "a path", err);
    if (result == 0)
        result = ask(keeper, &request, &answer, err);
    if (result == 0 && answer.number)
        result = error_set(err, ERROR_FAILED, "cannot make the directory %s: %s", path,
                           strerror(answer.number));
    return result;
}

int keeper_probe(struct keeper *keeper, const char *address, uint16_t port, struct error *err)
{
    struct request request = {.verb = VERB_PROBE, .port = port};
    struct answer answer;
    int result = copy_text(request.path, address, "an address", err);
    if (result == 0)
        result = ask(keeper, &request, &answer, err);
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

int keeper_end(struct keeper *keeper, struct error *err)
{
    struct request request = {.verb = VERB_END};
    struct answer answer;
    if (keeper->pid <= 0)
        return 0;
    int result = ask(keeper, &request, &answer, err);
    if (result == 0 && answer.number)
        result = error_set(err, ERROR_FAILED, "could not undo the change to %s: %s", answer.text,
                           strerror(answer.number));
    reap(keeper);
    return result;
}
