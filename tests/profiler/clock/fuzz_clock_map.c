// SPDX-License-Identifier: MIT
//
// Any bytes as a clock log's records: refused with a reason, or a map that answers every question.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/clock/clock_log.h"
#include "profiler/clock/clock_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t count = bytes / sizeof(struct clock_reading);
    struct clock_reading *readings = malloc(bytes + 1);
    struct clock_map *map;
    struct error err;
    if (!readings)
        return 0;
    memcpy(readings, data, bytes);
    if (clock_map_build(readings, count, &map, &err) == 0) {
        for (size_t i = 0; i + 8 <= bytes; i += 8) {
            uint64_t value;
            memcpy(&value, data + i, 8);
            for (int clock = 0; clock < HOST_CLOCKS; clock++) {
                clock_map_to_host(map, (enum host_clock)clock, value);
                if (!(clock_map_error_ns(map, (enum host_clock)clock, value) >= 0))
                    abort();
            }
        }
        clock_map_free(map);
    }
    free(readings);
    return 0;
}
