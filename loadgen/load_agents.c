// SPDX-License-Identifier: MIT
#include "loadgen/load_agents.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_numbers.h"
#include "base/text.h"
#include "base/units.h"
#include "loadgen/agents/agent_fleet.h"
#include "loadgen/agents/agent_pool.h"
#include "loadgen/engine/load_signals.h"
#include "loadgen/method/load_reasons.h"
#include "loadgen/method/method_rounds.h"

enum { DISAGREEMENTS_MOST = 8 };

// The agents' settings at this point of a curve: agents without a rate of their own share its rate;
// their seeds derive from the point's.
static int make_specs(const struct load_plan *plan, const struct load_point *point,
                      struct agent_spec *specs, struct error *err)
{
    double rate = point->rate;
    memcpy(specs, plan->agents, plan->agent_count * sizeof *specs);
    return agent_specs_resolve(specs, plan->agent_count, plan->options.connections,
                               plan->options.threads, plan->options.depth, point->seed, &rate, err);
}

// --- findings ------------------------------------------------------------------------------------

static double object_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

// Adds a sentence for each pair that disagrees; these are also reasons not to trust the result.
static int disagreements_report(const struct fleet_outcome *fleet,
                                const struct agents_measured *measured,
                                const struct method_settings *settings,
                                struct load_summary *summary, json_t **texts, struct error *err)
{
    struct agent_finding findings[AGENTS_MAX];
    struct agent_disagreement pairs[DISAGREEMENTS_MOST];
    char percentile[32], text[400];
    size_t count;
    int status = agents_measured_judge(measured, fleet, settings, findings, &count, err);
    if (status < 0)
        return status;
    *texts = json_array();
    size_t found = agent_disagreements(findings, count, pairs, DISAGREEMENTS_MOST);
    method_percentile_name(settings->quantile, percentile, sizeof percentile);
    for (size_t i = 0; i < found && i < DISAGREEMENTS_MOST; i++) {
        const struct agent_finding *low = &findings[pairs[i].low], *high = &findings[pairs[i].high];
        snprintf(text, sizeof text,
                 "agents disagree: %s is %s [%s, %s] to %s and %s [%s, %s] to %s", percentile,
                 TEXT_US(low->value), TEXT_US(low->low), TEXT_US(low->high), low->name,
                 TEXT_US(high->value), TEXT_US(high->low), TEXT_US(high->high), high->name);
        json_array_append_new(*texts, json_string(text));
        load_summary_add_reason(summary, DOUBT_DISAGREED, "%s", text);
    }
    return 0;
}

// --- the document --------------------------------------------------------------------------------

static json_t *agent_json(const struct agent_outcome *agent)
{
    const struct agent_spec *spec = agent->spec;
    const struct engine_result *result = &agent->result;
    char cores[256];
    json_t *json = json_pack("{s:s,s:s,s:f,s:I,s:I,s:I,s:I}", "name", spec->name, "kind",
                             agent_kind_name(spec->kind), "rate", spec->rate, "connections",
                             (json_int_t)spec->connections, "threads", (json_int_t)spec->threads,
                             "depth", (json_int_t)spec->depth, "seed", (json_int_t)spec->seed);
    json_object_set_new(json, "cores",
                        spec->has_cores
                            ? json_string(units_format_cores(&spec->cores, cores, sizeof cores))
                            : json_null());
    json_object_set_new(json, "netns", spec->netns[0] ? json_string(spec->netns) : json_null());
    json_object_set_new(json, "link", spec->link[0] ? json_string(spec->link) : json_null());
    json_object_set_new(json, "lost", agent->lost[0] ? json_string(agent->lost) : json_null());
    if (agent->lost[0])
        return json;
    json_object_set_new(json, "begin_late_us",
                        json_real((double)result->late_tsc / result->tsc_hz * 1e6));
    if (spec->kind == AGENT_LATENCY)
        json_object_set_new(json, "busy_poll",
                            result->busy_poll_why.kind ? json_string(result->busy_poll_why.text)
                                                       : json_true());
    json_object_set(json, "report", agent->report);
    return json;
}

