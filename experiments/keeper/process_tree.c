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
#include <sys/stat.h>
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

// Whether it runs this program.
static bool is_this_program(int process)
{
    char path[64];
    struct stat own, other;
    snprintf(path, sizeof path, "/proc/%d/exe", process);
    return stat("/proc/self/exe", &own) == 0 && stat(path, &other) == 0 &&
           own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

// Which processes are ours, and what is to be done to them.
struct tree {
    const char *mark, *network;
    char *room;      // for an environment
    int signal;      // 0: none
    bool of_program; // only those that run this one
};

// The handle is taken first: then the process that is looked at is the one that is signalled. One
// that only waits for its parent to notice its end has its limits still, and is no more to be
// killed.
static bool signal_if_ours(const struct tree *tree, int process)
{
    int handle = (int)syscall(SYS_pidfd_open, process, 0);
    if (handle < 0)
        return false;
    bool ours = (tree->mark[0] && (has_limit(process, process_mark_number(tree->mark)) ||
                                   has_variable(process, tree->mark, tree->room))) ||
                (tree->network[0] && is_in_network(process, tree->network));
    ours = ours && (!tree->of_program || is_this_program(process));
    if (ours)
        syscall(SYS_pidfd_send_signal, handle, tree->signal, NULL, 0);
    close(handle);
    return ours && !process_has_ended(process);
}

static unsigned signal_once(const struct tree *tree)
{
    unsigned found = 0;
    DIR *all = opendir("/proc");
    for (struct dirent *entry; all && (entry = readdir(all));) {
        int process = atoi(entry->d_name);
        if (process > 0 && process != getpid())
            found += signal_if_ours(tree, process);
    }
    if (all)
        closedir(all);
    return found;
}

// Signals them, or looks at them, until there is none. Returns how many are still there.
static unsigned signal_tree(struct tree *tree, int wait_ms)
{
    tree->room = malloc(MOST_ENVIRONMENT_BYTES);
    unsigned found = tree->room ? 0 : 1;
    for (long deadline_ms = monotonic_ms() + wait_ms; tree->room;) {
        found = signal_once(tree);
        if (found == 0 || monotonic_ms() >= deadline_ms)
            break;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_EVERY_NS}, NULL);
    }
    free(tree->room);
    return found;
}

unsigned process_tree_kill(const char *mark, const char *network, int wait_ms)
{
    struct tree tree = {.mark = mark, .network = network, .signal = SIGKILL};
    return signal_tree(&tree, wait_ms);
}

void process_tree_await_program(const char *mark, const char *network, int wait_ms)
{
    struct tree tree = {.mark = mark, .network = network, .signal = 0, .of_program = true};
    signal_tree(&tree, wait_ms);
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
