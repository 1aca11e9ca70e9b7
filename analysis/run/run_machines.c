// SPDX-License-Identifier: MIT
//
// Latency by layer and machine: which stage of a request passes on which host.
#include "analysis/run/run_analysis.h"

static const char *name_or(const json_t *name, const char *otherwise)
{
    return json_string_length(name) > 0 ? json_string_value(name) : otherwise;
}

const char *run_stage_machine(const struct run_analysis *run, enum stamp_kind ends_at)
{
    enum core_role role = stage_role(ends_at);
    if (!run->lifetimes.join.hosts.apart || role == ROLE_NETWORK)
        return "";
    const json_t *load = json_object_get(run->evidence.experiment, "load");
    if (role == ROLE_CLIENT)
        return name_or(json_object_get(load, "from"), "client");
    const char *server = json_string_value(json_object_get(load, "to"));
    const json_t *servers = json_object_get(run->evidence.experiment, "servers");
    const json_t *one = server ? json_object_get(servers, server) : NULL;
    return name_or(json_object_get(one, "host"), "server");
}