static double sum_of(const struct fleet_outcome *fleet, const char *key)
{
    double sum = 0;
    for (size_t i = 0; i < fleet->count; i++)
        if (fleet->agents[i].report)
            sum += json_number_value(json_object_get(fleet->agents[i].report, key));
    return sum;
}

// Over all agents, including those that do not measure.
static json_t *total_json(const struct fleet_outcome *fleet, double rate)
{
    static const char *const rates[] = {"offered_rate", "achieved_rate"};
    static const char *const counts[] = {"scheduled", "sent", "answered"};
    json_t *total = json_pack("{s:f}", "rate", rate);
    for (size_t k = 0; k < sizeof rates / sizeof *rates; k++)
        json_object_set_new(total, rates[k], json_real(sum_of(fleet, rates[k])));
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
        json_object_set_new(total, counts[k], json_integer((json_int_t)sum_of(fleet, counts[k])));
    return total;
}

static json_t *agents_json(const struct fleet_outcome *fleet, double rate, json_t *disagreements)
{
    json_t *list = json_array();
    for (size_t i = 0; i < fleet->count; i++)
        json_array_append_new(list, agent_json(&fleet->agents[i]));
    return json_pack("{s:o,s:o,s:o,s:f,s:o}", "list", list, "disagreements", disagreements,
                     "start_spread_us", json_number_or_null(fleet->start_spread_us),
                     "start_bound_us", fleet->start_bound_us, "total", total_json(fleet, rate));
}

// --- a load --------------------------------------------------------------------------------------

// The verdict on the pool: the agents that measure, taken as one.
static struct method_settings pool_method(const struct load_plan *plan,
                                          const struct agent_spec *specs)
{
    struct method_settings settings = load_plan_method(plan);
    settings.rate = 0;
    settings.turn = 0;
    settings.pooled = true;
    for (size_t i = 0; i < plan->agent_count; i++)
        if (agent_kind_measures(specs[i].kind)) {
            settings.rate += specs[i].rate;
            settings.turn += specs[i].connections;
        }
    return settings;
}

static int judge_pool(const struct engine_result *pool, const struct method_settings *settings,
                      uint64_t duration_ns, const struct agents_word *word,
                      struct load_summary *summary, struct method *method, struct error *err)
{
    int status = load_summarise(pool, duration_ns, summary, err);
    if (status < 0)
        return status;
    // An agent's own report on its sending explains more than what the pool shows of it.
    if (!word->troubles.ok) {
        summary->ok = false;
        summary->reason_count = word->troubles.reason_count;
        memcpy(summary->reasons, word->troubles.reasons, sizeof summary->reasons);
        memcpy(summary->doubts, word->troubles.doubts, sizeof summary->doubts);
    }
    status = method_judge(pool, settings, summary->ok, summary->spin_fraction, method, err);
    method->findings[METHOD_CLIENT] = word->client;
    method->findings[METHOD_ARRIVALS] = word->arrivals;
    for (unsigned i = 0; status == 0 && i < method->reason_count; i++)
        load_summary_add_reason(summary, method->doubts[i], "%s", method->reasons[i]);
    return status;
}

static int run_fleet(const struct load_plan *plan, const struct agent_spec *specs,
                     uint64_t duration_ns, bool announce, struct fleet_outcome *fleet,
                     struct error *err)
{
    const struct engine_settings engine = load_plan_engine(plan);
    const struct fleet_settings settings = {.specs = specs,
                                            .count = plan->agent_count,
                                            .workload = &plan->workload,
                                            .server = plan->server.text,
                                            .cluster = engine.cluster,
                                            .sentinel = engine.sentinel,
                                            .login = &plan->login,
                                            .tls = &plan->tls,
                                            .duration_ns = duration_ns,
                                            .timeout_ns = engine.timeout_ns,
                                            .reconnect_ns = engine.reconnect_ns,
                                            .session = engine.session,
                                            .stamps = plan->stamps,
                                            .quantile = plan->quantile,
                                            .confidence = plan->options.confidence,
                                            .announce = announce ? engine.announce : NULL,
                                            .announce_context = engine.announce_context};
    return fleet_run(&settings, fleet, err);
}

