// SPDX-License-Identifier: MIT
#include "experiments/spec/experiment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diagnosis/diagnosis.h"
#include "base/units.h"
#include "experiments/servers/server_kind.h"
#include "experiments/spec/experiment_hosts.h"
#include "experiments/spec/experiment_load.h"
#include "experiments/spec/experiment_neighbours.h"
#include "experiments/spec/experiment_tuning.h"
#include "experiments/spec/experiment_values.h"
#include "experiments/gates.h"
#include "base/suggestion.h"
#include "experiments/spec/yaml_position.h"

// --- the parts -----------------------------------------------------------------------------------

// Keys that only other kinds take.
static int check_server_keys(const struct resolver *r, int node, const struct server_kind *kind)
{
    for (const struct server_kind *const *other = server_kinds; *other; other++)
        for (const char *const *key = (*other)->keys; *key; key++) {
            int at = yaml_key(r->source, node, *key);
            bool has_options = server_kind_has_key(kind, "options");
            if (!at || server_kind_has_key(kind, *key))
                continue;
            if (kind->instead)
                return yaml_error(r->source, at, r->err, "`%s` is not for kind %s; %s", *key,
                                  kind->name, kind->instead);
            bool is_command = has_options && strcmp(*key, "command") == 0;
            return yaml_error(r->source, at, r->err, "`%s` is for `kind: %s`%s%s%s", *key,
                              (*other)->name, is_command ? "; " : "", is_command ? kind->name : "",
                              is_command ? " takes `options`" : "");
        }
    return 0;
}

static int check_server_kind(const struct resolver *r, int node,
                             const struct experiment_server *server)
{
    struct error inner;
    size_t option = SIZE_MAX;
    int list = yaml_child(r->source, node, "options");
    if (server->kind->check(server, &option, &inner) == 0)
        return 0;
    return yaml_error(r->source, option == SIZE_MAX ? node : yaml_entry(r->source, list, option),
                      r->err, "%s", inner.text);
}

static int resolve_server(struct resolver *r, int node, const struct server_entry *entry,
                          struct experiment_server *server)
{
    const struct server_spec *spec = &entry->value;
    const struct server_kind *kind = server_kinds[spec->kind];
    uint64_t port = kind->port;
    int result = resolve_host_name(r, node, "host", spec->host, "server", &server->host);
    if (result < 0)
        return result;
    server->kind = kind;
    server->cores = r->experiment->hosts.items[server->host].cores;
    server->shim = yaml_key(r->source, node, "shim") ? spec->shim : true;
    server->memory_bytes = 256ull << 20;
    server->page_bytes = NGINX_PAGE_BYTES;
    if ((result = check_server_keys(r, node, kind)) < 0 ||
        (result = resolve_cores(r, node, &r->experiment->hosts.items[server->host], spec->cores,
                                spec->cores_count, &server->cores)) < 0)
        return result;
    server->threads = kind->thread_a_core ? (uint64_t)CPU_COUNT(&server->cores) : 1;
    if ((result = resolve_count(r, node, "threads", spec->threads, 1, 1024, &server->threads)) <
            0 ||
        (result = resolve_bytes(r, node, "memory", spec->memory, 8ull << 20,
                                &server->memory_bytes)) < 0 ||
        (result = resolve_bytes(r, node, "page", spec->page, 1, &server->page_bytes)) < 0 ||
        (result = resolve_count(r, node, "rules", spec->rules, 0, 100000, &server->rules)) < 0 ||
        (result = resolve_nice(r, node, spec->nice, &server->nice)) < 0 ||
        (result = resolve_count(r, node, "port", spec->port, 1, 65535, &port)) < 0 ||
        (result = resolve_words(r, spec->options, spec->options_count, &server->options)) < 0 ||
        (result = resolve_words(r, spec->command, spec->command_count, &server->command)) < 0)
        return result;
    server->port = (uint16_t)port;
    return check_server_kind(r, node, server);
}

static int resolve_servers(struct resolver *r)
{
    int servers = yaml_child(r->source, yaml_root(r->source), "servers");
    struct experiment_server_array *all = &r->experiment->servers;
    if (r->spec->servers_count == 0)
        return yaml_error(r->source, servers, r->err,
                          "servers: name one, e.g. `servers: {cache: {kind: memcached}}`");
    if (r->spec->servers_count > EXPERIMENT_SERVERS_MAX)
        return yaml_error(r->source, yaml_entry_key(r->source, servers, EXPERIMENT_SERVERS_MAX),
                          r->err, "servers: %d at most", EXPERIMENT_SERVERS_MAX);
    for (size_t i = 0; i < r->spec->servers_count; i++) {
        const struct server_entry *entry = &r->spec->servers[i];
        int result = check_name(r, yaml_entry_key(r->source, servers, i), entry->name,
                                EXPERIMENT_PART_NAME_BYTES - 1);
        if (result < 0)
            return result;
        if (array_push(all, (struct experiment_server){.host = 0}) < 0)
            return out_of_memory(r);
        snprintf(all->items[i].name, sizeof all->items[i].name, "%s", entry->name);
        result = resolve_server(r, yaml_entry(r->source, servers, i), entry, &all->items[i]);
        if (result < 0)
            return result;
        for (size_t k = 0; k < i; k++)
            if (all->items[k].port == all->items[i].port)
                return yaml_error(r->source, yaml_entry_key(r->source, servers, i), r->err,
                                  "servers: `%s` and `%s` have the same port, %u; give one another "
                                  "`port`",
                                  all->items[k].name, all->items[i].name, all->items[i].port);
    }
    return 0;
}

