// SPDX-License-Identifier: MIT
#include "workloads/protocols/memcached_udp.h"

#include <stdlib.h>
#include <string.h>

#include "workloads/protocols/reply_parser.h"

// No server splits replies into smaller pieces than this, except for the last one.
enum { PIECE_BYTES_LEAST = 256 };

void udp_frame_write(char out[UDP_FRAME_BYTES], uint16_t id)
{
    big_endian_write(out, 2, id);
    big_endian_write(out + 2, 2, 0);
    big_endian_write(out + 4, 2, 1);
    big_endian_write(out + 6, 2, 0);
}

bool udp_frame_read(const char *datagram, size_t bytes, struct udp_frame *frame)
{
    if (bytes < UDP_FRAME_BYTES)
        return false;
    *frame = (struct udp_frame){.id = (uint16_t)big_endian_read(datagram, 2),
                                .sequence = (uint16_t)big_endian_read(datagram + 2, 2),
                                .count = (uint16_t)big_endian_read(datagram + 4, 2)};
    return frame->sequence < frame->count;
}

int udp_assembly_init(struct udp_assembly *assembly, size_t text_size)
{
    *assembly = (struct udp_assembly){.text = malloc(text_size),
                                      .text_size = text_size,
                                      .pieces_max = (uint32_t)(text_size / PIECE_BYTES_LEAST) + 2};
    assembly->pieces = calloc(assembly->pieces_max, sizeof *assembly->pieces);
    return assembly->text && assembly->pieces ? 0 : -1;
}

void udp_assembly_fini(struct udp_assembly *assembly)
{
    free(assembly->pieces);
    free(assembly->text);
    *assembly = (struct udp_assembly){0};
}

void udp_assembly_begin(struct udp_assembly *assembly, uint16_t count)
{
    assembly->wanted = count;
    assembly->received = 0;
    assembly->text_used = 0;
    if (count <= assembly->pieces_max)
        memset(assembly->pieces, 0, count * sizeof *assembly->pieces);
}

enum udp_outcome udp_assembly_add(struct udp_assembly *assembly, const struct udp_frame *frame,
                                  const char *datagram, size_t bytes)
{
    size_t count = bytes - UDP_FRAME_BYTES;
    if (frame->count != assembly->wanted || frame->count > assembly->pieces_max)
        return UDP_IMPOSSIBLE;
    struct udp_piece *piece = &assembly->pieces[frame->sequence];
    if (piece->bytes)
        return UDP_AGAIN;
    if (count > assembly->text_size - assembly->text_used)
        return UDP_IMPOSSIBLE;
    char *place = assembly->text + assembly->text_used;
    memcpy(place, datagram + UDP_FRAME_BYTES, count);
    *piece = (struct udp_piece){place, count};
    assembly->text_used += count;
    return ++assembly->received == assembly->wanted ? UDP_WHOLE : UDP_UNDER_WAY;
}

void udp_reply_parse(const struct protocol *protocol, struct reply_parser *parser, uint64_t number,
                     const struct udp_piece *pieces, size_t count, struct reply *reply)
{
    size_t replies = 0;
    bool more = false; // bytes behind the reply
    parser->number = number;
    parser->offset = 0;
    for (size_t i = 0; i < count && !more; i++) {
        size_t used = 0;
        while (used < pieces[i].count && replies == 0) {
            size_t found;
            used += reply_parse(protocol, parser, pieces[i].bytes + used, pieces[i].count - used,
                                reply, 1, &found);
            replies += found;
        }
        more = used < pieces[i].count;
    }
    if (replies == 1 && !more && reply->kind < REPLY_MALFORMED)
        return;
    if (replies == 0 || more)
        *reply = (struct reply){.kind = REPLY_MALFORMED};
    memset(parser, 0, sizeof *parser);
}
