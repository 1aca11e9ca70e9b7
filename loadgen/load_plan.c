// SPDX-License-Identifier: MIT
#include "loadgen/load_plan.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/progress.h"
#include "base/text.h"
#include "base/units.h"
#include "loadgen/client/protocol_probe.h"
#include "loadgen/client/tls_tunnel.h"
#include "loadgen/load_hold.h"
#include "loadgen/recording/recording_file.h"
#include "workloads/protocols/protocols.h"
#include "workloads/protocols/redis_cluster.h"

enum { LONG_RECORDING = 32 << 20 }; // bytes, that take a moment to read

enum { BATCH_NS_MAX = 1000000 };

static const uint64_t duration_default = 10000000000u;
static const uint64_t max_duration_default = 60000000000u;
static const double search_from = 1000, search_step = 1.05; // set by --slo alone

void load_plan_init(struct load_plan *plan)
{
    *plan = (struct load_plan){.options = load_options_defaults()};
    workload_defaults(&plan->workload);
}

void load_plan_free(struct load_plan *plan)
{
    workload_free(&plan->workload);
    distribution_free(&plan->think);
    recording_free(&plan->recording);
    array_free(&plan->options.agents);
    free(plan->agents);
}

static int check_kinds(struct load_plan *plan, struct error *err)
{
    struct error why;
    if (stamp_mode_parse(plan->options.stamps, &plan->stamps, &plan->stamps_every, &why) < 0)
        return error_set(err, why.kind, "--stamps: %s", why.text);
    if (plan->stamps_every && plan->options.agents.count)
        return error_set(err, ERROR_INPUT,
                         "--stamps sw:1/N is for a load by this process, without --agent");
    return 0;
}

// Who asks for what a load finds does not mean to have none.
static int check_prepare(const struct load_options *o, struct error *err)
{
    const char *with = !o->prepare          ? NULL
                       : o->sweep           ? "sweep"
                       : o->slo             ? "slo"
                       : o->target          ? "target"
                       : o->repetitions > 1 ? "repetitions"
                       : o->out             ? "out"
                       : o->samples         ? "samples"
                       : o->hgrm            ? "hgrm"
                                            : NULL;
    return with ? error_set(err, ERROR_INPUT,
                            "--prepare stores the dataset and makes no load: run it first, and "
                            "then --%s without it",
                            with)
                : 0;
}

static int check_think(struct load_plan *plan, struct error *err)
{
    const struct load_options *o = &plan->options;
    if (!o->think)
        return 0;
    if (!isinf(o->rate) || o->prepare)
        return error_set(err, ERROR_INPUT,
                         "--think is of users who wait for replies, a closed loop: it needs --rate "
                         "max");
    if (o->cluster || o->sentinel || plan->server.transport == SERVER_UDP)
        return error_set(err, ERROR_INPUT,
                         "--think excludes --cluster, --sentinel and udp: a user has one "
                         "connection, whose replies all come");
    if (distribution_parse(o->think, UNIT_NS, &plan->think, err) < 0)
        return error_prefix(err, "--think");
    return 0;
}

// Who waits for others goes on one connection with them, in one stream.
static int check_batches(const struct load_plan *plan, struct error *err)
{
    const struct load_options *o = &plan->options;
    const char *with = isinf(o->rate)                         ? "--rate max, which sends in batches"
                       : o->cluster                           ? "--cluster"
                       : o->sentinel                          ? "--sentinel"
                       : o->agents.count                      ? "--agent"
                       : plan->server.transport == SERVER_UDP ? "udp"
                       : plan->workload.fanout > 1            ? "a fan-out, whose requests go on "
                                                                "connections of their own"
                                                              : NULL;
    if (!o->batch_ns)
        return 0;
    if (o->batch_ns > BATCH_NS_MAX)
        return error_set(err, ERROR_INPUT, "--batch-within must be at most 1ms");
    return with && !o->prepare ? error_set(err, ERROR_INPUT, "--batch-within excludes %s", with)
                               : 0;
}

