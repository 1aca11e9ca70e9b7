// SPDX-License-Identifier: MIT
//
// The keeper's own side: what it changes, what was there before, and the way back.
#include <arpa/inet.h>
#include <dirent.h>
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
#include "experiments/keeper_request.h"
#include "experiments/nic_tuning.h"

enum { PROBE_TIMEOUT_MS = 300 };

struct change {
    enum verb verb;
    enum keeper_knob knob;
    int fd;             // of KEEPER_LATENCY
    struct nic_rss rss; // of KEEPER_RSS
    char path[KEEPER_TEXT_BYTES];
    char old[KEEPER_TEXT_BYTES];
};

struct changes ARRAY_OF(struct change);

static int read_first_line(const char *path, char text[KEEPER_TEXT_BYTES])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    ssize_t got = read(fd, text, KEEPER_TEXT_BYTES - 1);
    int number = got < 0 ? errno : 0;
    text[got > 0 ? got : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    close(fd);
    return number;
}

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    ssize_t put = write(fd, text, strlen(text));
    int number = put < 0 ? errno : 0;
    close(fd);
    return number;
}

// What a setting is before its change, into the change and as text for people.
static int read_old(struct change *change, const struct request *request)
{
    int number;
    switch (change->knob) {
    case KEEPER_FILE:
        return read_first_line(change->path, change->old);
    case KEEPER_COALESCING:
        return nic_coalescing_get(change->path, request->text, change->old, sizeof change->old);
    case KEEPER_RSS:
        number = nic_rss_get(change->path, &change->rss);
        snprintf(change->old, sizeof change->old, "a table of %u", change->rss.count);
        return number;
    case KEEPER_LATENCY:
        change->fd = open(change->path, O_WRONLY | O_CLOEXEC);
        return change->fd < 0 ? errno : 0;
    }
    return EINVAL;
}

static int spread_flows(const struct change *change, const char *text)
{
    uint32_t queues, wanted = (uint32_t)strtoul(text, NULL, 10);
    struct nic_rss table;
    int number = nic_queues(change->path, &queues);
    if (number || wanted == 0 || wanted > queues)
        return number ? number : EINVAL;
    number = nic_rss_get(change->path, &table);
    if (number)
        return number;
    nic_rss_spread(&table, wanted);
    number = nic_rss_set(change->path, &table);
    free(table.queues);
    return number;
}

static int write_new(const struct change *change, const char *text)
{
    int32_t us;
    switch (change->knob) {
    case KEEPER_FILE:
        return write_text(change->path, text);
    case KEEPER_COALESCING:
        return nic_coalescing_set(change->path, text);
    case KEEPER_RSS:
        return spread_flows(change, text);
    case KEEPER_LATENCY: // binary, for as long as the file is open (kernel: power/qos.c)
        us = (int32_t)strtol(text, NULL, 10);
        return write(change->fd, &us, sizeof us) == sizeof us ? 0 : errno;
    }
    return EINVAL;
}

static int write_old(const struct change *change)
{
    if (change->knob == KEEPER_COALESCING)
        return nic_coalescing_set(change->path, change->old);
    if (change->knob == KEEPER_RSS)
        return nic_rss_set(change->path, &change->rss);
    return change->knob == KEEPER_FILE ? write_text(change->path, change->old) : 0;
}

static void forget(struct change *change)
{
    if (change->knob == KEEPER_LATENCY && change->fd >= 0)
        close(change->fd);
    free(change->rss.queues);
}

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

static int remove_files(const char *path)
{
    DIR *directory = opendir(path);
    if (!directory)
        return errno;
    for (struct dirent *entry; (entry = readdir(directory));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
    return rmdir(path) < 0 ? errno : 0;
}

// The processes that write into it may be dying at this very moment and still add a file.
static int remove_directory(const char *path)
{
    int number = 0;
    for (int attempt = 0; attempt < 300; attempt++) {
        number = remove_files(path);
        if (number == 0 || number == ENOENT)
            return 0;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return number;
}

static void undo(const struct changes *changes, struct answer *answer)
{
    answer->number = 0;
    answer->text[0] = '\0';
    for (size_t i = changes->count; i-- > 0;) {
        struct change *change = &changes->items[i];
        int number = change->verb == VERB_SET ? write_old(change) : remove_directory(change->path);
        forget(change);
        // A setting that is gone took its value along: the other end of a cable may go first.
        if (number == 0 || number == ENOENT || number == ENODEV || answer->number)
            continue;
        answer->number = number;
        snprintf(answer->text, sizeof answer->text, "%s", change->path);
    }
}

static int probe(const char *address, uint16_t port)
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

static void change(struct changes *changes, const struct request *request, struct answer *answer)
{
    struct change made = {.verb = request->verb, .knob = request->knob, .fd = -1};
    snprintf(made.path, sizeof made.path, "%s", request->path);
    if (request->verb == VERB_SET) {
        answer->number = read_old(&made, request);
        snprintf(answer->text, sizeof answer->text, "%s", made.old);
    }
    // Noted first, done second: an end between the two undoes what was not done, harmlessly.
    if (answer->number == 0 && array_push(changes, made) < 0)
        answer->number = ENOMEM;
    if (answer->number) {
        forget(&made);
        return;
    }
    if (request->verb == VERB_SET)
        answer->number = write_new(&made, request->text);
    else if (mkdir(request->path, 0700) < 0)
        answer->number = errno;
    if (answer->number) {
        changes->count--;
        forget(&made);
    }
}

static void serve(int channel)
{
    struct changes changes = {0};
    struct request request;
    for (;;) {
        struct answer answer = {.number = 0};
        ssize_t got = read(channel, &request, sizeof request);
        if (got < 0 && errno == EINTR)
            continue;
        if (got != sizeof request || request.verb == VERB_END) {
            undo(&changes, &answer);
            send(channel, &answer, sizeof answer, MSG_NOSIGNAL);
            break;
        }
        if (request.verb == VERB_PROBE)
            answer.number = probe(request.path, request.port);
        else if (request.verb == VERB_FIND)
            answer.number = find_path(request.path, request.index, answer.text);
        else if (request.verb != VERB_READY)
            change(&changes, &request, &answer);
        send(channel, &answer, sizeof answer, MSG_NOSIGNAL);
    }
    array_free(&changes);
}

static int isolate(void)
{
    if (unshare(CLONE_NEWNET | CLONE_NEWNS) < 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("sysfs", "/sys", "sysfs", 0, NULL) < 0)
        return errno;
    return 0;
}

void keeper_become(int channel, bool isolated)
{
    struct answer answer = {.number = 0};
    prctl(PR_SET_NAME, "taillight-keep");
    setsid();
    for (int number = 1; number < NSIG; number++)
        if (number != SIGCHLD)
            signal(number, SIG_IGN);
    // Every descriptor of the run's that stayed open here would keep its reader waiting.
    if (dup2(channel, 3) < 0)
        _exit(1);
    close_range(4, ~0u, 0);
    int null_fd = open("/dev/null", O_RDWR);
    for (int fd = 0; null_fd >= 0 && fd < 3; fd++)
        dup2(null_fd, fd);
    if (isolated)
        answer.number = isolate();
    send(3, &answer, sizeof answer, MSG_NOSIGNAL);
    if (answer.number == 0)
        serve(3);
    _exit(0);
}