int load_agents_once(const struct load_plan *plan, const struct load_point *point,
                     struct load_outcome *outcome, struct error *err)
{
    struct agent_spec specs[AGENTS_MAX];
    struct fleet_outcome fleet;
    struct agents_word word;
    struct agents_measured measured = {0};
    json_t *texts = NULL;
    struct load_signals signals;
    const struct machine_time began = machine_time_read();
    load_signals_hold(&signals);
    int status = make_specs(plan, point, specs, err);
    if (status == 0)
        status = run_fleet(plan, specs, point->duration_ns, true, &fleet, err);
    load_signals_sum_up(&signals, status < 0 || fleet.interrupted || plan->options.repetitions > 1);
    if (status < 0)
        return status;
    status = agent_pool(&fleet, &outcome->result, err);
    if (status == 0) {
        struct method_settings settings = pool_method(plan, specs);
        settings.duration_s = (double)point->duration_ns / 1e9;
        settings.stolen = machine_stolen_since(&began);
        agents_hear(&word, &fleet, true);
        status = judge_pool(&outcome->result, &settings, point->duration_ns, &word,
                            &outcome->summary, &outcome->method, err);
    }
    if (status == 0)
        status = agents_measured_add(&measured, &fleet, true, err);
    if (status == 0)
        status = disagreements_report(&fleet, &measured, &outcome->method.settings,
                                      &outcome->summary, &texts, err);
    if (status == 0)
        outcome->agents = agents_json(&fleet, point->rate, texts);
    agents_measured_free(&measured);
    fleet_outcome_free(&fleet);
    return status;
}

// --- rounds --------------------------------------------------------------------------------------

struct agent_rounds {
    const struct load_plan *plan;
    struct method_settings method;
    struct agent_spec specs[AGENTS_MAX]; // of the last round
    struct fleet_outcome last;           // that round
    struct agents_word word;
    struct agents_measured measured; // time loaded in all rounds of the pool
    json_t *agents;
};

static int take_round(void *context, uint64_t duration_ns, uint64_t seed, bool first,
                      struct engine_result *round, struct error *err)
{
    struct agent_rounds *rounds = context;
    const struct load_point point = {rounds->plan->options.rate, duration_ns, seed, 0};
    fleet_outcome_free(&rounds->last);
    int status = make_specs(rounds->plan, &point, rounds->specs, err);
    if (status == 0)
        status = run_fleet(rounds->plan, rounds->specs, duration_ns, first, &rounds->last, err);
    return status < 0 ? status : agent_pool(&rounds->last, round, err);
}

static int judge_rounds(void *context, struct rounds *taken, struct error *err)
{
    struct agent_rounds *rounds = context;
    struct method_settings settings = rounds->method;
    settings.stolen = machine_stolen_since(&taken->began);
    const bool first = taken->measured == 1;
    json_t *texts = NULL;
    agents_hear(&rounds->word, &rounds->last, first);
    int status = agents_measured_add(&rounds->measured, &rounds->last, first, err);
    if (status == 0)
        status = judge_pool(&taken->pool, &settings, taken->duration_ns, &rounds->word,
                            &taken->summary, &taken->method, err);
    if (status == 0)
        status = disagreements_report(&rounds->last, &rounds->measured, &settings, &taken->summary,
                                      &texts, err);
    if (status < 0)
        return status;
    json_decref(rounds->agents);
    rounds->agents = agents_json(&rounds->last, rounds->plan->options.rate, texts);
    return 0;
}

int load_agents_rounds(const struct load_plan *plan, struct rounds *rounds, json_t **agents,
                       struct error *err)
{
    const struct load_point point = {.rate = plan->options.rate, .seed = plan->options.seed};
    struct agent_rounds *context = calloc(1, sizeof *context);
    struct rounds_settings settings = {.source = {take_round, judge_rounds, context},
                                       .seed = plan->options.seed};
    *agents = NULL;
    *rounds = (struct rounds){0};
    if (!context)
        return error_set(err, ERROR_FAILED, "out of memory for the agents");
    context->plan = plan;
    int status = make_specs(plan, &point, context->specs, err);
    if (status == 0) {
        settings.method = context->method = pool_method(plan, context->specs);
        status = rounds_run(&settings, rounds, err);
    }
    fleet_outcome_free(&context->last);
    agents_measured_free(&context->measured);
    *agents = context->agents;
    free(context);
    return status;
}

