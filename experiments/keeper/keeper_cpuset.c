// SPDX-License-Identifier: MIT
#include "experiments/keeper/keeper_cpuset.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 700 };

// --- files ---------------------------------------------------------------------------------------

static void path_of(const char *folder, const char *file, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%.600s/%s", folder, file);
}

static void parent_of(const char *group, char parent[PATH_BYTES])
{
    snprintf(parent, PATH_BYTES, "%.600s", group);
    char *slash = strrchr(parent, '/');
    if (slash)
        *slash = '\0';
}

static int read_file(const char *folder, const char *file, char *text, size_t text_bytes)
{
    char path[PATH_BYTES];
    path_of(folder, file, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    ssize_t got = read(fd, text, text_bytes - 1);
    int number = got < 0 ? errno : 0;
    text[got > 0 ? got : 0] = '\0';
    close(fd);
    return number;
}

static int write_file(const char *folder, const char *file, const char *text)
{
    char path[PATH_BYTES];
    path_of(folder, file, path);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int number = write(fd, text, strlen(text)) < 0 ? errno : 0;
    close(fd);
    return number;
}

// Controllers stand in one line, with blanks between.
static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += length)
        if ((at == text || at[-1] == ' ') && strchr(" \n", at[length]))
            return true;
    return false;
}

// --- the group -----------------------------------------------------------------------------------

int keeper_cpuset_read(const char *group, char *old, size_t old_bytes)
{
    char parent[PATH_BYTES], text[400];
    parent_of(group, parent);
    int number = read_file(parent, "cgroup.controllers", text, sizeof text);
    if (number == 0 && !has_word(text, "cpuset"))
        number = EOPNOTSUPP;
    if (number == 0)
        number = read_file(parent, "cgroup.subtree_control", text, sizeof text);
    snprintf(old, old_bytes, "%s", number == 0 && has_word(text, "cpuset") ? "on" : "off");
    return number;
}

static int set_cores(const char *group, const char *text)
{
    char cores[400], state[200];
    snprintf(cores, sizeof cores, "%.399s", text);
    cores[strcspn(cores, " ")] = '\0';
    bool exclusive = strlen(cores) < strlen(text);
    int number = write_file(group, "cpuset.cpus", cores);
    if (number == 0 && exclusive)
        number = write_file(group, "cpuset.cpus.partition", "root");
    // Writing succeeds in any case. Whether the group became a partition shows when the file is
    // read back: "root invalid (...)".
    if (number == 0 && exclusive)
        number = read_file(group, "cpuset.cpus.partition", state, sizeof state);
    if (number == 0 && exclusive && strcmp(state, "root\n") != 0)
        number = EBUSY;
    return number == EINVAL ? EBUSY : number; // kernels before 5.19 refuse it with EINVAL
}

int keeper_cpuset_make(const char *group, const char *text, const char *old)
{
    char parent[PATH_BYTES];
    parent_of(group, parent);
    int number =
        strcmp(old, "on") == 0 ? 0 : write_file(parent, "cgroup.subtree_control", "+cpuset");
    if (number == 0 && mkdir(group, 0755) < 0)
        number = errno;
    else if (number == 0)
        number = set_cores(group, text);
    if (number)
        keeper_cpuset_remove(group, old);
    return number;
}

// Moves the processes that are in the group now.
static void empty(const char *group, const char *parent)
{
    char path[PATH_BYTES], line[32];
    path_of(group, "cgroup.procs", path);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        write_file(parent, "cgroup.procs", line);
    if (file)
        fclose(file);
}

int keeper_cpuset_remove(const char *group, const char *old)
{
    char parent[PATH_BYTES];
    int number = 0;
    parent_of(group, parent);
    for (int attempt = 0; attempt < 300; attempt++) {
        number = rmdir(group) < 0 && errno != ENOENT ? errno : 0;
        if (number != EBUSY)
            break;
        empty(group, parent);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    if (number == 0 && strcmp(old, "on") != 0)
        write_file(parent, "cgroup.subtree_control",
                   "-cpuset"); // other groups may be using it by now
    return number;
}
