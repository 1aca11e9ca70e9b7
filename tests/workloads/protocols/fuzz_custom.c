// SPDX-License-Identifier: MIT
//
// A protocol that a workload could describe, by the input's first bytes, and replies of it: any
// bytes, split anywhere, give the same replies as in one piece, and those cover the stream without
// gap or overlap.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/protocols/custom.h"
#include "workloads/protocols/reply_parser.h"

enum { REPLIES = 4096, DESCRIPTION = 8 };

static size_t parse_all(const struct protocol *protocol, const uint8_t *data, size_t size,
                        size_t piece, struct reply *replies)
{
    struct reply_parser parser = {0};
    size_t total = 0, at = 0;
    while (at < size && total < REPLIES) {
        size_t count = size - at < piece ? size - at : piece, found = 0;
        char *copy = malloc(count);
        memcpy(copy, data + at, count);
        size_t used =
            reply_parse(protocol, &parser, copy, count, replies + total, REPLIES - total, &found);
        free(copy);
        if (used == 0 || used > count)
            abort();
        at += used;
        total += found;
    }
    return total;
}

static void describe(const uint8_t *data, struct custom_reply *reply)
{
    struct error err;
    char mark[4] = {(char)('a' + data[1] % 3), (char)('a' + data[2] % 3),
                    (char)('a' + data[3] % 3)};
    mark[1 + data[0] % 3] = '\0';
    if (data[0] & 4) {
        reply->until = (struct custom_mark){0};
        reply->length = (struct custom_number){.at = data[1],
                                               .bytes = 1 + data[2] % 8,
                                               .order = data[2] >> 7,
                                               .adds = (int8_t)data[3]};
    } else if (custom_mark_read(mark, &reply->until, &err) < 0) {
        abort();
    }
    if (data[0] & 8)
        reply->number = (struct custom_number){.at = data[4], .bytes = 1 + data[5] % 8};
    reply->status_at = data[6];
    reply->most_bytes = 1 + (uint64_t)data[7] * 4;
    static const char *const marks[CUSTOM_VERDICTS] = {"a", "ab", "b", "c"};
    for (unsigned verdict = 0; verdict < CUSTOM_VERDICTS; verdict++)
        if (data[0] & 16 << verdict &&
            custom_mark_read(marks[verdict], &reply->marks[verdict][reply->mark_count[verdict]++],
                             &err) < 0)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct reply whole[REPLIES], split[REPLIES];
    if (size < DESCRIPTION + 2)
        return 0;
    struct custom *custom = custom_alloc();
    if (!custom)
        return 0;
    describe(data, &custom->reply);
    data += DESCRIPTION;
    size -= DESCRIPTION;
    size_t piece = 1 + data[0] % 32;
    size_t count = parse_all(&custom->protocol, data + 1, size - 1, size, whole);
    if (parse_all(&custom->protocol, data + 1, size - 1, piece, split) != count ||
        memcmp(whole, split, count * sizeof *whole) != 0)
        abort();
    for (size_t i = 0; i < count; i++)
        if (whole[i].begin != (i ? whole[i - 1].end : 0) || whole[i].end <= whole[i].begin)
            abort();
    custom_free(custom);
    return 0;
}