// A session is a connection's, whose requests all have their reply, and which is opened again.
static int check_session(const struct load_plan *plan, struct error *err)
{
    const struct load_options *o = &plan->options;
    const char *with = o->cluster                             ? "--cluster"
                       : o->sentinel                          ? "--sentinel"
                       : plan->server.transport == SERVER_UDP ? "udp"
                       : o->reconnect_ns == 0                 ? "--reconnect 0"
                                                              : NULL;
    return o->session && with && !o->prepare
               ? error_set(err, ERROR_INPUT, "--session excludes %s", with)
               : 0;
}

// Of what a fan-out is: requests that are due at an instant which the rate says.
static int check_fanout(struct load_plan *plan, struct error *err)
{
    const struct load_options *o = &plan->options;
    if (o->fanout > WORKLOAD_FANOUT_MAX)
        return error_set(err, ERROR_INPUT, "--fanout must be 1 to %d", WORKLOAD_FANOUT_MAX);
    if (o->fanout)
        plan->workload.fanout = (uint16_t)o->fanout;
    if (plan->workload.fanout == 1 || o->prepare)
        return 0;
    if (isinf(o->rate))
        return error_set(err, ERROR_INPUT,
                         "--rate max, a closed loop, sends when a connection has room: a fan-out "
                         "needs a rate, of logical requests");
    if (plan->workload.recording)
        return error_set(err, ERROR_INPUT,
                         "a recording (%s) says when each request is due: it and a fan-out exclude "
                         "each other",
                         plan->arrivals);
    return 0;
}

// What an HTTP URL asks for, and of whom, unless the workload says so itself.
static int take_url(struct load_plan *plan, struct error *err)
{
    struct http_words *words = &plan->workload.http;
    const char *path = plan->url.path[0] ? plan->url.path : NULL;
    if (path && words->path)
        return error_set(err, ERROR_INPUT, "\"%.200s\", but the workload's path is \"%.200s\"",
                         path, words->path);
    return http_words_set(words, path, words->host ? NULL : plan->url.authority, NULL, 0, err);
}

// Reads the workload's file and applies the options that change it.
static int choose_workload(struct load_plan *plan, struct error *err)
{
    const struct load_options *o = &plan->options;
    struct workload *workload = &plan->workload;
    const struct protocol *protocol = plan->url.protocol;
    if (o->protocol) {
        protocol = protocol_find(o->protocol);
        if (!protocol)
            return error_set(err, ERROR_INPUT, "--protocol: \"%s\" is not one of: %s", o->protocol,
                             PROTOCOL_NAMES);
        if (plan->url.protocol && plan->url.protocol != protocol)
            return error_set(err, ERROR_INPUT, "--protocol %s, but --server says %s://",
                             protocol->name, plan->url.protocol->name);
    }
    int status = o->workload ? workload_load_file(o->workload, protocol, workload, err) : 0;
    if (status < 0)
        return status;
    if (protocol) {
        if (workload_set_protocol(workload, protocol, err) < 0)
            return error_prefix(err, "--protocol");
        char able[200];
        if (workload->service_given && !protocol->says_service)
            return error_set(err, ERROR_INPUT,
                             "--protocol: %s does not tell the server how long to work, which the "
                             "workload asks for (service); of the protocols, %s can",
                             protocol->name, protocol_names_with_service(able, sizeof able));
    }
    if ((workload->read_through || workload->expiry_ns) &&
        !protocol_has_get_and_set(workload->protocol))
        return error_set(
            err, ERROR_INPUT, "protocol %s has no get and set, which the workload asks for (%s)",
            workload->protocol->name, workload->read_through ? "read_through" : "expiry");
    if (plan->url.protocol && plan->url.protocol->takes_http_words && take_url(plan, err) < 0)
        return error_prefix(err, "--server");
    if (o->arrivals && workload_set_arrivals(workload, o->arrivals, err) < 0)
        return error_prefix(err, "--arrivals");
    workload_format_arrivals(workload, plan->arrivals, sizeof plan->arrivals);
    rate_pattern_format(&workload->pattern, plan->pattern, sizeof plan->pattern);
    return 0;
}

