// SPDX-License-Identifier: MIT
#include "profiler/events/watched_sockets.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "profiler/events/events_programs.h"
#include "profiler/events/events_skeleton.h"
#include "profiler/events/watched_namespaces.h"

bool watched_sockets_add_port(struct watched_sockets *sockets, uint16_t port)
{
    uint64_t bit = UINT64_C(1) << port % 64, *word = &sockets->ports[port / 64];
    if (port == 0 || (*word & bit))
        return false;
    *word |= bit;
    if (sockets->programs)
        __atomic_store_n(&sockets->programs->bss->watched_ports[port / 64], *word,
                         __ATOMIC_RELAXED);
    return true;
}

// Runs the iterator to its end; its result is what it enters in the table.
void watched_sockets_look_up(struct watched_sockets *sockets)
{
    struct bpf_link *link = sockets->programs->links.known_sockets;
    if (!link)
        return;
    int fd = bpf_iter_create(bpf_link__fd(link));
    char ignored[256];
    ssize_t got = -1;
    if (fd >= 0) {
        while ((got = read(fd, ignored, sizeof ignored)) > 0)
            ;
        close(fd);
    }
    if (got == 0)
        return;
    for (size_t i = 0; i < EVENT_PROGRAMS; i++)
        if (event_programs[i].iterator) {
            sockets->states[i].attached = false;
            snprintf(sockets->states[i].reason, sizeof sockets->states[i].reason,
                     "cannot be run: %s", strerror(errno));
        }
}

// Looks up the connections in another network namespace, and comes home.
static void look_up_in(struct watched_sockets *sockets, int other, int home)
{
    if (setns(other, CLONE_NEWNET) < 0)
        return;
    watched_sockets_look_up(sockets);
    if (setns(home, CLONE_NEWNET) < 0)
        abort(); // nothing after this would be where it belongs
}

// Removes the connections of other namespaces that were entered while all were watched.
static void strangers_forget(struct watched_sockets *sockets)
{
    const uint32_t *list = sockets->programs->bss->watched_namespaces;
    int streams = bpf_map__fd(sockets->programs->maps.streams);
    struct stream_key key = {.ports = 0}, next;
    bool any = bpf_map_get_next_key(streams, NULL, &next) == 0;
    for (uint64_t left = 6 * (uint64_t)sockets->room; any && left; left--) {
        struct stream stream;
        key = next;
        any = bpf_map_get_next_key(streams, &key, &next) == 0;
        if (bpf_map_lookup_elem(streams, &key, &stream) < 0 ||
            watched_namespaces_has(list, stream.namespace))
            continue;
        uint64_t cookie = stream.id;
        bpf_map_delete_elem(bpf_map__fd(sockets->programs->maps.sockets), &cookie);
        bpf_map_delete_elem(streams, &key);
    }
}

uint32_t watched_sockets_add_process(struct watched_sockets *sockets, uint32_t process,
                                     uint16_t port)
{
    char path[64];
    struct stat there;
    uint32_t namespace = 0;
    bool further = watched_sockets_add_port(sockets, port);
    snprintf(path, sizeof path, "/proc/%u/ns/net", process);
    int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    int other = open(path, O_RDONLY | O_CLOEXEC);
    if (home >= 0 && other >= 0 && fstat(other, &there) == 0) {
        namespace = (uint32_t)there.st_ino;
        bool fresh = watched_namespaces_add(sockets->programs->bss->watched_namespaces,
                                            &sockets->processes_named, namespace);
        if (fresh)
            strangers_forget(sockets);
        if (fresh || further)
            look_up_in(sockets, other, home);
    }
    if (home >= 0)
        close(home);
    if (other >= 0)
        close(other);
    return namespace;
}

// Takes one connection out of the table if it has ended.
static void evict_one(struct watched_sockets *sockets, int fd, const uint64_t *key)
{
    struct connection connection;
    if (bpf_map_lookup_elem(fd, key, &connection) < 0 || connection.process != SOCKET_ENDED)
        return;
    connection.process = 0;
    if (array_push(&sockets->ended, connection) < 0)
        return; // it stays in the table
    bpf_map_delete_elem(fd, key);
    sockets->evicted++;
}

// Whether the table, into which so many were entered, of which so many have ended, is to be looked
// through: that takes a few milliseconds. It is half full, and an eighth of it has come or gone
// since it was last done; or it is full, where nobody comes, and the last time is a second ago.
static bool eviction_is_due(const struct watched_sockets *sockets, uint64_t entered, uint64_t ended)
{
    const uint64_t room = sockets->room, held = entered - sockets->evicted;
    const uint64_t gone = ended - sockets->gone;
    if (held < room / 2)
        return false;
    return entered - sockets->seen >= room / 8 || gone >= room / 8 ||
           (held >= room && gone && monotonic_ns() - sockets->looked_ns >= 1000000000);
}

void watched_sockets_evict(struct watched_sockets *sockets)
{
    uint64_t entered = *(volatile uint64_t *)&sockets->programs->bss->sockets_entered;
    uint64_t ended = *(volatile uint64_t *)&sockets->programs->bss->sockets_ended, key, next;
    int fd = bpf_map__fd(sockets->programs->maps.sockets);
    if (!eviction_is_due(sockets, entered, ended))
        return;
    sockets->seen = entered;
    sockets->gone = ended;
    sockets->looked_ns = monotonic_ns();
    for (bool more = bpf_map_get_next_key(fd, NULL, &next) == 0; more;) {
        key = next;
        more = bpf_map_get_next_key(fd, &key, &next) == 0;
        evict_one(sockets, fd, &key);
    }
}

static int compare_connections(const void *a, const void *b)
{
    uint32_t x = ((const struct connection *)a)->id, y = ((const struct connection *)b)->id;
    return order_of(x, y);
}

int watched_sockets_list(struct watched_sockets *sockets, struct connection_array *out,
                         struct error *err)
{
    int fd = bpf_map__fd(sockets->programs->maps.sockets);
    uint64_t key = 0, *previous = NULL;
    while (bpf_map_get_next_key(fd, previous, &key) == 0) {
        struct connection connection;
        if (bpf_map_lookup_elem(fd, &key, &connection) == 0) {
            connection.process = 0;
            if (array_push(out, connection) < 0)
                return error_set(err, ERROR_FAILED, "no memory for the table of sockets");
        }
        previous = &key;
    }
    array_sort(out, compare_connections);
    return 0;
}

void watched_sockets_take_ended(struct watched_sockets *sockets, struct connection_array *out)
{
    *out = sockets->ended;
    sockets->ended = (struct connection_array){0};
    array_sort(out, compare_connections);
}

json_t *watched_sockets_ports(const struct watched_sockets *sockets)
{
    json_t *ports = json_array();
    for (unsigned port = 0; port < 65536; port++)
        if (sockets->ports[port / 64] >> port % 64 & 1)
            json_array_append_new(ports, json_integer(port));
    return ports;
}

void watched_sockets_free(struct watched_sockets *sockets)
{
    array_free(&sockets->ended);
}
