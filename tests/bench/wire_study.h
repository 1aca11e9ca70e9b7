// SPDX-License-Identifier: MIT
//
// What a packet capture (wire_capture.h) says of a load whose samples are there: how its gaps are
// distributed, and when each request and reply was on the wire, by the place of its bytes in its
// connection's stream.
#ifndef BENCH_WIRE_STUDY_H
#define BENCH_WIRE_STUDY_H

#include "base/connection.h"
#include "base/tsc.h"
#include "tests/bench/wire_capture.h"

enum { SKIP = 100 }; // packets as a run begins

// How a series of gaps compares with the exponential distribution of the same mean.
struct shape {
    double mean_us, cv, ks, least_us;
    size_t count;
};

static inline struct shape shape_of(double *gaps, size_t count)
{
    struct shape shape = {.mean_us = NAN, .cv = NAN, .ks = NAN, .least_us = NAN, .count = count};
    double sum = 0, squares = 0;
    if (count < 100)
        return shape;
    for (size_t i = 0; i < count; i++)
        sum += gaps[i];
    shape.mean_us = sum / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (gaps[i] - shape.mean_us) * (gaps[i] - shape.mean_us);
    shape.cv = sqrt(squares / (double)count) / shape.mean_us;
    quantile_sort(gaps, count);
    shape.least_us = quantile_sorted(gaps, count, 0.001);
    shape.ks = 0;
    for (size_t i = 0; i < count; i++) {
        double expected = -expm1(-gaps[i] / shape.mean_us);
        shape.ks = fmax(shape.ks, fmax(fabs(expected - (double)i / (double)count),
                                       fabs(expected - (double)(i + 1) / (double)count)));
    }
    return shape;
}

// Of the packets from a given share of them on: peers begin with filling the server.
static inline struct shape shape_of_packets(const struct wire_capture *capture, double from)
{
    size_t count = capture->packets.count, used = 0;
    double *gaps = calloc(count + 1, sizeof *gaps);
    if (!gaps)
        bench_fail("out of memory");
    for (size_t i = SKIP + 1 + (size_t)(from * (double)count); i < count; i++)
        gaps[used++] =
            (double)(int64_t)(capture->packets.items[i].ns - capture->packets.items[i - 1].ns) /
            1e3;
    struct shape shape = shape_of(gaps, used);
    free(gaps);
    return shape;
}

// The capture's clock in ticks: `ns` of CLOCK_REALTIME at `tsc`.
struct clock_pair {
    uint64_t ns, tsc;
};

static inline struct clock_pair take_clock_pair(void)
{
    struct clock_pair best = {0};
    uint64_t narrowest = UINT64_MAX;
    for (int i = 0; i < 100; i++) {
        struct timespec now;
        uint64_t before = tsc_now();
        clock_gettime(CLOCK_REALTIME, &now);
        uint64_t after = tsc_now();
        if (after - before < narrowest) {
            narrowest = after - before;
            best = (struct clock_pair){(uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
                                       before + (after - before) / 2};
        }
    }
    return best;
}

static inline double ticks_at(const struct clock_pair pairs[2], uint64_t ns)
{
    double slope = (double)(pairs[1].tsc - pairs[0].tsc) / (double)(pairs[1].ns - pairs[0].ns);
    return (double)(int64_t)(ns - pairs[0].ns) * slope;
}

// Where a connection's segments have been followed to.
struct follower {
    uint16_t port;
    bool begun;
    uint32_t first_sequence;
    size_t at; // in the capture
};

static inline struct follower *open_followers(const struct bench_lab *lab, size_t *count)
{
    struct log_reader reader;
    bench_log(lab, "connections", LOG_CONNECTIONS, sizeof(struct connection), &reader);
    const struct connection *connections = reader.records;
    struct follower *followers = calloc(reader.count, sizeof *followers);
    if (!followers)
        bench_fail("out of memory");
    for (size_t i = 0; i < reader.count; i++)
        followers[i].port = connections[i].local_port; // in the order of their ids, from 1
    *count = reader.count;
    log_reader_close(&reader);
    return followers;
}

// The first segment of the connection that holds the byte before `end`, NULL when there is none.
static const struct wire_packet *find_segment(struct follower *follower,
                                              const struct wire_packets *packets, uint64_t end)
{
    for (; follower->at < packets->count; follower->at++) {
        const struct wire_packet *packet = &packets->items[follower->at];
        if (packet->port != follower->port)
            continue;
        if (!follower->begun)
            follower->first_sequence = packet->sequence;
        follower->begun = true;
        uint32_t last = packet->sequence + packet->bytes - follower->first_sequence;
        if ((int32_t)(last - (uint32_t)end) >= 0)
            return packet;
    }
    return NULL;
}

#endif