// A password in the environment is of use to protocols that know one, and no mistake with others.
static int choose_login(struct load_plan *plan, struct error *err)
{
    const struct load_options *o = &plan->options;
    struct login *login = &plan->login;
    const struct protocol *protocol = plan->workload.protocol;
    if (o->user && (!o->user[0] || strlen(o->user) >= sizeof login->user))
        return error_set(err, ERROR_INPUT, "--user: a name has 1 to %zu bytes",
                         sizeof login->user - 1);
    if (o->user && login->user[0] && strcmp(o->user, login->user) != 0)
        return error_set(err, ERROR_INPUT, "--user %s, but --server says %s@", o->user,
                         login->user);
    if (o->user)
        snprintf(login->user, sizeof login->user, "%s", o->user);
    if ((protocol->log_in || o->password_file) &&
        login_take_password(login, o->password_file, err) < 0)
        return error_prefix(err, o->password_file ? "--password-file" : "the environment");
    if (login_make_words(login, protocol, &plan->login_words, err) < 0)
        return error_prefix(err, o->user ? "--user" : "the login");
    if (plan->login_words.count && plan->server.transport == SERVER_UDP)
        return error_set(err, ERROR_INPUT, "%s: over UDP nobody can log in", plan->server.text);
    return 0;
}

static int take_path(const char *option, const char *path, char *out, size_t room,
                     struct error *err)
{
    if (path && strlen(path) >= room)
        return error_set(err, ERROR_INPUT, "%s: too long a path", option);
    snprintf(out, room, "%s", path ? path : "");
    return 0;
}

// Whether the files are some is tried now, and not by each of the agents.
static int choose_tls(struct load_plan *plan, struct error *err)
{
    const struct load_options *o = &plan->options;
    SSL_CTX *tried;
    struct tls_settings *tls = &plan->tls;
    tls->on = o->tls || o->tls_ca || o->tls_insecure || o->tls_cert || o->tls_full_handshakes ||
              plan->url.tls;
    tls->insecure = o->tls_insecure;
    tls->full_handshakes = o->tls_full_handshakes;
    if (o->tls_ca && o->tls_insecure)
        return error_set(err, ERROR_INPUT, "--tls-ca and --tls-insecure exclude each other");
    if (o->tls_key && !o->tls_cert)
        return error_set(err, ERROR_INPUT, "--tls-key is for --tls-cert");
    if (take_path("--tls-ca", o->tls_ca, tls->ca, sizeof tls->ca, err) < 0 ||
        take_path("--tls-cert", o->tls_cert, tls->certificate, sizeof tls->certificate, err) < 0 ||
        take_path("--tls-key", o->tls_key, tls->key, sizeof tls->key, err) < 0)
        return -ERROR_INPUT;
    int status = tls_context_make(tls, &plan->server, NULL, &tried, err);
    if (status == 0)
        SSL_CTX_free(tried);
    return status < 0 ? error_prefix(err, o->tls_cert ? "--tls-cert"
                                          : o->tls_ca ? "--tls-ca"
                                                      : "--tls")
                      : 0;
}

