// SPDX-License-Identifier: MIT
#include "shim/other_pids.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// The last number of "NSpid:" of a status file: the one it has in its own namespace. 0: not known.
static uint32_t number_inside(const char *path)
{
    char line[256];
    uint32_t inside = 0;
    FILE *file = fopen(path, "re");
    while (file && !inside && fgets(line, sizeof line, file)) {
        const char *last = strrchr(line, '\t');
        if (strncmp(line, "NSpid:", 6) == 0 && last)
            inside = (uint32_t)strtoul(last + 1, NULL, 10);
    }
    if (file)
        fclose(file);
    return inside;
}

void other_pids_read(struct other_pid_array *pids, uint64_t own)
{
    DIR *list = opendir("/proc");
    pids->count = 0;
    for (struct dirent *entry; list && (entry = readdir(list));) {
        struct other_pid one = {.here = (uint32_t)strtoul(entry->d_name, NULL, 10)};
        struct stat status;
        char path[64];
        snprintf(path, sizeof path, "/proc/%u/ns/pid", one.here);
        if (!isdigit((unsigned char)entry->d_name[0]) || stat(path, &status) < 0 ||
            status.st_ino == own)
            continue;
        one.namespace = status.st_ino;
        snprintf(path, sizeof path, "/proc/%u/status", one.here);
        one.inside = number_inside(path);
        if (one.inside && array_push(pids, one) < 0)
            break;
    }
    if (list)
        closedir(list);
}

uint32_t other_pids_find(const struct other_pid_array *pids, uint64_t namespace, uint32_t inside)
{
    for (size_t i = 0; i < pids->count; i++)
        if (pids->items[i].namespace == namespace && pids->items[i].inside == inside)
            return pids->items[i].here;
    return 0;
}

uint32_t other_thread_find(uint32_t process_here, uint32_t inside)
{
    char path[64];
    uint32_t found = 0;
    snprintf(path, sizeof path, "/proc/%u/task", process_here);
    DIR *list = opendir(path);
    for (struct dirent *entry; list && !found && (entry = readdir(list));) {
        uint32_t here = (uint32_t)strtoul(entry->d_name, NULL, 10);
        snprintf(path, sizeof path, "/proc/%u/task/%u/status", process_here, here);
        if (here && number_inside(path) == inside)
            found = here;
    }
    if (list)
        closedir(list);
    return found;
}
