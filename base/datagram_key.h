// SPDX-License-Identifier: MIT
//
// What names a datagram where no stream has offsets (design §4): its client, and the first two
// bytes of its payload, which memcached's frame fills with the request's number (the low 16 bits)
// and whose reply repeats them. It survives loss, duplication and reordering, and every layer can
// read it: the shim in the application's buffer, BPF in the packet, without knowing the protocol.
//
// This header is read by the BPF compiler too: no libc.
#ifndef BASE_DATAGRAM_KEY_H
#define BASE_DATAGRAM_KEY_H

#ifndef __bpf__
#include <stdint.h>
#endif

enum { DATAGRAM_KEY_BYTES = 2, DATAGRAM_NUMBERS = 1 << 16 };

// Of the client: its address (IPv6, or IPv4 mapped; network byte order), folded into 16 bits, and
// its port (host byte order). One machine's sockets never share one; two machines' may, at worst.
static inline uint32_t datagram_client(const uint8_t address[16], uint16_t port)
{
    uint32_t fold = 0;
    for (int i = 0; i < 16; i += 2)
        fold ^= (uint32_t)address[i] << 8 | address[i + 1];
    return fold << 16 | port;
}

// Of a datagram of that client's, or of a reply to one, whose payload begins so. At most 48 bits,
// as an offset in a stream (shim/ring.h).
static inline uint64_t datagram_key(uint32_t client, const uint8_t begin[DATAGRAM_KEY_BYTES])
{
    return (uint64_t)client << 16 | (uint64_t)begin[0] << 8 | begin[1];
}

static inline uint32_t datagram_key_client(uint64_t key)
{
    return (uint32_t)(key >> 16);
}

static inline uint16_t datagram_key_number(uint64_t key)
{
    return (uint16_t)key;
}

#endif
