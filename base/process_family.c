// SPDX-License-Identifier: MIT
#include "base/process_family.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_PID_NAMESPACE 0xEFFFFFFC // PROC_PID_INIT_INO of include/linux/proc_ns.h

struct descent {
    uint32_t process, parent;
};
struct descent_array ARRAY_OF(struct descent);

// proc_pid_stat(5). 0: there is no such process.
static uint32_t parent_of(uint32_t process)
{
    char path[40], stat[512] = "";
    unsigned parent = 0;
    snprintf(path, sizeof path, "/proc/%u/stat", process);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, stat, sizeof stat - 1);
    close(fd);
    const char *name_end = got > 0 ? strrchr(stat, ')') : NULL;
    return name_end && sscanf(name_end + 1, " %*c %u", &parent) == 1 ? parent : 0;
}

static bool runs_program(uint32_t process, const struct stat *program)
{
    char path[40];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%u/exe", process);
    return stat(path, &status) == 0 && status.st_dev == program->st_dev &&
           status.st_ino == program->st_ino;
}

static uint32_t farthest_ancestor(void)
{
    enum { MOST_GENERATIONS = 64 };
    uint32_t farthest = (uint32_t)getpid(), process = farthest;
    struct stat program;
    if (stat("/proc/self/exe", &program) < 0)
        return farthest;
    for (unsigned i = 0; i < MOST_GENERATIONS && process > 1; i++) {
        process = parent_of(process);
        if (process > 1 && runs_program(process, &program))
            farthest = process;
    }
    return farthest;
}

static int read_descents(struct descent_array *descents)
{
    DIR *list = opendir("/proc");
    int result = 0;
    for (struct dirent *entry; list && result == 0 && (entry = readdir(list));) {
        struct descent one = {.process = (uint32_t)strtoul(entry->d_name, NULL, 10)};
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        one.parent = parent_of(one.process);
        result = array_push(descents, one);
    }
    if (list)
        closedir(list);
    return result;
}

static bool is_member(const struct process_family *family, uint32_t process)
{
    for (size_t i = 0; i < family->count; i++)
        if (family->items[i] == process)
            return true;
    return false;
}

int process_family_read(struct process_family *family)
{
    struct stat namespace;
    struct descent_array descents = {0};
    if (stat("/proc/self/ns/pid", &namespace) < 0 || namespace.st_ino != FIRST_PID_NAMESPACE)
        return 0;
    int result = array_push(family, farthest_ancestor());
    if (result == 0)
        result = read_descents(&descents);
    for (size_t at = 0; at < family->count && result == 0; at++) // it grows meanwhile
        for (size_t i = 0; i < descents.count && result == 0; i++)
            if (descents.items[i].parent == family->items[at] &&
                !is_member(family, descents.items[i].process))
                result = array_push(family, descents.items[i].process);
    array_free(&descents);
    return result;
}
