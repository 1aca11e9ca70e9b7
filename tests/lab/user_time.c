// SPDX-License-Identifier: MIT
//
// How long a virtual CPU of the lab ran a program, not the kernel and no other program, from one
// instant to another, as the emulator knows it (its truth log): what a function took of its own,
// without the interrupts that came meanwhile.
//
//     user_time TRUTH [CLOCK]
//
// Each line of standard input has two instants of the guest's TSC, at the first of which the
// program runs; for each a line says for how many ticks it did, and how many of all were traced.
// With CLOCK, the host's clock log (clock.tlog), all are ns of the host's time.
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "profiler/clock/clock_map.h"
#include "tests/lab/truth.h"

// From `time` on (TSC, or ns) a program ran, the kernel, or nobody knows: it was not traced.
enum ran { RAN_UNKNOWN, RAN_KERNEL, RAN_PROGRAM };
struct turn {
    uint64_t time, space; // CR3
    enum ran ran;
};
struct turns ARRAY_OF(struct turn);

static int read_turns(FILE *file, struct turns *turns)
{
    struct truth_header header;
    struct truth_record record;
    uint64_t space = 0;
    if (fread(&header, sizeof header, 1, file) != 1 || header.magic != TRUTH_MAGIC)
        return -1;
    while (fread(&record, sizeof record, 1, file) == 1 &&
           (!record.bytes || fseek(file, (record.bytes + 7) & ~7U, SEEK_CUR) == 0)) {
        if (record.kind == TRUTH_CR3)
            space = record.a;
        struct turn turn = {record.tsc, space, RAN_UNKNOWN};
        if (record.kind == TRUTH_RING)
            turn.ran = (int64_t)record.a < 0 ? RAN_KERNEL : RAN_PROGRAM;
        else if (record.kind != TRUTH_OFF && record.kind != TRUTH_LOST)
            continue;
        if (array_push(turns, turn) < 0)
            return -1;
    }
    return 0;
}

static void print_time(const struct turns *turns, uint64_t since, uint64_t until)
{
    uint64_t space = 0, own = 0, traced = 0;
    for (size_t i = 0; i + 1 < turns->count; i++) {
        const struct turn *turn = &turns->items[i];
        uint64_t from = turn->time, to = turn[1].time;
        if (from <= since && to > since)
            space = turn->space;
        from = from > since ? from : since;
        to = to < until ? to : until;
        if (from >= to || turn->ran == RAN_UNKNOWN)
            continue;
        traced += to - from;
        own += turn->ran == RAN_PROGRAM && turn->space == space ? to - from : 0;
    }
    printf("%" PRIu64 " %" PRIu64 "\n", own, traced);
}

static int tell_in_host_time(struct turns *turns, const char *clock)
{
    struct clock_map *map = NULL;
    struct error error;
    if (clock_map_open(clock, &map, &error) < 0) {
        fprintf(stderr, "user_time: %s\n", error.text);
        return -1;
    }
    for (size_t i = 0; i < turns->count; i++) {
        struct turn *turn = &turns->items[i];
        turn->time = (uint64_t)clock_map_to_host(map, HOST_CLOCK_TSC, turn->time);
    }
    clock_map_free(map);
    return 0;
}

int main(int argc, char **argv)
{
    struct turns turns = {0};
    uint64_t since, until;
    FILE *file = argc == 2 || argc == 3 ? fopen(argv[1], "rb") : NULL;
    if (!file || read_turns(file, &turns) < 0) {
        fprintf(stderr, "usage: user_time TRUTH [CLOCK], of which TRUTH is a truth log\n");
        return 2;
    }
    if (argc == 3 && tell_in_host_time(&turns, argv[2]) < 0)
        return 2;
    while (scanf("%" SCNu64 " %" SCNu64, &since, &until) == 2)
        print_time(&turns, since, until);
    array_free(&turns);
    fclose(file);
    return 0;
}
