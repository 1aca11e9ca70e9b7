// SPDX-License-Identifier: MIT
//
// Datagrams of any bytes: each is refused, or belongs to a reply that is whole or not, and a whole
// one is some reply. The input: which protocol, how much room, then length and bytes of datagrams.
#include <stdlib.h>
#include <string.h>

#include "workloads/protocols/memcached_text.h"
#include "workloads/protocols/memcached_udp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct protocol *const protocols[] = {
        &memcached_text_protocol, &memcached_binary_protocol, &memcached_meta_protocol};
    if (size < 2)
        return 0;
    const struct protocol *protocol = protocols[data[0] % 3];
    struct udp_assembly assembly;
    struct reply_parser parser = {0};
    struct reply reply;
    bool begun = false;
    if (udp_assembly_init(&assembly, 1u + data[1] * 16u) < 0)
        abort();
    data += 2, size -= 2;
    while (size) {
        size_t count = data[0] < size - 1 ? data[0] : size - 1;
        char *datagram = malloc(count + 1); // of its own size, but for malloc(0)
        memcpy(datagram, data + 1, count);
        data += 1 + count, size -= 1 + count;
        struct udp_frame frame;
        if (udp_frame_read(datagram, count, &frame)) {
            if (!begun)
                udp_assembly_begin(&assembly, frame.count);
            enum udp_outcome outcome = udp_assembly_add(&assembly, &frame, datagram, count);
            begun = outcome == UDP_UNDER_WAY || outcome == UDP_AGAIN;
            if (outcome == UDP_WHOLE) {
                udp_reply_parse(protocol, &parser, frame.id, assembly.pieces, frame.count, &reply);
                if (reply.kind >= REPLY_KINDS || parser.in_reply)
                    abort();
            }
        }
        free(datagram);
    }
    udp_assembly_fini(&assembly);
    return 0;
}
