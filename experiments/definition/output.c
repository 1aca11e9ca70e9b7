// SPDX-License-Identifier: MIT
//
// The resolved experiment as JSON for the run folder, and as a plan for a person.
#include "experiments/definition/output.h"

#include "base/text.h"
#include "base/units.h"
#include "experiments/capture/capture_backend.h"
#include "analysis/compare/gates.h"
#include "experiments/definition/resolve.h"
#include "experiments/definition/tables.h"
#include "experiments/hosts/host_kind.h"
#include "experiments/hosts/tuning.h"
#include "experiments/servers/server_kind.h"
#include "profiler/trace/processor_trace.h"

static json_t *cores_json(const cpu_set_t *cores)
{
    char text[1024];
    return json_string(units_format_cores(cores, text, sizeof text));
}

static json_t *words_json(const struct word_array *words)
{
    json_t *list = json_array();
    for (size_t i = 0; i + 1 < words->count; i++)
        json_array_append_new(list, json_string(words->items[i]));
    return list;
}

static json_t *host_json(const struct experiment_host *host)
{
    return json_pack("{s:s, s:o, s:s*, s:s*}", "kind", host->kind->name, "cores",
                     cores_json(&host->cores), "ssh", host->address, "nic", host->nic);
}

static json_t *server_json(const struct experiment *experiment,
                           const struct experiment_server *server)
{
    json_t *json = json_pack("{s:s, s:s, s:o}", "host", experiment->hosts.items[server->host].name,
                             "kind", server->kind->name, "cores", cores_json(&server->cores));
    return fields_values(json, &server_fields, server);
}

static json_t *neighbour_json(const struct experiment *experiment,
                              const struct experiment_neighbour *neighbour)
{
    const struct experiment_neighbour_load *load = &neighbour->load;
    json_t *nginx = NULL, *asked = NULL;
    if (load->rate > 0)
        asked =
            fields_values(json_pack("{s:s, s:o}", "from", experiment->hosts.items[load->from].name,
                                    "cores", cores_json(&load->cores)),
                          &neighbour_load_fields, load);
    if (neighbour->kind->server)
        nginx = json_pack("{s:I, s:I, s:I, s:i, s:o?}", "workers", (json_int_t)neighbour->workers,
                          "page_bytes", (json_int_t)neighbour->page_bytes, "rules",
                          (json_int_t)neighbour->rules, "port", neighbour->port, "load", asked);
    return json_pack("{s:s, s:s, s:o, s:o?, s:o, s:i, s:I, s:I}", "host",
                     experiment->hosts.items[neighbour->host].name, "kind", neighbour->kind->name,
                     "command", words_json(&neighbour->command), "nginx", nginx, "cores",
                     cores_json(&neighbour->cores), "nice", neighbour->nice, "start_ns",
                     (json_int_t)neighbour->start_ns, "stop_ns", (json_int_t)neighbour->stop_ns);
}

static json_t *tuning_json(const struct experiment *experiment)
{
    json_t *all = json_array();
    for (size_t i = 0; i < experiment->settings.count; i++) {
        const struct experiment_setting *setting = &experiment->settings.items[i];
        json_array_append_new(all, json_pack("{s:s, s:s, s:s*, s:s*, s:s}", "host",
                                             experiment->hosts.items[setting->host].name, "setting",
                                             tuning_kind_name(setting->kind), "name", setting->name,
                                             "nic", setting->nic, "value", setting->value));
    }
    return all;
}

static json_t *agents_json(const struct experiment *experiment, const struct experiment_load *load)
{
    json_t *list = json_array();
    for (size_t i = 0; i < load->agents.count; i++) {
        const struct experiment_agent *agent = &load->agents.items[i];
        json_t *json =
            json_pack("{s:s, s:I, s:o}", "host", experiment->hosts.items[agent->host].name, "seed",
                      (json_int_t)agent->spec.seed, "cores", cores_json(&agent->spec.cores));
        json_array_append_new(list, fields_values(json, &agent_fields, agent));
    }
    return list;
}

