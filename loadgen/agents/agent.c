// SPDX-License-Identifier: MIT
#include "loadgen/agents/agent.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "base/units.h"
#include "loadgen/engine/engine.h"

static const char *const kind_names[] = {"throughput", "latency", "symmetric"};
static const double latency_rate_default = 1000;
static const double latency_share_most = 0.1; // of all requests; default share

const char *agent_kind_name(enum agent_kind kind)
{
    return kind_names[kind];
}

bool agent_kind_measures(enum agent_kind kind)
{
    return kind != AGENT_THROUGHPUT;
}

// --- reading -------------------------------------------------------------------------------------

static int take_kind(const char *text, struct agent_spec *spec, struct error *err)
{
    for (unsigned kind = 0; kind < sizeof kind_names / sizeof *kind_names; kind++)
        if (strcmp(text, kind_names[kind]) == 0) {
            spec->kind = (enum agent_kind)kind;
            return 0;
        }
    return error_set(err, ERROR_INPUT, "\"%s\" is no kind of agent: throughput, latency, symmetric",
                     text);
}

// Names appear in messages, and in the paths of logs.
static int take_name(const char *text, struct agent_spec *spec, struct error *err)
{
    size_t length = strlen(text);
    bool plain = length > 0 && length < sizeof spec->name;
    for (size_t i = 0; plain && i < length; i++)
        plain = isalnum((unsigned char)text[i]) || (i && strchr("-_.", text[i]));
    if (!plain)
        return error_set(err, ERROR_INPUT,
                         "name: \"%s\" is not 1 to %zu letters, digits, '-', '_' and '.'", text,
                         sizeof spec->name - 1);
    snprintf(spec->name, sizeof spec->name, "%s", text);
    return 0;
}

static int take_netns(const char *text, struct agent_spec *spec, struct error *err)
{
    bool is_pid = *text && strspn(text, "0123456789") == strlen(text);
    int length = snprintf(spec->netns, sizeof spec->netns, is_pid ? "/proc/%s/ns/net" : "%s", text);
    if ((size_t)length >= sizeof spec->netns || (!is_pid && text[0] != '/'))
        return error_set(err, ERROR_INPUT,
                         "netns: \"%s\" is neither a process nor the path of a network namespace",
                         text);
    return 0;
}

static int take_link(const char *text, struct agent_spec *spec, struct error *err)
{
    if (text[0] != '/' || strlen(text) >= sizeof spec->link)
        return error_set(err, ERROR_INPUT, "link: \"%s\" is not the path of a link's file", text);
    snprintf(spec->link, sizeof spec->link, "%s", text);
    return 0;
}

static int take_cores(char *text, struct agent_spec *spec, struct error *err)
{
    for (char *plus = text; (plus = strchr(plus, '+'));)
        *plus = ',';
    spec->has_cores = true;
    return units_parse_cores(text, &spec->cores, err) < 0 ? error_prefix(err, "cores") : 0;
}

static int take_count(const char *name, const char *text, uint64_t most, uint64_t *count,
                      struct error *err)
{
    if (units_parse_count(text, count, err) < 0)
        return error_prefix(err, "%s", name);
    if (*count < 1 || *count > most)
        return error_set(err, ERROR_INPUT, "%s must be 1 to %llu", name, (unsigned long long)most);
    return 0;
}

static int take_part(char *part, struct agent_spec *spec, struct error *err)
{
    char *value = strchr(part, '=');
    if (!value)
        return error_set(err, ERROR_INPUT,
                         "\"%s\" is not one of name=, rate=, connections=, threads=, cores=, "
                         "netns= and link=",
                         part);
    *value++ = '\0';
    if (strcmp(part, "name") == 0)
        return take_name(value, spec, err);
    if (strcmp(part, "netns") == 0)
        return take_netns(value, spec, err);
    if (strcmp(part, "link") == 0)
        return take_link(value, spec, err);
    if (strcmp(part, "cores") == 0)
        return take_cores(value, spec, err);
    if (strcmp(part, "connections") == 0)
        return take_count(part, value, ENGINE_IN_FLIGHT_CAP, &spec->connections, err);
    if (strcmp(part, "threads") == 0)
        return take_count(part, value, CPU_SETSIZE, &spec->threads, err);
    if (strcmp(part, "rate") == 0) {
        if (units_parse_number(value, &spec->rate, err) < 0)
            return error_prefix(err, "rate");
        if (!(spec->rate > 0))
            return error_set(err, ERROR_INPUT, "rate must be more than 0");
        return 0;
    }
    return error_set(err, ERROR_INPUT,
                     "\"%s\" is not one of name, rate, connections, threads, cores, netns "
                     "and link",
                     part);
}

