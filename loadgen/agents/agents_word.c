// SPDX-License-Identifier: MIT
#include "loadgen/agents/agents_word.h"

#include <string.h>

static const char *check_of(const json_t *report, const char *name)
{
    const char *found = json_string_value(
        json_object_get(json_object_get(json_object_get(report, "method"), "checks"), name));
    return found ? found : "unknown";
}

// Whether an agent was late or short of CPU weakens its own percentiles only. An agent that only
// loads has none, and whether its requests arrived as scheduled is covered by another check.
static bool is_asked(const struct agent_outcome *agent, const char *check)
{
    return strcmp(check, "client") != 0 || agent_kind_measures(agent->spec->kind);
}

// How well an agent sent is judged by itself; what it measured is judged in the pool.
static bool sent_wrong(const struct agent_outcome *agent)
{
    static const char *const checks[] = {"load", "client", "arrivals"};
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        if (is_asked(agent, checks[i]) && strcmp(check_of(agent->report, checks[i]), "failed") == 0)
            return true;
    return false;
}

static void add_reasons(const struct fleet_outcome *fleet, struct load_summary *summary)
{
    for (size_t i = 0; i < fleet->count; i++)
        if (fleet->agents[i].lost[0])
            load_summary_add_reason(summary, "agent %s was lost: %s", fleet->agents[i].spec->name,
                                    fleet->agents[i].lost);
    for (size_t i = 0; i < fleet->count; i++) {
        const json_t *report = fleet->agents[i].report;
        size_t k;
        json_t *reason;
        if (!report || !sent_wrong(&fleet->agents[i]))
            continue;
        json_array_foreach(json_object_get(report, "reasons"), k, reason) load_summary_add_reason(
            summary, "agent %s: %s", fleet->agents[i].spec->name, json_string_value(reason));
    }
}

// Passed if all agents passed, failed if one failed, unknown if it is unknown of one.
static enum method_finding check_of_all(const struct fleet_outcome *fleet, const char *name)
{
    enum method_finding worst = METHOD_PASSED;
    for (size_t i = 0; i < fleet->count; i++) {
        const char *found = check_of(fleet->agents[i].report, name);
        if (!is_asked(&fleet->agents[i], name))
            continue;
        if (strcmp(found, "failed") == 0)
            return METHOD_FAILED;
        if (strcmp(found, "passed") != 0)
            worst = METHOD_UNKNOWN;
    }
    return worst;
}

// Over several rounds: failed if one failed, passed if one passed; a short round may leave it
// unknown.
static enum method_finding check_of_both(enum method_finding one, enum method_finding other)
{
    if (one == METHOD_FAILED || other == METHOD_FAILED)
        return METHOD_FAILED;
    return one == METHOD_PASSED || other == METHOD_PASSED ? METHOD_PASSED : METHOD_UNKNOWN;
}

void agents_hear(struct agents_word *word, const struct fleet_outcome *fleet, bool first)
{
    struct load_summary troubles = {.ok = true};
    enum method_finding client = check_of_all(fleet, "client");
    enum method_finding arrivals = check_of_all(fleet, "arrivals");
    add_reasons(fleet, &troubles);
    if (first || !troubles.ok)
        word->troubles = troubles;
    word->client = first ? client : check_of_both(word->client, client);
    word->arrivals = first ? arrivals : check_of_both(word->arrivals, arrivals);
}
