// SPDX-License-Identifier: MIT
#include "profiler/events/watched_namespaces.h"

#include <stddef.h>
#include <sys/stat.h>

#include "profiler/host/listening_ports.h"

uint32_t watched_namespaces_guess(const uint64_t ports[65536 / 64])
{
    struct stat status;
    struct port_set here;
    bool listens = false;
    listening_ports_here(&here);
    for (size_t i = 0; i < sizeof here.bits / sizeof *here.bits; i++)
        listens |= (here.bits[i] & ports[i]) != 0;
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
