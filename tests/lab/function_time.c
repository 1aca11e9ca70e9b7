// SPDX-License-Identifier: MIT
//
// When a virtual CPU of the lab ran one function, and for how long it was in that function's own
// code, without what it called and what interrupted it, as the emulator knows it (its truth log).
//
//     function_time TRUTH CLOCK BEGIN END
//
// BEGIN and END are the addresses (hexadecimal) of its first byte and of that behind its last one;
// CLOCK is the host's clock log (clock.tlog). Prints a line for each time that it was called and
// returned: since,until,own in ns of the host's time.
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "profiler/clock/clock_map.h"
#include "tests/lab/truth.h"

enum { CALL_BYTES_MOST = 7 };

struct function {
    uint64_t begin, end;
    bool called, inside; // it has been, and has not returned; its own code runs
    uint64_t call;       // the address of that call
    uint64_t since, own; // cycles
    uint64_t last;       // when the record before was written
};

static bool is_in(const struct function *function, uint64_t address)
{
    return address >= function->begin && address < function->end;
}

// The CPU went on at `record->b`. true: by the function's return.
static bool follow(struct function *function, const struct truth_record *record)
{
    bool call = record->kind == TRUTH_CALL;
    if (function->inside)
        function->own += record->tsc - function->last;
    function->last = record->tsc;
    if (call && record->b == function->begin && !function->called) {
        function->called = true;
        function->call = record->a;
        function->since = record->tsc;
        function->own = 0;
    }
    function->inside = function->called && is_in(function, record->b);
    if (!function->called || call || record->b <= function->call ||
        record->b > function->call + CALL_BYTES_MOST)
        return false;
    function->called = false;
    return true;
}

static void print_times(FILE *file, const struct clock_map *map, struct function *function)
{
    struct truth_record record;
    while (fread(&record, sizeof record, 1, file) == 1 &&
           (!record.bytes || fseek(file, (record.bytes + 7) & ~7U, SEEK_CUR) == 0)) {
        if (record.kind == TRUTH_LOST || record.kind == TRUTH_DOUBT || record.kind == TRUTH_OFF) {
            function->called = function->inside = false; // what it does from here on is not known
        } else if ((record.kind == TRUTH_CALL || record.kind == TRUTH_WENT) &&
                   follow(function, &record)) {
            printf("%" PRId64 ",%" PRId64 ",%.0f\n",
                   clock_map_to_host(map, HOST_CLOCK_TSC, function->since),
                   clock_map_to_host(map, HOST_CLOCK_TSC, record.tsc),
                   (double)function->own * 1e9 / clock_map_tsc_hz(map));
        }
    }
}

int main(int argc, char **argv)
{
    struct truth_header header;
    struct clock_map *map = NULL;
    struct error error;
    FILE *file = argc == 5 ? fopen(argv[1], "rb") : NULL;
    if (!file || fread(&header, sizeof header, 1, file) != 1 || header.magic != TRUTH_MAGIC) {
        fprintf(stderr,
                "usage: function_time TRUTH CLOCK BEGIN END, of which TRUTH is a truth log\n");
        return 2;
    }
    if (clock_map_open(argv[2], &map, &error) < 0) {
        fprintf(stderr, "function_time: %s\n", error.text);
        return 2;
    }
    struct function function = {.begin = strtoull(argv[3], NULL, 16),
                                .end = strtoull(argv[4], NULL, 16)};
    print_times(file, map, &function);
    clock_map_free(map);
    fclose(file);
    return 0;
}
