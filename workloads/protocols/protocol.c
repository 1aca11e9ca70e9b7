// SPDX-License-Identifier: MIT
#include "workloads/protocols/protocol.h"

#include <stdio.h>
#include <string.h>

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

int protocol_operation_find(const struct protocol *protocol, const char *name)
{
    for (unsigned i = 0; i < protocol->operation_count; i++)
        if (strcmp(name, protocol->operations[i].name) == 0)
            return (int)i;
    return -1;
}

bool protocol_has_get_and_set(const struct protocol *protocol)
{
    return protocol_operation_find(protocol, "get") == WORKLOAD_GET &&
           protocol_operation_find(protocol, "set") == WORKLOAD_SET;
}

bool protocol_shares_server(const struct protocol *one, const struct protocol *other)
{
    return strcmp(one->name, other->name) == 0 ||
           (one->dataset != DATASET_NONE && one->dataset == other->dataset) ||
           (one->takes_http_words && other->takes_http_words);
}

char *protocol_operation_names(const struct protocol *protocol, char *out, size_t out_bytes)
{
    size_t used = 0;
    for (unsigned i = 0; i < protocol->operation_count && used < out_bytes; i++)
        used += (size_t)snprintf(out + used, out_bytes - used, "%s%s", i ? ", " : "",
                                 protocol->operations[i].name);
    return out;
}