int agent_spec_parse(const char *text, struct agent_spec *spec, struct error *err)
{
    char copy[1024];
    *spec = (struct agent_spec){.kind = AGENT_SYMMETRIC};
    if (strlen(text) >= sizeof copy)
        return error_set(err, ERROR_INPUT, "an agent takes at most %zu characters",
                         sizeof copy - 1);
    snprintf(copy, sizeof copy, "%s", text);
    char *rest = copy;
    int result = take_kind(strsep(&rest, ","), spec, err);
    while (result == 0 && rest)
        result = take_part(strsep(&rest, ","), spec, err);
    return result;
}

// --- all agents together -------------------------------------------------------------------------

static int name_agents(struct agent_spec *specs, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!specs[i].name[0])
            snprintf(specs[i].name, sizeof specs[i].name, "agent%zu", i + 1);
        for (size_t j = 0; j < i; j++)
            if (strcmp(specs[i].name, specs[j].name) == 0)
                return error_set(err, ERROR_INPUT, "two agents are called %s", specs[i].name);
    }
    return 0;
}

static int share_rate(struct agent_spec *specs, size_t count, double *rate, struct error *err)
{
    double given = 0;
    size_t sharing = 0;
    for (size_t i = 0; i < count; i++) {
        if (specs[i].rate == 0 && specs[i].kind == AGENT_LATENCY && *rate > 0)
            specs[i].rate = fmin(latency_rate_default, *rate * latency_share_most);
        given += specs[i].rate;
        sharing += specs[i].rate == 0;
    }
    if (*rate == 0 && sharing == 0)
        *rate = given;
    if (*rate == 0)
        return error_set(err, ERROR_INPUT,
                         "agents without a rate share --rate, which is not given");
    if (sharing ? given >= *rate : fabs(given - *rate) > 1e-9 * *rate)
        return error_set(
            err, ERROR_INPUT, "the agents' rates come to %s requests/s%s, and --rate is %s",
            TEXT_RATE(given), sharing ? " before those without one take their share" : "",
            TEXT_RATE(*rate));
    for (size_t i = 0; i < count; i++)
        if (specs[i].rate == 0)
            specs[i].rate = (*rate - given) / (double)sharing;
    return 0;
}

int agent_specs_resolve(struct agent_spec *specs, size_t count, uint64_t connections,
                        uint64_t threads, uint64_t depth, uint64_t seed, double *rate,
                        struct error *err)
{
    bool measures = false;
    for (size_t i = 0; i < count; i++) {
        struct agent_spec *spec = &specs[i];
        if (spec->connections == 0)
            spec->connections = connections;
        if (spec->threads == 0)
            spec->threads = threads < spec->connections ? threads : spec->connections;
        spec->depth = spec->kind == AGENT_LATENCY ? 1 : depth;
        spec->seed = hash64(hash64(seed) + i + 1) & 0xffffffff; // the same range as a drawn seed
        measures |= agent_kind_measures(spec->kind);
        if (spec->threads > spec->connections)
            return error_set(err, ERROR_INPUT, "%llu threads need as many connections, not %llu",
                             (unsigned long long)spec->threads,
                             (unsigned long long)spec->connections);
        if (spec->depth > ENGINE_IN_FLIGHT_CAP / spec->connections)
            return error_set(err, ERROR_INPUT, "%s in flight on %s connections are over %d",
                             TEXT_COUNT(spec->depth), TEXT_COUNT(spec->connections),
                             ENGINE_IN_FLIGHT_CAP);
        // Seeds of 32 bits may collide; two agents with the same schedule would send in lockstep.
        for (size_t j = 0; j < i; j++)
            if (specs[j].seed == spec->seed) {
                spec->seed = (spec->seed + 1) & 0xffffffff;
                j = SIZE_MAX;
            }
    }
    if (!measures)
        return error_set(err, ERROR_INPUT,
                         "throughput agents only load: one of kind latency or symmetric is needed");
    int result = name_agents(specs, count, err);
    return result < 0 ? result : share_rate(specs, count, rate, err);
}
