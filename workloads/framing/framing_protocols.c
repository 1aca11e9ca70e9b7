// SPDX-License-Identifier: MIT
#include "workloads/framing/framing_protocols.h"

#include <string.h>

extern const struct framing_grammar framing_redis, framing_memcached, framing_http;

static const struct framing_grammar *const grammars[] = {&framing_redis, &framing_memcached,
                                                         &framing_http};
enum { GRAMMARS = sizeof grammars / sizeof *grammars };

const struct framing_grammar *framing_find(const char *name)
{
    for (size_t i = 0; i < GRAMMARS; i++)
        if (strcmp(grammars[i]->name, name) == 0)
            return grammars[i];
    return NULL;
}

const char *framing_name(size_t i)
{
    return i < GRAMMARS ? grammars[i]->name : NULL;
}
