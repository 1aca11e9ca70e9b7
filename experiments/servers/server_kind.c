// SPDX-License-Identifier: MIT
#include "experiments/servers/server_kind.h"

int server_needs_no_check(const struct experiment_server *plan, size_t *option, struct error *err)
{
    (void)plan;
    (void)option;
    (void)err;
    return 0;
}

int server_has_its_port(struct experiment_server *plan, struct error *err)
{
    (void)plan;
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
