// SPDX-License-Identifier: MIT
//
// Which descriptors are watched, and whose bytes they carry. A connection lives in a slot; the
// descriptors that name it (dup) hold references; the last one gone frees the slot, whose counters
// get the next generation so that a call still under way cannot be charged to its next user.
#include "shim/preload.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "base/connection.h"

enum { PROTOCOL_MPTCP = 262, NOT_FREE = 0 };

// In a vfork child the memory is the parent's: what the child closes before its exec is its own
// copy of the descriptor, not the parent's. This is only checked when a watched descriptor changes.
bool shim_borrowed_memory(void)
{
    uint32_t here = (uint32_t)syscall(SYS_getpid);
    uint32_t owner = atomic_load(&shim.session->process);
    if (owner == 0) { // a fork child that has not done anything yet: the memory is its own
        atomic_store(&shim.session->process, here);
        return false;
    }
    return owner != here;
}

static uint32_t slot_take(void)
{
    uint64_t head = atomic_load(&shim.free_slots);
    while ((uint32_t)head != NOT_FREE) {
        uint32_t slot = (uint32_t)head;
        uint64_t next = ((head >> 32) + 1) << 32 | atomic_load(&shim.slots[slot].next_free);
        if (atomic_compare_exchange_weak(&shim.free_slots, &head, next))
            return slot;
    }
    uint32_t fresh = atomic_load(&shim.slots_used);
    while (fresh < SLOT_LIMIT - 1)
        if (atomic_compare_exchange_weak(&shim.slots_used, &fresh, fresh + 1))
            return fresh + 1;
    return 0;
}

static void slot_give(uint32_t slot)
{
    uint64_t head = atomic_load(&shim.free_slots);
    uint64_t next;
    do {
        atomic_store(&shim.slots[slot].next_free, (uint32_t)head);
        next = ((head >> 32) + 1) << 32 | slot;
    } while (!atomic_compare_exchange_weak(&shim.free_slots, &head, next));
}

static uint16_t slot_generation(const struct connection_slot *slot)
{
    return (uint16_t)(atomic_load(&slot->moved[DIRECTION_IN]) >> 48);
}

// Removes fd's entry from the table. 0: it was not watched, or this process must not change it.
uint32_t shim_descriptor_take(int fd)
{
    if (!shim_watched(fd) || shim_borrowed_memory())
        return 0;
    return atomic_exchange(&shim.descriptors[fd], 0);
}

void shim_descriptor_put_back(int fd, uint32_t watched)
{
    uint32_t nobody = 0;
    if (watched && !atomic_compare_exchange_strong(&shim.descriptors[fd], &nobody, watched))
        shim_connection_release(watched, NULL);
}

static void descriptor_set(int fd, uint32_t watched)
{
    uint32_t highest = atomic_load(&shim.highest_descriptor);
    while ((uint32_t)fd > highest &&
           !atomic_compare_exchange_weak(&shim.highest_descriptor, &highest, (uint32_t)fd))
        ;
    uint32_t stale = atomic_exchange(&shim.descriptors[fd], watched);
    if (stale) { // closed in a way the shim does not see
        atomic_fetch_add(&shim.page->stale, 1);
        shim_connection_release(stale, NULL);
    }
}

// From now on `to` names the same socket as `from`, or nothing that is watched.
void shim_descriptor_alias(int from, int to)
{
    uint32_t watched = shim_watched(from);
    if ((!watched && !shim_watched(to)) || shim_borrowed_memory())
        return;
    if ((uint32_t)to >= shim.descriptor_limit) {
        atomic_fetch_add(&shim.page->unwatched, 1);
        return;
    }
    if (watched) {
        struct connection_slot *slot = &shim.slots[watched & 0xffff];
        uint32_t references = atomic_load(&slot->references);
        do {
            if (references == 0 || slot_generation(slot) != watched >> 16)
                watched = 0; // closed in the meantime
        } while (watched &&
                 !atomic_compare_exchange_weak(&slot->references, &references, references + 1));
    }
    descriptor_set(to, watched);
}

// Drops one descriptor's reference; after the last, the connection has ended. observation, if
// given, holds the entry of the close that did it, and is completed and recorded.
void shim_connection_release(uint32_t watched, struct observation *observation)
{
    struct connection_slot *slot = &shim.slots[watched & 0xffff];
    if (atomic_fetch_sub(&slot->references, 1) != 1)
        return;
    uint64_t epoch = atomic_load(&shim.session->epoch);
    if (observation && observation->recording && epoch != 0 &&
        atomic_load(&slot->announced) == epoch) {
        struct call_exit exit;
        exit.tsc = tsc_now_on_core(&exit.core);
        uint64_t received = atomic_load(&slot->moved[DIRECTION_IN]) & 0xffffffffffffULL;
        shim_record(observation, &exit, CALL_CLOSE, received, 0, 0);
    }
    uint64_t next = (uint64_t)(uint16_t)((watched >> 16) + 1) << 48;
    atomic_store(&slot->announced, 0);
    atomic_store(&slot->moved[DIRECTION_OUT], next);
    atomic_store(&slot->moved[DIRECTION_IN], next);
    slot_give(watched & 0xffff);
}