static json_t *method_json(const struct experiment_method *method)
{
    if (!method->percentile)
        return json_null();
    return json_pack("{s:s, s:I, s:f}", "percentile", method->percentile, "interval_ns",
                     (json_int_t)method->interval_ns, "confidence", method->confidence);
}

static json_t *load_json(const struct experiment *experiment, const struct experiment_load *load)
{
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:o, s:o}", "to", experiment->servers.items[load->to].name,
                  "from", experiment->hosts.items[load->from].name, "arrivals", load->arrivals,
                  "method", method_json(&load->method), "agents", agents_json(experiment, load));
    fields_values(json, &load_fields, load);
    if (!load->name[0])
        json_object_del(json, "name");
    return json;
}

// Each of the others by its name, with its own workload; NULL: there are none.
static json_t *other_loads_json(const struct experiment *experiment)
{
    json_t *all = experiment->others.count ? json_object() : NULL;
    for (size_t i = 0; i < experiment->others.count; i++) {
        const struct experiment_load *load = &experiment->others.items[i];
        json_t *json = load_json(experiment, load);
        json_object_set_new(json, "workload", workload_to_json(&load->workload));
        json_object_set_new(all, load->name, json);
    }
    return all;
}

static json_t *diagnose_json(const struct experiment *experiment)
{
    json_t *windows = json_array();
    for (size_t i = 0; i < experiment->windows.count; i++)
        json_array_append_new(windows,
                              json_pack("{s:I, s:I}", "from_ns",
                                        (json_int_t)experiment->windows.items[i].from_ns, "to_ns",
                                        (json_int_t)experiment->windows.items[i].to_ns));
    return json_pack("{s:s, s:o, s:s?}", "slice", experiment->slice, "windows", windows,
                     "categories", experiment->categories[0] ? experiment->categories : NULL);
}

// NULL: there is none of its own.
static json_t *trace_json(const struct experiment *experiment)
{
    char cores[1024];
    const struct experiment_trace *trace = &experiment->trace;
    if (!capture_traces(experiment->backend))
        return NULL;
    return json_pack(
        "{s:s, s:I, s:I, s:s*, s:I, s:I, s:I}", "detail",
        processor_trace_detail_name(trace->detail), "snapshot_over_ns", (json_int_t)trace->slow_ns,
        "keep", (json_int_t)trace->keep, "cores",
        CPU_COUNT(&trace->cores) ? units_format_cores(&trace->cores, cores, sizeof cores) : NULL,
        "from_ns", (json_int_t)trace->window.from_ns, "to_ns", (json_int_t)trace->window.to_ns,
        "most_bytes", (json_int_t)trace->most_bytes);
}

// NULL: there is none.
static json_t *capsule_json(const struct experiment *experiment)
{
    const struct experiment_capsule *capsule = &experiment->capsule;
    return capsule->hops.count ? fields_values(json_object(), &capsule_fields, capsule) : NULL;
}

json_t *experiment_to_json(const struct experiment *experiment)
{
    json_t *hosts = json_object(), *servers = json_object(), *neighbours = json_object();
    for (size_t i = 0; i < experiment->hosts.count; i++)
        json_object_set_new(hosts, experiment->hosts.items[i].name,
                            host_json(&experiment->hosts.items[i]));
    for (size_t i = 0; i < experiment->servers.count; i++)
        json_object_set_new(servers, experiment->servers.items[i].name,
                            server_json(experiment, &experiment->servers.items[i]));
    for (size_t i = 0; i < experiment->neighbours.count; i++)
        json_object_set_new(neighbours, experiment->neighbours.items[i].name,
                            neighbour_json(experiment, &experiment->neighbours.items[i]));
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:{s:s, s:b, s:I, s:s, s:b, s:s*, s:I, "
        "s:o*}, "
        "s:o*, s:o, "
        "s:{s:I, "
        "s:b}, "
        "s:o, s:o*}",
        "name", experiment->name, "source", experiment->path, "configuration",
        experiment->configuration, "hosts", hosts, "servers", servers, "neighbours", neighbours,
        "tuning", tuning_json(experiment), "workload", workload_to_json(&experiment->load.workload),
        "load", load_json(experiment, &experiment->load), "capture", "backend",
        capture_choice_name(experiment->backend), "optional", experiment->capture_optional,
        "buffer_bytes", (json_int_t)experiment->buffer_bytes, "calls",
        capture_calls_name(experiment->capture_calls), "commands", experiment->capture_commands,
        "nic", experiment->capture_nic, "shim_memory_bytes",
        (json_int_t)experiment->shim_memory_bytes, "trace", trace_json(experiment), "capsule",
        capsule_json(experiment), "diagnose", diagnose_json(experiment), "repetitions", "count",
        (json_int_t)experiment->repetitions, "restart", true, "gates",
        gates_json(&experiment->gates), "loads", other_loads_json(experiment));
}

