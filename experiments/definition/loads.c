// SPDX-License-Identifier: MIT
//
// Whether the loads of an experiment go together: names, where they run, what they ask of whom.
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "experiments/definition/tables.h"
#include "experiments/hosts/host_kind.h"
#include "experiments/servers/server_kind.h"
#include "workloads/protocols/custom.h"

enum { KEYS_LOOKED_AT = 1000 }; // of two workloads, to see whether they mean the same by a key

const struct node *load_node(const struct node *root, size_t number)
{
    return number ? node_entry(node_child(root, "loads"), number - 1) : node_child(root, "load");
}

const struct node *load_key(const struct node *root, size_t number, const char *key)
{
    const struct node *said = node_key(load_node(root, number), key);
    return said     ? said
           : number ? node_entry_key(node_child(root, "loads"), number - 1)
                    : node_key(root, "load");
}

const struct node *load_workload_node(const struct node *root, size_t number)
{
    const struct node *own = number ? node_child(load_node(root, number), "workload") : NULL;
    return own ? own : node_child(root, "workload");
}

const struct node *load_protocol_node(const struct node *root, size_t number)
{
    const struct node *workload = load_workload_node(root, number);
    const struct node *protocol = node_child(workload, "protocol");
    const bool borrows = number && !node_child(load_node(root, number), "workload");
    return borrows || !workload ? load_key(root, number, "to") : protocol ? protocol : workload;
}

const char *load_path(const struct experiment *experiment, const struct experiment_load *load,
                      char out[LOAD_PATH_BYTES])
{
    const bool first = load == &experiment->load;
    snprintf(out, LOAD_PATH_BYTES, "load%s%s", first ? "" : "s.", first ? "" : load->name);
    return out;
}

static int check_name(const struct binding *binding, const struct node *root,
                      const struct experiment *experiment, size_t number)
{
    const char *name = experiment_load_at(experiment, number)->name;
    for (size_t i = 0; i < number; i++)
        if (strcmp(experiment_load_at(experiment, i)->name, name) == 0)
            return document_error(binding->document, load_key(root, number, "name"), binding->err,
                                  "loads: two are called `%s`; `load: {name: ...}` gives the first "
                                  "another name",
                                  name);
    return 0;
}

static int refuse_udp(const struct binding *binding, const struct node *root,
                      const struct experiment *experiment, size_t number)
{
    const struct experiment_load *load = experiment_load_at(experiment, number);
    return document_error(binding->document, load_key(root, number, "to"), binding->err,
                          "loads: several are over TCP, and `%s` goes to `%s`, which has "
                          "`transport: udp`",
                          load->name, experiment->servers.items[load->to].name);
}

// One clock tells when they all begin, and one capture sees the servers.
static int check_places(const struct binding *binding, const struct node *root,
                        const struct experiment *experiment, size_t number)
{
    const struct experiment_load *load = experiment_load_at(experiment, number);
    const struct experiment_load *first = &experiment->load;
    const struct experiment_host *hosts = experiment->hosts.items;
    const struct experiment_server *servers = experiment->servers.items;
    if (load->from != first->from &&
        (hosts[load->from].kind->is_elsewhere || hosts[first->from].kind->is_elsewhere))
        return document_error(
            binding->document, load_key(root, number, "from"), binding->err,
            "loads: `%s` comes from another machine than `%s`, and all loads come "
            "from one: leave `from` out",
            load->name, first->name);
    if (servers[load->to].host != servers[first->to].host)
        return document_error(binding->document, load_key(root, number, "to"), binding->err,
                              "loads: `%s` goes to a server on another host than `%s`, and what is "
                              "captured is on one: put both servers there",
                              load->name, first->name);
    if (servers[load->to].over_udp)
        return refuse_udp(binding, root, experiment, number);
    if (servers[first->to].over_udp)
        return refuse_udp(binding, root, experiment, 0);
    if (load->duration_ns > first->duration_ns)
        return document_error(binding->document, load_key(root, number, "duration"), binding->err,
                              "loads: `%s` lasts longer than `%s`, with which the run ends",
                              load->name, first->name);
    return 0;
}

// Load generators that spin on one core hold each other up, and measure that.
static int check_cores(const struct binding *binding, const struct node *root,
                       const struct experiment *experiment, size_t number)
{
    const struct experiment_load *load = experiment_load_at(experiment, number);
    const struct experiment_host *hosts = experiment->hosts.items;
    const cpu_set_t *cores = &hosts[load->from].cores;
    int spinning = 0;
    for (size_t i = 0; i <= number; i++) {
        const struct experiment_load *other = experiment_load_at(experiment, i);
        cpu_set_t shared;
        CPU_AND(&shared, cores, &hosts[other->from].cores);
        spinning += !other->sleep && CPU_COUNT(&shared) > 0;
    }
    if (load->sleep || spinning <= CPU_COUNT(cores))
        return 0;
    return document_error(binding->document, load_key(root, number, "from"), binding->err,
                          "loads: `%s` is one of %d that spin on %d core%s of `%s`: give the host "
                          "more `cores`, or all but one of them `sleep: true`",
                          load->name, spinning, CPU_COUNT(cores), CPU_COUNT(cores) == 1 ? "" : "s",
                          hosts[load->from].name);
}

