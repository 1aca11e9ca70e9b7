// SPDX-License-Identifier: MIT
#include "loadgen/load_command.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/log_file.h"
#include "base/options.h"
#include "base/progress.h"
#include "loadgen/engine.h"
#include "loadgen/load_summary.h"
#include "loadgen/method.h"
#include "loadgen/method_rounds.h"
#include "loadgen/schedule.h"
#include "loadgen/server_address.h"
#include "workloads/dataset.h"
#include "workloads/protocol.h"
#include "workloads/workload.h"

static const uint64_t seed_not_given = UINT64_MAX;
static const uint64_t duration_not_given = UINT64_MAX;
static const uint64_t duration_default = 10000000000u;
static const uint64_t max_duration_default = 60000000000u;

struct load_options {
    const char *server, *protocol, *workload, *arrivals, *stamps, *samples, *target;
    double rate, confidence;
    uint64_t connections, depth, duration_ns, interval_ns, max_duration_ns, seed, timeout_ns;
    bool prepare, announce, json, quiet;
};

static const struct option_spec options[] = {
    OPTION_STRING("server", 's', "HOST:PORT", struct load_options, server,
                  "the server; an IPv6 address in brackets"),
    OPTION_STRING("protocol", 0, "NAME", struct load_options, protocol,
                  "memcached, memcached-binary, memcached-meta, redis, redis-resp3, http or lab"),
    OPTION_STRING("workload", 'w', "FILE", struct load_options, workload,
                  "what is asked: a YAML file, or etc, usr or var (100k keys, 90 % get)"),
    OPTION_NUMBER("rate", 'r', "N", struct load_options, rate, "requests per second: 20k"),
    OPTION_COUNT("connections", 'c', "N", struct load_options, connections, "TCP connections (16)"),
    OPTION_COUNT("depth", 0, "N", struct load_options, depth,
                 "requests in flight per connection (65536 over all)"),
    OPTION_DURATION("duration", 'd', "TIME", struct load_options, duration_ns,
                    "how long requests are scheduled for (10s)"),
    OPTION_STRING("target", 0, "PERCENTILE", struct load_options, target,
                  "p99, p99.9: instead of a duration, load until its interval is --ci wide"),
    OPTION_DURATION("ci", 0, "TIME", struct load_options, interval_ns,
                    "the target percentile's confidence interval, at most"),
    OPTION_NUMBER("confidence", 0, "N", struct load_options, confidence, "of that interval (0.95)"),
    OPTION_DURATION("max-duration", 0, "TIME", struct load_options, max_duration_ns,
                    "how long --target may load at most (60s)"),
    OPTION_STRING("arrivals", 0, "KIND", struct load_options, arrivals,
                  "exponential (Poisson, the default), fixed, uniform, or e.g. lognormal:1,0.5"),
    OPTION_COUNT("seed", 0, "N", struct load_options, seed,
                 "of times, operations and keys (random, and reported)"),
    OPTION_STRING("stamps", 0, "KIND", struct load_options, stamps,
                  "auto (default), sw: kernel software stamps, user: none"),
    OPTION_DURATION("timeout", 0, "TIME", struct load_options, timeout_ns,
                    "how long replies are waited for after the end (1s)"),
    OPTION_STRING("samples", 0, "DIR", struct load_options, samples,
                  "write samples.tlog and connections.tlog there"),
    OPTION_FLAG("prepare", 0, struct load_options, prepare,
                "store the workload's dataset, verify it, and exit"),
    OPTION_FLAG("announce", 0, struct load_options, announce,
                "print a first line {\"begin_ns\": CLOCK_MONOTONIC} just before the load begins"),
    OPTION_FLAG("json", 0, struct load_options, json, "print one JSON document on stdout"),
    OPTION_FLAG("quiet", 'q', struct load_options, quiet, "no progress on stderr"),
    OPTION_END,
};

