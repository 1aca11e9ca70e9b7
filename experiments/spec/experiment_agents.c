// SPDX-License-Identifier: MIT
#include "experiments/spec/experiment_agents.h"

#include <stdio.h>

static int resolve_agent(struct resolver *r, int node, const struct agent_entry *entry,
                         struct experiment_agent *agent)
{
    const struct experiment_load *load = &r->experiment->load;
    const char *from = r->experiment->hosts.items[load->from].name;
    struct agent_spec *spec = &agent->spec;
    // An enum that is absent is zero, whatever that means.
    spec->kind = yaml_key(r->source, node, "kind") ? entry->kind : AGENT_SYMMETRIC;
    int result = resolve_host_name(r, node, "host", entry->host, from, &agent->host);
    if (result < 0)
        return result;
    spec->has_cores = true;
    spec->cores = r->experiment->hosts.items[agent->host].cores;
    if (entry->name) {
        result =
            check_name(r, yaml_child(r->source, node, "name"), entry->name, AGENT_NAME_BYTES - 1);
        snprintf(spec->name, sizeof spec->name, "%s", entry->name);
    }
    if (result < 0 || (result = resolve_rate(r, node, entry->rate, &spec->rate)) < 0 ||
        (result = resolve_count(r, node, "connections", entry->connections, 1, 65536,
                                &spec->connections)) < 0 ||
        (result = resolve_count(r, node, "threads", entry->threads, 1, 1024, &spec->threads)) < 0)
        return result;
    return resolve_cores(r, node, &r->experiment->hosts.items[agent->host], entry->cores,
                         entry->cores_count, &spec->cores);
}

int experiment_set_seed(struct experiment *experiment, uint64_t seed, struct error *err)
{
    struct experiment_load *load = &experiment->load;
    struct agent_spec specs[AGENTS_MAX];
    load->seed = seed;
    if (load->agents.count == 0)
        return 0;
    for (size_t i = 0; i < load->agents.count; i++)
        specs[i] = load->agents.items[i].spec;
    if (agent_specs_resolve(specs, load->agents.count, load->connections, 1, load->depth, seed,
                            &load->rate, err) < 0)
        return -ERROR_INPUT;
    for (size_t i = 0; i < load->agents.count; i++)
        load->agents.items[i].spec = specs[i];
    return 0;
}

int resolve_agents(struct resolver *r, int load)
{
    const struct load_spec *spec = &r->spec->load;
    int list = yaml_child(r->source, load, "agents");
    if (spec->agents_count && r->experiment->workload.recording)
        return yaml_error(r->source, list, r->err,
                          "agents: each draws a schedule of its own, and a recording (%s) is one",
                          r->experiment->workload.recording);
    for (size_t i = 0; i < spec->agents_count; i++) {
        struct experiment_agent agent = {.host = 0};
        int result = resolve_agent(r, yaml_entry(r->source, list, i), &spec->agents[i], &agent);
        if (result < 0)
            return result;
        if (array_push(&r->experiment->load.agents, agent) < 0)
            return out_of_memory(r);
    }
    struct error inner;
    // What does not fit together is told at the list.
    if (experiment_set_seed(r->experiment, r->experiment->load.seed, &inner) < 0)
        return yaml_error(r->source, list, r->err, "agents: %s", inner.text);
    return 0;
}
