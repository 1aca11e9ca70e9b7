// SPDX-License-Identifier: MIT
#include "experiments/keeper/setting_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "experiments/keeper/keeper_journal.h"

// The process that holds a flock on what a descriptor has open; 0: not known (any more).
static int holder_find(int fd)
{
    struct stat status;
    char line[256], wanted[64];
    int found = 0;
    FILE *locks = fstat(fd, &status) == 0 ? fopen("/proc/locks", "re") : NULL;
    snprintf(wanted, sizeof wanted, " %02x:%02x:%llu ", major(status.st_dev), minor(status.st_dev),
             (unsigned long long)status.st_ino);
    while (locks && !found && fgets(line, sizeof line, locks)) {
        char *at = strstr(line, " WRITE ");
        if (at && strstr(line, " FLOCK ") && !strstr(line, " -> ") && strstr(at, wanted))
            found = atoi(at + sizeof " WRITE " - 1);
    }
    if (locks)
        fclose(locks);
    return found;
}

// Which run a keeper is of: its parent's command line.
static void holder_describe(int keeper, char *out, size_t out_bytes)
{
    char path[64], line[200], command[300] = "";
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/status", keeper);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file) && sscanf(line, "PPid: %d", &parent) != 1)
        ;
    if (file)
        fclose(file);
    snprintf(path, sizeof path, "/proc/%d/cmdline", parent);
    int fd = parent > 1 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t bytes = fd < 0 ? 0 : read(fd, command, sizeof command - 1);
    for (ssize_t i = 0; i + 1 < bytes; i++)
        if (command[i] == '\0')
            command[i] = ' ';
    if (fd >= 0)
        close(fd);
    snprintf(out, out_bytes, "process %d%s%.*s", parent > 1 ? parent : keeper,
             command[0] ? ": " : "", (int)out_bytes / 2, command);
}

int setting_lock_take(struct keeper_change *change, const char *run, char *holder,
                      size_t holder_bytes)
{
    char path[KEEPER_TEXT_BYTES + 32], theirs[KEEPER_TEXT_BYTES];
    change->lock = -1;
    // What asks for a latency is weighed by the kernel itself; a control group is the run's own.
    if (change->is_directory || change->knob == KEEPER_LATENCY || change->knob == KEEPER_CPUSET)
        return 0;
    snprintf(path, sizeof path, "%s%s", change->knob == KEEPER_FILE ? "" : "/sys/class/net/",
             change->path);
    change->lock = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (change->lock < 0) // one that can only be written
        change->lock = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (change->lock < 0 || flock(change->lock, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return 0;
    int keeper = holder_find(change->lock);
    close(change->lock);
    change->lock = -1;
    if (keeper == getpid() ||
        (keeper && keeper_journal_run(keeper, theirs) && run[0] && strcmp(theirs, run) == 0))
        return 0;
    holder_describe(keeper, holder, holder_bytes);
    return EAGAIN;
}