static const struct command_usage usage = {
    .name = "load",
    .arguments = "--server HOST:PORT --rate N [options]",
    .summary = "Loads a server, open-loop, and reports its latency.",
    .details = "Requests are sent at instants drawn ahead of time, whatever the replies do; "
               "latency counts from\nthose instants. Requests take the connections in turn, "
               "passing over those without room; when none\nhas room they wait, and their "
               "lateness counts. Ctrl-C ends the run early and keeps its logs.\n"
               "Exit codes: 0 done; 1 failed, or nothing was answered; 2 bad usage or input; 4 the "
               "result cannot\nbe trusted, for the reasons it names.",
    .options = options,
};

// What the options come to.
struct load_plan {
    struct load_options options;
    struct server_address server;
    struct workload workload;
    char arrivals[4200]; // what they come to, for people
    char pattern[500];   // the same
    enum stamp_mode stamps;
    double quantile; // the target's
    struct progress progress;
};

static int check_kinds(struct load_plan *plan, struct error *err)
{
    const struct load_options *o = &plan->options;
    if (strcmp(o->stamps, "auto") == 0)
        plan->stamps = STAMP_MODE_AUTO;
    else if (strcmp(o->stamps, "sw") == 0)
        plan->stamps = STAMP_MODE_SOFTWARE;
    else if (strcmp(o->stamps, "user") == 0)
        plan->stamps = STAMP_MODE_USER;
    else
        return error_set(err, ERROR_INPUT, "--stamps: \"%s\" is not auto, sw or user", o->stamps);
    return 0;
}

static int check_numbers(const struct load_options *o, struct error *err)
{
    if (o->connections < 1 || o->connections > ENGINE_IN_FLIGHT_CAP)
        return error_set(err, ERROR_INPUT, "--connections must be 1 to %d", ENGINE_IN_FLIGHT_CAP);
    if (o->depth > ENGINE_IN_FLIGHT_CAP / o->connections)
        return error_set(
            err, ERROR_INPUT, "--depth: %llu on %llu connections are more than %d in flight",
            (unsigned long long)o->depth, (unsigned long long)o->connections, ENGINE_IN_FLIGHT_CAP);
    if (o->prepare)
        return 0;
    if (!(o->rate > 0))
        return error_set(err, ERROR_INPUT,
                         "--rate is needed, and more than 0: requests per second, like 20k");
    if (o->duration_ns == 0)
        return error_set(err, ERROR_INPUT, "--duration must be more than 0");
    return 0;
}

// The workload's file, and what the options change of it.
static int choose_workload(struct load_plan *plan, struct error *err)
{
    const struct load_options *o = &plan->options;
    struct workload *workload = &plan->workload;
    int status = o->workload ? workload_load_file(o->workload, workload, err) : 0;
    if (status < 0)
        return status;
    if (o->protocol) {
        const struct protocol *protocol = protocol_find(o->protocol);
        if (!protocol)
            return error_set(err, ERROR_INPUT, "--protocol: \"%s\" is not one of: %s", o->protocol,
                             protocol_names());
        if (workload_set_protocol(workload, protocol, err) < 0)
            return error_prefix(err, "--protocol");
        if (workload->service_given && strcmp(protocol->name, "lab") != 0)
            return error_set(err, ERROR_INPUT,
                             "--protocol: %s does not tell the server how long to work, which the "
                             "workload asks for (service); lab does",
                             protocol->name);
    }
    if (o->arrivals) {
        struct distribution arrivals;
        if (arrivals_parse(o->arrivals, &arrivals, err) < 0)
            return error_prefix(err, "--arrivals");
        distribution_free(&workload->arrivals);
        workload->arrivals = arrivals;
    }
    arrivals_format(&workload->arrivals, plan->arrivals, sizeof plan->arrivals);
    rate_pattern_format(&workload->pattern, plan->pattern, sizeof plan->pattern);
    return 0;
}

