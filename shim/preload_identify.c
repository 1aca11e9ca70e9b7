// SPDX-License-Identifier: MIT
//
// What a descriptor is: a connection that is to be watched or something else. That is asked as it
// is accepted or connected, and of one that came in another way when it is first used: inherited,
// sent by another process, or made by a system call that went past the shim.
#include "shim/preload_local.h"

#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>

#include "base/connection.h"

enum { PROTOCOL_MPTCP = 262 };

// -1: not a socket.
static int protocol_of(int fd)
{
    int protocol = -1;
    socklen_t bytes = sizeof protocol;
    return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &bytes) == 0 ? protocol : -1;
}

static bool is_tcp(int fd)
{
    int protocol = protocol_of(fd);
    return protocol == IPPROTO_TCP || protocol == PROTOCOL_MPTCP;
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

static bool accepted_identify(int fd, const struct sockaddr *given, socklen_t given_bytes,
                              struct connection_slot *slot)
{
    struct sockaddr_storage local = {0}, peer = {0};
    socklen_t bytes = sizeof local;
    if (getsockname(fd, (struct sockaddr *)&local, &bytes) < 0 ||
        !shim_address_read(&local, slot->local, &slot->local_port))
        return false;
    if (shim.port ? shim.port != slot->local_port
                  : atomic_load(&shim.control->state) != CONTROL_NONE &&
                        !ring_wants_port(shim.control->ports, slot->local_port))
        return false;
    if (!is_tcp(fd) || !peer_read(fd, given, given_bytes, &peer) ||
        !shim_address_read(&peer, slot->peer, &slot->peer_port))
        return false;
    slot->protocol = CONNECTION_TCP;
    slot->cookie = shim_cookie(fd);
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
        slot->cookie = shim_cookie(fd);
        return true;
    }
    slot->protocol = CONNECTION_TCP;
    bytes = sizeof local;
    if (!shim_address_read(&peer, slot->peer, &slot->peer_port) || !is_tcp(fd) ||
        getsockname(fd, (struct sockaddr *)&local, &bytes) < 0 ||
        !shim_address_read(&local, slot->local, &slot->local_port))
        return false;
    slot->cookie = shim_cookie(fd);
    return true;
}

// A new connection. peer is what the application was told, if it asked and the address fitted.
void shim_connection_accepted(int fd, const struct sockaddr *peer, socklen_t peer_bytes,
                              struct observation *observation)
{
    if (!shim_calls_begin())
        return; // a filter has come while the call was under way
    int saved = errno;
    struct connection_slot facts = {.opened_tsc = observation->entry_tsc};
    if (accepted_identify(fd, peer, peer_bytes, &facts))
        shim_connection_watch(fd, &facts, CALL_ACCEPT, observation);
    else
        shim_descriptor_is_other(fd);
    errno = saved;
    shim_calls_end();
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
    if (!shim_calls_begin())
        return; // a filter has come while the call was under way
    int saved = errno;
    struct connection_slot facts = {.opened_tsc = observation->entry_tsc};
    if (!peer_identify(fd, peer, peer_bytes, &facts))
        shim_descriptor_is_other(fd);
    else if (!is_same_connection(shim_known(fd), &facts))
        shim_connection_watch(fd, &facts, CALL_CONNECT, observation);
    errno = saved;
    shim_calls_end();
}

// --- descriptors of unknown birth ----------------------------------------------------------------

// Only the port tells an accepted connection from one that was made: without any, nobody knows.
static bool is_of_the_capture(uint16_t port)
{
    const uint16_t *ports = shim.control->ports;
    return shim.port ? port == shim.port : ports[0] && ring_wants_port(ports, port);
}

