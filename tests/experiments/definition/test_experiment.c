// SPDX-License-Identifier: MIT
//
// Experiment files: what they come to, and what is said about wrong ones: the text of every error
// with its line and column.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "experiments/capture/capture_backend.h"
#include "experiments/definition/experiment_set.h"
#include "experiments/definition/output.h"
#include "experiments/definition/tables.h"
#include "experiments/hosts/host_kind.h"
#include "experiments/servers/server_kind.h"

#define SMALLEST                                                                                   \
    "name: small\n"                                                                                \
    "hosts:\n"                                                                                     \
    "  client: {kind: netns}\n"                                                                    \
    "  server: {kind: netns}\n"                                                                    \
    "servers:\n"                                                                                   \
    "  cache: {kind: memcached}\n"                                                                 \
    "load: {rate: 20k}\n"

// One experiment of a text that has no matrix.
static int experiment_parse(const char *name, const char *text, size_t bytes,
                            struct experiment *experiment, struct error *err)
{
    struct experiment_set set;
    int result = experiment_set_parse(name, text, bytes, NULL, &set, err);
    if (result < 0)
        return result;
    assert_int_equal(set.count, 1);
    *experiment = set.items[0];
    array_free(&set);
    return 0;
}

static void parse(const char *text, struct experiment *experiment)
{
    struct error err = {0};
    if (experiment_parse("x.yaml", text, strlen(text), experiment, &err) < 0)
        fail_msg("%s", err.text);
}

// The text must be refused with exactly this sentence.
static void refuse(const char *text, const char *sentence)
{
    struct experiment experiment;
    struct error err = {0};
    int result = experiment_parse("x.yaml", text, strlen(text), &experiment, &err);
    assert_int_equal(result, -ERROR_INPUT);
    assert_int_equal(err.kind, ERROR_INPUT);
    assert_string_equal(err.text, sentence);
}

// The same for the sentence's beginning, where the rest depends on the machine.
static void refuse_beginning(const char *text, const char *beginning)
{
    struct experiment experiment;
    struct error err = {0};
    assert_int_equal(experiment_parse("x.yaml", text, strlen(text), &experiment, &err),
                     -ERROR_INPUT);
    if (strncmp(err.text, beginning, strlen(beginning)) != 0)
        fail_msg("said: %s", err.text);
}

static void defaults_are_filled_in(void **state)
{
    (void)state;
    struct experiment e;
    cpu_set_t machine;
    parse(SMALLEST, &e);
    assert_int_equal(sched_getaffinity(0, sizeof machine, &machine), 0);
    assert_string_equal(e.name, "small");
    assert_int_equal(e.hosts.count, 2);
    assert_true(CPU_EQUAL(&e.hosts.items[0].cores, &machine));
    assert_int_equal(e.servers.count, 1);
    assert_int_equal(e.servers.items[0].host, 1);
    assert_int_equal(e.servers.items[0].threads, CPU_COUNT(&machine));
    assert_int_equal(e.servers.items[0].memory_bytes, 256 << 20);
    assert_int_equal(e.servers.items[0].port, 11211);
    assert_true(e.servers.items[0].shim);
    assert_int_equal(e.load.from, 0);
    assert_int_equal(e.load.to, 0);
    assert_true(e.load.rate == 20000);
    assert_string_equal(e.load.arrivals, "exponential");
    assert_int_equal(e.load.connections, 16);
    assert_int_equal(e.load.depth, 8);
    assert_true(e.load.duration_ns == 10000000000ull);
    assert_true(e.load.timeout_ns == 1000000000ull);
    assert_int_equal(e.load.seed, 1);
    assert_string_equal(e.slice, "p99-100");
    assert_string_equal(capture_choice_name(e.backend), "auto");
    assert_int_equal(e.load.workload.key_count, 100000);
    experiment_free(&e);
}

static void everything_is_read(void **state)
{
    (void)state;
    struct experiment e;
    parse(
        "name: all-of-it\n"
        "hosts:\n"
        "  client: {kind: local, cores: [0]}\n"
        "  server: {kind: local, cores: [\"0\"]}\n"
        "servers:\n"
        "  cache: {host: server, kind: memcached, threads: 2, memory: 64MiB, options: [-R, \"5\"],"
        " shim: off, port: 11311, cores: [0]}\n"
        "neighbours:\n"
        "  noisy: {host: server, kind: command, command: [\"yes\", \"no\"], start: 500ms, stop: "
        "1s}\n"
        "  other: {host: client, command: [sleep, 100]}\n"
        "tuning:\n"
        "  server:\n"
        "    - sysctl: {net.ipv4.tcp_autocorking: 0, net/core/somaxconn: 128}\n"
        "workload:\n"
        "  mix: {get: 1, set: 1}\n"
        "  keys: {count: 2k, size: {uniform: [20, 40]}, popularity: {uniform: true}}\n"
        "  values: {size: {exponential: 100}}\n"
        "load: {to: cache, from: client, rate: 1.5k, arrivals: fixed, connections: 3, depth: 2,"
        " duration: 2s, seed: 7, stamps: sw:1/8, timeout: 250ms}\n"
        "capture: {backend: none, buffer: 1MiB}\n"
        "diagnose: {slice: p20-p30, windows: [0s-1s, 1s-2s]}\n"
        "repetitions: {count: 1}\n"
        "gates: [{percentile: p99, max: 200us}, {cause: \"nginx (A)\", max_increase: 1us}]\n",
        &e);
    assert_int_equal(e.gates.count, 2);
    assert_string_equal(e.gates.items[1].name, "nginx (A)");
    assert_string_equal(e.hosts.items[1].kind->name, "local");
    assert_int_equal(e.servers.items[0].threads, 2);
    assert_int_equal(e.servers.items[0].memory_bytes, 64 << 20);
    assert_int_equal(e.servers.items[0].port, 11311);
    assert_false(e.servers.items[0].shim);
    assert_string_equal(e.servers.items[0].options.items[1], "5");
    assert_null(e.servers.items[0].options.items[2]);
    assert_int_equal(e.neighbours.count, 2);
    assert_string_equal(e.neighbours.items[0].command.items[1], "no");
    assert_true(e.neighbours.items[0].start_ns == 500000000);
    assert_true(e.neighbours.items[0].stop_ns == 1000000000);
    assert_true(e.neighbours.items[1].stop_ns == 0);
    assert_int_equal(e.neighbours.items[1].host, 0);
    assert_int_equal(e.settings.count, 2);
    assert_string_equal(e.settings.items[1].name, "net/core/somaxconn");
    assert_string_equal(e.settings.items[1].value, "128");
    assert_int_equal(e.load.workload.key_count, 2000);
    assert_true(e.load.rate == 1500);
    assert_string_equal(e.load.arrivals, "fixed");
    assert_string_equal(e.load.stamps, "sw:1/8");
    assert_true(e.load.timeout_ns == 250000000);
    assert_string_equal(capture_choice_name(e.backend), "none");
    assert_int_equal(e.buffer_bytes, 1 << 20);
    assert_int_equal(e.windows.count, 2);
    assert_true(e.windows.items[1].from_ns == 1000000000);
    experiment_free(&e);
}

