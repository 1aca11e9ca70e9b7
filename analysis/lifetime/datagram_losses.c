// SPDX-License-Identifier: MIT
#include "analysis/lifetime/datagram_losses.h"

#include "analysis/lifetime/holdups.h"
#include "base/text.h"

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

void datagram_drop_note(struct datagram_drops *drops, const struct event *drop)
{
    bool by_socket = drop->flags & DROPPED_BY_SOCKET;
    uint64_t by = drop->payload.b >> 32;
    if (drop->flags & DROPPED_TO_CLIENT)
        drops->which |= by_socket ? DROPPED_REPLY_BY_SOCKET : DROPPED_REPLY_ON_WAY;
    else if (by_socket)
        drops->which |= DROPPED_REQUEST_BY_SOCKET;
    if (by < EVENT_LOSSES)
        *(drop->flags & DROPPED_TO_CLIENT ? &drops->reply_by : &drops->request_by) = (uint8_t)by;
}

// From the end of its way to the begin: how far it came is what counts.
enum datagram_loss datagram_loss_of(const struct lifetime *life, const struct datagram_drops *drops,
                                    bool read_late, bool has_events, uint64_t timeout_ns)
{
    if (!has_events)
        return read_late ? DATAGRAM_LOST_READ_LATE : DATAGRAM_LOST_UNKNOWN;
    if (drops->which & DROPPED_REPLY_BY_SOCKET)
        return DATAGRAM_LOST_CLIENT_SOCKET;
    if (timeout_ns && lifetime_has(life, STAMP_SERVER_TX) &&
        life->stamp_ns[STAMP_SERVER_TX] - life->stamp_ns[STAMP_SEND] >= (int64_t)timeout_ns)
        return DATAGRAM_LOST_TOO_LATE;
    if (read_late)
        return DATAGRAM_LOST_READ_LATE;
    if ((drops->which & DROPPED_REPLY_ON_WAY) || lifetime_has(life, STAMP_SERVER_TX) ||
        lifetime_has(life, STAMP_REPLY))
        return DATAGRAM_LOST_TO_CLIENT;
    if (lifetime_has(life, STAMP_APPLICATION))
        return DATAGRAM_LOST_SERVER;
    if (drops->which & DROPPED_REQUEST_BY_SOCKET) // whatever was handed over then was another one
        return DATAGRAM_LOST_SERVER_SOCKET;
    if (lifetime_has(life, STAMP_HANDOFF))
        return DATAGRAM_LOST_SERVER;
    return lifetime_has(life, STAMP_NIC) ? DATAGRAM_LOST_SERVER_KERNEL : DATAGRAM_LOST_TO_SERVER;
}

unsigned datagram_loss_by(enum datagram_loss loss, const struct datagram_drops *drops)
{
    switch (loss) {
    case DATAGRAM_LOST_TO_SERVER:
    case DATAGRAM_LOST_SERVER_SOCKET:
    case DATAGRAM_LOST_SERVER_KERNEL:
        return drops->request_by;
    case DATAGRAM_LOST_TO_CLIENT:
    case DATAGRAM_LOST_CLIENT_SOCKET:
        return drops->reply_by;
    default:
        return 0;
    }
}

const char *datagram_loss_by_words(const struct datagram_losses *losses, enum datagram_loss at,
                                   char out[DATAGRAM_LOSS_WORDS])
{
    const char *before = " (";
    char count[32];
    out[0] = '\0';
    for (unsigned by = 1; by < EVENT_LOSSES; by++) {
        if (losses->by[at][by] == 0)
            continue;
        text_append(out, DATAGRAM_LOSS_WORDS, "%s%s by %s", before,
                    text_count(losses->by[at][by], count), event_loss_name(by));
        before = ", ";
    }
    if (out[0])
        text_append(out, DATAGRAM_LOSS_WORDS, ")");
    return out;
}