static int check_target(struct load_plan *plan, struct error *err)
{
    struct load_options *o = &plan->options;
    double percentile = 99;
    int end = 0;
    if (o->target && (sscanf(o->target, "p%lf%n", &percentile, &end) != 1 || o->target[end] ||
                      !(percentile > 0 && percentile < 100)))
        return error_set(err, ERROR_INPUT, "--target: \"%s\" is not a percentile, like p99.9",
                         o->target);
    if (!o->target != !o->interval_ns)
        return error_set(err, ERROR_INPUT,
                         "--target and --ci belong together: --target p99 --ci 10us");
    if (o->target && o->duration_ns != duration_not_given)
        return error_set(err, ERROR_INPUT,
                         "--duration and --target exclude each other; --max-duration bounds "
                         "--target");
    if (!o->target && o->max_duration_ns != duration_not_given)
        return error_set(err, ERROR_INPUT, "--max-duration needs --target; else use --duration");
    if (o->max_duration_ns == 0)
        return error_set(err, ERROR_INPUT, "--max-duration must be more than 0");
    if (!(o->confidence >= 0.5 && o->confidence < 1))
        return error_set(err, ERROR_INPUT, "--confidence must be 0.5 to less than 1");
    if (o->duration_ns == duration_not_given)
        o->duration_ns = duration_default;
    if (o->max_duration_ns == duration_not_given)
        o->max_duration_ns = max_duration_default;
    plan->quantile = percentile / 100;
    return 0;
}

static int make_plan(struct load_plan *plan, int positional, char **argv, struct error *err)
{
    struct load_options *o = &plan->options;
    if (positional > 0)
        return error_set(err, ERROR_INPUT, "%s: load takes only options; see taillight load --help",
                         argv[1]);
    if (!o->server)
        return error_set(err, ERROR_INPUT, "--server HOST:PORT is needed");
    if (check_kinds(plan, err) < 0 || check_numbers(o, err) < 0 || check_target(plan, err) < 0)
        return -ERROR_INPUT;
    if (server_address_parse(o->server, &plan->server, err) < 0)
        return error_prefix(err, "--server");
    int status = choose_workload(plan, err);
    if (status < 0)
        return status;
    if (o->seed == seed_not_given) {
        uint32_t seed;
        if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
            return error_set_errno(err, ERROR_FAILED, "cannot draw a seed");
        o->seed = seed;
    }
    return server_address_resolve(&plan->server, err);
}

static int print_json(json_t *json, struct error *err)
{
    int status = json ? json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : -1;
    json_decref(json);
    if (status < 0 || putchar('\n') == EOF || fflush(stdout) != 0)
        return error_set_errno(err, ERROR_FAILED, "cannot print the result");
    return 0;
}

// --- --prepare -----------------------------------------------------------------------------------

static void show_progress(void *context, const char *phase, uint64_t done, uint64_t all)
{
    struct progress *progress = context;
    progress_update(progress, "%s %llu of %llu keys", phase, (unsigned long long)done,
                    (unsigned long long)all);
}

static int prepare_dataset(struct load_plan *plan, struct error *err)
{
    struct dataset_report report;
    progress_phase(&plan->progress, "loading the dataset into %s", plan->server.text);
    int status = dataset_prepare(&plan->workload, plan->server.host, plan->server.port,
                                 show_progress, &plan->progress, &report, err);
    progress_end(&plan->progress);
    if (status < 0)
        return status;
    if (plan->options.json)
        return print_json(json_pack("{s:I,s:I,s:I}", "stored", (json_int_t)report.stored,
                                    "verified", (json_int_t)report.verified, "bytes",
                                    (json_int_t)report.bytes),
                          err);
    if (plan->workload.protocol->dataset == DATASET_NONE)
        printf("protocol %s needs no dataset\n", plan->workload.protocol->name);
    else
        printf("%llu keys stored and verified, %.1f MiB\n", (unsigned long long)report.verified,
               (double)report.bytes / 1048576);
    return 0;
}

// --- the run -------------------------------------------------------------------------------------

static int make_directory(const char *path, struct error *err)
{
    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        return error_set_errno(err, ERROR_FAILED, "cannot create %s", path);
    return 0;
}

static int write_logs(const char *directory, const struct engine_result *result,
                      const struct connection *connections, uint32_t connection_count,
                      struct error *err)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/connections.tlog", directory);
    int status = log_write(path, LOG_CONNECTIONS, SAMPLE_LOG_VERSION, sizeof *connections,
                           connections, connection_count, 0, err);
    if (status < 0)
        return status;
    snprintf(path, sizeof path, "%s/samples.tlog", directory);
    return log_write(path, LOG_SAMPLES, SAMPLE_LOG_VERSION, sizeof *result->samples,
                     result->samples, result->sample_count, 0, err);
}

