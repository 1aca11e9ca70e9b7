// SPDX-License-Identifier: MIT
#include "loadgen/load_options.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "loadgen/engine/engine.h"
#include "loadgen/load_goal.h"
#include "workloads/protocols/login.h"
#include "workloads/protocols/protocols.h"

enum { REPETITIONS_MAX = 1000 };

static const uint64_t memory_least = 16 << 20;

const struct option_spec load_options_table[] = {
    OPTION_STRING("server", 's', "HOST:PORT", struct load_options, server,
                  "the server (IPv6 in brackets); or udp:HOST:PORT, unix:/PATH, PROTOCOL://HOST; "
                  "without --server, too"),
    OPTION_STRING("protocol", 0, "NAME", struct load_options, protocol, PROTOCOL_NAMES),
    OPTION_STRING(
        "user", 0, "NAME", struct load_options, user,
        "who connections say they are (Redis, memcached); PROTOCOL://USER@HOST does it too"),
    OPTION_STRING("password-file", 0, "FILE", struct load_options, password_file,
                  "its first line is the password; else that of " LOGIN_PASSWORD_VARIABLE),
    OPTION_FLAG("tls", 0, struct load_options, tls,
                "TLS 1.3 or 1.2; the server's certificate must be believed and name HOST"),
    OPTION_STRING("tls-ca", 0, "FILE", struct load_options, tls_ca,
                  "--tls, believing this file's certificates (PEM) instead of the machine's"),
    OPTION_FLAG("tls-insecure", 0, struct load_options, tls_insecure,
                "--tls, believing any certificate"),
    OPTION_STRING(
        "tls-cert", 0, "FILE", struct load_options, tls_cert,
        "--tls, showing the server that wants one this certificate (PEM, with its chain)"),
    OPTION_STRING("tls-key", 0, "FILE", struct load_options, tls_key,
                  "the certificate's key, unless --tls-cert has it"),
    OPTION_FLAG("tls-full-handshakes", 0, struct load_options, tls_full_handshakes,
                "--tls, resuming no session: each connection makes a full handshake, also one that "
                "is opened again"),
    OPTION_FLAG("cluster", 0, struct load_options, cluster,
                "the server is a node of a Redis Cluster: load them all, each with its own keys; "
                "redis+cluster://HOST:PORT does it too"),
    OPTION_STRING("sentinel", 0, "NAME", struct load_options, sentinel,
                  "the server is a Redis Sentinel: load the master of that name, whoever it is"),
    OPTION_STRING("workload", 'w', "FILE", struct load_options, workload,
                  "what is asked: a YAML file, or etc, usr or var (100k keys, 90 % get)"),
    OPTION_STRING("rate", 'r', "N", struct load_options, rate_text,
                  "requests per second: 20k; max: as many as are answered (a closed loop)"),
    OPTION_COUNT("connections", 'c', "N", struct load_options, connections, "connections (16)"),
    OPTION_COUNT("threads", 't', "N", struct load_options, threads,
                 "load threads, each pinned to a core of its own when there are several (1)"),
    OPTION_COUNT("depth", 0, "N", struct load_options, depth,
                 "requests in flight per connection (65536 over all; 1 with --rate max)"),
    OPTION_DURATION("duration", 'd', "TIME", struct load_options, duration_ns,
                    "how long requests are scheduled for (10s)"),
    OPTION_STRING("target", 0, "PERCENTILE", struct load_options, target,
                  "p99, p99.9: instead of a duration, load until its interval is --ci wide"),
    OPTION_PERIOD("ci", 0, "TIME", struct load_options, interval_ns,
                  "the target percentile's confidence interval, at most"),
    OPTION_NUMBER("confidence", 0, "N", struct load_options, confidence, "of that interval (0.95)"),
    OPTION_PERIOD("max-duration", 0, "TIME", struct load_options, max_duration_ns,
                  "how long --target may load at most (60s)"),
    OPTION_STRING("sweep", 0, "FROM:TO:STEP", struct load_options, sweep,
                  "one run for each rate, 10k:200k:10k or 1k:64k:x2, until someone is saturated"),
    OPTION_STRING("slo", 0, "SLO", struct load_options, slo,
                  "'p99<=200us': search the highest rate that meets it, from --rate or in --sweep"),
    OPTION_STRING("out", 0, "DIR", struct load_options, out,
                  "write load.json there; of --sweep or --slo sweep.json, for taillight report"),
    OPTION_STRING("arrivals", 0, "KIND", struct load_options, arrivals,
                  "exponential (Poisson, the default), fixed, uniform, e.g. lognormal:1,0.5, or "
                  "replay:FILE"),
    OPTION_COUNT("seed", 0, "N", struct load_options, seed,
                 "of times, operations and keys (random, and reported)"),
    OPTION_LIST("agent", 0, "KIND[,...]", struct load_options, agents,
                "throughput, latency or symmetric; name=, rate=, connections=, threads=, cores=, "
                "netns=, link="),
    OPTION_COUNT("repetitions", 0, "N", struct load_options, repetitions,
                 "repeat the load this many times, and report how far apart the results are (1)"),
    OPTION_STRING("restart", 0, "COMMAND", struct load_options, restart,
                  "restarts the server between repetitions; its dataset is stored again"),
    OPTION_STRING("stamps", 0, "KIND", struct load_options, stamps,
                  "auto (default); hw: the NIC's, sw: the kernel's (sw:1/16: of one send call in "
                  "16), or an error; user: none"),
    OPTION_DURATION("timeout", 0, "TIME", struct load_options, timeout_ns,
                    "how long replies are waited for after the end (1s); over UDP each of them"),
    OPTION_DURATION("reconnect", 0, "TIME", struct load_options, reconnect_ns,
                    "how long a connection that ended is tried again (5s; 0s: not at all)"),
    OPTION_STRING("think", 0, "TIMES", struct load_options, think,
                  "of --rate max: how long each connection waits from its last reply to its next "
                  "requests: exponential:5ms"),
    OPTION_COUNT("session", 0, "N", struct load_options, session,
                 "each connection ends after so many requests, and is opened again (it stays)"),
    OPTION_COUNT("fanout", 0, "N", struct load_options, fanout,
                 "requests that are due together, as one logical request, whose latency is the "
                 "slowest's; --rate then counts logical requests (the workload's, 1)"),
    OPTION_DURATION("batch-within", 0, "TIME", struct load_options, batch_ns,
                    "requests wait for others that are due within so long (5us), to leave in one "
                    "call with them: fewer calls, and this much later at most (0s)"),
    OPTION_FLAG("sleep", 0, struct load_options, sleep,
                "sleep between requests and leave the core to others; requests are sent later"),
    OPTION_STRING("samples", 0, "DIR", struct load_options, samples,
                  "write samples.tlog and connections.tlog there"),
    OPTION_BYTES(
        "memory", 0, "SIZE", struct load_options, memory_bytes,
        "what requests may take (1GiB; with --rate max 48MiB a thread); of a longer load a sample "
        "and histograms are kept"),
    OPTION_STRING("hgrm", 0, "FILE", struct load_options, hgrm,
                  "write the latency's percentiles in us as HdrHistogram does"),
    OPTION_FLAG("prepare", 0, struct load_options, prepare,
                "store the workload's dataset, verify it, and exit"),
    OPTION_FLAG("announce", 0, struct load_options, announce,
                "print a first line {\"begin_ns\": CLOCK_MONOTONIC} just before the load begins"),
    OPTION_FLAG(
        "hold", 0, struct load_options, hold,
        "when ready print {\"ready_ns\", \"needs_ns\"} and begin at the CLOCK_MONOTONIC that "
        "a line on stdin then says, together with other loads"),
    OPTION_DURATION("tell-slow", 0, "TIME", struct load_options, slow_ns,
                    "print a line {\"slow\": N}, N so far, whenever replies took longer"),
    OPTION_FLAG("tell-live", 0, struct load_options, tell_live,
                "print a line {\"live\": TEXT} every second: what a terminal would show"),
    OPTION_FLAG("json", 0, struct load_options, json, "print one JSON document on stdout"),
    OPTION_FLAG("quiet", 'q', struct load_options, quiet, "no progress on stderr"),
    OPTION_END,
};