// The workload says where it is wrong by a dotted path: "keys.size.fixed: ...".
static int resolve_workload(struct resolver *r)
{
    struct error inner;
    int node = yaml_child(r->source, yaml_root(r->source), "workload");
    workload_defaults(&r->experiment->workload);
    if (workload_resolve(&r->spec->workload, &r->experiment->workload, &inner) == 0)
        return 0;
    for (char *at = inner.text; *at && *at != ':'; at += *at == '.') {
        char key[64];
        size_t length = strcspn(at, ".:");
        snprintf(key, sizeof key, "%.*s", (int)length, at);
        int inside = yaml_child(r->source, node, key);
        node = inside ? inside : node;
        at += length;
    }
    return yaml_error(r->source, node, r->err, "workload.%s", inner.text);
}

// --- what to look at -----------------------------------------------------------------------------

// "0s-5s".
static int resolve_window(struct resolver *r, int node, const char *text,
                          struct experiment_window *window)
{
    char from[64];
    struct error inner;
    const char *dash = strchr(text, '-');
    if (!dash || (size_t)(dash - text) >= sizeof from)
        return yaml_error(r->source, node, r->err, "windows: `%s` is not a window such as `0s-5s`",
                          text);
    snprintf(from, sizeof from, "%.*s", (int)(dash - text), text);
    if (units_parse_duration_ns(from, &window->from_ns, &inner) < 0 ||
        units_parse_duration_ns(dash + 1, &window->to_ns, &inner) < 0)
        return yaml_error(r->source, node, r->err,
                          "windows: `%s` is not a window such as `0s-5s`: %s", text, inner.text);
    if (window->from_ns >= window->to_ns || window->to_ns > r->experiment->load.duration_ns)
        return yaml_error(r->source, node, r->err,
                          "windows: `%s` is not a stretch of the load's duration", text);
    return 0;
}

// Which file is meant: relative to the experiment's own.
static int resolve_categories(struct resolver *r, int node)
{
    struct experiment *experiment = r->experiment;
    const char *named = r->spec->diagnose.categories, *slash = strrchr(experiment->path, '/');
    if (!named)
        return 0;
    int directory = slash && named[0] != '/' ? (int)(slash - experiment->path) + 1 : 0;
    size_t bytes = sizeof experiment->categories;
    int length =
        snprintf(experiment->categories, bytes, "%.*s%s", directory, experiment->path, named);
    if (named[0] == '\0' || length < 0 || (size_t)length >= bytes)
        return yaml_error(r->source, yaml_child(r->source, node, "categories"), r->err,
                          "categories: `%.80s` is no path of a file", named);
    return 0;
}

static int resolve_diagnose(struct resolver *r)
{
    const struct diagnose_spec *spec = &r->spec->diagnose;
    int node = yaml_child(r->source, yaml_root(r->source), "diagnose");
    int windows = yaml_child(r->source, node, "windows");
    struct diagnosis_slice slice;
    struct error inner;
    r->experiment->slice = spec->slice ? spec->slice : "p99-100";
    if (diagnosis_slice_parse(r->experiment->slice, &slice, &inner) < 0)
        return misread(r, node, "slice", &inner);
    int result = resolve_categories(r, node);
    if (result < 0)
        return result;
    for (size_t i = 0; i < spec->windows_count; i++) {
        struct experiment_window window;
        result = resolve_window(r, yaml_entry(r->source, windows, i), spec->windows[i], &window);
        if (result < 0)
            return result;
        if (array_push(&r->experiment->windows, window) < 0)
            return out_of_memory(r);
    }
    return 0;
}

static int resolve_capture(struct resolver *r)
{
    int node = yaml_child(r->source, yaml_root(r->source), "capture");
    r->experiment->backend = r->spec->capture.backend;
    r->experiment->capture_optional = r->spec->capture.optional;
    return resolve_bytes(r, node, "buffer", r->spec->capture.buffer, 1 << 16,
                         &r->experiment->buffer_bytes);
}

