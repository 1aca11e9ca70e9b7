// SPDX-License-Identifier: MIT
//
// A server of the experiment's own: a command in which {address} and {port} are filled in.
#include <stdio.h>
#include <string.h>

#include "experiments/hosts/host.h"
#include "experiments/common/program_path.h"
#include "experiments/servers/server_kind.h"

static bool command_speaks(const char *protocol)
{
    (void)protocol;
    return true; // whoever wrote the experiment knows
}

static int command_check(const struct experiment_server *plan, size_t *option, struct error *err)
{
    (void)option;
    return plan->command.count > 1
               ? 0
               : error_set(err, ERROR_INPUT,
                           "a server of kind command needs `command: [program, argument, ...]`");
}

static int command_check_program(const struct experiment_server *plan, struct error *err)
{
    return program_exists(plan->command.items[0])
               ? 0
               : error_set(err, ERROR_FAILED, "there is no command `%s`", plan->command.items[0]);
}

static void add_filled(struct command_line *line, const char *word, const char *address,
                       uint16_t port)
{
    char filled[4200];
    size_t used = 0;
    if (!strstr(word, "{address}") && !strstr(word, "{port}")) {
        command_line_add(line, word);
        return;
    }
    while (*word && used + 1 < sizeof filled) {
        int n;
        if (strncmp(word, "{address}", 9) == 0) {
            n = snprintf(filled + used, sizeof filled - used, "%s", address);
            word += 9;
        } else if (strncmp(word, "{port}", 6) == 0) {
            n = snprintf(filled + used, sizeof filled - used, "%u", port);
            word += 6;
        } else {
            n = snprintf(filled + used, sizeof filled - used, "%c", *word++);
        }
        used += (size_t)n;
    }
    command_line_add_copy(line, filled);
}

static int command_make_command(struct command_line *line, const struct experiment_server *plan,
                                const struct host *host, const char *folder, struct error *err)
{
    (void)folder;
    for (size_t i = 0; i + 1 < plan->command.count; i++)
        add_filled(line, plan->command.items[i], host->address, plan->port);
    return command_line_result(line, err);
}

const struct server_kind server_command = {
    .name = "command",
    .help = "a command of the experiment's own; {address} and {port} are filled in",
    .keys = (const char *const[]){"command", NULL},
    .instead = "put it into `command`",
    .protocol = "",
    .port = 11211,
    .has_children = true,
    .thread_a_core = true,
    .speaks = command_speaks,
    .check = command_check,
    .find_port = server_has_its_port,
    .check_program = command_check_program,
    .configure = server_needs_no_files,
    .make_command = command_make_command,
};