// Of memtier_benchmark, redis-benchmark, mutilate, memaslap, wrk and h2load.
const struct option_elsewhere load_options_elsewhere[] = {
    {" --host --port --uri --unix-socket --servers -p ", "part of --server, as HOST:PORT"},
    {" --clients --concurrency ", "--connections N, of all threads together"},
    {" --pipeline --max-concurrent-streams -P -m ", "--depth N"},
    {" --requests --num-requests --limit --execute_number -n ",
     "--duration TIME: a load ends when its time is over, not after so many requests"},
    {" --test-time --time ", "--duration TIME"},
    {" --rate-limiting --qps --rps ", "--rate N"},
    {" --run-count ", "--repetitions N"},
    {" --ratio --mix --update --command --command-ratio ",
     "`mix: {get: 90, set: 10}` in the file of --workload"},
    {" --data-size --data-size-range --data-size-list --valuesize ",
     "`values: {size: {fixed: 200}}` in the file of --workload"},
    {" --keysize --key-size --key-prefix ",
     "`keys: {size: {fixed: 31}}` in the file of --workload"},
    {" --key-maximum --key-minimum --keyspace --records ",
     "`keys: {count: 100k}` in the file of --workload"},
    {" --key-pattern --key-zipf-exp --key-median --key-stddev ",
     "`keys: {popularity: {zipf: 0.99}}` in the file of --workload"},
    {" --expiry-range ", "`values: {expiry: 60s}` in the file of --workload"},
    {" --header --script --data ",
     "`http: {path: ..., headers: [...]}` and `mix` in the file of --workload"},
    {" --cluster-mode ", "--cluster"},
    {" --auth --authenticate --pass --password --username -a ",
     "--user NAME with --password-file FILE"},
    {" --cacert ", "--tls-ca FILE"},
    {" --cert --key ", "--tls-cert FILE and --tls-key FILE"},
    {" --insecure --tls-skip-verify ", "--tls-insecure"},
    {" --latency --hdr-file-prefix --print-percentiles ",
     "said without being asked for; --hgrm FILE has all percentiles"},
    {" --csv --out-file --json-out-file --save ", "--json, or --samples DIR for each request"},
    {NULL, NULL},
};

