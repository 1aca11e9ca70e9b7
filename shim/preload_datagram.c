// SPDX-License-Identifier: MIT
//
// Datagrams, which have no stream that their calls could be found in by an offset: each call is
// recorded with what names its datagram (base/datagram_key.h) instead. Who the client is, is what
// the program was told by the kernel, or told it; a socket that is connected needs neither.
#include "shim/preload_local.h"

#include <netinet/in.h>
#include <string.h>

#include "base/datagram_key.h"

static bool client_read(const struct observation *observation, uint32_t *client)
{
    const struct connection_slot *slot = observation->slot;
    struct sockaddr_storage peer = {0};
    uint8_t address[16];
    uint16_t port;
    if (observation->peer_bytes == 0 && slot->peer_port) {
        *client = datagram_client(slot->peer, slot->peer_port);
        return true;
    }
    if (observation->peer_bytes < sizeof(struct sockaddr_in) ||
        observation->peer_bytes > sizeof peer)
        return false;
    memcpy(&peer, observation->peer, observation->peer_bytes);
    if (!shim_address_read(&peer, address, &port))
        return false;
    *client = datagram_client(address, port);
    return true;
}

// The room for an address that each of these messages has at least.
socklen_t shim_smallest_room(const struct mmsghdr *messages, unsigned count)
{
    socklen_t least = sizeof(struct sockaddr_storage);
    for (unsigned i = 0; i < count; i++)
        if (messages[i].msg_hdr.msg_namelen < least)
            least = messages[i].msg_hdr.msg_namelen;
    return least;
}

void shim_datagram_moved(const struct observation *observation, const struct call_exit *exit,
                         enum call_kind kind, uint64_t bytes, uint64_t rx_ns)
{
    uint32_t client;
    if (atomic_load(&observation->slot->moved[DIRECTION_IN]) >> 48 != observation->generation) {
        atomic_fetch_add_explicit(&shim.page->late, 1, memory_order_relaxed);
        return;
    }
    if (kind == CALL_RECEIVE && shim_thread.batch_position < UINT16_MAX)
        shim_thread.batch_position++;
    if (!observation->recording || !shim_announce(observation))
        return;
    if (bytes < DATAGRAM_KEY_BYTES || observation->room < DATAGRAM_KEY_BYTES ||
        !client_read(observation, &client)) {
        atomic_fetch_add_explicit(&shim.page->unnamed, 1, memory_order_relaxed);
        return;
    }
    shim_record(observation, exit, kind, datagram_key(client, observation->payload),
                (uint32_t)bytes, rx_ns);
}