// A cluster's keys are at its nodes, whose addresses its own nodes say; a sentinel says its
// master's.
static int choose_nodes(struct load_plan *plan, struct error *err)
{
    struct load_options *o = &plan->options;
    o->cluster |= plan->url.cluster;
    const char *option = o->cluster ? "--cluster" : "--sentinel";
    if (!o->cluster && !o->sentinel)
        return 0;
    if (o->cluster && o->sentinel)
        return error_set(err, ERROR_INPUT, "--cluster and --sentinel exclude each other");
    if (o->sentinel && (!o->sentinel[0] || strlen(o->sentinel) >= SENTINEL_NAME_BYTES))
        return error_set(err, ERROR_INPUT, "--sentinel: a master's name has 1 to %d bytes",
                         SENTINEL_NAME_BYTES - 1);
    if (!plan->workload.protocol->slot)
        return error_set(err, ERROR_INPUT, "%s: protocol %s has no clusters and no sentinels",
                         option, plan->workload.protocol->name);
    if (plan->server.transport != SERVER_TCP)
        return error_set(err, ERROR_INPUT, "%s: the server is at HOST:PORT, not at %s", option,
                         plan->server.text);
    if (o->cluster && plan->login.database)
        return error_set(err, ERROR_INPUT, "--cluster: a cluster has database 0 only, not %u",
                         plan->login.database);
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
    if (o->target && o->duration_ns != LOAD_NOT_GIVEN)
        return error_set(err, ERROR_INPUT,
                         "--duration and --target exclude each other; --max-duration bounds "
                         "--target");
    if (!o->target && o->max_duration_ns != LOAD_NOT_GIVEN)
        return error_set(err, ERROR_INPUT, "--max-duration needs --target; else use --duration");
    if (!(o->confidence >= 0.5 && o->confidence < 1))
        return error_set(err, ERROR_INPUT, "--confidence must be 0.5 to less than 1");
    if (o->duration_ns == LOAD_NOT_GIVEN)
        o->duration_ns = duration_default;
    if (o->max_duration_ns == LOAD_NOT_GIVEN)
        o->max_duration_ns = max_duration_default;
    plan->quantile = o->slo ? plan->slo.quantile : percentile / 100;
    return 0;
}

// The options of several loads: --sweep and --slo.
static int check_curve(struct load_plan *plan, struct error *err)
{
    struct load_options *o = &plan->options;
    if (!o->sweep && !o->slo)
        return 0;
    if (o->target || o->samples || o->hgrm || o->announce || o->hold || o->repetitions > 1)
        return error_set(err, ERROR_INPUT,
                         "--%s makes runs of its own: it excludes --target, --repetitions, "
                         "--samples, --hgrm, --announce and --hold",
                         o->slo ? "slo" : "sweep");
    if (o->slo && slo_parse(o->slo, &plan->slo, err) < 0)
        return error_prefix(err, "--slo");
    if (o->sweep && o->rate > 0)
        return error_set(err, ERROR_INPUT, "--rate and --sweep exclude each other");
    if (o->sweep && sweep_range_parse(o->sweep, &plan->sweep, err) < 0)
        return error_prefix(err, "--sweep");
    if (!o->sweep)
        plan->sweep = (struct sweep_range){.from = o->rate > 0 ? o->rate : search_from,
                                           .to = INFINITY,
                                           .step = search_step,
                                           .geometric = true};
    o->rate = plan->sweep.from;
    return 0;
}

// A curve's rates are totals over all agents: at least one must be able to vary its own.
static int check_curve_agents(const struct load_plan *plan, struct error *err)
{
    const struct load_options *o = &plan->options;
    for (size_t i = 0; i < plan->agent_count; i++)
        if (plan->agents[i].rate == 0 && plan->agents[i].kind != AGENT_LATENCY)
            return 0;
    return error_set(err, ERROR_INPUT,
                     "--%s changes the rate of the agents that have none of their own, and there "
                     "is none: add a throughput or symmetric agent without rate=",
                     o->slo ? "slo" : "sweep");
}

// Agents' rates may define the load's, so this comes before --rate is checked. The agents stay as
// given; each load shares its own rate among them.
static int make_agents(struct load_plan *plan, struct error *err)
{
    struct load_options *o = &plan->options;
    struct agent_spec resolved[AGENTS_MAX];
    if (o->agents.count == 0)
        return 0;
    if (o->agents.count > AGENTS_MAX)
        return error_set(err, ERROR_INPUT, "--agent: at most %d", AGENTS_MAX);
    plan->agents = calloc(o->agents.count, sizeof *plan->agents);
    if (!plan->agents)
        return error_set(err, ERROR_FAILED, "out of memory for the agents");
    plan->agent_count = o->agents.count;
    for (size_t i = 0; i < plan->agent_count; i++)
        if (agent_spec_parse(o->agents.items[i], &plan->agents[i], err) < 0)
            return error_prefix(err, "--agent %s", o->agents.items[i]);
    if ((o->sweep || o->slo) && check_curve_agents(plan, err) < 0)
        return -ERROR_INPUT;
    memcpy(resolved, plan->agents, plan->agent_count * sizeof *resolved);
    if (agent_specs_resolve(resolved, plan->agent_count, o->connections, o->threads, o->depth,
                            o->seed, &o->rate, err) < 0)
        return error_prefix(err, "--agent");
    return 0;
}

