// SPDX-License-Identifier: MIT
//
// memcached over UDP (doc/protocol.txt, "UDP protocol"): every datagram begins with a frame of
// eight bytes: request id, number of the datagram within its message, how many there are, 0;
// big-endian, 16 bits each. A request is one datagram. A reply may be several, in any order, and
// some may come twice or not at all. Their content is text, binary or meta as over TCP. No I/O, and
// no allocation after udp_assembly_init.
#ifndef WORKLOADS_PROTOCOLS_MEMCACHED_UDP_H
#define WORKLOADS_PROTOCOLS_MEMCACHED_UDP_H

#include "workloads/protocols/protocol.h"

enum {
    UDP_FRAME_BYTES = 8,
    UDP_DATAGRAM_BYTES_MAX = 65507, // of IPv4's UDP, frame included
    UDP_IDS = 1 << 16,
};

struct udp_frame {
    uint16_t id, sequence, count;
};

// Writes the frame of a request.
void udp_frame_write(char out[UDP_FRAME_BYTES], uint16_t id);

// False: the datagram is not part of a reply.
bool udp_frame_read(const char *datagram, size_t bytes, struct udp_frame *frame);

struct udp_piece {
    const char *bytes; // NULL: not received yet
    size_t count;
};

// A reply of several datagrams, being assembled.
struct udp_assembly {
    struct udp_piece *pieces; // in the order of their sequence numbers
    char *text;               // their bytes, in the order they came in
    size_t text_size, text_used;
    uint32_t pieces_max, wanted, received;
};

enum udp_outcome {
    UDP_UNDER_WAY,
    UDP_WHOLE,
    UDP_AGAIN, // this datagram was received before
    // the datagrams cannot belong to one reply, or are too many: it will never be complete
    UDP_IMPOSSIBLE
};

// Room for replies of up to text_size bytes. -1: out of memory.
int udp_assembly_init(struct udp_assembly *assembly, size_t text_size);
void udp_assembly_fini(struct udp_assembly *assembly);

// Begins another reply, of that many datagrams.
void udp_assembly_begin(struct udp_assembly *assembly, uint16_t count);

// Adds a datagram, frame included.
enum udp_outcome udp_assembly_add(struct udp_assembly *assembly, const struct udp_frame *frame,
                                  const char *datagram, size_t bytes);

// Parses the complete reply to the number'th request of its connection. The parser's state need not
// be kept between replies. Never fails: anything but exactly one reply is REPLY_MALFORMED. begin
// and end of the reply count within the assembled bytes.
void udp_reply_parse(const struct protocol *protocol, struct reply_parser *parser, uint64_t number,
                     const struct udp_piece *pieces, size_t count, struct reply *reply);

#endif
