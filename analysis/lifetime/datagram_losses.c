// SPDX-License-Identifier: MIT
#include "analysis/lifetime/datagram_losses.h"

static const struct {
    const char *key, *words;
} names[DATAGRAM_LOSSES] = {
#define DATAGRAM_LOSS(NAME, key, words, means) {key, words},
#include "analysis/lifetime/lifetimes.tbl.h"
};

const char *datagram_loss_key(enum datagram_loss loss)
{
    return names[loss].key;
}

const char *datagram_loss_words(enum datagram_loss loss)
{
    return names[loss].words;
}

// Drops that stamps do not show: a request's on its way lacks its M(n).
enum {
    DROPPED_REQUEST_BY_SOCKET = 1 << 0,
    DROPPED_REPLY_BY_SOCKET = 1 << 1,
    DROPPED_REPLY_ON_WAY = 1 << 2,
};

void datagram_drop_note(uint8_t *drops, const struct event *drop)
{
    bool by_socket = drop->flags & DROPPED_BY_SOCKET;
    if (drop->flags & DROPPED_TO_CLIENT)
        *drops |= by_socket ? DROPPED_REPLY_BY_SOCKET : DROPPED_REPLY_ON_WAY;
    else if (by_socket)
        *drops |= DROPPED_REQUEST_BY_SOCKET;
}

// From the end of its way to the begin: how far it came is what counts.
enum datagram_loss datagram_loss_of(const struct lifetime *life, uint8_t drops, bool has_events,
                                    uint64_t timeout_ns)
{
    if (!has_events)
        return DATAGRAM_LOST_UNKNOWN;
    if (drops & DROPPED_REPLY_BY_SOCKET)
        return DATAGRAM_LOST_CLIENT_SOCKET;
    if (timeout_ns && lifetime_has(life, STAMP_SERVER_TX) &&
        life->stamp_ns[STAMP_SERVER_TX] - life->stamp_ns[STAMP_SEND] >= (int64_t)timeout_ns)
        return DATAGRAM_LOST_TOO_LATE;
    if ((drops & DROPPED_REPLY_ON_WAY) || lifetime_has(life, STAMP_SERVER_TX) ||
        lifetime_has(life, STAMP_REPLY))
        return DATAGRAM_LOST_TO_CLIENT;
    if (lifetime_has(life, STAMP_APPLICATION))
        return DATAGRAM_LOST_SERVER;
    if (drops & DROPPED_REQUEST_BY_SOCKET) // whatever was handed over then was another one
        return DATAGRAM_LOST_SERVER_SOCKET;
    if (lifetime_has(life, STAMP_HANDOFF))
        return DATAGRAM_LOST_SERVER;
    return lifetime_has(life, STAMP_NIC) ? DATAGRAM_LOST_SERVER_KERNEL : DATAGRAM_LOST_TO_SERVER;
}