struct load_options load_options_defaults(void)
{
    return (struct load_options){.stamps = "auto",
                                 .connections = 16,
                                 .repetitions = 1,
                                 .threads = 1,
                                 .duration_ns = LOAD_NOT_GIVEN,
                                 .max_duration_ns = LOAD_NOT_GIVEN,
                                 .confidence = 0.95,
                                 .timeout_ns = 1000000000u,
                                 .reconnect_ns = 5000000000u,
                                 .seed = LOAD_NOT_GIVEN};
}

int load_options_take_rate(struct load_options *o, struct error *err)
{
    if (!o->rate_text)
        return 0;
    o->rate = INFINITY;
    if (strcmp(o->rate_text, "max") != 0 && units_parse_number(o->rate_text, &o->rate, err) < 0)
        return error_prefix(err, "--rate");
    if (!(o->rate > 0))
        return error_set(err, ERROR_INPUT,
                         "--rate must be more than 0: requests per second, like 20k");
    if (isfinite(o->rate) && o->rate > LOAD_RATE_MAX)
        return error_set(err, ERROR_INPUT,
                         "--rate must be at most 100M requests per second; as many as the server "
                         "takes: --rate max");
    return 0;
}

int load_options_check_rate(struct load_options *o, struct error *err)
{
    if (!(o->rate > 0))
        return error_set(err, ERROR_INPUT,
                         "--rate is needed: requests per second, like 20k; or max");
    if (isinf(o->rate) && (o->target || o->slo || o->agents.count || o->repetitions > 1))
        return error_set(err, ERROR_INPUT,
                         "--rate max is a closed loop, whose latency says little: it and --target, "
                         "--slo, --agent and --repetitions exclude each other");
    if ((o->slow_ns || o->tell_live) && (o->agents.count || o->sweep || o->slo))
        return error_set(err, ERROR_INPUT,
                         "--tell-%s is for one load, without --agent, --sweep or --slo",
                         o->slow_ns ? "slow" : "live");
    if (o->sleep && o->agents.count)
        return error_set(err, ERROR_INPUT,
                         "--sleep is for one load: agents begin together and never sleep; leave "
                         "out --sleep or --agent");
    if (isinf(o->rate) && o->depth == 0)
        o->depth = 1;
    return 0;
}

int load_options_check_numbers(struct load_options *o, struct error *err)
{
    if (o->connections < 1 || o->connections > ENGINE_IN_FLIGHT_CAP)
        return error_set(err, ERROR_INPUT, "--connections must be 1 to %d", ENGINE_IN_FLIGHT_CAP);
    if (o->depth > ENGINE_IN_FLIGHT_CAP / o->connections)
        return error_set(
            err, ERROR_INPUT, "--depth: %s on %s connections are more than %s in flight",
            TEXT_COUNT(o->depth), TEXT_COUNT(o->connections), TEXT_COUNT(ENGINE_IN_FLIGHT_CAP));
    if (o->threads < 1 || o->threads > o->connections)
        return error_set(err, ERROR_INPUT, "--threads must be 1 to the number of connections, %llu",
                         (unsigned long long)o->connections);
    if (o->repetitions < 1 || o->repetitions > REPETITIONS_MAX)
        return error_set(err, ERROR_INPUT, "--repetitions must be 1 to %d", REPETITIONS_MAX);
    if (o->repetitions > 1 && o->target)
        return error_set(err, ERROR_INPUT, "--repetitions and --target exclude each other");
    if (o->repetitions > 1 && o->hgrm)
        return error_set(err, ERROR_INPUT, "--repetitions and --hgrm exclude each other");
    if (o->memory_bytes && o->memory_bytes < memory_least)
        return error_set(err, ERROR_INPUT, "--memory must be 16MiB at least");
    if (o->restart && o->repetitions == 1)
        return error_set(err, ERROR_INPUT, "--restart is for --repetitions");
    if (!o->prepare && o->duration_ns == 0)
        return error_set(err, ERROR_INPUT, "--duration must be more than 0");
    return 0;
}
