// SPDX-License-Identifier: MIT
#include "workloads/protocol.h"

#include <stdio.h>
#include <string.h>

#include "workloads/http.h"
#include "workloads/lab.h"
#include "workloads/memcached_binary.h"
#include "workloads/memcached_meta.h"
#include "workloads/memcached_text.h"
#include "workloads/redis.h"

const char *const reply_kind_names[REPLY_KINDS] = {
    [REPLY_VALUE] = "value",
    [REPLY_MISS] = "miss",
    [REPLY_STORED] = "stored",
    [REPLY_NOT_STORED] = "not_stored",
    [REPLY_SERVER_ERROR] = "server_error",
    [REPLY_CLIENT_ERROR] = "client_error",
    [REPLY_MALFORMED] = "malformed",
    [REPLY_OVERSIZED] = "oversized",
    [REPLY_OUT_OF_ORDER] = "out_of_order",
};

static const struct protocol *const protocols[] = {
    &memcached_text_protocol,
    &memcached_binary_protocol,
    &memcached_meta_protocol,
    &redis_protocol,
    &redis_resp3_protocol,
    &http_protocol,
    &lab_protocol,
};

const struct protocol *protocol_find(const char *name)
{
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++)
        if (strcmp(name, protocols[i]->name) == 0)
            return protocols[i];
    return NULL;
}

const char *protocol_name(unsigned index)
{
    return index < sizeof protocols / sizeof *protocols ? protocols[index]->name : NULL;
}

const char *protocol_names(void)
{
    return "memcached, memcached-binary, memcached-meta, redis, redis-resp3, http, lab";
}

int protocol_operation_find(const struct protocol *protocol, const char *name)
{
    for (unsigned i = 0; i < protocol->operation_count; i++)
        if (strcmp(name, protocol->operations[i].name) == 0)
            return (int)i;
    return -1;
}

char *protocol_operation_names(const struct protocol *protocol, char *out, size_t out_bytes)
{
    size_t used = 0;
    for (unsigned i = 0; i < protocol->operation_count && used < out_bytes; i++)
        used += (size_t)snprintf(out + used, out_bytes - used, "%s%s", i ? ", " : "",
                                 protocol->operations[i].name);
    return out;
}
