// SPDX-License-Identifier: MIT
#include "shim/peer_programs.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_PEERS = 256, STATE_LISTEN = 0x0a, ACCEPTS = 0x00010000 };

int peer_programs_add(struct peer_program_array *peers, const struct connection *connection)
{
    struct peer_program one = {.connection = *connection};
    connection_peer_text(connection, one.address);
    for (size_t i = 0; i < peers->count; i++)
        if (strcmp(peers->items[i].address, one.address) == 0)
            return 0;
    return peers->count < MOST_PEERS ? array_push(peers, one) : 0;
}

static bool is_on_this_machine(const struct connection *connection)
{
    static const uint8_t loopback[16] = {[15] = 1};
    static const uint8_t mapped_loopback[13] = {[10] = 0xff, [11] = 0xff, [12] = 127};
    return connection->protocol == CONNECTION_UNIX ||
           memcmp(connection->peer, connection->local, 16) == 0 ||
           memcmp(connection->peer, loopback, 16) == 0 ||
           memcmp(connection->peer, mapped_loopback, sizeof mapped_loopback) == 0;
}

// The listening socket of a line of /proc/PID/net/tcp, tcp6 or unix; 0: not this peer's.
static uint64_t socket_of_line(const char *line, const struct peer_program *peer)
{
    unsigned port, state, flags;
    unsigned long long socket;
    char path[109];
    if (peer->connection.protocol != CONNECTION_UNIX)
        return sscanf(line, "%*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s %*s %*s %*s %*s %llu", &port,
                      &state, &socket) == 3 &&
                       port == peer->connection.peer_port && state == STATE_LISTEN
                   ? socket
                   : 0;
    if (sscanf(line, "%*s %*s %*s %x %*s %*s %llu %108s", &flags, &socket, path) != 3 ||
        !(flags & ACCEPTS))
        return 0;
    size_t kept = strlen(path) > CONNECTION_PATH_BYTES ? CONNECTION_PATH_BYTES : strlen(path);
    const char *end = path + strlen(path) - kept;
    char whole[CONNECTION_PATH_BYTES] = "";
    memcpy(whole, end, kept);
    bool same = memcmp(whole, peer->connection.local, 16) == 0 &&
                memcmp(whole + 16, peer->connection.peer, 16) == 0;
    return same ? socket : 0;
}

static uint64_t socket_in_table(const struct peer_program *peer, const char *table)
{
    char path[64], line[512];
    uint64_t socket = 0;
    snprintf(path, sizeof path, "/proc/%u/net/%s", peer->connection.process, table);
    FILE *file = fopen(path, "re");
    while (file && !socket && fgets(line, sizeof line, file))
        socket = socket_of_line(line, peer);
    if (file)
        fclose(file);
    return socket;
}

static void name_owner(struct peer_program *peer, uint32_t process)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/comm", process);
    FILE *file = fopen(path, "re");
    peer->process = process;
    if (file && fgets(peer->program, sizeof peer->program, file))
        peer->program[strcspn(peer->program, "\n")] = '\0';
    for (char *at = peer->program; *at; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
    if (file)
        fclose(file);
}

// Looks for the sockets among a process's descriptors.
static void look_into_process(struct peer_program_array *peers, uint32_t process)
{
    char path[64], target[64];
    unsigned long long socket;
    snprintf(path, sizeof path, "/proc/%u/fd", process);
    DIR *list = opendir(path);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        ssize_t length = readlinkat(dirfd(list), entry->d_name, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        if (sscanf(target, "socket:[%llu]", &socket) != 1)
            continue;
        for (size_t i = 0; i < peers->count; i++)
            if (peers->items[i].socket == socket && !peers->items[i].process)
                name_owner(&peers->items[i], process);
    }
    if (list)
        closedir(list);
}

void peer_programs_find(struct peer_program_array *peers)
{
    bool any = false;
    for (size_t i = 0; i < peers->count; i++) {
        struct peer_program *peer = &peers->items[i];
        if (!is_on_this_machine(&peer->connection))
            continue;
        if (peer->connection.protocol == CONNECTION_UNIX)
            peer->socket = socket_in_table(peer, "unix");
        else
            peer->socket = socket_in_table(peer, "tcp") ?: socket_in_table(peer, "tcp6");
        any |= peer->socket != 0;
    }
    DIR *list = any ? opendir("/proc") : NULL;
    for (struct dirent *entry; list && (entry = readdir(list));)
        if (isdigit((unsigned char)entry->d_name[0]))
            look_into_process(peers, (uint32_t)strtoul(entry->d_name, NULL, 10));
    if (list)
        closedir(list);
}