bool shim_announce_slow(const struct observation *observation, uint64_t epoch)
{
    struct connection_slot *slot = observation->slot;
    uint64_t before = atomic_load(&slot->announced);
    if (before == epoch || !atomic_compare_exchange_strong(&slot->announced, &before, epoch))
        return true; // another thread is announcing it
    if (!shim_record_begin()) {
        atomic_store(&slot->announced, 0);
        return false;
    }
    struct ring_producer *ring = &shim_thread.ring;
    union ring_entry *entry = ring_reserve(ring, observation->entry_tsc);
    if (entry) {
        entry->announcement = (struct ring_announcement){
            .cookie = slot->cookie,
            .opened_tsc = slot->opened_tsc,
            .local_port = slot->local_port,
            .kind = RING_ANNOUNCEMENT,
            .outgoing = slot->outgoing,
            .peer_port = slot->peer_port,
            .protocol = slot->protocol,
            .connection = observation->connection,
        };
        memcpy(entry->announcement.local, slot->local, sizeof slot->local);
        memcpy(entry->announcement.peer, slot->peer, sizeof slot->peer);
        if (slot_generation(slot) == observation->generation)
            // otherwise the slot went to another connection while we copied
            ring_commit(ring, entry);
    } else {
        atomic_fetch_add(&shim.page->dropped_full, 1);
        atomic_store(&slot->announced, 0);
    }
    shim_record_end();
    return entry != NULL;
}

// Writes an address as IPv6 (IPv4 mapped) and a host-order port. False: not an internet address.
static bool address_read(const struct sockaddr_storage *address, uint8_t out[16], uint16_t *port)
{
    if (address->ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
        static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
        memcpy(out, mapped, sizeof mapped);
        memcpy(out + 12, &v4->sin_addr, 4);
        *port = ntohs(v4->sin_port);
        return true;
    }
    if (address->ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
        memcpy(out, &v6->sin6_addr, 16);
        *port = ntohs(v6->sin6_port);
        return true;
    }
    return false;
}

static bool is_tcp(int fd)
{
    int protocol = 0;
    socklen_t bytes = sizeof protocol;
    return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &bytes) == 0 &&
           (protocol == IPPROTO_TCP || protocol == PROTOCOL_MPTCP);
}

static bool is_stream(int fd)
{
    int type = 0;
    socklen_t bytes = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type == SOCK_STREAM;
}

static bool peer_read(int fd, const struct sockaddr *given, socklen_t given_bytes,
                      struct sockaddr_storage *peer)
{
    socklen_t bytes = sizeof *peer;
    if (given && given_bytes <= sizeof *peer && given_bytes >= sizeof(struct sockaddr_in))
        memcpy(peer, given, given_bytes);
    else if (getpeername(fd, (struct sockaddr *)peer, &bytes) < 0)
        return false; // reset already: nothing will be read from it
    return true;
}

static void cookie_read(int fd, struct connection_slot *slot)
{
    socklen_t bytes = sizeof slot->cookie;
    if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &slot->cookie, &bytes) < 0)
        slot->cookie = 0;
}

static bool accepted_identify(int fd, const struct sockaddr *given, socklen_t given_bytes,
                              struct connection_slot *slot)
{
    struct sockaddr_storage local = {0}, peer = {0};
    socklen_t bytes = sizeof local;
    if (getsockname(fd, (struct sockaddr *)&local, &bytes) < 0 ||
        !address_read(&local, slot->local, &slot->local_port))
        return false;
    if (shim.port ? shim.port != slot->local_port
                  : atomic_load(&shim.control->state) != CONTROL_NONE &&
                        !ring_wants_port(shim.control->ports, slot->local_port))
        return false;
    if (!is_tcp(fd) || !peer_read(fd, given, given_bytes, &peer) ||
        !address_read(&peer, slot->peer, &slot->peer_port))
        return false;
    slot->protocol = CONNECTION_TCP;
    cookie_read(fd, slot);
    return true;
}

// The end of a UNIX socket's path goes where a TCP connection has its addresses.
static void path_read(const char *path, size_t bytes, struct connection_slot *slot)
{
    char whole[CONNECTION_PATH_BYTES + 1] = "";
    size_t length = path[0] ? strnlen(path, bytes) : bytes;
    size_t from = length > CONNECTION_PATH_BYTES ? length - CONNECTION_PATH_BYTES : 0;
    memcpy(whole, path + from, length - from);
    if (whole[0] == '\0' && length)
        whole[0] = '@';
    memcpy(slot->local, whole, sizeof slot->local);
    memcpy(slot->peer, whole + sizeof slot->local, sizeof slot->peer);
}

