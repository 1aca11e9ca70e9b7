// SPDX-License-Identifier: MIT
#include "experiments/spec/experiment_load.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "experiments/spec/experiment_agents.h"
#include "base/suggestion.h"

#define MINUTE_NS (60ull * 1000000000ull)

static int resolve_load_target(struct resolver *r, int node, const struct load_spec *spec)
{
    const struct experiment_server_array *servers = &r->experiment->servers;
    const char *names[64];
    char hint[400];
    r->experiment->load.to = 0;
    if (!spec->to && servers->count > 1)
        return yaml_error(r->source, node, r->err,
                          "load: there are several servers; say which one is loaded: `to: %s`",
                          servers->items[0].name);
    if (!spec->to)
        return 0;
    for (size_t i = 0; i < servers->count; i++) {
        names[i] = servers->items[i].name;
        if (strcmp(names[i], spec->to) == 0) {
            r->experiment->load.to = i;
            return 0;
        }
    }
    return yaml_error(r->source, yaml_child(r->source, node, "to"), r->err,
                      "to: no server is called `%s`%s", spec->to,
                      suggestion_write(spec->to, names, servers->count, hint, sizeof hint));
}

// They are the workload's, unless the load says otherwise.
static int resolve_arrivals(struct resolver *r, int node, const char *text)
{
    struct workload *workload = &r->experiment->workload;
    struct experiment_load *load = &r->experiment->load;
    if (text) {
        struct error inner;
        struct distribution arrivals;
        if (arrivals_parse(text, &arrivals, &inner) < 0)
            return misread(r, node, "arrivals", &inner);
        distribution_free(&workload->arrivals);
        workload->arrivals = arrivals;
    }
    arrivals_format(&workload->arrivals, load->arrivals, sizeof load->arrivals);
    return 0;
}

static bool is_percentile(const char *text)
{
    double percentile;
    int end = 0;
    return sscanf(text, "p%lf%n", &percentile, &end) == 1 && !text[end] && percentile > 0 &&
           percentile < 100;
}

// What cannot go with a load that lasts as long as it must.
static int check_method_fits(struct resolver *r, int node)
{
    const struct workload *workload = &r->experiment->workload;
    if (workload->recording)
        return yaml_error(r->source, node, r->err,
                          "method: a recorded schedule (%s) lasts as long as it is",
                          workload->recording);
    if (workload->pattern.kind != PATTERN_CONSTANT)
        return yaml_error(r->source, node, r->err,
                          "method: it needs a rate that holds still, and the workload has a "
                          "pattern; use `duration`");
    return 0;
}

static int resolve_method(struct resolver *r, int node)
{
    const struct method_spec *spec = &r->spec->load.method;
    struct experiment_load *load = &r->experiment->load;
    struct experiment_method *method = &load->method;
    int result = check_method_fits(r, node);
    if (result < 0)
        return result;
    if (!spec->percentile || !spec->interval)
        return yaml_error(r->source, node, r->err,
                          "method: `percentile` and `interval` are needed, e.g. `method: "
                          "{percentile: p99, interval: 10us}`");
    if (!is_percentile(spec->percentile))
        return yaml_error(r->source, yaml_child(r->source, node, "percentile"), r->err,
                          "percentile: `%s` is not a percentile, like p99.9", spec->percentile);
    *method = (struct experiment_method){.percentile = spec->percentile, .confidence = 0.95};
    load->duration_ns = MINUTE_NS;
    struct error inner;
    if (spec->confidence && units_parse_number(spec->confidence, &method->confidence, &inner) < 0)
        return misread(r, node, "confidence", &inner);
    if (!(method->confidence >= 0.5 && method->confidence < 1))
        return yaml_error(r->source, yaml_child(r->source, node, "confidence"), r->err,
                          "confidence: %s is not 0.5 to less than 1", spec->confidence);
    if ((result = resolve_duration(r, node, "interval", spec->interval, &method->interval_ns)) < 0)
        return result;
    if (method->interval_ns == 0)
        return yaml_error(r->source, yaml_child(r->source, node, "interval"), r->err,
                          "interval: must be more than 0");
    return resolve_duration(r, node, "budget", spec->budget, &load->duration_ns);
}

