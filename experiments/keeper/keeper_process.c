// SPDX-License-Identifier: MIT
//
// The keeper's own side: it serves requests, remembers old values, and undoes its changes.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "experiments/keeper/keeper_change.h"
#include "experiments/keeper/keeper_journal.h"
#include "experiments/keeper/keeper_request.h"
#include "experiments/keeper/process_tree.h"
#include "experiments/keeper/setting_lock.h"
#include "shim/message_collector.h"

enum {
    PROBE_TIMEOUT_MS = 300,
    TREE_TIMEOUT_MS = 6000,  // a killed process gives hundreds of megabytes back first
    WRITE_TIMEOUT_MS = 5000, // for what a load and a capture have until now
};

struct changes ARRAY_OF(struct keeper_change);

static int find_path(const char *pattern, unsigned index, char path[KEEPER_TEXT_BYTES])
{
    glob_t found;
    int number = glob(pattern, 0, NULL, &found) == 0 ? 0 : ENOENT;
    if (number == 0 &&
        (index >= found.gl_pathc || strlen(found.gl_pathv[index]) >= KEEPER_TEXT_BYTES))
        number = ENOENT;
    if (number == 0)
        snprintf(path, KEEPER_TEXT_BYTES, "%s", found.gl_pathv[index]);
    globfree(&found);
    return number;
}

// Ends the processes, undoes the changes. orphaned: the run died, and its load and its capture
// write what they have, which is set aside.
static void undo_all(const struct changes *changes, const char *mark, bool isolated, bool orphaned,
                     struct keeper_answer *answer)
{
    char network[64] = "";
    *answer = (struct keeper_answer){.number = 0};
    if (isolated && readlink("/proc/self/ns/net", network, sizeof network - 1) < 0)
        network[0] = '\0';
    if (orphaned)
        process_tree_await_program(mark, network, WRITE_TIMEOUT_MS);
    unsigned left = process_tree_kill(mark, network, TREE_TIMEOUT_MS);
    if (left) {
        answer->number = EBUSY;
        snprintf(answer->text, sizeof answer->text,
                 "the processes there, of which %u were killed and have not ended yet", left);
    }
    for (size_t i = changes->count; i-- > 0;) {
        struct keeper_change *change = &changes->items[i];
        int number = orphaned ? keeper_change_set_aside(change) : 0;
        if (number == 0)
            number = keeper_change_undo(change);
        keeper_change_forget(change);
        // A setting that does not exist any more needs no undoing: a card goes with the other end
        // of its cable. Nor does one that others change in a namespace which goes with this
        // process.
        bool gone = number == ENOENT || number == ENODEV || (number == EEXIST && isolated);
        if (number == 0 || gone || answer->number)
            continue;
        answer->number = number;
        snprintf(answer->text, sizeof answer->text, "%s", change->path);
    }
}

static int probe_port(const char *address, uint16_t port)
{
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), number = 0;
    socklen_t bytes = sizeof number;
    if (fd < 0)
        return errno;
    if (inet_pton(AF_INET, address, &peer.sin_addr) != 1)
        number = EINVAL;
    else if (connect(fd, (struct sockaddr *)&peer, sizeof peer) < 0)
        number = errno;
    if (number == EINPROGRESS) {
        struct pollfd ready = {.fd = fd, .events = POLLOUT};
        if (poll(&ready, 1, PROBE_TIMEOUT_MS) <= 0)
            number = ETIMEDOUT;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &bytes) < 0)
            number = errno;
    }
    close(fd);
    return number;
}

static int make_shim_directory(const struct keeper_request *request, int *held)
{
    struct error err;
    uint64_t bytes = strtoull(request->text, NULL, 10);
    errno = EIO;
    return message_collector_prepare(request->path, bytes, held, &err) == 0 ? 0 : errno;
}

// A directory for the shim with a secret name is removed with the one around it, which is ours,
// too.
static void outer_directory(char *path)
{
    char *name = strrchr(path, '/'), *outer = NULL;
    if (name && name > path) {
        *name = '\0';
        outer = strrchr(path, '/');
        *name = '/';
    }
    if (outer && strncmp(outer, "/taillight-", 11) == 0)
        *name = '\0';
}

