// SPDX-License-Identifier: MIT
//
// The `capsule` of an experiment, and the bridge that its hops are at.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "experiments/definition/experiment_set.h"
#include "experiments/definition/output.h"
#include "experiments/hosts/host_kind.h"
#include "tests/experiments/definition/refused_set.h"

#define BEFORE                                                                                     \
    "name: x\n"                                                                                    \
    "hosts: {client: {kind: netns}, server: {kind: netns}, switch: {kind: bridge}}\n"              \
    "servers: {cache: {}}\n"                                                                       \
    "load: {rate: 1, duration: 2s}\n"

static void hops_are_resolved(void **state)
{
    (void)state;
    const char *text =
        BEFORE "capsule: {hops: [to2@client, 'to0:ingress@switch', eth1], sample: 1/16,\n"
               "  filter: udp port 7, carry: true}\n";
    struct experiment_set set;
    struct error err = {0};
    if (experiment_set_parse("x.yaml", text, strlen(text), NULL, &set, &err) < 0)
        fail_msg("%s", err.text);
    const struct experiment_capsule *capsule = &set.items[0].capsule;
    assert_int_equal(capsule->hops.count, 3);
    assert_int_equal(capsule->hops.items[0].host, 0);
    assert_string_equal(capsule->hops.items[0].where, "to2");
    assert_int_equal(capsule->hops.items[1].host, 2);
    assert_string_equal(capsule->hops.items[1].where, "to0:ingress");
    assert_int_equal(capsule->hops.items[2].host, 1); // the server's
    assert_string_equal(capsule->hops.items[2].where, "eth1");
    assert_int_equal(capsule->spec_count, 5);
    assert_string_equal(capsule->specs[2].name, "to0:ingress@switch");
    assert_true(capsule->carry);
    json_t *document = experiment_to_json(&set.items[0]);
    json_t *json = json_object_get(document, "capsule");
    assert_int_equal(json_array_size(json_object_get(json, "hops")), 3);
    assert_string_equal(json_string_value(json_object_get(json, "filter")), "udp port 7");
    json_decref(document);
    experiment_set_free(&set);
}

#define TWO_MACHINES                                                                               \
    "name: x\nhosts: {client: {kind: local}, server: {kind: ssh, address: h, cores: [0]}}\n"       \
    "servers: {c: {}}\nload: {rate: 1, duration: 2s}\n"

static void hops_of_two_machines_are_told_apart(void **state)
{
    (void)state;
    const char *text =
        TWO_MACHINES "capsule: {hops: [tap0@client, 'eth0:ingress@server', eth1], carry: true}\n";
    struct experiment_set set;
    struct error err = {0};
    if (experiment_set_parse("x.yaml", text, strlen(text), NULL, &set, &err) < 0)
        fail_msg("%s", err.text);
    const struct experiment_capsule *capsule = &set.items[0].capsule;
    assert_true(capsule->is_divided);
    assert_true(capsule->carry);
    assert_true(capsule->hops.items[0].at_client);
    assert_false(capsule->hops.items[1].at_client);
    assert_false(capsule->hops.items[2].at_client);
    experiment_set_free(&set);
}

static void without_one_nothing_is_stamped(void **state)
{
    (void)state;
    struct experiment_set set;
    struct error err = {0};
    if (experiment_set_parse("x.yaml", BEFORE, strlen(BEFORE), NULL, &set, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(set.items[0].capsule.hops.count, 0);
    assert_true(set.items[0].hosts.items[2].kind->is_bridge);
    json_t *document = experiment_to_json(&set.items[0]);
    assert_non_null(document);
    assert_null(json_object_get(document, "capsule"));
    json_decref(document);
    experiment_set_free(&set);
}

static void what_does_not_fit_is_placed(void **state)
{
    (void)state;
    refuse(BEFORE "capsule: {}\n",
           "x.yaml:5:10: capsule: `hops` is missing, e.g. `hops: [to2@client, to0@switch, "
           "to1@switch, to2@server]`");
    refuse(BEFORE "capsule: {hops: [to2@cleint]}\n",
           "x.yaml:5:18: hops: no host is called `cleint`; did you mean `client`?");
    refuse(BEFORE "capsule: {hops: [to2@client, 'to2:egress@client']}\n",
           "x.yaml:5:30: hops: to2:egress@client is there twice");
    refuse(BEFORE "capsule: {hops: [a, b, c, d, e, f, g, h]}\n",
           "x.yaml:5:39: hops: 15 at most; an interface without :ingress or :egress is two");
    refuse(BEFORE "capsule: {hops: ['a:in']}\n",
           "x.yaml:5:18: hops: \"a:in\": \"in\" is none of ingress, egress");
    refuse(BEFORE "capsule: {hops: [a], sample: 1/0}\n",
           "x.yaml:5:30: sample: \"1/0\" is not 1, or 1/N with N from 1 to 1048576");
    refuse(BEFORE "capsule: {hops: [a], carry: true}\n",
           "x.yaml:5:29: carry: packets are carried from the first --hop to the last, which are to "
           "be two interfaces");
    refuse("name: x\n"
           "hosts: {client: {}, server: {kind: local}, far: {kind: ssh, address: h, cores: [0]}}\n"
           "servers: {c: {}}\nload: {rate: 1, duration: 2s}\ncapsule: {hops: [eth0@far]}\n",
           "x.yaml:5:18: hops: the host `far` is neither the server's machine nor the one machine "
           "that the load comes from, and no other's clock is related to theirs; name hops there");
    refuse("name: x\nhosts: {a: {kind: bridge}, client: {kind: netns}, b: {kind: bridge}}\n",
           "x.yaml:2:54: `a` is a bridge already, and one joins all hosts; leave one of them out");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hops_are_resolved),
        cmocka_unit_test(hops_of_two_machines_are_told_apart),
        cmocka_unit_test(without_one_nothing_is_stamped),
        cmocka_unit_test(what_does_not_fit_is_placed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