// Whether no server of that kind can speak both at one port.
static bool protocols_clash(const struct experiment_server *server, const struct protocol *one,
                            const struct protocol *other)
{
    if (strcmp(one->name, other->name) == 0)
        return !custom_share_replies(one->custom, other->custom);
    return server->kind->speaks(one->name) && server->kind->speaks(other->name) &&
           (server->kind->one_protocol || !protocol_shares_server(one, other));
}

// Of loads of one server; what its kind never speaks is refused with the kind's own protocol.
static int check_protocols(const struct binding *binding, const struct node *root,
                           const struct experiment *experiment, size_t number)
{
    const struct experiment_load *load = experiment_load_at(experiment, number);
    const struct experiment_server *server = &experiment->servers.items[load->to];
    const struct protocol *protocol = load->workload.protocol;
    for (size_t i = 0; i < number; i++) {
        const struct experiment_load *other = experiment_load_at(experiment, i);
        const struct protocol *spoken = other->workload.protocol;
        if (other->to == load->to && protocols_clash(server, protocol, spoken))
            return document_error(
                binding->document, load_protocol_node(root, number), binding->err,
                "loads: `%s` speaks %s and `%s` %s, and one server at one port does not speak "
                "both: give one of them a server of its own, `to: ...`, with another `port`",
                load->name, protocol->name, other->name,
                strcmp(spoken->name, protocol->name) != 0
                    ? spoken->name
                    : "another, whose replies end or are numbered otherwise");
    }
    return 0;
}

static bool has_values(const struct workload *workload)
{
    const struct protocol *protocol = workload->protocol;
    for (unsigned i = 0; i < protocol->operation_count; i++)
        if (workload->mix[i] > 0 && protocol->dataset != DATASET_NONE &&
            (protocol->operations[i].carries_value || protocol->operations[i].returns_value))
            return true;
    return false;
}

// A key that both have, with values of two sizes; -1: none was found.
static int64_t find_disputed_key(const struct workload *one, const struct workload *other)
{
    char key[WORKLOAD_KEY_BYTES_MAX], same[WORKLOAD_KEY_BYTES_MAX];
    const uint64_t count = one->key_count < other->key_count ? one->key_count : other->key_count;
    for (uint64_t i = 0; i < count && i < KEYS_LOOKED_AT; i++) {
        size_t bytes = workload_key(one, i, key);
        if (bytes == workload_key(other, i, same) && memcmp(key, same, bytes) == 0 &&
            workload_value_bytes(one, i) != workload_value_bytes(other, i))
            return (int64_t)i;
    }
    return -1;
}

// Each load finds its own values under its keys.
static int check_keys(const struct binding *binding, const struct node *root,
                      const struct experiment *experiment, size_t number)
{
    const struct experiment_load *load = experiment_load_at(experiment, number);
    for (size_t i = 0; i < number; i++) {
        const struct experiment_load *other = experiment_load_at(experiment, i);
        if (other->to == load->to && has_values(&load->workload) && has_values(&other->workload) &&
            find_disputed_key(&load->workload, &other->workload) >= 0)
            return document_error(
                binding->document, load_key(root, number, "workload"), binding->err,
                "loads: `%s` and `%s` store values of different sizes under the "
                "same keys of `%s`: give one of them keys of another length, "
                "such as `keys: {size: {fixed: 24}}`",
                load->name, other->name, experiment->servers.items[load->to].name);
    }
    return 0;
}

int check_loads(const struct binding *binding, const struct node *root)
{
    const struct reading *reading = binding->context;
    struct experiment *experiment = reading->experiment;
    int result = 0;
    if (experiment->others.count == 0)
        return 0;
    if (!experiment->load.name[0])
        snprintf(experiment->load.name, sizeof experiment->load.name, "main");
    if (experiment->load.agents.count)
        return document_error(binding->document, load_key(root, 0, "agents"), binding->err,
                              "`loads` and `agents` exclude each other: name one more load instead "
                              "of an agent");
    for (size_t i = 1; i < experiment_load_count(experiment) && result == 0; i++) {
        result = check_name(binding, root, experiment, i);
        if (result == 0)
            result = check_places(binding, root, experiment, i);
        if (result == 0)
            result = check_cores(binding, root, experiment, i);
        if (result == 0)
            result = check_protocols(binding, root, experiment, i);
        if (result == 0)
            result = check_keys(binding, root, experiment, i);
    }
    return result;
}

int check_gate_loads(const struct document *document, const struct node *list,
                     const struct gate_array *gates, const struct experiment *experiment,
                     struct error *err)
{
    const size_t count = experiment_load_count(experiment);
    for (size_t i = 0; i < gates->count; i++) {
        const char *asked = gates->items[i].load;
        char names[600] = "";
        bool known = !asked[0];
        for (size_t k = 0; k < count; k++) {
            const char *name = experiment_load_at(experiment, k)->name;
            known |= strcmp(name, asked) == 0;
            text_append(names, sizeof names, "%s`%s`", k ? ", " : "", name);
        }
        if (known)
            continue;
        const struct node *node = node_key(node_entry(list, i), "load");
        if (!experiment->load.name[0])
            return document_error(document, node, err,
                                  "load: `%s`: %s has one load, without a name: leave it out",
                                  asked, experiment->name);
        return document_error(document, node, err, "load: there is no load `%s` in %s; it has %s",
                              asked, experiment->name, names);
    }
    return 0;
}
