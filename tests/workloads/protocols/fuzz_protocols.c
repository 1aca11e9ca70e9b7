// SPDX-License-Identifier: MIT
//
// Any bytes, split anywhere, give the same replies as in one piece, and those cover the stream
// without gap or overlap: in the protocol that the first byte names, and, where that has replies in
// parts or of many keys, in as many as it says.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/multiget.h"
#include "workloads/protocols/protocols.h"
#include "workloads/protocols/reply_parser.h"

enum { REPLIES = 4096 };

static size_t parse_all(const struct protocol *protocol, const uint8_t *data, size_t size,
                        size_t piece, uint8_t parts, struct reply_list *list, struct reply *replies)
{
    struct reply_parser parser = {0};
    size_t total = 0, at = 0;
    while (at < size && total < REPLIES) {
        size_t count = size - at < piece ? size - at : piece, found = 0;
        char *copy = malloc(count);
        memcpy(copy, data + at, count);
        if (parts && !parser.in_reply)
            parser.parts_due = parts;
        if (list && !parser.in_reply) {
            parser.list = list;
            parser.parts_due = list->apart ? (uint16_t)(list->due - 1) : 0;
            list->told = list->count = 0;
        }
        size_t used = reply_parse(protocol, &parser, copy, count, replies + total,
                                  parts || list ? 1 : REPLIES - total, &found);
        free(copy);
        if (used == 0 || used > count)
            abort();
        if (list && (list->count > list->due || list->told > list->due))
            abort();
        at += used;
        total += found;
    }
    return total;
}

static bool answers_in_parts(const struct protocol *protocol)
{
    for (unsigned i = 0; i < protocol->operation_count; i++)
        if (protocol->operations[i].parts)
            return true;
    return false;
}

// Room for the values of so many keys, where the protocol has requests of many.
static struct reply_list *make_list(const struct protocol *protocol, uint8_t due)
{
    int operation = protocol_operation_find(protocol, "multiget");
    struct multiget multiget = {.count = due};
    if (operation < 0 || due == 0)
        return NULL;
    struct reply_list *list = multiget_list_new(&multiget);
    list->apart = protocol->operations[operation].keys_apart;
    return list;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    const struct protocol *protocol = protocols[data[0] % PROTOCOLS];
    if (protocol->http2) // tests/workloads/protocols/fuzz_http2.c
        return 0;
    static struct reply whole[REPLIES], split[REPLIES];
    const size_t piece = 1 + data[1];
    struct reply_list *list = make_list(protocol, data[0] / PROTOCOLS / 4);
    const uint8_t parts = answers_in_parts(protocol) && !list ? data[0] / PROTOCOLS % 4 : 0;
    size_t count = parse_all(protocol, data + 2, size - 2, size, parts, list, whole);
    if (parse_all(protocol, data + 2, size - 2, piece, parts, list, split) != count ||
        memcmp(whole, split, count * sizeof *whole) != 0)
        abort();
    for (size_t i = 0; i < count; i++)
        if (whole[i].begin != (i ? whole[i - 1].end : 0) || whole[i].end <= whole[i].begin)
            abort();
    free(list);
    return 0;
}