// The rounds of a run with a duration are NULL.
static json_t *result_json(const struct engine_result *result, const struct load_facts *facts,
                           const struct load_summary *summary, const struct method *method,
                           const struct rounds *rounds)
{
    json_t *json = load_summary_json(summary, result, facts);
    json_t *findings = method_json(method), *place = json_object_get(json, "method");
    if (!json || !findings || json_object_update(place, findings) < 0) {
        json_decref(findings);
        json_decref(json);
        return NULL;
    }
    json_decref(findings);
    if (rounds) {
        json_object_set_new(place, "stop", json_string(rounds->stop));
        json_object_set_new(place, "rounds", json_integer(rounds->measured));
        json_object_set_new(place, "stabilising_rounds", json_integer(rounds->stabilising));
    }
    return json;
}

static int report(const struct load_plan *plan, const struct engine_result *result,
                  const struct load_summary *summary, const struct method *method,
                  const struct rounds *rounds, struct error *err)
{
    const struct load_facts facts = {.server = plan->server.text,
                                     .protocol = plan->workload.protocol->name,
                                     .workload = plan->options.workload,
                                     .rate = plan->options.rate,
                                     .arrivals = plan->arrivals,
                                     .pattern = plan->pattern,
                                     .seed = plan->options.seed};
    int status = 0;
    if (plan->options.json) {
        status = print_json(result_json(result, &facts, summary, method, rounds), err);
    } else {
        load_summary_print(summary, result, &facts, stdout);
        method_print(method, stdout);
        if (rounds)
            printf("  rounds     %u measured, %u thrown away before; ended by: %s\n",
                   rounds->measured, rounds->stabilising, rounds->stop);
    }
    if (status < 0)
        return status;
    if (summary->answered == 0 && summary->scheduled)
        return error_set(err, ERROR_FAILED, "nothing was answered: %s",
                         summary->reason_count ? summary->reasons[0] : "no reason known");
    if (!summary->ok)
        return error_set(err, ERROR_INCONCLUSIVE, "inconclusive: %s", summary->reasons[0]);
    return 0;
}

static void print_begin(void *context, uint64_t begin_ns)
{
    (void)context;
    printf("{\"begin_ns\": %llu}\n", (unsigned long long)begin_ns);
    fflush(stdout);
}

// A run keeps all its samples in memory. Refuses one that would not fit, before the kernel's
// out-of-memory killer does. Where /proc does not tell what is available, the run is let through.
static int check_memory(const struct load_plan *plan, struct error *err)
{
    char line[120];
    unsigned long long available_kib = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu kB", &available_kib) == 1)
            break;
    if (file)
        fclose(file);
    const struct load_options *o = &plan->options;
    uint64_t longest_ns = o->target ? o->max_duration_ns : o->duration_ns;
    double requests =
        o->rate * (double)longest_ns / 1e9 * rate_pattern_integral(&plan->workload.pattern, 1);
    // A sample, its place in the schedule, and a value to sort for the percentiles, for the method
    // and for its gaps.
    double wanted = requests * (double)(sizeof(struct sample) + sizeof(struct scheduled_request) +
                                        3 * sizeof(double));
    if (!available_kib || wanted < (double)available_kib * 1024 * 0.8)
        return 0;
    return error_set(err, ERROR_INPUT,
                     "%.3g requests need %.3g MiB of memory for their samples, and %llu MiB are "
                     "available: lower --rate or --%s",
                     requests, wanted / 1048576, available_kib / 1024,
                     o->target ? "max-duration" : "duration");
}

static struct engine_settings engine_settings(const struct load_plan *plan)
{
    const struct load_options *o = &plan->options;
    return (struct engine_settings){.server = &plan->server,
                                    .workload = &plan->workload,
                                    .connections = (uint32_t)o->connections,
                                    .depth = (uint32_t)o->depth,
                                    .stamps = plan->stamps,
                                    .duration_ns = o->duration_ns,
                                    .timeout_ns = o->timeout_ns,
                                    .announce = o->announce ? print_begin : NULL};
}

