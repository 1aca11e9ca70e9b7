// SPDX-License-Identifier: MIT
//
// A damaged trace.json: bytes are written over a sound one, and the rest are its context switches.
// It is loaded or refused with a reason; what was loaded is in order.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/pt/pt_trace.h"
#include "tests/scratch.h"

static const char sound[] =
    "{\"type\": \"intel-pt\", \"cpuInfo\": {\"vendor\": \"GenuineIntel\", \"family\": 6, "
    "\"model\": 78, \"stepping\": 3}, \"tscPerfZeroConversion\": {\"timeMult\": 1789569706, "
    "\"timeShift\": 31, \"timeZero\": 18446744073709551000}, \"processes\": [{\"pid\": 1, "
    "\"modules\": []}, {\"pid\": 2, \"threads\": [{\"tid\": 3, \"iptTrace\": \"pt\"}]}], "
    "\"cpus\": [{\"id\": 0, \"iptTrace\": \"pt\", \"contextSwitchTrace\": \"switches\"}]}";

static void write_file(const char *folder, const char *name, const void *bytes, size_t count)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, count, file) != count || fclose(file) != 0)
        abort();
}

static void remove_folder(const char *folder)
{
    static const char *const names[] = {"pt", "switches", "trace.json"};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char folder[64], path[128], text[sizeof sound];
    struct pt_trace trace;
    struct error err = {0};
    if (count < 3)
        return 0;
    snprintf(folder, sizeof folder, "%s/trace", scratch_directory());
    if (mkdir(folder, 0700) < 0)
        abort();
    size_t at = (size_t)(bytes[0] | bytes[1] << 8) % (sizeof sound - 1), over = bytes[2] % 16;
    bytes += 3;
    count -= 3;
    over = over < count ? over : count;
    over = over < sizeof sound - 1 - at ? over : sizeof sound - 1 - at;
    memcpy(text, sound, sizeof sound);
    memcpy(text + at, bytes, over);
    write_file(folder, "trace.json", text, sizeof text - 1);
    write_file(folder, "switches", bytes + over, count - over);
    write_file(folder, "pt", "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82",
               16);
    snprintf(path, sizeof path, "%s/trace.json", folder);
    if (pt_trace_init(&trace, &err) < 0)
        abort();
    if (pt_trace_load_json(&trace, path, &err) < 0 && !err.text[0])
        abort(); // refused without a word
    for (size_t i = 0; i < trace.streams.count; i++) {
        const struct pt_switches *switches = &trace.streams.items[i]->switches;
        for (size_t k = 1; !err.text[0] && k < switches->count; k++)
            if (switches->items[k].tsc < switches->items[k - 1].tsc)
                abort();
    }
    pt_trace_free(&trace);
    remove_folder(folder);
    return 0;
}
