// SPDX-License-Identifier: MIT
//
// Any records of hops: joined into packets, of which each is counted once and each way is one. The
// input: 8 bytes a record, of which most are near one another.
#include <assert.h>
#include <stdint.h>

#include "profiler/capsule/packet_join.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RECORDS = 512, BYTES = 8 };

static struct hop_record record_of(const uint8_t *bytes, uint64_t *time)
{
    *time += (uint64_t)bytes[0] << (bytes[1] & 31) % 24;
    const uint32_t first = (uint32_t)bytes[3] << (bytes[2] >> 3);
    return (struct hop_record){
        .time = *time,
        .flow = bytes[2] & 3,
        .datagram = bytes[1] & 128 ? 1 + bytes[3] % 8u : 0,
        .first = first,
        .end = first + bytes[4] * (bytes[5] & 1 ? 1u << 20 : 1u), // may wrap
        .ip_bytes = 40u + bytes[4],
        .hop = bytes[6] & 15, // 15 is none
        .protocol = bytes[1] & 128 ? 17 : 6,
        .flags = bytes[5] >> 4,
        .core_after = bytes[7],
    };
}

static void check(const struct packet_join *join, size_t records)
{
    uint64_t packets = 0;
    assert(join->route_count <= ROUTES_MAX);
    assert(join->packets + join->rare + join->pieces + join->outside <= records);
    for (size_t i = 0; i < join->route_count; i++) {
        const struct packet_route *route = &join->routes[i];
        uint64_t lost = 0;
        assert(route->hop_count >= 1 && route->hop_count <= HOPS_MAX);
        assert(i == 0 || route->packets <= join->routes[i - 1].packets);
        for (size_t hop = 0; hop < route->hop_count; hop++) {
            assert(route->hops[hop] < HOPS_MAX);
            lost += route->lost_after[hop];
        }
        assert(route->complete + lost + route->gaps == route->packets);
        assert(route->merged <= route->complete && route->complete <= route->packets);
        for (size_t hop = 0; hop < route->hop_count; hop++)
            for (size_t k = 0; k < route->delays[hop].count; k++)
                assert(route->delays[hop].items[k] >= 0);
        packets += route->packets;
    }
    assert(packets == join->packets);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hop_record records[RECORDS];
    struct packet_join join;
    struct error err;
    size_t count = 0;
    uint64_t time = 1000000000, begin = time;
    for (; count < RECORDS && (count + 1) * BYTES <= size; count++)
        records[count] = record_of(data + count * BYTES, &time);
    uint64_t window = size % BYTES ? (time - begin) / 2 : UINT64_MAX - begin;
    if (packet_join_records(records, count, begin, begin + window, &join, &err) == 0)
        check(&join, count);
    packet_join_free(&join);
    return 0;
}