// A rate that changes by plan never becomes stable, so --target cannot be asked for.
static int check_pattern(const struct load_plan *plan, struct error *err)
{
    const struct load_options *o = &plan->options;
    if (o->target && plan->workload.pattern.kind != PATTERN_CONSTANT)
        return error_set(err, ERROR_INPUT,
                         "--target needs a rate that holds still, and the workload's pattern is "
                         "%s: use --duration",
                         plan->pattern);
    if (!plan->workload.recording)
        return 0;
    if (isinf(o->rate))
        return error_set(err, ERROR_INPUT, "--rate max and a recorded schedule exclude each other");
    if (o->target || plan->agent_count || plan->workload.pattern.kind != PATTERN_CONSTANT)
        return error_set(err, ERROR_INPUT,
                         "a recording (%s) excludes --target, --agent and a pattern",
                         plan->arrivals);
    return 0;
}

static void tell_transactions(const struct load_plan *plan, char *out, size_t out_bytes)
{
    const struct lost_transactions *lost = &plan->recording.lost;
    const uint64_t all = lost->discarded + lost->unended + lost->empty + lost->too_long;
    const char *between = *plan->warning ? "; " : "";
    int used = 0;
    if (all)
        used = snprintf(out, out_bytes,
                        "%s%s: %s of %s transactions are left out, with %s commands in them: "
                        "%s discarded, %s without EXEC, %s that did nothing, %s of more "
                        "than %d commands",
                        between, plan->workload.recording, TEXT_COUNT(all),
                        TEXT_COUNT(all + plan->recording.transactions.items.count),
                        TEXT_COUNT(lost->commands), TEXT_COUNT(lost->discarded),
                        TEXT_COUNT(lost->unended), TEXT_COUNT(lost->empty),
                        TEXT_COUNT(lost->too_long), TRANSACTION_COMMANDS_MAX);
    if ((lost->unbegun || lost->nested) && used >= 0 && used < (int)out_bytes)
        snprintf(out + used, out_bytes - (size_t)used,
                 "%s%s: the MULTI of %s transactions is missing, and their commands are sent one "
                 "by one; %s MULTI within a transaction are left out",
                 all ? "; " : between, plan->workload.recording, TEXT_COUNT(lost->unbegun),
                 TEXT_COUNT(lost->nested));
}

// What of the recording is not replayed.
static void tell_losses(struct load_plan *plan)
{
    const struct recording *recording = &plan->recording;
    int used = 0;
    const uint64_t sent = recording->requests.count - recording->transactions.items.count +
                          recording->transactions.commands.count;
    if (recording->left_out)
        used = snprintf(plan->warning, sizeof plan->warning,
                        "%s: %s of %s requests are left out: protocol %s has no %s",
                        plan->workload.recording, TEXT_COUNT(recording->left_out),
                        TEXT_COUNT(recording->left_out + sent + recording->lost.commands),
                        plan->workload.protocol->name, recording->left_out_names);
    if ((recording->gaps || recording->damaged) && used >= 0 && used < (int)sizeof plan->warning)
        used += snprintf(plan->warning + used, sizeof plan->warning - (size_t)used,
                         "%s%s: requests are missing at %s gaps in what clients sent, and in %s "
                         "damaged packets",
                         used ? "; " : "", plan->workload.recording, TEXT_COUNT(recording->gaps),
                         TEXT_COUNT(recording->damaged));
    if (used >= 0 && used < (int)sizeof plan->warning)
        tell_transactions(plan, plan->warning + used, sizeof plan->warning - (size_t)used);
}

