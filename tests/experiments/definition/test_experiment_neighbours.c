// SPDX-License-Identifier: MIT
//
// Neighbours of an experiment: programs, NGINX and what is asked of it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "experiments/definition/experiment_set.h"
#include "experiments/definition/output.h"
#include "experiments/servers/server_kind.h"
#include "tests/experiments/definition/refused_set.h"

#define BEFORE                                                                                     \
    "name: x\n"                                                                                    \
    "hosts: {client: {kind: netns}, server: {kind: netns, cores: [0]}}\n"                          \
    "servers: {cache: {}}\n"                                                                       \
    "load: {rate: 1, duration: 2s}\n"

static void nginx_is_resolved(void **state)
{
    (void)state;
    const char *text =
        BEFORE "neighbours:\n"
               "  plain: {kind: nginx, port: 81}\n"
               "  web: {kind: nginx, workers: 4, page: 1KiB, rules: 7, nice: -3, start: 1s,\n"
               "        load: {from: server, rate: 5k, connections: 3, depth: 2, cores: [0]}}\n";
    struct experiment_set set;
    struct error err = {0};
    if (experiment_set_parse("x.yaml", text, strlen(text), NULL, &set, &err) < 0)
        fail_msg("%s", err.text);
    const struct experiment_neighbour *plain = &set.items[0].neighbours.items[0];
    const struct experiment_neighbour *web = &set.items[0].neighbours.items[1];
    assert_string_equal(plain->kind->name, "nginx");
    assert_int_equal(plain->workers, 1);
    assert_int_equal(plain->page_bytes, 612);
    assert_int_equal(plain->port, 81);
    assert_true(plain->load.rate == 0);
    assert_int_equal(web->workers, 4);
    assert_int_equal(web->page_bytes, 1024);
    assert_int_equal(web->rules, 7);
    assert_int_equal(web->port, 80);
    assert_int_equal(web->nice, -3);
    assert_int_equal(web->load.from, 1);
    assert_true(web->load.rate == 5000);
    assert_int_equal(web->load.connections, 3);
    assert_int_equal(web->load.depth, 2);
    assert_int_equal(CPU_COUNT(&web->load.cores), 1);
    assert_true(web->start_ns == 1000000000);
    json_t *document = experiment_to_json(&set.items[0]);
    json_t *nginx =
        json_object_get(json_object_get(json_object_get(document, "neighbours"), "web"), "nginx");
    assert_int_equal(json_integer_value(json_object_get(nginx, "workers")), 4);
    assert_true(json_number_value(json_object_get(json_object_get(nginx, "load"), "rate")) == 5000);
    json_decref(document);
    experiment_set_free(&set);
}

static void what_does_not_fit_is_placed(void **state)
{
    (void)state;
    refuse(BEFORE "neighbours: {n: {kind: nginx, load: {connections: 1}}}\n",
           "x.yaml:5:37: load: `rate` is missing; requests per second, e.g. `rate: 5k`");
    refuse(BEFORE "neighbours: {n: {kind: nginx, command: [a]}}\n",
           "x.yaml:5:31: `command` is for `kind: command`; nginx takes `workers`, `page`, `port` "
           "and `load`");
    refuse(BEFORE "neighbours: {n: {command: [a], load: {rate: 1}}}\n",
           "x.yaml:5:32: `load` is for `kind: nginx`");
    refuse(BEFORE "neighbours: {n: {kind: nginx, port: 11211}}\n",
           "x.yaml:5:17: port: 11211 is the server's on this host; give nginx another `port`");
    refuse(BEFORE "neighbours: {n: {command: [a], nice: 20}}\n",
           "x.yaml:5:38: nice: `20` is not a priority, -20 (first) to 19 (last)");
    refuse(BEFORE "neighbours: {n: {kind: nginx, load: {rate: 1, rates: 1}}}\n",
           "x.yaml:5:47: unknown key `rates`; did you mean `rate`?");
    refuse("name: x\nhosts: {client: {}, server: {}}\nservers: {c: {page: 1KiB}}\n",
           "x.yaml:3:15: `page` is for `kind: nginx`");
    refuse("name: x\nhosts: {client: {}, server: {}}\nservers: {c: {kind: nginx}}\n"
           "load: {rate: 1}\n",
           "x.yaml:4:1: protocol: the workload speaks memcached, and the server `c` is of kind "
           "nginx, which does not; write `workload: {protocol: http}`");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nginx_is_resolved),
        cmocka_unit_test(what_does_not_fit_is_placed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
