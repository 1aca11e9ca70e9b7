// SPDX-License-Identifier: MIT
//
// Redis. Nothing is written to disk, and everybody on the run's own network may connect.
#include <string.h>

#include "experiments/common/program_path.h"
#include "experiments/hosts/host.h"
#include "experiments/servers/server_kind.h"

// RESP3, too.
static bool redis_speaks(const char *protocol)
{
    return strncmp(protocol, "redis", strlen("redis")) == 0;
}

// Refuses options that keys of an experiment set, or that the run must decide.
static int redis_check(const struct experiment_server *plan, size_t *option, struct error *err)
{
    static const char *const taken[] = {"--port", "--bind", "--maxmemory", "--io-threads",
                                        "--daemonize"};
    for (*option = 0; *option + 1 < plan->options.count; ++*option)
        for (size_t k = 0; k < sizeof taken / sizeof *taken; k++)
            if (strcmp(plan->options.items[*option], taken[k]) == 0)
                return error_set(err, ERROR_INPUT,
                                 "options: %s is not for an experiment to give: the keys `port`, "
                                 "`memory` and `threads` are, and the run chooses the rest",
                                 taken[k]);
    return 0;
}

static int redis_check_program(const struct experiment_server *plan, struct error *err)
{
    (void)plan;
    return program_needed("redis-server", err);
}

static int redis_make_command(struct command_line *line, const struct experiment_server *plan,
                              const struct host *host, const char *folder, struct error *err)
{
    static const char *const fixed[] = {
        "--save", "", "--appendonly", "no", "--protected-mode", "no", "--daemonize", "no", NULL};
    (void)folder;
    command_line_add(line, "redis-server");
    command_line_add(line, "--bind");
    command_line_add(line, host->address);
    command_line_add_number(line, "--port", plan->port);
    command_line_add_list(line, fixed);
    command_line_add_number(line, "--maxmemory", plan->memory_bytes);
    command_line_add_number(line, "--io-threads", plan->threads);
    command_line_add_list(line, plan->options.items);
    return command_line_result(line, err);
}

const struct server_kind server_redis = {
    .name = "redis",
    .help = "Redis, keeping its keys in memory only",
    .keys = (const char *const[]){"threads", "memory", "options", NULL},
    .protocol = "redis",
    .port = 6379,
    .is_cache = true,
    .speaks = redis_speaks,
    .check = redis_check,
    .find_port = server_has_its_port,
    .check_program = redis_check_program,
    .configure = server_needs_no_files,
    .make_command = redis_make_command,
};