uint64_t load_plan_duration_ns(const struct load_plan *plan, double rate, uint64_t duration_ns)
{
    const size_t requests = plan->recording.requests.count;
    // The last is within it, whatever was rounded.
    const double whole_ns = ceil((double)requests * 1e9 / rate) + 1;
    return requests && whole_ns < (double)duration_ns ? (uint64_t)whole_ns : duration_ns;
}

// The recording's own rate and length are used unless others are asked for.
static int take_recording(struct load_plan *plan, struct error *err)
{
    struct load_options *o = &plan->options;
    if (!plan->workload.recording)
        return 0;
    struct stat file;
    bool long_one = stat(plan->workload.recording, &file) == 0 && file.st_size > LONG_RECORDING;
    if (long_one) // a second or more
        progress_phase(&plan->progress, "reading %s (%lld MiB)", plan->workload.recording,
                       (long long)file.st_size >> 20);
    int status = recording_load(plan->workload.recording, &plan->workload, &plan->recording, err);
    if (long_one)
        progress_end(&plan->progress);
    if (status < 0)
        return status;
    if (o->cluster && plan->recording.transactions.items.count)
        return error_set(
            err, ERROR_INPUT,
            "%s: a cluster takes no transactions of keys in several slots, and replayed "
            "keys have other names, so other slots; load one node that is in no cluster",
            plan->workload.recording);
    recording_apply(&plan->recording, &plan->workload);
    tell_losses(plan);
    double rate = recording_rate(&plan->recording);
    if (!(o->rate > 0))
        o->rate = rate;
    o->duration_ns = load_plan_duration_ns(plan, o->rate, o->duration_ns);
    return 0;
}

static int probe(const struct load_plan *plan, struct error *err)
{
    const struct server_address *server = &plan->server;
    struct tls_tunnel *tunnel = NULL;
    int status = plan->tls.on ? tls_tunnel_open(&plan->tls, server, plan->workload.protocol->alpn,
                                                &tunnel, err)
                              : 0;
    if (status == 0)
        status = protocol_probe(tunnel ? tls_tunnel_address(tunnel) : server,
                                plan->workload.protocol, err);
    return tls_tunnel_close(tunnel, status, err);
}

int load_plan_make(struct load_plan *plan, int positional, char **argv, struct error *err)
{
    struct load_options *o = &plan->options;
    if (positional == 1 && !o->server) // as with wrk and the like
        o->server = argv[1];
    else if (positional > 0)
        return error_set(err, ERROR_INPUT,
                         "%s: besides options load takes one server, by itself or as --server; "
                         "see taillight load --help",
                         argv[positional]);
    if (!o->server)
        return error_set(err, ERROR_INPUT, "--server HOST:PORT is needed");
    if (check_prepare(o, err) < 0)
        return -ERROR_INPUT;
    if (!o->prepare && load_options_take_rate(o, err) < 0)
        return -ERROR_INPUT;
    if (check_kinds(plan, err) < 0 || check_curve(plan, err) < 0)
        return -ERROR_INPUT;
    int status = make_agents(plan, err);
    if (status < 0)
        return status;
    if (load_options_check_numbers(o, err) < 0 || check_target(plan, err) < 0)
        return -ERROR_INPUT;
    if (server_url_parse(o->server, &plan->server, &plan->url, &plan->login, err) < 0)
        return error_prefix(err, "--server");
    status = choose_workload(plan, err);
    if (status < 0)
        return status;
    if (choose_login(plan, err) < 0 || choose_tls(plan, err) < 0 || choose_nodes(plan, err) < 0)
        return -(int)err->kind;
    if ((!o->prepare && check_pattern(plan, err) < 0) || take_recording(plan, err) < 0)
        return -(int)err->kind;
    if ((!o->prepare && load_options_check_rate(o, err) < 0) || check_think(plan, err) < 0 ||
        check_fanout(plan, err) < 0 || check_batches(plan, err) < 0 || check_session(plan, err) < 0)
        return -ERROR_INPUT;
    if (o->seed == LOAD_NOT_GIVEN) {
        uint32_t seed;
        if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
            return error_set_errno(err, ERROR_FAILED, "cannot draw a seed");
        o->seed = seed;
    }
    status = server_address_reach(&plan->server, err);
    // Agents may reach what this process does not; a login will be answered or refused itself.
    // A sentinel speaks no TLS because its master does, and is asked for that one itself.
    if (status < 0 || plan->agents || plan->login_words.count || o->sentinel)
        return status;
    status = probe(plan, err);
    // Where nobody listens, what is wrong with the load is said first: it connects after all
    // checks.
    if (status == -ERROR_FAILED && !plan->tls.on && !o->prepare) {
        *err = (struct error){0};
        return 0;
    }
    return status;
}