// --- a point of a curve --------------------------------------------------------------------------

void load_agents_point(const json_t *agents, struct load_summary *summary,
                       struct load_saturation *saturation)
{
    const json_t *total = json_object_get(agents, "total");
    size_t i;
    json_t *agent;
    *saturation = (struct load_saturation){0};
    summary->offered_rate = object_number(total, "offered_rate");
    summary->achieved_rate = object_number(total, "achieved_rate");
    summary->scheduled = (uint64_t)json_integer_value(json_object_get(total, "scheduled"));
    summary->answered = (uint64_t)json_integer_value(json_object_get(total, "answered"));
    json_array_foreach(json_object_get(agents, "list"), i, agent)
    {
        const char *name = json_string_value(json_object_get(agent, "name"));
        struct load_saturation one;
        load_saturation_read(json_object_get(json_object_get(agent, "report"), "saturated"), &one);
        for (unsigned k = 0; k < 2; k++) {
            saturation->in_flight[k] += one.in_flight[k];
            saturation->waiting[k] += one.waiting[k];
        }
        if (one.who == SATURATION_NONE || saturation->who == SATURATION_SERVER ||
            (saturation->who == SATURATION_CLIENT && one.who == SATURATION_CLIENT))
            continue;
        saturation->who = one.who;
        snprintf(saturation->why, sizeof saturation->why, "agent %s: %.240s", name, one.why);
    }
}

// --- for people ----------------------------------------------------------------------------------

void load_agents_print(const json_t *agents, FILE *out)
{
    size_t i;
    json_t *agent;
    double spread_us = object_number(agents, "start_spread_us");
    const json_t *total = json_object_get(agents, "total");
    char offered[TEXT_NUMBER_BYTES], achieved[TEXT_NUMBER_BYTES];
    fprintf(out, "  agents     together %s requests/s offered, %s/s answered",
            text_rate(object_number(total, "offered_rate"), offered),
            text_rate(object_number(total, "achieved_rate"), achieved));
    if (isfinite(spread_us))
        fprintf(out, "; began within %s", TEXT_US(spread_us));
    if (object_number(agents, "start_bound_us") > 0)
        fprintf(out, ", by clocks known to %s", TEXT_US(object_number(agents, "start_bound_us")));
    fputc('\n', out);
    json_array_foreach(json_object_get(agents, "list"), i, agent)
    {
        const char *lost = json_string_value(json_object_get(agent, "lost"));
        const char *no_poll = json_string_value(json_object_get(agent, "busy_poll"));
        const json_t *report = json_object_get(agent, "report");
        const json_t *latency = json_object_get(report, "latency_us");
        fprintf(out, "             %s, %s, %s requests/s on %s connections, seed %lld: ",
                json_string_value(json_object_get(agent, "name")),
                json_string_value(json_object_get(agent, "kind")),
                text_rate(object_number(agent, "rate"), offered),
                TEXT_COUNT(json_integer_value(json_object_get(agent, "connections"))),
                json_integer_value(json_object_get(agent, "seed")));
        if (lost)
            fprintf(out, "lost: %s", lost);
        else if (strcmp(json_string_value(json_object_get(agent, "kind")), "throughput") == 0)
            fprintf(
                out, "%s answered, p99 of its own lateness %s",
                TEXT_COUNT(json_integer_value(json_object_get(report, "answered"))),
                TEXT_US(object_number(
                    json_object_get(json_object_get(report, "method"), "own_lateness_us"), "p99")));
        else
            fprintf(out, "p50 %s, p99 %s", TEXT_US(object_number(latency, "p50")),
                    TEXT_US(object_number(latency, "p99")));
        fprintf(out, "%s%s\n", no_poll ? "; " : "", no_poll ? no_poll : "");
    }
}
