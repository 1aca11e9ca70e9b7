// SPDX-License-Identifier: MIT
//
// Any bytes as what another machine sends of its hops: its clock log, its records (hops.tlog), and
// the round trips over the link to it. Its clocks are refused, or its records come into this
// machine's time: none is lost or another one, and what is counted of them is no more than there
// are. The input: how many readings of a clock, whether the clock is this machine's instead, then
// these readings, the trips, and the records of both machines in turn.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/hops/hop_clocks.h"
#include "profiler/clock/clock_log.h"
#include "profiler/clock/clock_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { TRIPS = 3, MOST = 200, FLOWS = 4, PACKETS = 32, HOPS = 6, SOUND_KNOTS = 4 };

struct trip {
    uint64_t at_ns, bound_ns;
    int64_t offset_ns;
};

static void must(bool holds)
{
    if (!holds)
        abort();
}

// A clock whose TSC counts 2 a nanosecond.
static size_t sound_clock(struct clock_reading *out)
{
    size_t count = 0;
    for (uint64_t knot = 0; knot < SOUND_KNOTS; knot++)
        for (uint32_t clock = HOST_CLOCK_RAW; clock < HOST_CLOCKS; clock++) {
            const uint64_t ns = 1000000000 * (knot + 1);
            out[count++] = (struct clock_reading){
                .clock = clock, .width = 60, .tsc = 2 * ns, .ns = (int64_t)ns};
        }
    return count;
}

static struct clock_map *map_of(const uint8_t **data, size_t *bytes, size_t readings, bool sound)
{
    struct clock_reading room[256 + SOUND_KNOTS * HOST_CLOCKS];
    struct clock_map *map = NULL;
    struct error err;
    size_t count = *bytes / sizeof *room < readings ? *bytes / sizeof *room : readings;
    memcpy(room, *data, count * sizeof *room);
    *data += count * sizeof *room;
    *bytes -= count * sizeof *room;
    if (sound)
        count = sound_clock(room);
    return clock_map_build(room, count, &map, &err) == 0 ? map : NULL;
}

// As experiments/capsule asks for them: `at` is this machine's, so it ascends.
static size_t take_trips(const struct clock_map *map, const uint8_t **data, size_t *bytes,
                         struct exchange out[TRIPS])
{
    size_t count = 0;
    int64_t at_ns = 0;
    for (struct trip trip; count < TRIPS && *bytes >= sizeof trip; count++) {
        memcpy(&trip, *data, sizeof trip);
        *data += sizeof trip;
        *bytes -= sizeof trip;
        at_ns += (int64_t)(trip.at_ns % (UINT64_C(1) << 33));
        const int64_t bound_ns = (int64_t)(trip.bound_ns % (UINT64_C(1) << 34)) + 1;
        const int64_t there_ns = clock_map_to_host(
            map, HOST_CLOCK_MONOTONIC, (uint64_t)at_ns + (uint64_t)(trip.offset_ns / 4));
        out[count] = (struct exchange){at_ns - bound_ns, there_ns, there_ns, at_ns + bound_ns};
    }
    return count;
}

// Packets and times that have something to do with one another in most records, and not in all.
static struct hop_record record_of(const uint8_t *bytes)
{
    struct hop_record record;
    memcpy(&record, bytes, sizeof record);
    record.hop %= HOPS; // others are left out before
    if (record.core_after & 1)
        record.flow %= FLOWS;
    if (record.core_after & 2)
        record.datagram %= PACKETS;
    if (record.core_after & 4)
        record.end %= PACKETS;
    if (record.core_after & 8)
        record.time %= UINT64_C(1) << 33;
    if (record.core_after & 16)
        record.flags = 0;
    return record;
}

// What of a record stays as it is, whatever its order and its time become.
static uint64_t sum_of(const struct hop_recording *recording)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < recording->count; i++) {
        const struct hop_record *record = &recording->records[i];
        const uint64_t one = record->flow * 31 + record->datagram * 37 + record->first * 41u +
                             record->end * 43u + record->hop * 47u + record->flags * 53u;
        sum += one * one + one;
    }
    return sum;
}

static void check(const struct hop_clock *clock, const struct hop_recording *first,
                  const struct hop_recording *other, size_t trips)
{
    const size_t fewer = first->count < other->count ? first->count : other->count;
    must(clock->trips == trips && clock->crossings <= fewer);
    must(clock->compared <= (clock->crossings ? clock->crossings : trips));
    must(clock->disagreeing <= clock->compared && clock->backwards <= clock->crossings);
    must(clock->unrelated <= other->count);
    must(clock->link_bound_p99_ns >= 0 && clock->packet_bound_p99_ns >= 0);
    must(clock->bound_p99_ns <= clock->link_bound_p99_ns &&
         clock->bound_p99_ns <= clock->packet_bound_p99_ns);
    must(clock->difference_p50_ns >= 0 && clock->difference_p50_ns <= clock->difference_max_ns);
    for (size_t i = 1; i < other->count; i++)
        must(other->records[i - 1].flow <= other->records[i].flow);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const bool is_ingress[HOPS_MAX] = {[0] = true, [3] = true, [4] = true};
    struct hop_record records[2][MOST];
    struct hop_recording first = {.records = records[0]}, other = {.records = records[1]};
    struct exchange trips[TRIPS];
    struct hop_clock clock;
    struct error err;
    if (bytes < 2)
        return 0;
    const uint8_t readings = data[0], sound = data[1];
    data += 2;
    bytes -= 2;
    struct clock_map *map = map_of(&data, &bytes, readings, sound & 1);
    if (!map)
        return 0;
    const size_t trip_count = take_trips(map, &data, &bytes, trips);
    for (size_t i = 0; i < 2 * MOST && bytes >= sizeof **records; i++) {
        struct hop_record record = record_of(data);
        struct hop_recording *to = i % 2 ? &other : &first;
        if (to == &first)
            record.time %= UINT64_C(1) << 61; // this machine's own
        to->error_ns =
            to == &first ? 100 : clock_map_error_ns(map, HOST_CLOCK_MONOTONIC, record.time);
        if (to == &other)
            record.time = (uint64_t)clock_map_to_host(map, HOST_CLOCK_MONOTONIC, record.time);
        to->records[to->count++] = record;
        data += sizeof record;
        bytes -= sizeof record;
    }
    const uint64_t sums[2] = {sum_of(&first), sum_of(&other)};
    if (trip_count) {
        if (hop_clocks_join(&first, &other, is_ingress, trips, trip_count, &clock, &err) < 0)
            abort();
        check(&clock, &first, &other, trip_count);
        must(sum_of(&first) == sums[0] && sum_of(&other) == sums[1]);
    }
    clock_map_free(map);
    return 0;
}
