// SPDX-License-Identifier: MIT
#include "profiler/host/network_counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *group, *name;
} rows[NETWORK_COUNTERS] = {
#define NETWORK_COUNTER(name, GROUP, one, means) {#GROUP, #name},
#include "profiler/host/network_counters.tbl.h"
};

// The words of a group's next line, behind "GROUP: "; NULL: there is none.
static const char *group_line(const char *text, const char *group)
{
    size_t bytes = strlen(group);
    for (; text && *text; text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL)
        if (strncmp(text, group, bytes) == 0 && text[bytes] == ':')
            return text + bytes + 1;
    return NULL;
}

uint64_t network_counter_in(const char *text, const char *group, const char *name)
{
    const char *names = group_line(text, group);
    const char *values = names ? group_line(names, group) : NULL;
    size_t bytes = strlen(name);
    while (values) {
        names += strspn(names, " ");
        values += strspn(values, " ");
        size_t length = strcspn(names, " \n");
        if (length == 0)
            return 0;
        if (length == bytes && memcmp(names, name, bytes) == 0)
            return strtoull(values, NULL, 10);
        names += length;
        values += strcspn(values, " \n");
    }
    return 0;
}

static void read_text(const char *path, char *out, size_t out_bytes)
{
    FILE *file = fopen(path, "re");
    size_t got = file ? fread(out, 1, out_bytes - 1, file) : 0;
    out[got] = '\0';
    if (file)
        fclose(file);
}

void network_counters_read(struct network_counters *out)
{
    char snmp[8192], netstat[16384];
    read_text("/proc/self/net/snmp", snmp, sizeof snmp);
    read_text("/proc/self/net/netstat", netstat, sizeof netstat);
    for (size_t i = 0; i < NETWORK_COUNTERS; i++)
        out->values[i] = network_counter_in(strcmp(rows[i].group, "TcpExt") == 0 ? netstat : snmp,
                                            rows[i].group, rows[i].name);
}

json_t *network_counters_moved(const struct network_counters *before)
{
    struct network_counters now;
    json_t *moved = json_object();
    network_counters_read(&now);
    for (size_t i = 0; moved && i < NETWORK_COUNTERS; i++)
        if (now.values[i] > before->values[i])
            json_object_set_new(moved, rows[i].name,
                                json_integer((json_int_t)(now.values[i] - before->values[i])));
    return moved;
}
