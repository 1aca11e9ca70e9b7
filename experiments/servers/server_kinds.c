// SPDX-License-Identifier: MIT
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
