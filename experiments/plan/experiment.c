// SPDX-License-Identifier: MIT
#include "experiments/plan/experiment.h"

#include "base/hash.h"

size_t experiment_load_count(const struct experiment *experiment)
{
    return 1 + experiment->others.count;
}

const struct experiment_load *experiment_load_at(const struct experiment *experiment, size_t number)
{
    return number ? &experiment->others.items[number - 1] : &experiment->load;
}

int experiment_set_seed(struct experiment *experiment, uint64_t seed, struct error *err)
{
    struct experiment_load *load = &experiment->load;
    struct agent_spec specs[AGENTS_MAX];
    load->seed = seed;
    for (size_t i = 0; i < experiment->others.count; i++)
        experiment->others.items[i].seed = hash_pair(seed, i) & 0xffffffff; // as agents' seeds
    if (load->agents.count == 0)
        return 0;
    for (size_t i = 0; i < load->agents.count && i < AGENTS_MAX; i++)
        specs[i] = load->agents.items[i].spec;
    if (agent_specs_resolve(specs, load->agents.count, load->connections, 1, load->depth, seed,
                            &load->rate, err) < 0)
        return -ERROR_INPUT;
    for (size_t i = 0; i < load->agents.count; i++)
        load->agents.items[i].spec = specs[i];
    return 0;
}