static int resolve_repetitions(struct resolver *r)
{
    uint64_t count = 1;
    int node = yaml_child(r->source, yaml_root(r->source), "repetitions");
    int result = resolve_count(r, node, "count", r->spec->repetitions.count, 1, 1000, &count);
    if (result == 0 && yaml_key(r->source, node, "restart") && !r->spec->repetitions.restart)
        return yaml_error(r->source, yaml_child(r->source, node, "restart"), r->err,
                          "restart: every repetition is a run with a server of its own; "
                          "`taillight load --repetitions` loads one that goes on running");
    r->experiment->repetitions = count;
    return result;
}

// A server that is known speaks what the workload does.
static int check_protocol(const struct resolver *r)
{
    struct experiment_server_array *servers = &r->experiment->servers;
    for (size_t i = 0; i < servers->count; i++) // those that are not loaded speak their own
        servers->items[i].protocol = servers->items[i].kind->protocol;
    struct experiment_server *server = &servers->items[r->experiment->load.to];
    const char *protocol = r->experiment->workload.protocol->name;
    server->protocol = protocol;
    if (server->kind->speaks(protocol))
        return 0;
    int workload = yaml_child(r->source, yaml_root(r->source), "workload");
    int node = yaml_child(r->source, workload, "protocol");
    return yaml_error(r->source, node ? node : workload, r->err,
                      "protocol: the workload speaks %s, and the server `%s` is of kind %s, which "
                      "does not; write `workload: {protocol: %s}`",
                      protocol, server->name, server->kind->name, server->kind->protocol);
}

static int resolve(struct resolver *r)
{
    int root = yaml_root(r->source), name = yaml_child(r->source, root, "name");
    static const char *const of_studies[] = {"with", "rounds", "compare"};
    for (size_t i = 0; i < sizeof of_studies / sizeof *of_studies; i++)
        if (yaml_key(r->source, root, of_studies[i]))
            return yaml_error(r->source, yaml_key(r->source, root, of_studies[i]), r->err,
                              "`%s` is for a study, which has `steps`", of_studies[i]);
    if (!r->spec->name)
        return yaml_error(r->source, root, r->err, "`name` is missing, e.g. `name: quickstart`");
    int result = check_name(r, name, r->spec->name, EXPERIMENT_NAME_BYTES - 1);
    if (result < 0)
        return result;
    snprintf(r->experiment->name, sizeof r->experiment->name, "%s", r->spec->name);
    if ((result = resolve_hosts(r)) < 0 || (result = resolve_servers(r)) < 0 ||
        (result = resolve_workload(r)) < 0 || (result = resolve_load(r)) < 0 ||
        (result = resolve_neighbours(r)) < 0 || (result = resolve_tuning(r)) < 0 ||
        (result = resolve_capture(r)) < 0 || (result = resolve_diagnose(r)) < 0 ||
        (result = resolve_repetitions(r)) < 0 ||
        (result = gates_read(r->source, yaml_child(r->source, root, "gates"), &r->experiment->gates,
                             r->err)) < 0)
        return result;
    if ((result = resolve_load_ends(r)) < 0 || (result = check_protocol(r)) < 0)
        return result;
    return check_hosts_meet(r);
}

// --- the whole -----------------------------------------------------------------------------------

int experiment_resolve(struct yaml_source *source, const char *path, const char *configuration,
                       struct experiment *experiment, struct error *err)
{
    struct resolver r = {.experiment = experiment, .source = source, .err = err};
    *experiment = (struct experiment){.source = source};
    snprintf(experiment->path, sizeof experiment->path, "%s", path);
    snprintf(experiment->configuration, sizeof experiment->configuration, "%s", configuration);
    int result = experiment_spec_load(source, &experiment->spec, err);
    if (result == 0) {
        r.spec = experiment->spec;
        if (sched_getaffinity(0, sizeof r.machine, &r.machine) < 0)
            result = error_set_errno(err, ERROR_FAILED, "cannot tell which cores there are");
        else
            result = resolve(&r);
    }
    if (result < 0)
        experiment_free(experiment);
    return result;
}

void experiment_free(struct experiment *experiment)
{
    for (size_t i = 0; i < experiment->servers.count; i++) {
        array_free(&experiment->servers.items[i].options);
        array_free(&experiment->servers.items[i].command);
    }
    for (size_t i = 0; i < experiment->neighbours.count; i++)
        array_free(&experiment->neighbours.items[i].command);
    for (size_t i = 0; i < experiment->hosts.count; i++)
        array_free(&experiment->hosts.items[i].ssh_options);
    array_free(&experiment->hosts);
    array_free(&experiment->servers);
    array_free(&experiment->neighbours);
    array_free(&experiment->settings);
    array_free(&experiment->windows);
    array_free(&experiment->gates);
    array_free(&experiment->load.agents);
    workload_free(&experiment->workload);
    experiment_spec_free(experiment->spec);
    yaml_source_close(experiment->source);
    *experiment = (struct experiment){.source = NULL};
}
