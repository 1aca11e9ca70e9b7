// SPDX-License-Identifier: MIT
#include "workloads/protocol.h"

#include <string.h>

#include "workloads/memcached_text.h"

const char *const reply_kind_names[REPLY_KINDS] = {
    [REPLY_VALUE] = "value",
    [REPLY_MISS] = "miss",
    [REPLY_STORED] = "stored",
    [REPLY_NOT_STORED] = "not_stored",
    [REPLY_SERVER_ERROR] = "server_error",
    [REPLY_CLIENT_ERROR] = "client_error",
    [REPLY_MALFORMED] = "malformed",
    [REPLY_OVERSIZED] = "oversized",
};

const struct protocol *protocol_find(const char *name)
{
    return strcmp(name, memcached_text_protocol.name) == 0 ? &memcached_text_protocol : NULL;
}

const char *protocol_names(void)
{
    return "memcached";
}
