// SPDX-License-Identifier: MIT
//
// Any bytes from a server of HTTP/2, to four requests of the dialect that the first byte chooses:
// each request has one event at most, replies lie within what came, and the bytes split otherwise
// give the same events. The bytes are frames without their lengths, which are made right, so that
// what is inside frames is tried and not only their heads.
#include <stdint.h>

#include "tests/workloads/protocols/http2_peer.h"
#include "workloads/protocols/protocols.h"

enum { REQUESTS = 4, HEAD_BYTES = 6 };

// A byte for the payload's length, type, flags, stream; what is left over comes as it stands.
static void add_frames(struct peer *peer, const uint8_t *data, size_t size)
{
    FRAME(peer, FRAME_SETTINGS, 0, 0, "");
    while (size >= HEAD_BYTES && peer->in_count + size + UINT8_MAX < sizeof peer->in / 2) {
        size_t count = data[0] < size - HEAD_BYTES ? data[0] : size - HEAD_BYTES;
        peer_frame(peer, data[1] % 12, data[2], (uint32_t)data[3] % 16, (const char *)data + 4,
                   count);
        data += 4 + count;
        size -= 4 + count;
    }
    if (size < sizeof peer->in / 2)
        peer_add(peer, (const char *)data, size);
}

static struct peer *converse(const struct protocol *protocol, const uint8_t *data, size_t size,
                             size_t piece)
{
    struct peer *peer = peer_new(protocol, NULL);
    peer_listen(peer);
    peer_ask(peer, 0, REQUESTS);
    add_frames(peer, data, size);
    peer_say(peer, piece);
    return peer;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const struct protocol *protocol = data[0] & 1 ? &grpc_protocol : &http2_protocol;
    struct peer *whole = converse(protocol, data + 2, size - 2, PEER_BYTES),
                *split = converse(protocol, data + 2, size - 2, 1 + data[1]);
    for (size_t i = 0; i < PEER_EVENTS; i++) {
        const struct reply *reply = &whole->replies[i], *other = &split->replies[i];
        if (whole->answered[i] + whole->refused[i] > (i < REQUESTS) || reply->begin > reply->end ||
            reply->end > whole->parser.offset)
            abort();
        // What nghttp2 resets ends when it is next heard, which may be before or after the
        // connection breaks off.
        const bool settled = !reply_is_broken(reply->kind) && !reply_is_broken(other->kind);
        if (settled && (whole->answered[i] != split->answered[i] || reply->kind != other->kind ||
                        reply->end != other->end || whole->refused[i] != split->refused[i]))
            abort();
    }
    peer_free(whole);
    peer_free(split);
    return 0;
}
