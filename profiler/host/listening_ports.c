// SPDX-License-Identifier: MIT
#include "profiler/host/listening_ports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

// Listening sockets come before all others in these tables.
static void read_table(const char *path, struct port_set *out)
{
    enum { LISTENS = 0x0a };
    char line[512];
    unsigned port, state;
    FILE *file = fopen(path, "re");
    bool more = file && fgets(line, sizeof line, file); // the names of its columns
    while (more && fgets(line, sizeof line, file)) {
        more = sscanf(line, "%*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x", &port, &state) == 2 &&
               port < 65536 && state == LISTENS;
        if (more)
            out->bits[port / 64] |= UINT64_C(1) << port % 64;
    }
    if (file)
        fclose(file);
}

void listening_ports_here(struct port_set *out)
{
    memset(out, 0, sizeof *out);
    read_table("/proc/thread-self/net/tcp", out);
    read_table("/proc/thread-self/net/tcp6", out);
}

static void append_ports(const struct port_set *set, char *out, size_t out_bytes)
{
    enum { NAMED = 8 };
    unsigned count = 0;
    for (unsigned port = 1; port < 65536; port++)
        if (port_set_has(set, (uint16_t)port) && ++count <= NAMED)
            text_append(out, out_bytes, "%s%u", count > 1 ? ", " : "", port);
    if (count > NAMED)
        text_append(out, out_bytes, " and %u more", count - NAMED);
    if (count == 0)
        text_append(out, out_bytes, "none");
}

bool listening_ports_lack(const char *list, char *out, size_t out_bytes)
{
    struct port_set here, lacking = {0};
    bool any = false;
    listening_ports_here(&here);
    for (const char *at = list; at && *at; at += strcspn(at, ",") + (strchr(at, ',') != NULL)) {
        unsigned long port = strtoul(at, NULL, 10);
        if (port == 0 || port > UINT16_MAX || port_set_has(&here, (uint16_t)port))
            continue;
        lacking.bits[port / 64] |= UINT64_C(1) << port % 64;
        any = true;
    }
    if (!any || out_bytes == 0)
        return any;
    out[0] = '\0';
    text_append(out, out_bytes, "nobody listens in this network namespace on TCP port ");
    append_ports(&lacking, out, out_bytes);
    text_append(out, out_bytes, "; on which somebody does: ");
    append_ports(&here, out, out_bytes);
    return true;
}
