// SPDX-License-Identifier: MIT
#include "experiments/keeper/process_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"

enum { MOST_ENVIRONMENT_BYTES = 2 << 20, LOOK_EVERY_NS = 5000000 };

void process_tree_make_mark(char mark[TREE_MARK_BYTES], uint64_t run, unsigned number)
{
    snprintf(mark, TREE_MARK_BYTES, PROCESS_MARK "%d-%llx/%u", getpid(), (unsigned long long)run,
             number);
}

// Whether a variable is in a process's environment as it was given to it. room: for the text.
static bool has_variable(int process, const char *variable, char *room)
{
    char path[64];
    size_t have = 0, length = strlen(variable) + 1; // with its end
    snprintf(path, sizeof path, "/proc/%d/environ", process);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    for (ssize_t got; have < MOST_ENVIRONMENT_BYTES &&
                      (got = read(fd, room + have, MOST_ENVIRONMENT_BYTES - have)) > 0;)
        have += (size_t)got;
    close(fd);
    for (char *at = room; (at = memmem(at, have - (size_t)(at - room), variable, length)); at++)
        if (at == room || at[-1] == '\0')
            return true;
    return false;
}

static bool has_limit(int process, uint64_t wanted)
{
    static const char name[] = "Max file locks";
    char path[64], line[160];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/limits", process);
    FILE *limits = fopen(path, "re");
    while (limits && !found && fgets(line, sizeof line, limits))
        found = strncmp(line, name, sizeof name - 1) == 0 &&
                strtoull(line + sizeof name - 1, NULL, 10) == wanted;
    if (limits)
        fclose(limits);
    return found;
}

static bool is_in_network(int process, const char *network)
{
    char path[64], found[64];
    snprintf(path, sizeof path, "/proc/%d/ns/net", process);
    ssize_t bytes = readlink(path, found, sizeof found - 1);
    found[bytes > 0 ? bytes : 0] = '\0';
    return bytes > 0 && strcmp(found, network) == 0;
}

// The handle is taken first: then the process that is looked at is the one that is killed. One that
// only waits for its parent to notice its end has its limits still, and is no more to be killed.
static bool kill_if_ours(int process, const char *mark, const char *network, char *room)
{
    int handle = (int)syscall(SYS_pidfd_open, process, 0);
    if (handle < 0)
        return false;
    bool ours = (mark[0] && (has_limit(process, process_mark_number(mark)) ||
                             has_variable(process, mark, room))) ||
                (network[0] && is_in_network(process, network));
    if (ours)
        syscall(SYS_pidfd_send_signal, handle, SIGKILL, NULL, 0);
    close(handle);
    return ours && !process_has_ended(process);
}

static unsigned kill_once(const char *mark, const char *network, char *room)
{
    unsigned found = 0;
    DIR *all = opendir("/proc");
    for (struct dirent *entry; all && (entry = readdir(all));) {
        int process = atoi(entry->d_name);
        if (process > 0 && process != getpid())
            found += kill_if_ours(process, mark, network, room);
    }
    if (all)
        closedir(all);
    return found;
}

unsigned process_tree_kill(const char *mark, const char *network, int wait_ms)
{
    char *room = malloc(MOST_ENVIRONMENT_BYTES);
    unsigned found = room ? 0 : 1;
    for (long deadline_ms = monotonic_ms() + wait_ms; room;) {
        found = kill_once(mark, network, room);
        if (found == 0 || monotonic_ms() >= deadline_ms)
            break;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_EVERY_NS}, NULL);
    }
    free(room);
    return found;
}

void process_tree_adopt_orphans(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

// The children of this process's main thread, one of which is adopted by it, too.
static unsigned kill_children(int spared)
{
    char path[64];
    int process;
    unsigned found = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
    FILE *children = fopen(path, "re");
    while (children && fscanf(children, "%d", &process) == 1)
        if (process != spared && waitpid(process, NULL, WNOHANG) != process) // it lives
            found += kill(process, SIGKILL) == 0;
    if (children)
        fclose(children);
    return found;
}

unsigned process_tree_kill_orphans(int spared, int wait_ms)
{
    unsigned most = 0;
    for (long deadline_ms = monotonic_ms() + wait_ms; monotonic_ms() < deadline_ms;) {
        unsigned found = kill_children(spared);
        most = found > most ? found : most;
        if (found == 0)
            break;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_EVERY_NS}, NULL);
    }
    return most;
}