static void print_command(const struct word_array *words, FILE *out)
{
    for (size_t i = 0; i + 1 < words->count; i++)
        fprintf(out, " %s", words->items[i]);
}

static void print_servers(const struct experiment *experiment, FILE *out)
{
    char cores[256];
    for (size_t i = 0; i < experiment->servers.count; i++) {
        const struct experiment_server *server = &experiment->servers.items[i];
        fprintf(out, "  server %s: %s on host %s, port %u, cores %s%s", server->name,
                server->kind->name, experiment->hosts.items[server->host].name, server->port,
                units_format_cores(&server->cores, cores, sizeof cores),
                server->shim ? ", seen by the shim" : "");
        if (server->kind->is_cache)
            fprintf(out, ", %llu thread%s, %llu MiB;", (unsigned long long)server->threads,
                    server->threads == 1 ? "" : "s",
                    (unsigned long long)server->memory_bytes >> 20);
        print_command(&server->options, out);
        print_command(&server->command, out);
        fputc('\n', out);
    }
}

static void print_neighbours(const struct experiment *experiment, FILE *out)
{
    char cores[256], start[40], stop[40];
    for (size_t i = 0; i < experiment->neighbours.count; i++) {
        const struct experiment_neighbour *neighbour = &experiment->neighbours.items[i];
        fprintf(out, "  neighbour %s: host %s, cores %s, from %s to %s:", neighbour->name,
                experiment->hosts.items[neighbour->host].name,
                units_format_cores(&neighbour->cores, cores, sizeof cores),
                units_format_ns((double)neighbour->start_ns, start, sizeof start),
                neighbour->stop_ns ? units_format_ns((double)neighbour->stop_ns, stop, sizeof stop)
                                   : "the end");
        print_command(&neighbour->command, out);
        if (neighbour->kind->server)
            fprintf(out, " %s, %llu worker%s, port %u", neighbour->kind->name,
                    (unsigned long long)neighbour->workers, neighbour->workers == 1 ? "" : "s",
                    neighbour->port);
        if (neighbour->load.rate > 0)
            fprintf(out, ", loaded from host %s with %s requests/s, %s connections x %llu",
                    experiment->hosts.items[neighbour->load.from].name,
                    TEXT_RATE(neighbour->load.rate), TEXT_COUNT(neighbour->load.connections),
                    (unsigned long long)neighbour->load.depth);
        fprintf(out, neighbour->nice ? ", nice %d\n" : "\n", neighbour->nice);
    }
}

static void print_setting(const struct experiment *experiment,
                          const struct experiment_setting *setting, FILE *out)
{
    fprintf(out, "  tuning: host %s, %s%s%s%s%s = %s%s, restored afterwards\n",
            experiment->hosts.items[setting->host].name, tuning_kind_name(setting->kind),
            setting->name ? " " : "", setting->name ? setting->name : "",
            setting->nic ? " of " : "", setting->nic ? setting->nic : "", setting->value,
            setting->kind == TUNING_CSTATES ? "us" : "");
}

