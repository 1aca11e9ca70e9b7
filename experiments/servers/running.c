// SPDX-License-Identifier: MIT
//
// A server that runs already, and goes on as it is: nothing is started, set or ended. It is known
// by its port, a process, a control group (a container's) or systemd's unit.
#include <arpa/inet.h>
#include <stdio.h>

#include "experiments/servers/server_kind.h"
#include "profiler/host/running_servers.h"

static bool running_speaks(const char *protocol)
{
    (void)protocol;
    return true; // whoever wrote the experiment knows
}

static int running_check(const struct experiment_server *plan, size_t *option, struct error *err)
{
    struct in_addr address;
    (void)option;
    if (plan->address && inet_pton(AF_INET, plan->address, &address) != 1)
        return error_set(err, ERROR_INPUT, "address: \"%s\" is not an IPv4 address", plan->address);
    if (!plan->port && !plan->pid && !plan->cgroup && !plan->systemd)
        return error_set(err, ERROR_INPUT,
                         "a server of kind running needs one of `port`, `pid`, `cgroup` and "
                         "`systemd`");
    return 0;
}

static int running_find_port(struct experiment_server *plan, struct error *err)
{
    char pid[32];
    struct running_servers *servers = NULL;
    struct listening_array found = {0};
    if (plan->port)
        return 0;
    snprintf(pid, sizeof pid, "%llu", (unsigned long long)plan->pid);
    int result =
        running_servers_open(plan->pid ? pid : NULL, plan->cgroup, plan->systemd, &servers, err);
    if (result == 0)
        result = running_servers_look(servers, &found, err);
    for (size_t i = 0; i < found.count && result == 0; i++) {
        if (plan->port && plan->port != found.items[i].port)
            result = error_set(err, ERROR_INPUT,
                               "the server `%s` listens on several ports, %u and %u among them: "
                               "say with `port` which",
                               plan->name, plan->port, found.items[i].port);
        plan->port = found.items[i].port;
    }
    if (result == 0 && !plan->port)
        result = error_set(err, ERROR_INPUT, "the server `%s` listens on no TCP port", plan->name);
    running_servers_free(servers);
    array_free(&found);
    return result;
}

static int running_make_command(struct command_line *line, const struct experiment_server *plan,
                                const struct host *host, const char *folder, struct error *err)
{
    (void)plan;
    (void)host;
    (void)folder;
    return command_line_result(line, err); // there is none
}

const struct server_kind server_running = {
    .name = "running",
    .help = "one that runs already, and is left as it is",
    .keys = (const char *const[]){"pid", "cgroup", "systemd", "address", "fill", NULL},
    .instead = "a server that runs already is as it is",
    .protocol = "",
    .runs_already = true,
    .speaks = running_speaks,
    .check = running_check,
    .find_port = running_find_port,
    .check_program = server_needs_no_program,
    .configure = server_needs_no_files,
    .make_command = running_make_command,
};
