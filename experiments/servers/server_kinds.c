// SPDX-License-Identifier: MIT
#include <string.h>

#include "experiments/servers/server_kind.h"

#define SERVER_KIND_ADDRESS(name) &server_##name,
const struct server_kind *const server_kinds[] = {SERVER_KINDS(SERVER_KIND_ADDRESS) NULL};

static const struct neighbour_kind neighbour_command = {
    .name = "command",
    .help = "a program that comes and goes at its times",
    .keys = (const char *const[]){"command", NULL},
};
static const struct neighbour_kind neighbour_nginx = {
    .name = "nginx",
    .help = "NGINX, there all along; the load it gets comes and goes",
    .keys = (const char *const[]){"workers", "page", "rules", "port", "load", NULL},
    .instead = "nginx takes `workers`, `page`, `port` and `load`",
    .server = &server_nginx,
};
const struct neighbour_kind *const neighbour_kinds[] = {&neighbour_command, &neighbour_nginx, NULL};

static bool has_key(const char *const *keys, const char *key)
{
    while (*keys && strcmp(*keys, key) != 0)
        keys++;
    return *keys != NULL;
}

bool server_kind_has_key(const struct server_kind *kind, const char *key)
{
    return has_key(kind->keys, key);
}

bool neighbour_kind_has_key(const struct neighbour_kind *kind, const char *key)
{
    return has_key(kind->keys, key);
}
