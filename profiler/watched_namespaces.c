// SPDX-License-Identifier: MIT
#include "profiler/watched_namespaces.h"

#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

static bool is_listening(const uint64_t *ports, const char *table)
{
    enum { LISTENS = 0x0a };
    char line[512];
    unsigned port, state;
    bool found = false;
    FILE *file = fopen(table, "re");
    while (file && !found && fgets(line, sizeof line, file))
        found = sscanf(line, "%*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x", &port, &state) == 2 &&
                port < 65536 && state == LISTENS && ports[port / 64] >> port % 64 & 1;
    if (file)
        fclose(file);
    return found;
}

uint32_t watched_namespaces_guess(const uint64_t ports[65536 / 64])
{
    struct stat status;
    bool listens = is_listening(ports, "/proc/thread-self/net/tcp") ||
                   is_listening(ports, "/proc/thread-self/net/tcp6");
    return listens && stat("/proc/thread-self/ns/net", &status) == 0 ? (uint32_t)status.st_ino : 0;
}

bool watched_namespaces_add(uint32_t list[EVENTS_NAMESPACES], bool *named, uint32_t inode)
{
    bool all = *named && !list[0];
    if (!*named && list[0] != inode)
        list[0] = 0; // the guess was wrong
    *named = true;
    for (size_t i = 0; i < EVENTS_NAMESPACES && !all; i++) {
        if (list[i] == inode)
            return false;
        if (list[i] == 0) {
            list[i] = inode;
            return true;
        }
    }
    list[0] = 0;
    return true;
}

bool watched_namespaces_has(const uint32_t list[EVENTS_NAMESPACES], uint32_t inode)
{
    for (size_t i = 0; i < EVENTS_NAMESPACES && list[i]; i++)
        if (list[i] == inode)
            return true;
    return !list[0];
}
