// SPDX-License-Identifier: MIT
#include <string.h>

#include "experiments/hosts/host_kind.h"

#define HOST_KIND_ADDRESS(name) &host_##name,
const struct host_kind *const host_kinds[] = {HOST_KINDS(HOST_KIND_ADDRESS) NULL};

bool host_kind_has_key(const struct host_kind *kind, const char *key)
{
    const char *const *one = kind->keys;
    while (*one && strcmp(*one, key) != 0)
        one++;
    return *one != NULL;
}