static bool found_identify(int fd, struct connection_slot *facts)
{
    struct connection_slot outgoing = {0};
    if (accepted_identify(fd, NULL, 0, facts))
        return is_of_the_capture(facts->local_port);
    if (!shim.control->peers || !shim.control->ports[0] || !peer_identify(fd, NULL, 0, &outgoing) ||
        outgoing.protocol != CONNECTION_TCP || is_of_the_capture(outgoing.local_port))
        return false;
    memcpy(facts, &outgoing, sizeof *facts);
    return true;
}

// A socket that is not connected yet may be.
static bool is_settled(int fd)
{
    struct sockaddr_storage peer;
    socklen_t bytes = sizeof peer;
    return getpeername(fd, (struct sockaddr *)&peer, &bytes) == 0 ||
           (errno != ENOTCONN && errno != EBADF);
}

// Watches a connection that was not seen to begin: its streams are as far as the kernel says.
static uint32_t connection_find(int fd)
{
    struct connection_slot facts = {.opened_tsc = 0};
    struct kernel_counts kernel;
    if (!is_settled(fd))
        return 0;
    if (!found_identify(fd, &facts)) {
        shim_descriptor_is_other(fd);
        return 0;
    }
    if (shim_count_kernel(fd, facts.outgoing, &kernel)) {
        atomic_store(&facts.moved[DIRECTION_IN], kernel.bytes[DIRECTION_IN]);
        atomic_store(&facts.moved[DIRECTION_OUT], kernel.bytes[DIRECTION_OUT]);
    }
    return shim_connection_join(fd, &facts);
}

// Watches a UDP socket at which a server of the capture is asked. One that is not bound yet may be
// one.
static uint32_t datagram_socket_find(int fd)
{
    struct sockaddr_storage local = {0}, peer = {0};
    struct connection_slot facts = {.protocol = CONNECTION_UDP, .cookie = shim_cookie(fd)};
    socklen_t bytes = sizeof local;
    uint32_t known = shim_descriptor_adopt(fd, facts.cookie);
    if (known || getsockname(fd, (struct sockaddr *)&local, &bytes) < 0)
        return known;
    bool internet = shim_address_read(&local, facts.local, &facts.local_port);
    if (internet && facts.local_port == 0)
        return 0;
    if (!internet || !is_of_the_capture(facts.local_port)) {
        shim_descriptor_is_other(fd);
        return 0;
    }
    bytes = sizeof peer;
    if (getpeername(fd, (struct sockaddr *)&peer, &bytes) == 0)
        shim_address_read(&peer, facts.peer, &facts.peer_port);
    return shim_connection_join(fd, &facts);
}

uint32_t shim_descriptor_identify(int fd)
{
    uint32_t state = atomic_load_explicit(&shim.control->state, memory_order_relaxed);
    if ((state != CONTROL_ARMED && state != CONTROL_ENABLED) || !shim_calls_begin())
        return 0; // it is looked at when somebody wants to know
    int saved = errno;
    uint32_t entry = 0;
    int protocol = protocol_of(fd);
    if (protocol == IPPROTO_TCP || protocol == PROTOCOL_MPTCP)
        entry = shim_descriptor_adopt(fd, shim_cookie(fd)) ?: connection_find(fd);
    else if (protocol == IPPROTO_UDP)
        entry = datagram_socket_find(fd);
    else if (protocol >= 0 || errno != EBADF)
        shim_descriptor_is_other(fd);
    errno = saved;
    shim_calls_end();
    return entry;
}

// Descriptors that another process has sent are new here, whatever the table says of their numbers.
// They are looked at while the connection is sure to be there, not when they are first used.
void shim_rights_received(struct msghdr *message)
{
    if (message->msg_controllen < sizeof(struct cmsghdr) || shim_borrowed_memory())
        return;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = CMSG_LEN(0); at + sizeof(int) <= part->cmsg_len; at += sizeof(int)) {
            int fd;
            memcpy(&fd, (char *)part + at, sizeof fd);
            shim_descriptor_forget(fd);
            shim_descriptor_identify(fd);
        }
    }
}