static void json_says_the_same(void **state)
{
    (void)state;
    struct experiment e;
    parse(SMALLEST "neighbours: {n: {command: [\"yes\"], start: 5s}}\n"
                   "diagnose: {windows: [0s-5s]}\n",
          &e);
    json_t *document = experiment_to_json(&e), *neighbour, *window;
    assert_non_null(document);
    assert_string_equal(json_string_value(json_object_get(document, "name")), "small");
    json_t *load = json_object_get(document, "load");
    assert_true(json_real_value(json_object_get(load, "rate")) == 20000);
    assert_int_equal(json_integer_value(json_object_get(load, "duration_ns")), 10000000000);
    neighbour = json_object_get(json_object_get(document, "neighbours"), "n");
    assert_string_equal(json_string_value(json_object_get(neighbour, "host")), "server");
    assert_int_equal(json_integer_value(json_object_get(neighbour, "start_ns")), 5000000000);
    json_t *diagnose = json_object_get(document, "diagnose");
    assert_string_equal(json_string_value(json_object_get(diagnose, "slice")), "p99-100");
    window = json_array_get(json_object_get(diagnose, "windows"), 0);
    assert_int_equal(json_integer_value(json_object_get(window, "to_ns")), 5000000000);
    json_decref(document);
    experiment_free(&e);
}

// Every key of a server that has a member is in experiment.json, whatever the kind, but for texts
// that were not given.
static void json_has_all_keys_of_a_server(void **state)
{
    (void)state;
    struct experiment e;
    parse("name: x\nhosts: {client: {}, server: {}}\n"
          "servers: {web: {kind: nginx, rules: 7, page: 1KiB, port: 81}}\n"
          "workload: {protocol: http}\nload: {rate: 1}\n",
          &e);
    json_t *document = experiment_to_json(&e);
    json_t *web = json_object_get(json_object_get(document, "servers"), "web");
    assert_int_equal(json_integer_value(json_object_get(web, "rules")), 7);
    assert_int_equal(json_integer_value(json_object_get(web, "page_bytes")), 1024);
    assert_int_equal(json_integer_value(json_object_get(web, "port")), 81);
    for (size_t i = 0; i < server_fields.count; i++) {
        const struct field *field = &server_fields.rows[i];
        char bytes[80], ns[80];
        snprintf(bytes, sizeof bytes, "%s_bytes", field->key);
        snprintf(ns, sizeof ns, "%s_ns", field->key);
        if (field->size && field->kind != FIELD_TEXT && !json_object_get(web, field->key) &&
            !json_object_get(web, bytes) && !json_object_get(web, ns))
            fail_msg("`%s` is not in experiment.json", field->key);
    }
    json_decref(document);
    experiment_free(&e);
}

static void unknown_keys_are_placed(void **state)
{
    (void)state;
    refuse(SMALLEST "lod: {rate: 1}\n", "x.yaml:8:1: unknown key `lod`; did you mean `load`?");
    refuse("name: x\nhosts: {a: {kind: netns,\n   crores: [0]}}\n",
           "x.yaml:3:4: unknown key `crores`; did you mean `cores`?");
    refuse("name: x\nload:\n  rate: 1\n  conections: 16\n",
           "x.yaml:4:3: unknown key `conections`; did you mean `connections`?");
    refuse("name: x\nworkload:\n  keys:\n    size: {fixd: 3}\n",
           "x.yaml:4:12: unknown key `fixd`; did you mean `fixed`?");
    refuse("name: x\ntuning:\n  server:\n    - sysctls: {a: 0}\n",
           "x.yaml:4:7: unknown key `sysctls`; did you mean `sysctl`?");
    refuse(SMALLEST "conections: 16\n",
           "x.yaml:8:1: unknown key `conections`; did you mean `load.connections`?");
    refuse(SMALLEST "memory: 1GiB\n",
           "x.yaml:8:1: unknown key `memory`; did you mean `servers.NAME.memory`?");
    refuse("name: x\nload: {rate: 1, zipf: 1}\n",
           "x.yaml:2:17: unknown key `zipf`; did you mean `workload.keys.popularity.zipf`?");
    refuse("name: x\nload: {rate: 1, neighbours: {}}\n",
           "x.yaml:2:17: unknown key `neighbours`; did you mean `neighbours` of the whole file?");
    refuse("name: x\ncapture: {zzz: 1}\n",
           "x.yaml:2:11: unknown key `zzz`; it may be: backend, optional, buffer, calls, "
           "commands, nic, shim_memory, detail, snapshot, cores, window, duration, bytes");
}

