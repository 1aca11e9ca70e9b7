// SPDX-License-Identifier: MIT
//
// The laboratory server (workloads/lab/labserver.c), which is built with this program.
#include <string.h>

#include "experiments/hosts/host.h"
#include "experiments/hosts/host_kind.h"
#include "experiments/servers/server_kind.h"

static bool labserver_speaks(const char *protocol)
{
    return strcmp(protocol, "memcached") == 0 || strcmp(protocol, "lab") == 0;
}

static int labserver_make_command(struct command_line *line, const struct experiment_server *plan,
                                  const struct host *host, const char *folder, struct error *err)
{
    char path[RUN_PATH_BYTES];
    (void)folder;
    int result = host->kind->find_program(host, "labserver", path, err);
    if (result < 0)
        return result;
    command_line_add_copy(line, path);
    command_line_add_number(line, "--port", plan->port);
    command_line_add_number(line, "--threads", plan->threads);
    command_line_add(line, "--protocol");
    command_line_add(line, plan->protocol);
    command_line_add_list(line, plan->options.items);
    return command_line_result(line, err);
}

const struct server_kind server_labserver = {
    .name = "labserver",
    .help = "the laboratory server, which works as long as each request says",
    .keys = (const char *const[]){"threads", "memory", "options", NULL},
    .protocol = "memcached",
    .port = 11211,
    .one_protocol = true,
    .speaks = labserver_speaks,
    .check = server_needs_no_check,
    .find_port = server_has_its_port,
    .check_program = server_needs_no_program,
    .configure = server_needs_no_files,
    .make_command = labserver_make_command,
};