static void print_length(const struct experiment_load *load, FILE *out)
{
    char length[40], width[40];
    units_format_ns((double)load->duration_ns, length, sizeof length);
    if (load->method.percentile)
        fprintf(out, "until the %g %% interval of %s is %s wide, for %s at most\n",
                100 * load->method.confidence, load->method.percentile,
                units_format_ns((double)load->method.interval_ns, width, sizeof width), length);
    else
        fprintf(out, "for %s\n", length);
}

static void print_capsule(const struct experiment_capsule *capsule, FILE *out)
{
    if (capsule->hops.count == 0)
        return;
    fprintf(out, "  packets are stamped%s at", capsule->carry ? ", and carry it," : "");
    print_command(&capsule->words, out);
    fprintf(out, "; %s, sampled %s\n", capsule->filter ? capsule->filter : "the server's port",
            capsule->sample);
}

static void print_load(const struct experiment *experiment, const struct experiment_load *load,
                       FILE *out)
{
    char text[256];
    fprintf(out, "  load%s%s: host %s to server %s, %s ", load->name[0] ? " " : "", load->name,
            experiment->hosts.items[load->from].name, experiment->servers.items[load->to].name,
            TEXT_RATE(load->rate));
    if (load->workload.fanout > 1)
        fprintf(out, "logical requests/s of %s requests each", TEXT_COUNT(load->workload.fanout));
    else
        fprintf(out, "requests/s");
    fprintf(out, ", %s arrivals, %s connections", load->arrivals, TEXT_COUNT(load->connections));
    fprintf(out, " x %s in flight, ", TEXT_COUNT(load->depth));
    print_length(load, out);
    for (size_t i = 0; i < load->agents.count; i++) {
        const struct experiment_agent *agent = &load->agents.items[i];
        fprintf(out, "    agent %s: %s from host %s, cores %s, %s requests/s, %s connections\n",
                agent->spec.name, agent_kind_name(agent->spec.kind),
                experiment->hosts.items[agent->host].name,
                units_format_cores(&agent->spec.cores, text, sizeof text),
                TEXT_RATE(agent->spec.rate), TEXT_COUNT(agent->spec.connections));
    }
}

void experiment_print_plan(const struct experiment *experiment, FILE *out)
{
    char text[256];
    fprintf(out, "experiment %s (%s)%s%s\n", experiment->name, experiment->path,
            experiment->configuration[0] ? ": " : "", experiment->configuration);
    for (size_t i = 0; i < experiment->hosts.count; i++)
        fprintf(out, "  host %s: %s%s%s, cores %s\n", experiment->hosts.items[i].name,
                experiment->hosts.items[i].kind->name,
                experiment->hosts.items[i].address ? " " : "",
                experiment->hosts.items[i].address ? experiment->hosts.items[i].address : "",
                units_format_cores(&experiment->hosts.items[i].cores, text, sizeof text));
    print_servers(experiment, out);
    for (size_t i = 0; i < experiment->settings.count; i++)
        print_setting(experiment, &experiment->settings.items[i], out);
    print_neighbours(experiment, out);
    for (size_t i = 0; i < experiment_load_count(experiment); i++)
        print_load(experiment, experiment_load_at(experiment, i), out);
    fprintf(out, "  capture: %s\n", capture_choice_name(experiment->backend));
    print_capsule(&experiment->capsule, out);
    fprintf(out, "  diagnose: %s", experiment->slice);
    for (size_t i = 0; i < experiment->windows.count; i++) {
        char to[40];
        fprintf(out, ", %s to %s",
                units_format_ns((double)experiment->windows.items[i].from_ns, text, sizeof text),
                units_format_ns((double)experiment->windows.items[i].to_ns, to, sizeof to));
    }
    if (experiment->categories[0])
        fprintf(out, "; categories of %s", experiment->categories);
    fputc('\n', out);
    if (experiment->repetitions > 1)
        fprintf(out, "  all of it %s times, each with a server of its own\n",
                TEXT_COUNT(experiment->repetitions));
    for (size_t i = 0; i < experiment->gates.count; i++)
        fprintf(out, "  gate: %s\n", gate_words(&experiment->gates.items[i], text, sizeof text));
}
