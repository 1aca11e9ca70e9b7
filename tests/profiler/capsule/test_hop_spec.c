// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "profiler/capsule/hop_spec.h"

static void one_direction_is_one_hop(void **state)
{
    (void)state;
    struct hop_spec spec[2];
    size_t count;
    assert_int_equal(hop_spec_parse("eth0:ingress", spec, &count, NULL), 0);
    assert_int_equal(count, 1);
    assert_string_equal(spec[0].interface, "eth0");
    assert_int_equal(spec[0].direction, HOP_INGRESS);
    assert_string_equal(spec[0].namespace, "");
    assert_string_equal(spec[0].name, "eth0:ingress");
    assert_int_equal(hop_spec_parse("veth7:egress@client", spec, &count, NULL), 0);
    assert_int_equal(count, 1);
    assert_int_equal(spec[0].direction, HOP_EGRESS);
    assert_string_equal(spec[0].namespace, "/run/netns/client");
    assert_string_equal(spec[0].name, "veth7:egress@client");
}

static void without_one_it_is_both(void **state)
{
    (void)state;
    struct hop_spec spec[2];
    size_t count;
    assert_int_equal(hop_spec_parse("br-0.5", spec, &count, NULL), 0);
    assert_int_equal(count, 2);
    assert_int_equal(spec[0].direction, HOP_INGRESS);
    assert_int_equal(spec[1].direction, HOP_EGRESS);
    assert_string_equal(spec[1].name, "br-0.5:egress");
}

static void namespaces_have_three_forms(void **state)
{
    (void)state;
    struct hop_spec spec[2];
    size_t count;
    assert_int_equal(hop_spec_parse("a@4711", spec, &count, NULL), 0);
    assert_string_equal(spec[0].namespace, "/proc/4711/ns/net");
    assert_int_equal(hop_spec_parse("a@/proc/1/ns/net", spec, &count, NULL), 0);
    assert_string_equal(spec[1].namespace, "/proc/1/ns/net");
    assert_string_equal(spec[1].name, "a:egress@/proc/1/ns/net");
    assert_int_equal(hop_spec_parse("a@web-1", spec, &count, NULL), 0);
    assert_string_equal(spec[0].namespace, "/run/netns/web-1");
    assert_int_equal(hop_spec_parse("a:egress@4711=web", spec, &count, NULL), 0);
    assert_string_equal(spec[0].namespace, "/proc/4711/ns/net");
    assert_string_equal(spec[0].name, "a:egress@web");
    assert_int_equal(hop_spec_parse("a@/proc/1/ns/net=web", spec, &count, NULL), 0);
    assert_string_equal(spec[0].namespace, "/proc/1/ns/net");
    assert_string_equal(spec[1].name, "a:egress@web");
}

static void others_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",         ":ingress",       "@ns",    "a/b",     "a b", "sixteen-letters-",
        "a:",       "a:in",           "a:ing",  "a:both",  "a@",  "a:ingress@",
        "a@../etc", "a@x/y",          "a@..",   "a@ ",     "..",  "a:ingress:egress",
        "\x7f",     "a:ingress@\x01", ".",      "a@b c\n", "\t",  "a:egressx",
        "a@b=",     "a@=b",           "a@..=b",
    };
    char long_path[300] = "a@/";
    memset(long_path + 3, 'x', 200);
    for (size_t i = 0; i <= sizeof bad / sizeof *bad; i++) {
        const char *text = i < sizeof bad / sizeof *bad ? bad[i] : long_path;
        struct hop_spec spec[2];
        struct error err = {0};
        size_t count = 9;
        if (hop_spec_parse(text, spec, &count, &err) != -ERROR_INPUT)
            fail_msg("\"%s\" was taken", text);
        assert_int_equal(count, 0);
        assert_non_null(strstr(err.text, "--hop"));
    }
}

// Parses a list as the command does, and gives each hop its part.
static int carried(const char *const *texts, size_t count, struct hop_spec *specs, size_t *hops)
{
    *hops = 0;
    for (size_t i = 0; i < count; i++) {
        struct hop_spec both[2];
        size_t found;
        assert_int_equal(hop_spec_parse(texts[i], both, &found, NULL), 0);
        memcpy(specs + *hops, both, found * sizeof *both);
        *hops += found;
    }
    return hop_specs_carry(specs, *hops, NULL);
}

static void ends_begin_what_they_send(void **state)
{
    (void)state;
    static const char *const both[] = {"eth0@c", "vc", "vs:egress", "eth0@s"};
    static const char *const one_way[] = {"vc:ingress", "br0", "vs:egress"};
    static const char *const mixed[] = {"eth0:egress@c", "eth0@s"};
    static const char *const roles_both[] = {"ends",    "begins", "carries", "carries",
                                             "carries", "ends",   "begins"};
    static const char *const roles_one_way[] = {"begins", "carries", "carries", "ends"};
    static const char *const roles_mixed[] = {"begins", "ends", "begins"};
    struct hop_spec specs[HOPS_MAX];
    size_t hops;
    assert_int_equal(carried(both, 4, specs, &hops), 0);
    for (size_t i = 0; i < hops; i++)
        assert_string_equal(hop_role_name(specs[i].role), roles_both[i]);
    assert_int_equal(carried(one_way, 3, specs, &hops), 0);
    for (size_t i = 0; i < hops; i++)
        assert_string_equal(hop_role_name(specs[i].role), roles_one_way[i]);
    assert_int_equal(carried(mixed, 2, specs, &hops), 0);
    for (size_t i = 0; i < hops; i++)
        assert_string_equal(hop_role_name(specs[i].role), roles_mixed[i]);
}

// An interface of that name on another machine is another.
static void machines_have_interfaces_of_one_name(void **state)
{
    (void)state;
    static const char *const names[] = {"eth0", "eth0"};
    static const char *const roles[] = {"ends", "begins", "ends", "begins"};
    struct hop_spec specs[HOPS_MAX];
    size_t hops;
    assert_int_equal(carried(names, 2, specs, &hops), -ERROR_INPUT);
    specs[2].machine = specs[3].machine = 1;
    assert_int_equal(hop_specs_carry(specs, hops, NULL), 0);
    for (size_t i = 0; i < hops; i++)
        assert_string_equal(hop_role_name(specs[i].role), roles[i]);
}

static void one_interface_is_no_way(void **state)
{
    (void)state;
    static const char *const one[] = {"eth0"}, *const again[] = {"a:egress", "b", "a:ingress"};
    struct hop_spec specs[HOPS_MAX];
    size_t hops;
    assert_int_equal(carried(one, 1, specs, &hops), -ERROR_INPUT);
    assert_int_equal(carried(again, 3, specs, &hops), -ERROR_INPUT);
    assert_int_equal(hop_specs_carry(specs, 1, NULL), -ERROR_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_direction_is_one_hop),
        cmocka_unit_test(without_one_it_is_both),
        cmocka_unit_test(namespaces_have_three_forms),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(ends_begin_what_they_send),
        cmocka_unit_test(one_interface_is_no_way),
        cmocka_unit_test(machines_have_interfaces_of_one_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