static void make_change(struct changes *changes, struct keeper_journal *journal,
                        const struct keeper_request *request, struct keeper_answer *answer)
{
    struct keeper_change made = {.is_directory = request->verb != VERB_SET,
                                 .has_results = request->verb == VERB_MAKE_RESULTS,
                                 .knob = request->knob,
                                 .fd = -1,
                                 .lock = -1};
    snprintf(made.path, sizeof made.path, "%s", request->path);
    if (request->verb == VERB_MAKE_SHIM_DIRECTORY)
        outer_directory(made.path);
    if (request->verb == VERB_SET)
        answer->number = setting_lock_take(&made, journal->run, answer->text, sizeof answer->text);
    if (request->verb == VERB_SET && answer->number == 0) {
        answer->number = keeper_change_read(&made, request->text);
        snprintf(answer->text, sizeof answer->text, "%s", made.old);
    }
    // The change is in the journal before it is made. If the keeper dies in between, a change is
    // undone that was never made, which does no harm.
    if (answer->number == 0)
        answer->number = keeper_journal_note(journal, &made);
    if (answer->number == 0 && array_push(changes, made) < 0)
        answer->number = ENOMEM;
    if (answer->number) {
        keeper_change_forget(&made);
        return;
    }
    struct keeper_change *change = &changes->items[changes->count - 1];
    if (request->verb == VERB_SET &&
        (answer->number = keeper_change_do(change, request->text)) == 0)
        keeper_journal_note_set(journal, change);
    else if ((request->verb == VERB_MAKE_DIRECTORY || request->verb == VERB_MAKE_RESULTS) &&
             mkdir(request->path, 0700) < 0)
        answer->number = errno;
    else if (request->verb == VERB_MAKE_SHIM_DIRECTORY)
        answer->number = make_shim_directory(request, &change->lock);
    if (answer->number) {
        changes->count--;
        keeper_change_forget(&made); // holds the same as the one in the list
    }
}

static bool makes_change(enum keeper_verb verb)
{
    return verb == VERB_SET || verb == VERB_MAKE_DIRECTORY || verb == VERB_MAKE_RESULTS ||
           verb == VERB_MAKE_SHIM_DIRECTORY || verb == VERB_ADOPT_DIRECTORY;
}

static void serve_requests(int channel, bool isolated)
{
    struct changes changes = {0};
    // Changes in a run's own network namespace end with it and need no journal.
    struct keeper_journal journal = {.fd = -1, .off = isolated};
    struct keeper_request request;
    char mark[KEEPER_TEXT_BYTES] = "";
    for (;;) {
        struct keeper_answer answer = {.number = 0};
        ssize_t got = read(channel, &request, sizeof request);
        if (got < 0 && errno == EINTR)
            continue;
        if (got != sizeof request || request.verb == VERB_END) {
            undo_all(&changes, mark, isolated, got != sizeof request, &answer);
            keeper_journal_end(&journal, answer.number == 0);
            send(channel, &answer, sizeof answer, MSG_NOSIGNAL);
            break;
        }
        if (request.verb == VERB_OWN) {
            snprintf(mark, sizeof mark, "%.*s", KEEPER_TEXT_BYTES - 1, request.text);
            snprintf(journal.run, sizeof journal.run, "%s", mark);
            journal.run[strcspn(mark, "/")] = '\0';
        }
        if (request.verb == VERB_PROBE)
            answer.number = probe_port(request.path, request.port);
        else if (request.verb == VERB_FIND)
            answer.number = find_path(request.path, request.index, answer.text);
        else if (makes_change(request.verb))
            make_change(&changes, &journal, &request, &answer);
        send(channel, &answer, sizeof answer, MSG_NOSIGNAL);
    }
    array_free(&changes);
}

static int isolate_process(void)
{
    if (unshare(CLONE_NEWNET | CLONE_NEWNS) < 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("sysfs", "/sys", "sysfs", 0, NULL) < 0)
        return errno;
    return 0;
}

void keeper_become(int channel, bool isolated)
{
    struct keeper_answer answer = {.number = 0};
    prctl(PR_SET_NAME, "taillight-keep");
    setsid();
    for (int number = 1; number < NSIG; number++)
        if (number != SIGCHLD)
            signal(number, SIG_IGN);
    // A pipe of the run that stayed open here would never end for whoever reads it.
    if (dup2(channel, 3) < 0)
        _exit(1);
    close_range(4, ~0u, 0);
    int null_fd = open("/dev/null", O_RDWR);
    for (int fd = 0; null_fd >= 0 && fd < 3; fd++)
        dup2(null_fd, fd);
    if (isolated)
        answer.number = isolate_process();
    send(3, &answer, sizeof answer, MSG_NOSIGNAL);
    if (answer.number == 0)
        serve_requests(3, isolated);
    _exit(0);
}