// given: what connect was told; it may not be connected yet. NULL: whoever getpeername names.
static bool peer_identify(int fd, const struct sockaddr *given, socklen_t given_bytes,
                          struct connection_slot *slot)
{
    struct sockaddr_storage local = {0}, peer = {0};
    socklen_t bytes = sizeof peer;
    slot->outgoing = 1;
    if (atomic_load(&shim.control->state) != CONTROL_NONE && !shim.control->peers)
        return false;
    if (given && given_bytes <= sizeof peer)
        memcpy(&peer, given, bytes = given_bytes);
    else if (getpeername(fd, (struct sockaddr *)&peer, &bytes) < 0)
        return false;
    const size_t before_path = offsetof(struct sockaddr_un, sun_path);
    if (peer.ss_family == AF_UNIX) {
        slot->protocol = CONNECTION_UNIX;
        if (bytes <= before_path || !is_stream(fd))
            return false;
        path_read(((struct sockaddr_un *)&peer)->sun_path, bytes - before_path, slot);
        cookie_read(fd, slot);
        return true;
    }
    slot->protocol = CONNECTION_TCP;
    bytes = sizeof local;
    if (!address_read(&peer, slot->peer, &slot->peer_port) || !is_tcp(fd) ||
        getsockname(fd, (struct sockaddr *)&local, &bytes) < 0 ||
        !address_read(&local, slot->local, &slot->local_port))
        return false;
    cookie_read(fd, slot);
    return true;
}

// Watches a connection from its first byte, and records the call that made it.
static void connection_watch(int fd, const struct connection_slot *facts, enum call_kind kind,
                             struct observation *observation)
{
    uint32_t index = (uint32_t)fd < shim.descriptor_limit ? slot_take() : 0;
    if (!index) {
        atomic_fetch_add(&shim.page->unwatched, 1);
        return;
    }
    struct connection_slot *slot = &shim.slots[index];
    slot->id = atomic_fetch_add(&shim.last_id, 1) + 1;
    slot->cookie = facts->cookie;
    slot->opened_tsc = facts->opened_tsc;
    slot->local_port = facts->local_port;
    slot->peer_port = facts->peer_port;
    slot->outgoing = facts->outgoing;
    slot->protocol = facts->protocol;
    memcpy(slot->local, facts->local, sizeof slot->local);
    memcpy(slot->peer, facts->peer, sizeof slot->peer);
    atomic_store(&slot->references, 1);
    observation->slot = slot;
    observation->connection = slot->id;
    observation->generation = slot_generation(slot);
    struct observation begun = *observation;
    observe_stamp(&begun); // attaches, if this thread has not yet
    if (!facts->outgoing)
        atomic_fetch_add(&shim.page->accepted, 1);
    if (begun.recording && shim_announce(observation)) {
        struct call_exit exit = {.tsc = begun.entry_tsc, .core = begun.entry_core};
        shim_record(observation, &exit, kind, 0, 0, 0);
    }
    descriptor_set(fd, (uint32_t)observation->generation << 16 | index);
}

// A new connection. peer is what the application was told, if it asked and the address fitted.
void shim_connection_accepted(int fd, const struct sockaddr *peer, socklen_t peer_bytes,
                              struct observation *observation)
{
    if (!shim.descriptor_limit)
        return; // a filter has come while the call was under way
    int saved = errno;
    struct connection_slot facts = {.opened_tsc = observation->entry_tsc};
    if (accepted_identify(fd, peer, peer_bytes, &facts))
        connection_watch(fd, &facts, CALL_ACCEPT, observation);
    else if (shim_watched(fd))
        descriptor_set(fd, 0);
    errno = saved;
}

// The application asks again how a connection in the background gets on.
static bool is_same_connection(uint32_t watched, const struct connection_slot *facts)
{
    const struct connection_slot *slot = &shim.slots[watched & 0xffff];
    return watched && slot->outgoing && facts->cookie && slot->cookie == facts->cookie;
}

// connect has succeeded, or goes on in the background.
void shim_connection_made(int fd, const struct sockaddr *peer, socklen_t peer_bytes,
                          struct observation *observation)
{
    if (!shim.descriptor_limit)
        return; // a filter has come while the call was under way
    int saved = errno;
    struct connection_slot facts = {.opened_tsc = observation->entry_tsc};
    uint32_t watched = shim_watched(fd);
    if (!peer_identify(fd, peer, peer_bytes, &facts)) {
        if (watched)
            descriptor_set(fd, 0);
    } else if (!is_same_connection(watched, &facts)) {
        connection_watch(fd, &facts, CALL_CONNECT, observation);
    }
    errno = saved;
}

// What was connected before this program began, by whoever started it: getpeername tells. Bytes
// count from here. One to a port of the capture is the server's own end, and not watched.
void shim_connections_inherited(void)
{
    enum { FIRST = 3, LAST = 31 };
    if (!shim.control->peers)
        return;
    for (int fd = FIRST; fd <= LAST; fd++) {
        struct connection_slot facts = {.opened_tsc = 0};
        struct observation observation = {0};
        observation.entry_tsc = tsc_now_on_core(&observation.entry_core);
        if (peer_identify(fd, NULL, 0, &facts) && facts.protocol == CONNECTION_TCP &&
            shim.control->ports[0] && !ring_wants_port(shim.control->ports, facts.local_port))
            connection_watch(fd, &facts, CALL_CONNECT, &observation);
    }
}