static struct method_settings method_settings(const struct load_plan *plan)
{
    const struct load_options *o = &plan->options;
    return (struct method_settings){.quantile = plan->quantile,
                                    .confidence = o->confidence,
                                    .width_us = (double)o->interval_ns / 1e3,
                                    .arrivals = plan->workload.arrivals,
                                    .rate = o->rate,
                                    .turn = o->connections,
                                    .budget_s = (double)o->max_duration_ns / 1e9};
}

// Load for a given time, and then see whether it can be trusted.
static int run_duration(struct load_plan *plan, struct error *err)
{
    const struct load_options *o = &plan->options;
    const struct engine_settings engine = engine_settings(plan);
    const struct method_settings settings = method_settings(plan);
    struct schedule schedule = {0};
    struct engine_result result = {0};
    struct load_summary summary;
    struct method method;
    int status = schedule_draw(&plan->workload, &plan->workload.arrivals, o->rate, o->duration_ns,
                               o->seed, &schedule, err);
    if (status < 0)
        return status;
    progress_phase(&plan->progress, "loading %s for %.3g s at %.0f requests/s on %llu connections",
                   plan->server.text, (double)o->duration_ns / 1e9, o->rate,
                   (unsigned long long)o->connections);
    status = engine_run(&engine, &schedule, &result, err);
    progress_end(&plan->progress);
    schedule_free(&schedule);
    if (status < 0)
        return status;
    if (o->samples)
        status = write_logs(o->samples, &result, result.connections, result.connection_count, err);
    if (status == 0)
        status = load_summarise(&result, o->duration_ns, &summary, err);
    if (status == 0)
        status = method_judge(&result, &settings, summary.ok, summary.spin_fraction, &method, err);
    for (unsigned i = 0; status == 0 && i < method.reason_count; i++)
        load_summary_add_reason(&summary, "%s", method.reasons[i]);
    if (status == 0)
        status = report(plan, &result, &summary, &method, NULL, err);
    engine_result_free(&result);
    return status;
}

// Load until it can be trusted.
static int run_target(struct load_plan *plan, struct error *err)
{
    const struct load_options *o = &plan->options;
    const struct rounds_settings settings = {.engine = engine_settings(plan),
                                             .method = method_settings(plan),
                                             .seed = o->seed,
                                             .progress = &plan->progress};
    struct rounds rounds;
    progress_phase(
        &plan->progress,
        "loading %s at %.0f requests/s on %llu connections until %s is known to %.10g us",
        plan->server.text, o->rate, (unsigned long long)o->connections, o->target,
        settings.method.width_us);
    int status = rounds_run(&settings, &rounds, err);
    progress_end(&plan->progress);
    if (status == 0 && o->samples)
        status =
            write_logs(o->samples, &rounds.pool, rounds.connections, rounds.connection_count, err);
    if (status == 0)
        status = report(plan, &rounds.pool, &rounds.summary, &rounds.method, &rounds, err);
    rounds_free(&rounds);
    return status;
}

static int run(struct load_plan *plan, struct error *err)
{
    int status = check_memory(plan, err);
    if (status == 0 && plan->options.samples)
        status = make_directory(plan->options.samples, err);
    if (status < 0)
        return status;
    return plan->options.target ? run_target(plan, err) : run_duration(plan, err);
}

int load_command(int argc, char **argv)
{
    struct error err = {0};
    struct load_plan plan = {.options = {.stamps = "auto",
                                         .connections = 16,
                                         .duration_ns = duration_not_given,
                                         .max_duration_ns = duration_not_given,
                                         .confidence = 0.95,
                                         .timeout_ns = 1000000000u,
                                         .seed = seed_not_given}};
    int positional = 0;
    bool help = false;
    if (options_parse(&usage, argc, argv, &plan.options, &positional, &help, &err) < 0)
        return error_report(&err);
    if (help)
        return 0;
    progress_init(&plan.progress, plan.options.quiet);
    workload_defaults(&plan.workload);
    int status = make_plan(&plan, positional, argv, &err);
    if (status == 0)
        status = plan.options.prepare ? prepare_dataset(&plan, &err) : run(&plan, &err);
    workload_free(&plan.workload);
    return status < 0 ? error_report(&err) : 0;
}
