// SPDX-License-Identifier: MIT
#include <string.h>

#include "experiments/common/program_path.h"
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

int server_needs_no_check(const struct experiment_server *plan, size_t *option, struct error *err)
{
    (void)plan;
    (void)option;
    (void)err;
    return 0;
}

int server_needs_no_program(const struct experiment_server *plan, struct error *err)
{
    (void)plan;
    (void)err;
    return 0;
}

int server_needs_no_files(const struct experiment_server *plan, const struct host *host,
                          const struct run_folder *folder, const char *name, bool to_write,
                          struct error *err)
{
    (void)plan;
    (void)host;
    (void)folder;
    (void)name;
    (void)to_write;
    (void)err;
    return 0;
}

int server_find_program(const char *program, const char *package, struct error *err)
{
    return program_exists(program)
               ? 0
               : error_set(err, ERROR_FAILED,
                           "there is no command `%s`; install it: apt-get install %s", program,
                           package);
}
