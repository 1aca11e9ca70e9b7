// SPDX-License-Identifier: MIT
#include "workloads/protocols/protocols.h"

#include <stdio.h>
#include <string.h>

const struct protocol *const protocols[PROTOCOLS] = {
#define PROTOCOL(symbol, name) &symbol##_protocol,
#include "workloads/protocols/protocols.tbl.h"
};

const char protocol_names_text[] =
#define PROTOCOL(symbol, name) ", " name
#include "workloads/protocols/protocols.tbl.h"
    ;

const char *protocol_name(unsigned index)
{
    return index < PROTOCOLS ? protocols[index]->name : NULL;
}

const struct protocol *protocol_find(const char *name)
{
    for (size_t i = 0; i < PROTOCOLS; i++)
        if (strcmp(name, protocols[i]->name) == 0)
            return protocols[i];
    return NULL;
}

static bool goes_over_udp(const struct protocol *protocol)
{
    return protocol->over_udp;
}

static bool says_service(const struct protocol *protocol)
{
    return protocol->says_service;
}

static char *names_of(bool (*wanted)(const struct protocol *), char *out, size_t out_bytes)
{
    size_t used = 0;
    for (size_t i = 0; i < PROTOCOLS && used < out_bytes; i++)
        if (wanted(protocols[i]))
            used += (size_t)snprintf(out + used, out_bytes - used, "%s%s", used ? ", " : "",
                                     protocols[i]->name);
    return out;
}

char *protocol_names_over_udp(char *out, size_t out_bytes)
{
    return names_of(goes_over_udp, out, out_bytes);
}

char *protocol_names_with_service(char *out, size_t out_bytes)
{
    return names_of(says_service, out, out_bytes);
}
