// SPDX-License-Identifier: MIT
#include "experiments/remote/agent_roles.h"

#include <stddef.h>
#include <unistd.h>

#include "base/options.h"
#include "experiments/remote/far_end.h"
#include "experiments/remote/keeper_service.h"
#include "loadgen/agents/agent_command.h"

struct role_options {
    bool start, keeper;
};

static const struct option_spec options[] = {
    OPTION_FLAG("start", 0, struct role_options, start,
                "start the program that comes with the first message, and be its link"),
    OPTION_FLAG("keeper", 0, struct role_options, keeper,
                "make the changes that a run asks for on this host, and undo them at the end"),
    OPTION_END,
};
static const struct command_usage usage = {
    .name = "agent",
    .arguments = "[--start | --keeper]",
    .summary = "The far end of a link (internal); without an option, a load agent.",
    .details = "Started by `taillight run`, `load --agent` and `doctor HOST`; nobody needs to type "
               "it. It ends when its\nstdin does, or when nothing has come for 5 s.",
    .options = options,
};

int agent_roles_command(int argc, char **argv)
{
    struct role_options role = {false, false};
    struct error err = {0};
    int positional, result = 0;
    bool help;
    if (argc == 1)
        return agent_command(argc, argv);
    if (options_parse(&usage, argc, argv, &role, &positional, &help, &err) < 0)
        return error_report(&err);
    if (help)
        return 0;
    if (positional > 0 || role.start == role.keeper || isatty(STDIN_FILENO))
        result = error_set(&err, ERROR_INPUT, "agent is started by other commands, not typed");
    else
        result = role.start ? far_end_run(&err) : keeper_service_run(&err);
    return result < 0 ? error_report(&err) : 0;
}