// As `load --stamps` takes them.
static void stamps_are_judged(void **state)
{
    (void)state;
#define STAMPS(words)                                                                              \
    "name: x\nhosts: {a: {}}\nservers: {s: {host: a}}\nload: {rate: 1, stamps: " words "}\n"
    refuse(STAMPS("sw:1/1"),
           "x.yaml:4:25: stamps: sw:1/N: \"1\" is no number of send calls from 2 to 1000000 "
           "of which one is stamped");
    refuse(STAMPS("kernel"), "x.yaml:4:25: stamps: \"kernel\" is not auto, hw, sw, sw:1/N or user");
    refuse(STAMPS("sw:1/8, from: a, agents: [{rate: 1}]"),
           "x.yaml:4:25: `stamps: sw:1/N` and `agents` exclude each other");
    refuse("name: x\nhosts: {a: {}}\nservers: {s: {host: a, transport: udp}}\n"
           "load: {from: a, rate: 1, stamps: sw:1/8}\n",
           "x.yaml:4:26: stamps: the load comes to `s` over UDP (its `transport`), where each "
           "datagram is stamped, or none");
}

static void wrong_shapes_are_placed(void **state)
{
    (void)state;
    refuse("name: x\nhosts: [a, b]\n",
           "x.yaml:2:8: `hosts` takes names: {a: ..., b: ...}, not a list");
    refuse("name: x\nhosts: {a: 5}\n",
           "x.yaml:2:12: `a` takes keys with values, not a single value");
    refuse("name: x\nhosts: {a: {cores: 0}}\n",
           "x.yaml:2:20: `cores` takes a list: [a, b], not a single value");
    refuse("name: x\nload: {rate: [1]}\n", "x.yaml:2:14: `rate` takes a single value, not a list");
    refuse("name: x\nhosts: {a: {kind: netsn}}\n",
           "x.yaml:2:19: `netsn` is not known here; did you mean `netns`?");
    refuse("name: x\nservers: {s: {shim: maybe}}\n",
           "x.yaml:2:21: `maybe` is not known here; it may be: true, false, yes, no, on, off");
    refuse("- name\n", "x.yaml:1:1: the document takes keys with values, not a list, such as "
                       "name, hosts, servers, load");
}

static void later_keys_are_named(void **state)
{
    (void)state;
    refuse("name: x\nhosts: {a: {kind: ssh}}\n",
           "x.yaml:2:12: a host of kind ssh needs `address: user@host`, as ssh takes it");
    refuse("name: x\nhosts: {a: {kind: ssh, address: me@there}}\n",
           "x.yaml:2:12: a host of kind ssh needs `cores`, e.g. `cores: [0-3]`");
    refuse("name: x\nhosts: {a: {kind: ssh, address: -oProxyCommand=x, cores: [0]}}\n",
           "x.yaml:2:33: address: `-oProxyCommand=x` is not a [user@]host as ssh takes it");
    refuse("name: x\nhosts: {a: {kind: ssh, address: x, cores: [0], directory: '/tmp/a b'}}\n",
           "x.yaml:2:59: directory: `/tmp/a b` is not an absolute path of letters, digits, `.`, "
           "`_`, `-` and `/`");
    refuse("name: x\nhosts: {a: {kind: ssh, address: x, cores: [0], ssh_options: [-v]}}\n",
           "x.yaml:2:62: ssh_options: `-v` is not one as in ssh_config(5): \"Port=2222\"");
    refuse("name: x\nhosts: {a: {kind: local, address: me@there}}\n",
           "x.yaml:2:26: `address` is for hosts of `kind: ssh`");
    refuse(SMALLEST "repetitions: {count: 5, restart: false}\n",
           "x.yaml:8:34: restart: every repetition is a run with a server of its own; `taillight "
           "load --repetitions` loads one that goes on running");
}