// How long it lasts: for a duration, or as the method decides.
static int resolve_length(struct resolver *r, int node)
{
    const struct load_spec *spec = &r->spec->load;
    struct experiment_load *load = &r->experiment->load;
    bool given = yaml_key(r->source, node, "method") != 0;
    if (given && spec->duration)
        return yaml_error(r->source, yaml_key(r->source, node, "duration"), r->err,
                          "`duration` and `method` exclude each other: the method decides how long "
                          "the load lasts, `budget` in it how long at most");
    int result = given ? resolve_method(r, yaml_child(r->source, node, "method"))
                       : resolve_duration(r, node, "duration", spec->duration, &load->duration_ns);
    if (result < 0)
        return result;
    if (load->duration_ns < 10000000 || load->duration_ns > 24 * 60 * MINUTE_NS)
        return yaml_error(
            r->source,
            given ? yaml_child(r->source, yaml_child(r->source, node, "method"), "budget")
                  : yaml_child(r->source, node, "duration"),
            r->err, "%s: %s is outside 10ms to 24h", given ? "budget" : "duration",
            given ? spec->method.budget : spec->duration);
    return 0;
}

int resolve_load(struct resolver *r)
{
    static const char *const stamps[] = {"auto", "hw", "sw", "user"};
    const struct load_spec *spec = &r->spec->load;
    struct experiment_load *load = &r->experiment->load;
    int node = yaml_child(r->source, yaml_root(r->source), "load"), result;
    *load = (struct experiment_load){.connections = 16,
                                     .depth = 8,
                                     .duration_ns = 10000000000ull,
                                     .seed = 1,
                                     .stamps = "auto",
                                     .timeout_ns = 1000000000ull};
    if (!node)
        return yaml_error(r->source, yaml_root(r->source), r->err,
                          "`load` is missing, e.g. `load: {to: cache, rate: 20k, duration: 10s}`");
    if (!spec->rate && spec->agents_count == 0)
        return yaml_error(r->source, node, r->err,
                          "load: `rate` is missing; requests per second, e.g. `rate: 20k`");
    if ((result = resolve_rate(r, node, spec->rate, &load->rate)) < 0 ||
        (result = resolve_arrivals(r, node, spec->arrivals)) < 0 ||
        (result = resolve_count(r, node, "connections", spec->connections, 1, 65536,
                                &load->connections)) < 0 ||
        (result = resolve_count(r, node, "depth", spec->depth, 1, 4096, &load->depth)) < 0 ||
        (result = resolve_count(r, node, "seed", spec->seed, 0, 1ull << 53, &load->seed)) < 0 ||
        (result = resolve_word(r, node, "stamps", spec->stamps, stamps, 4, &load->stamps)) < 0 ||
        (result = resolve_length(r, node)) < 0 ||
        (result = resolve_duration(r, node, "timeout", spec->timeout, &load->timeout_ns)) < 0)
        return result;
    if (load->timeout_ns < 1000000 || load->timeout_ns > MINUTE_NS)
        return yaml_error(r->source, yaml_child(r->source, node, "timeout"), r->err,
                          "timeout: %s is outside 1ms to 60s", spec->timeout);
    return 0;
}

// The host that loads; where agents do, the first of them runs on, unless another is named.
static int resolve_load_host(struct resolver *r, int load)
{
    const struct load_spec *spec = &r->spec->load;
    const char *first = spec->agents_count ? spec->agents[0].host : NULL;
    size_t *from = &r->experiment->load.from;
    if (spec->from || !first)
        return resolve_host_name(r, load, "from", spec->from, "client", from);
    int agent = yaml_entry(r->source, yaml_child(r->source, load, "agents"), 0);
    return resolve_host_name(r, agent, "host", first, first, from);
}

int resolve_load_ends(struct resolver *r)
{
    int load = yaml_child(r->source, yaml_root(r->source), "load");
    int result = resolve_load_target(r, load, &r->spec->load);
    if (result == 0)
        result = resolve_load_host(r, load);
    return result < 0 ? result : resolve_agents(r, load);
}
