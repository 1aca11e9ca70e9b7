// SPDX-License-Identifier: MIT
//
// memcached, as an experiment's keys give it; everything else is for `options`.
#include <string.h>

#include "experiments/common/program_path.h"
#include "experiments/hosts/host.h"
#include "experiments/servers/server_kind.h"

// memcached, memcached-binary and memcached-meta.
static bool memcached_speaks(const char *protocol)
{
    return strncmp(protocol, "memcached", strlen("memcached")) == 0;
}

// Refuses options that keys of an experiment set, or that the run must decide.
static int memcached_check(const struct experiment_server *plan, size_t *option, struct error *err)
{
    static const struct {
        char letter;
        const char *instead;
    } taken[] = {{'p', "use the key `port`"},       {'t', "use the key `threads`"},
                 {'m', "use the key `memory`"},     {'l', "the run chooses the address"},
                 {'U', "use the key `transport`"},  {'s', "the load comes over TCP or UDP"},
                 {'d', "the run must see it end"},  {'u', "the run chooses the user"},
                 {'P', "the run knows its process"}};
    for (*option = 0; *option + 1 < plan->options.count; ++*option)
        for (size_t k = 0; k < sizeof taken / sizeof *taken; k++)
            if (plan->options.items[*option][0] == '-' &&
                plan->options.items[*option][1] == taken[k].letter)
                return error_set(err, ERROR_INPUT,
                                 "options: -%c is not for an experiment to give: %s",
                                 taken[k].letter, taken[k].instead);
    return 0;
}

static int memcached_check_program(const struct experiment_server *plan, struct error *err)
{
    (void)plan;
    return program_needed("memcached", err);
}

static int memcached_make_command(struct command_line *line, const struct experiment_server *plan,
                                  const struct host *host, const char *folder, struct error *err)
{
    (void)folder;
    command_line_add(line, "memcached");
    if (host->is_root) { // it refuses to start as root without -u
        command_line_add(line, "-u");
        command_line_add(line, "root");
    }
    command_line_add(line, "-l");
    command_line_add(line, host->address);
    command_line_add_number(line, "-p", plan->port);
    command_line_add_number(line, "-U", plan->over_udp ? plan->port : 0);
    command_line_add_number(line, "-t", plan->threads);
    command_line_add_number(line, "-m", plan->memory_bytes >> 20);
    command_line_add_list(line, plan->options.items);
    return command_line_result(line, err);
}

const struct server_kind server_memcached = {
    .name = "memcached",
    .help = "memcached, keeping its keys in memory only",
    .keys = (const char *const[]){"threads", "memory", "options", "transport", NULL},
    .protocol = "memcached",
    .port = 11211,
    .thread_a_core = true,
    .is_cache = true,
    .speaks = memcached_speaks,
    .check = memcached_check,
    .find_port = server_has_its_port,
    .check_program = memcached_check_program,
    .configure = server_needs_no_files,
    .make_command = memcached_make_command,
};