static void servers_may_be_several(void **state)
{
    (void)state;
    struct experiment experiment;
    struct error err = {0};
#define TWO(second, to)                                                                            \
    "name: x\nhosts: {a: {kind: netns}, server: {kind: netns}}\n"                                  \
    "servers: {one: {}, two: {" second                                                             \
    "}}\nworkload: {protocol: redis}\nload: {from: a, rate: 1k" to "}\n"
    const char *text = TWO("kind: redis", ", to: two");
    if (experiment_parse("x.yaml", text, strlen(text), &experiment, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(experiment.servers.count, 2);
    assert_int_equal(experiment.load.to, 1);
    assert_string_equal(experiment.servers.items[0].protocol, "memcached");
    assert_string_equal(experiment.servers.items[1].protocol, "redis");
    experiment_free(&experiment);
    refuse(TWO("kind: redis", ""),
           "x.yaml:5:7: load: there are several servers; say which one is loaded: `to: one`");
    refuse(TWO("port: 11211", ", to: two"),
           "x.yaml:3:20: servers: `one` and `two` have the same port, 11211; give one another "
           "`port`");
}

#define LOAD_OF(agents)                                                                            \
    "name: x\nhosts: {a: {kind: netns}, b: {kind: netns}, server: {kind: netns}}\n"                \
    "servers: {c: {}}\nload:\n  rate: 10k\n  connections: 4\n  agents: " agents "\n"

static void agents_are_resolved(void **state)
{
    (void)state;
    struct experiment experiment;
    struct error err;
    const char *text =
        LOAD_OF("[{host: b, kind: latency, name: probe}, {kind: throughput}, {host: a}]");
    assert_int_equal(experiment_parse("x.yaml", text, strlen(text), &experiment, &err), 0);
    const struct experiment_load *load = &experiment.load;
    assert_int_equal(load->agents.count, 3);
    assert_int_equal(load->from, 1); // where the first agent is
    assert_int_equal(load->agents.items[0].host, 1);
    assert_int_equal(load->agents.items[1].host, 1);
    assert_int_equal(load->agents.items[2].host, 0);
    assert_string_equal(load->agents.items[0].spec.name, "probe");
    assert_string_equal(load->agents.items[1].spec.name, "agent2");
    assert_int_equal(load->agents.items[2].spec.kind, AGENT_SYMMETRIC);
    assert_true(load->agents.items[0].spec.rate == 1000 && load->agents.items[1].spec.rate == 4500);
    assert_int_equal(load->agents.items[1].spec.connections, 4);
    experiment_free(&experiment);
}

// The same for the sentence's beginning.
static void refuse_at(const char *text, const char *beginning)
{
    struct experiment experiment;
    struct error err = {0};
    assert_int_equal(experiment_parse("x.yaml", text, strlen(text), &experiment, &err),
                     -ERROR_INPUT);
    if (strncmp(err.text, beginning, strlen(beginning)) != 0)
        fail_msg("\"%s\" does not begin with \"%s\"", err.text, beginning);
}

static void impossible_agents_are_placed(void **state)
{
    (void)state;
    refuse_at(LOAD_OF("[{host: b, kind: fast}]"), "x.yaml:7:28: `fast` is not known here");
    refuse_at(LOAD_OF("[{host: b, speed: 1}]"), "x.yaml:7:22: unknown key `speed`");
    refuse_at(LOAD_OF("[{host: b}, {host: c}]"), "x.yaml:7:30: host: no host is called `c`");
    refuse_at(LOAD_OF("[{host: b, rate: -1}]"), "x.yaml:7:28: rate: ");
    refuse_at(LOAD_OF("[{host: b, connections: 0}]"), "x.yaml:7:35: connections: ");
    refuse_at(LOAD_OF("[{host: b, cores: [4711]}]"), "x.yaml:7:30: cores: ");
    refuse_at(LOAD_OF("[{host: b, name: a/b}]"), "x.yaml:7:28: ");
    refuse_at(LOAD_OF("[{host: b, kind: throughput}]"),
              "x.yaml:7:11: agents: throughput agents only");
    refuse_at(LOAD_OF("[{host: a, name: p}, {host: b, name: p}]"),
              "x.yaml:7:11: agents: two agents");
    refuse_at(LOAD_OF("[{host: a, rate: 20k}]"),
              "x.yaml:7:11: agents: the agents' rates come to 20,000");
    refuse_at(LOAD_OF("[{host: b}]\nworkload: {arrivals: \"replay:x.csv\"}"),
              "x.yaml:7:11: agents: each draws");
    refuse_at(LOAD_OF("many"), "x.yaml:7:11: `agents` takes a list");
}

#define LOADED(load) "name: x\nhosts: {client: {}, server: {}}\nservers: {c: {}}\nload: " load "\n"

static void a_method_replaces_the_duration(void **state)
{
    (void)state;
    struct experiment e;
    parse(LOADED("{rate: 1k, method: {percentile: p99.9, interval: 10us}}"), &e);
    assert_string_equal(e.load.method.percentile, "p99.9");
    assert_int_equal(e.load.method.interval_ns, 10000);
    assert_true(e.load.method.confidence == 0.95);
    assert_true(e.load.duration_ns == 60000000000ull);
    json_t *document = experiment_to_json(&e);
    json_t *method = json_object_get(json_object_get(document, "load"), "method");
    assert_int_equal(json_integer_value(json_object_get(method, "interval_ns")), 10000);
    json_decref(document);
    experiment_free(&e);
    parse(LOADED("{rate: 1k, method: {percentile: p50, interval: 1ms, confidence: 0.9, budget: "
                 "5s}}"),
          &e);
    assert_true(e.load.method.confidence == 0.9 && e.load.duration_ns == 5000000000ull);
    experiment_free(&e);
    parse(LOADED("{method: {percentile: p99, interval: 1us}, agents: [{rate: 1}]}"), &e);
    assert_string_equal(e.load.method.percentile, "p99");
    assert_int_equal(e.load.agents.count, 1);
    experiment_free(&e);
    refuse(LOADED("{rate: 1, duration: 1s, method: {percentile: p99, interval: 10us}}"),
           "x.yaml:4:17: `duration` and `method` exclude each other: the method decides how long "
           "the load lasts, `budget` in it how long at most");
    refuse(LOADED("{rate: 1, method: {percentile: p99}}"),
           "x.yaml:4:25: method: `percentile` and `interval` are needed, e.g. `method: "
           "{percentile: p99, interval: 10us}`");
    refuse(LOADED("{rate: 1, method: {percentile: 99, interval: 10us}}"),
           "x.yaml:4:38: percentile: `99` is not a percentile, like p99.9");
    refuse(LOADED("{rate: 1, method: {percentile: p99, interval: 10us, confidence: 95}}"),
           "x.yaml:4:71: confidence: 95 is not 0.5 to less than 1");
    refuse(LOADED("{rate: 1, method: {percentile: p99, interval: 10us, budget: 1ms}}"),
           "x.yaml:4:67: budget: 1ms is outside 10ms to 24h");
    refuse(LOADED("{rate: 1, method: {percentil: p99}}"),
           "x.yaml:4:26: unknown key `percentil`; did you mean `percentile`?");
}

static void servers_of_every_kind(void **state)
{
    (void)state;
    struct experiment e;
#define SERVED(server, workload)                                                                   \
    "name: x\nhosts: {client: {}, server: {}}\nservers: {s: " server "}\nworkload: " workload      \
    "\nload: {rate: 1}\n"
    parse(SERVED("{kind: redis}", "{protocol: redis}"), &e);
    assert_string_equal(e.servers.items[0].kind->name, "redis");
    assert_int_equal(e.servers.items[0].port, 6379);
    assert_int_equal(e.servers.items[0].threads, 1);
    experiment_free(&e);
    parse(SERVED("{kind: labserver, options: [--exact]}", "{protocol: lab}"), &e);
    assert_string_equal(e.servers.items[0].protocol, "lab");
    experiment_free(&e);
    refuse(SERVED("{kind: redis}", "{mix: {get: 1}}"),
           "x.yaml:4:11: protocol: the workload speaks memcached, and the server `s` is of kind "
           "redis, which does not; write `workload: {protocol: redis}`");
    refuse(SERVED("{kind: labserver}", "{protocol: memcached-binary}"),
           "x.yaml:4:22: protocol: the workload speaks memcached-binary, and the server `s` is of "
           "kind labserver, which does not; write `workload: {protocol: memcached}`");
    refuse(SERVED("{kind: redis, options: [--port, 1]}", "{protocol: redis}"),
           "x.yaml:3:38: options: --port is not for an experiment to give: the keys `port`, "
           "`memory` and `threads` are, and the run chooses the rest");
    refuse(SERVED("{kind: redis, command: [a]}", "{protocol: redis}"),
           "x.yaml:3:28: `command` is for `kind: command`; redis takes `options`");
}

static void servers_may_be_loaded_over_udp(void **state)
{
    (void)state;
    struct experiment e;
    parse(SERVED("{transport: udp}", "{protocol: memcached-meta}"), &e);
    assert_true(e.servers.items[0].over_udp && e.servers.items[0].shim);
    experiment_free(&e);
    parse(SERVED("{transport: tcp, shim: false}", "{}"), &e);
    assert_false(e.servers.items[0].over_udp);
    experiment_free(&e);
    refuse(SERVED("{transport: sctp}", "{}"),
           "x.yaml:3:26: `sctp` is not known here; it may be: tcp, udp");
    refuse(SERVED("{kind: redis, transport: udp}", "{protocol: redis}"),
           "x.yaml:3:28: `transport` is for `kind: memcached`");
    refuse(SERVED("{transport: udp, shim: false}", "{}"),
           "x.yaml:3:31: shim: over UDP only the shim sees socket calls; leave `shim` out, or "
           "write `transport: tcp`");
    refuse("name: x\nhosts: {client: {}, server: {}}\nservers: {s: {transport: udp}}\n"
           "load: {rate: 1, tls: true}\n",
           "x.yaml:4:17: `tls` is for TCP, and the load comes to `s` over UDP (its `transport`)");
    refuse("name: x\nhosts: {client: {}, server: {}}\nservers: {s: {transport: udp}}\n"
           "load: {rate: 1, session: 9}\n",
           "x.yaml:4:17: `session` is for TCP, and the load comes to `s` over UDP (its "
           "`transport`)");
    refuse(
        "name: x\nhosts: {client: {}, server: {}}\nservers: {s: {transport: udp}}\n"
        "workload: {mix: {multiget: 1}}\nload: {rate: 1}\n",
        "x.yaml:4:12: load: over UDP memcached answers each key of a multiget in a message of its "
        "own, each numbered as the only one; take TCP");
}

#define ONE_REDIS "name: x\nhosts: {client: {}, server: {}}\nservers: {s: {kind: redis}}\n"
static void clusters_and_sentinels_are_of_redis(void **state)
{
    (void)state;
    struct experiment experiment;
    static const char cluster[] = ONE_REDIS "workload: {protocol: redis}\n"
                                            "load: {rate: 1, cluster: true}\n",
                      sentinel[] = ONE_REDIS "workload: {protocol: redis-resp3}\n"
                                             "load: {rate: 1, sentinel: cache}\n";
    parse(cluster, &experiment);
    assert_true(experiment.load.cluster && !experiment.load.sentinel);
    experiment_free(&experiment);
    parse(sentinel, &experiment);
    assert_string_equal(experiment.load.sentinel, "cache");
    assert_false(experiment.load.cluster);
    experiment_free(&experiment);
    refuse(ONE_REDIS "workload: {protocol: redis}\nload: {rate: 1, session: 9, sentinel: a}\n",
           "x.yaml:5:17: `session` and `sentinel` exclude each other");
    refuse(ONE_REDIS "load: {rate: 1, session: 0}\n", "x.yaml:4:26: session: 0 is less than 1");
    refuse(ONE_REDIS "workload: {protocol: redis}\nload: {rate: 1, cluster: true, sentinel: a}\n",
           "x.yaml:5:17: `cluster` and `sentinel` exclude each other");
    refuse(ONE_REDIS "load: {rate: 1, sentinel: a}\n",
           "x.yaml:4:17: sentinel: protocol memcached has no clusters and no sentinels");
    refuse(ONE_REDIS "workload: {protocol: redis}\nload: {rate: 1, sentinel: \"\"}\n",
           "x.yaml:5:17: sentinel: a master's name has 1 to 255 bytes");
    refuse(ONE_REDIS "workload: {protocol: redis, mix: {multiget: 1}}\n"
                     "load: {rate: 1, cluster: true}\n",
           "x.yaml:4:29: load: a cluster refuses a multiget of keys in several slots; leave it out "
           "of the mix, or load one node");
}

static void references_are_followed(void **state)
{
    (void)state;
    refuse(
        "name: x\nhosts: {client: {}, srever: {}}\nservers: {c: {host: server}}\nload: {rate: 1}",
        "x.yaml:3:21: host: no host is called `server`; did you mean `srever`?");
    refuse("name: x\nhosts: {a: {}, b: {}}\nservers: {c: {kind: memcached}}\nload: {rate: 1}",
           "x.yaml:3:14: `host` is missing, and there is no host called `server` to stand in; it "
           "may be: a, b");
    refuse("name: x\nhosts: {client: {}, server: {}}\nservers: {cache: {}}\nload: {rate: 1, to: "
           "cahce}",
           "x.yaml:4:21: to: no server is called `cahce`; did you mean `cache`?");
    refuse(SMALLEST "tuning: {servr: [{sysctl: {a: 1}}]}\n",
           "x.yaml:8:10: tuning: no host is called `servr`; did you mean `server`?");
}

static void a_far_load_needs_an_address(void **state)
{
    (void)state;
    struct experiment experiment;
#define FAR_CLIENT "name: x\nhosts: {client: {kind: ssh, address: far, cores: [1]}, server: {}}\n"
    refuse(
        FAR_CLIENT "servers: {c: {kind: running, port: 1}}\nload: {rate: 1}\n",
        "x.yaml:3:11: the server `c` is on the local host `server`, on 127.0.0.1, where load from "
        "a host of kind ssh does not reach it; make that host ssh, too, or say the `address` of "
        "a server that runs already (kind: running)");
    refuse_beginning(FAR_CLIENT "servers: {c: {kind: running, port: 1, address: 127.0.0.2}}\n"
                                "load: {rate: 1}\n",
                     "x.yaml:3:11: the server `c` is on the local host `server`");
    parse(FAR_CLIENT "servers: {c: {kind: running, port: 1, address: 10.0.0.1}}\nload: {rate: 1}\n",
          &experiment);
    assert_string_equal(experiment.servers.items[0].address, "10.0.0.1");
    experiment_free(&experiment);
}

static void impossible_values_are_placed(void **state)
{
    (void)state;
    refuse_beginning("name: x\nhosts: {a: {cores: [0, 1000]}}\n",
                     "x.yaml:2:24: cores: this machine has no core 1000 for us, only ");
    refuse("name: x\nhosts: {a: {cores: [0-]}}\n",
           "x.yaml:2:21: cores: \"0-\" is not a list of cores (write it like 0-2,5)");
    refuse("name: x\nhosts: {client: {}, server: {}}\nservers: {c: {port: 70000}}\nload: {rate: 1}",
           "x.yaml:3:21: port: 70000 is outside 1 to 65535");
    refuse("name: x\nhosts: {client: {}, server: {}}\nservers: {c: {options: [-v, -p, 1]}}\n",
           "x.yaml:3:29: options: -p is not for an experiment to give: use the key `port`");
    refuse("name: x\nhosts: {client: {}, server: {}}\nservers: {c: {kind: command}}\n",
           "x.yaml:3:14: a server of kind command needs `command: [program, argument, ...]`");
    refuse(
        "name: x\nhosts: {client: {}, server: {kind: netns}}\n",
        "x.yaml:2:29: `server` is of kind netns and `client` of kind local, and no network joins "
        "them; make all hosts of one kind");
    refuse("name: a/b\n", "x.yaml:1:7: `a/b` is not a name: a letter or digit, then letters, "
                          "digits, `-`, `_`, `.`, 64 at most");
    refuse("hosts: {}\n", "x.yaml:1:1: `name` is missing, e.g. `name: quickstart`");
}

static void impossible_loads_are_placed(void **state)
{
    (void)state;
#define BEFORE_LOAD "name: x\nhosts: {client: {}, server: {}}\nservers: {cache: {}}\n"
    refuse(BEFORE_LOAD "load: {rate: fast}\n",
           "x.yaml:4:14: rate: \"fast\" is not a number (write it like 20000, 20k or 1.5M)");
    refuse(BEFORE_LOAD "load: {rate: -1}\n",
           "x.yaml:4:14: rate: \"-1\" is negative (write it like 20000, 20k or 1.5M)");
    refuse(BEFORE_LOAD "load: {to: cache}\n",
           "x.yaml:4:7: load: `rate` is missing; requests per second, e.g. `rate: 20k`");
    refuse(BEFORE_LOAD "load: {rate: 0}\n",
           "x.yaml:4:14: rate: 0 is not between 0 and 100M requests per second");
    refuse(BEFORE_LOAD "load: {rate: 1, duration: 10}\n",
           "x.yaml:4:27: duration: \"10\" is not a duration (write it like 10us, 250ms or 10s)");
    refuse(BEFORE_LOAD "load: {rate: 1, duration: 1ms}\n",
           "x.yaml:4:27: duration: 1ms is outside 10ms to 24h");
    refuse(BEFORE_LOAD "load: {rate: 1, arrivals: poison}\n",
           "x.yaml:4:27: arrivals: \"poison\" is neither exponential, fixed, uniform nor a "
           "distribution like lognormal:1,0.5");
    refuse(BEFORE_LOAD "load: {rate: 1, depth: 0}\n", "x.yaml:4:24: depth: 0 is outside 1 to 4096");
    refuse(BEFORE_LOAD
           "load: {rate: 1, duration: 2s}\nneighbours: {n: {command: [a], start: 2s}}\n",
           "x.yaml:5:39: start: 2s is not before the load's end");
    refuse(BEFORE_LOAD
           "load: {rate: 1, duration: 2s}\nneighbours: {n: {command: [a], start: 1s, stop: 1s}}\n",
           "x.yaml:5:49: stop: 1s is not between its start and the load's end");
    refuse(BEFORE_LOAD "load: {rate: 1, duration: 2s}\ndiagnose: {windows: [0s-1s, 1s-3s]}\n",
           "x.yaml:5:29: windows: `1s-3s` is not a stretch of the load's duration");
    refuse(BEFORE_LOAD "load: {rate: 1}\nneighbours: {n: {start: 1s}}\n",
           "x.yaml:5:17: a neighbour needs `command: [program, argument, ...]`");
    refuse(BEFORE_LOAD "load: {rate: 1}\ntuning: {server: [{sysctl: {../../etc/passwd: 1}}]}\n",
           "x.yaml:5:29: sysctl: `../../etc/passwd` is not a kernel parameter's name, such as "
           "`net.ipv4.tcp_low_latency`");
    refuse_beginning(BEFORE_LOAD "load: {rate: 1}\ndiagnose: {slice: p99-p1}\n",
                     "x.yaml:5:19: slice: ");
    refuse_beginning(BEFORE_LOAD "load: {rate: 1}\nworkload:\n  values: {size: {fixed: -5}}\n",
                     "x.yaml:6:26: fixed: ");
}

// Of several loads: what does not go together, before anything starts.
static void impossible_neighbours_of_a_load_are_placed(void **state)
{
    (void)state;
    struct experiment e;
#define BESIDE(load, loads)                                                                        \
    "name: x\nhosts: {client: {cores: [0]}, server: {}, other: {}}\n"                              \
    "servers: {cache: {host: server}, second: {host: server, port: 2}, far: {host: other, port: "  \
    "3}}\n"                                                                                        \
    "load: {to: cache, rate: 1k" load "}\nloads: {b: {rate: 1k, sleep: true" loads "}}\n"
    parse(BESIDE("", ""), &e);
    assert_int_equal(experiment_load_count(&e), 2);
    assert_string_equal(experiment_load_at(&e, 0)->name, "main");
    assert_string_equal(experiment_load_at(&e, 1)->name, "b");
    assert_true(experiment_load_at(&e, 1)->to == e.load.to);
    assert_true(experiment_load_at(&e, 1)->duration_ns == e.load.duration_ns);
    experiment_free(&e);
    refuse(BESIDE(", name: b", ""),
           "x.yaml:5:9: loads: two are called `b`; `load: {name: ...}` gives the first another "
           "name");
    refuse(BESIDE("", ", to: far"),
           "x.yaml:5:36: loads: `b` goes to a server on another host than `main`, and what is "
           "captured is on one: put both servers there");
    refuse(BESIDE(", duration: 1s", ", duration: 2s"),
           "x.yaml:5:36: loads: `b` lasts longer than `main`, with which the run ends");
    refuse("name: x\nhosts: {client: {cores: [0]}, server: {}}\nservers: {c: {}}\n"
           "load: {rate: 1k}\nloads: {b: {rate: 1k}}\n",
           "x.yaml:5:9: loads: `b` is one of 2 that spin on 1 core of `client`: give the host more "
           "`cores`, or all but one of them `sleep: true`");
    refuse(BESIDE("", ", workload: {values: {size: {fixed: 9}}}"),
           "x.yaml:5:36: loads: `b` and `main` store values of different sizes under the same keys "
           "of `cache`: give one of them keys of another length, such as `keys: {size: {fixed: "
           "24}}`");
    parse(BESIDE("", ", to: second, workload: {values: {size: {fixed: 9}}}"), &e);
    experiment_free(&e);
    parse(BESIDE("", "") "gates: [{percentile: p99, load: b, max: 1us}]\n", &e);
    assert_string_equal(e.gates.items[0].load, "b");
    experiment_free(&e);
    refuse(BESIDE("", "") "gates: [{percentile: p99, max: 1us}, {percentile: p99, load: c, max: "
                          "1us}]\n",
           "x.yaml:6:56: load: there is no load `c` in x; it has `main`, `b`");
    refuse(SMALLEST "gates: [{percentile: p99, load: b, max: 1us}]\n",
           "x.yaml:8:27: load: `b`: small has one load, without a name: leave it out");
    refuse(BESIDE("", ", name: c"),
           "x.yaml:5:36: name: a load among `loads` is called what its key is");
    refuse(BESIDE("", ", method: {percentile: p99, interval: 1us}"),
           "x.yaml:5:36: method: the other loads last as long as `load` does, whose method it is");
    refuse(BESIDE("", ", seed: 4"),
           "x.yaml:5:36: seed: the seeds of other loads follow from that of `load`");
    refuse(BESIDE("", ", agents: [{host: other}]"),
           "x.yaml:5:36: agents: only `load` is shared by agents; name one more load instead");
    refuse(BESIDE(", workload: {protocol: redis}", ""),
           "x.yaml:4:29: workload: that of `load` is the experiment's; it stands at the top of the "
           "file");
    refuse(BESIDE(", agents: [{host: client}]", ""),
           "x.yaml:4:29: `loads` and `agents` exclude each other: name one more load instead of an "
           "agent");
    refuse("name: x\nhosts: {client: {}, server: {}}\nservers: {c: {transport: udp}}\n"
           "load: {rate: 1k, sleep: true}\nloads: {b: {rate: 1k}}\n",
           "x.yaml:5:9: loads: several are over TCP, and `b` goes to `c`, which has `transport: "
           "udp`");
    refuse(
        "name: x\nhosts: {client: {}, server: {}, far: {kind: ssh, address: a, cores: [1]}}\n"
        "servers: {c: {kind: running, host: server, port: 1, address: 10.0.0.1}}\n"
        "load: {from: client, rate: 1k}\nloads: {b: {from: far, rate: 1k}}\n",
        "x.yaml:5:13: loads: `b` comes from another machine than `main`, and all loads come from "
        "one: leave `from` out");
}

// Of several loads the one that is wrong is named, where it says so.
static void the_wrong_one_of_several_loads_is_placed(void **state)
{
    (void)state;
#define TWO_SERVERS(first, loads)                                                                  \
    "name: x\nhosts: {client: {cores: [0]}, server: {}}\n"                                         \
    "servers:\n  c: {port: 1}\n  u: {transport: udp, port: 2}\n  r: {kind: redis}\n"               \
    "load: {to: " first ", rate: 1k}\nloads:\n  a: {rate: 1k, sleep: true}\n" loads
    refuse(TWO_SERVERS("c", "  b: {rate: 1k, sleep: true, to: u}\n"),
           "x.yaml:10:30: loads: several are over TCP, and `b` goes to `u`, which has `transport: "
           "udp`");
    refuse(TWO_SERVERS("u", "") "    # it goes where the first goes\n",
           "x.yaml:9:3: loads: several are over TCP, and `a` goes to `u`, which has `transport: "
           "udp`");
    refuse(
        "name: x\nhosts: {client: {}, server: {}}\nservers: {c: {port: 1}, u: {transport: udp}}\n"
        "load: {to: u, rate: 1k}\nloads: {a: {rate: 1k, sleep: true, to: c}}\n",
        "x.yaml:4:8: loads: several are over TCP, and `main` goes to `u`, which has `transport: "
        "udp`");
    refuse(TWO_SERVERS("c", "  b: {sleep: true}\n"),
           "x.yaml:10:6: loads.b: `rate` is missing; requests per second, e.g. `rate: 20k`");
    refuse(TWO_SERVERS("c", "  b: {rate: 1, tls_insecure: true}\n"),
           "x.yaml:10:16: loads.b: `tls_insecure` is for `tls: true`");
    refuse(TWO_SERVERS("c", "  b: {rate: 1, tls: true, tls_key: /a}\n"),
           "x.yaml:10:27: `tls_key` is for `tls_cert`");
    refuse(TWO_SERVERS("c", "  b: {rate: 1, tls: true, tls_cert: a.pem}\n"),
           "x.yaml:10:37: tls_cert: write the whole path; it is read on the host that loads");
    refuse(
        TWO_SERVERS("c", "  b: {rate: 1, sleep: true, to: r}\n"),
        "x.yaml:10:29: protocol: the workload of loads.b speaks memcached, and the server `r` is "
        "of kind redis, which does not; write `workload: {protocol: redis}` into loads.b");
    refuse(TWO_SERVERS("c", "  b: {rate: 1, sleep: true, to: r, workload: {protocol: http}}\n"),
           "x.yaml:10:57: protocol: the workload of loads.b speaks http, and the server `r` is of "
           "kind redis, which does not; write `workload: {protocol: redis}` into loads.b");
    refuse(TWO_SERVERS("c", "  b:\n    rate: 1\n    sleep: true\n    workload:\n"
                            "      {mix: {multiget: 1}, keys: {count: 1}}\n"),
           "x.yaml:14:8: loads.b: a multiget of 10 keys, and the workload has only 1 (keys: "
           "{count})");
    refuse(TWO_SERVERS("r", ""),
           "x.yaml:7:8: protocol: the workload speaks memcached, and the server `r` is of kind "
           "redis, which does not; write `workload: {protocol: redis}`");
}

// One server at one port speaks one protocol, or those of one kind of cache, or of HTTP.
static void loads_of_one_server_speak_what_it_may(void **state)
{
    (void)state;
    struct experiment e;
#define ONE_SERVER(server, first, second)                                                          \
    "name: x\nhosts: {client: {cores: [0]}, server: {}, here: {kind: local}}\n"                    \
    "servers: {s: {" server "}, t: {kind: running, host: here, port: 82}}\n"                       \
    "workload: {protocol: " first "}\nload: {to: s, rate: 1k}\n"                                   \
    "loads: {b: {rate: 1k, sleep: true, workload: {protocol: " second "}\n"
#define OWN     "kind: command, port: 81, command: [a, b]"
#define RUNNING "kind: running, host: here, port: 81"
#define NOT_BOTH(second, first)                                                                    \
    "loads: `b` speaks " second " and `main` " first ", and one server at one port does not "      \
    "speak both: give one of them a server of its own, `to: ...`, with another `port`"
    refuse(ONE_SERVER(OWN, "redis", "http}}"), "x.yaml:6:57: " NOT_BOTH("http", "redis"));
    refuse(ONE_SERVER(RUNNING, "memcached", "redis}}"),
           "x.yaml:6:57: " NOT_BOTH("redis", "memcached"));
    refuse(ONE_SERVER(OWN, "redis", "memcached, values: {size: {fixed: 9}}}}"),
           "x.yaml:6:57: " NOT_BOTH("memcached", "redis"));
    refuse("name: x\nhosts: {client: {cores: [0]}, server: {}}\nservers: {s: {" OWN "}}\n"
           "workload: {protocol: redis}\nload: {rate: 1k}\n"
           "loads: {b: {rate: 1k, sleep: true, workload: {mix: {get: 1}}}}\n",
           "x.yaml:6:46: " NOT_BOTH("memcached", "redis"));
    refuse(ONE_SERVER("kind: labserver", "lab", "memcached}}"),
           "x.yaml:6:57: " NOT_BOTH("memcached", "lab"));
    refuse(ONE_SERVER("kind: nginx", "http", "http2}}"), "x.yaml:6:57: " NOT_BOTH("http2", "http"));
#define LINES "custom, custom: {requests: {get: a}, reply: {until: \"\\n\"}}"
    refuse(
        ONE_SERVER(OWN, LINES, "custom, custom: {requests: {get: b}, reply: {until: x}}}}"),
        "x.yaml:6:57: " NOT_BOTH("custom", "another, whose replies end or are numbered otherwise"));
    parse(ONE_SERVER(OWN, LINES, LINES "}}"), &e);
    experiment_free(&e);
    parse(ONE_SERVER(OWN, "memcached", "memcached-meta}}"), &e);
    experiment_free(&e);
    parse(ONE_SERVER(RUNNING, "redis", "redis-resp3}}"), &e);
    experiment_free(&e);
    parse(ONE_SERVER(RUNNING, "http2", "http}}"), &e);
    experiment_free(&e);
    parse(ONE_SERVER(RUNNING, "redis", "http}, to: t}"), &e);
    experiment_free(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_filled_in),
        cmocka_unit_test(everything_is_read),
        cmocka_unit_test(json_says_the_same),
        cmocka_unit_test(json_has_all_keys_of_a_server),
        cmocka_unit_test(unknown_keys_are_placed),
        cmocka_unit_test(stamps_are_judged),
        cmocka_unit_test(wrong_shapes_are_placed),
        cmocka_unit_test(later_keys_are_named),
        cmocka_unit_test(servers_may_be_several),
        cmocka_unit_test(agents_are_resolved),
        cmocka_unit_test(impossible_agents_are_placed),
        cmocka_unit_test(a_method_replaces_the_duration),
        cmocka_unit_test(servers_of_every_kind),
        cmocka_unit_test(servers_may_be_loaded_over_udp),
        cmocka_unit_test(clusters_and_sentinels_are_of_redis),
        cmocka_unit_test(references_are_followed),
        cmocka_unit_test(a_far_load_needs_an_address),
        cmocka_unit_test(impossible_values_are_placed),
        cmocka_unit_test(impossible_loads_are_placed),
        cmocka_unit_test(impossible_neighbours_of_a_load_are_placed),
        cmocka_unit_test(the_wrong_one_of_several_loads_is_placed),
        cmocka_unit_test(loads_of_one_server_speak_what_it_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