void load_plan_phase(struct load_plan *plan, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(plan->phase->text, sizeof plan->phase->text, format, args);
    va_end(args);
    plan->phase->announce = plan->options.announce;
    progress_update(&plan->progress, "connecting to %s", plan->server.text);
}

void load_phase_say(struct load_phase *phase)
{
    if (phase->text[0])
        progress_phase(phase->progress, "%s", phase->text);
    phase->text[0] = '\0';
}

static void say_begin(void *context, uint64_t begin_ns)
{
    struct load_phase *phase = context;
    load_phase_say(phase);
    if (!phase->announce)
        return;
    printf("{\"begin_ns\": %llu}\n", (unsigned long long)begin_ns);
    fflush(stdout);
}

static void print_slow(void *context, uint64_t count)
{
    (void)context;
    printf("{\"slow\": %llu}\n", (unsigned long long)count);
    fflush(stdout);
}

struct engine_settings load_plan_engine(const struct load_plan *plan)
{
    const struct load_options *o = &plan->options;
    return (struct engine_settings){.server = &plan->server,
                                    .cluster = o->cluster,
                                    .sentinel = o->sentinel,
                                    .login = &plan->login_words,
                                    .tls = &plan->tls,
                                    .workload = &plan->workload,
                                    .threads = (uint32_t)o->threads,
                                    .connections = (uint32_t)o->connections,
                                    .depth = (uint32_t)o->depth,
                                    .stamps = plan->stamps,
                                    .stamps_every = plan->stamps_every,
                                    .duration_ns = o->duration_ns,
                                    .batch_ns = o->batch_ns,
                                    .session = o->session,
                                    .sleeps = o->sleep,
                                    .think = o->think ? &plan->think : NULL,
                                    .closed_loop = isinf(o->rate),
                                    .timeout_ns = o->timeout_ns,
                                    .reconnect_ns = o->reconnect_ns,
                                    .slow_ns = o->slow_ns,
                                    .on_slow = print_slow,
                                    .announce = say_begin,
                                    .announce_context = plan->phase,
                                    .agree = o->hold ? load_hold : NULL};
}

struct method_settings load_plan_method(const struct load_plan *plan)
{
    const struct load_options *o = &plan->options;
    return (struct method_settings){.quantile = plan->quantile,
                                    .confidence = o->confidence,
                                    .width_us = (double)o->interval_ns / 1e3,
                                    .arrivals = plan->workload.arrivals,
                                    .rate = o->rate,
                                    .pattern = plan->workload.pattern,
                                    .recorded = plan->workload.recording != NULL,
                                    .duration_s = (double)o->duration_ns / 1e9,
                                    .turn = o->connections,
                                    .batch_us = (double)o->batch_ns / 1e3,
                                    .budget_s = (double)o->max_duration_ns / 1e9};
}

struct load_facts load_plan_facts(const struct load_plan *plan)
{
    return (struct load_facts){.server = plan->server.text,
                               .protocol = plan->workload.protocol,
                               .workload = plan->options.workload,
                               .rate = plan->options.rate,
                               .arrivals = plan->arrivals,
                               .pattern = plan->pattern,
                               .think = plan->options.think,
                               .batch_us = (double)plan->options.batch_ns / 1e3,
                               .session = plan->options.session,
                               .sleeps = plan->options.sleep,
                               .sentinel = plan->options.sentinel != NULL,
                               .warning = plan->warning,
                               .seed = plan->options.seed};
}
