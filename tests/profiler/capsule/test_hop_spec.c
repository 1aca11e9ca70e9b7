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
}

static void others_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",         ":ingress",       "@ns",   "a/b",     "a b", "sixteen-letters-",
        "a:",       "a:in",           "a:ing", "a:both",  "a@",  "a:ingress@",
        "a@../etc", "a@x/y",          "a@..",  "a@ ",     "..",  "a:ingress:egress",
        "\x7f",     "a:ingress@\x01", ".",     "a@b c\n", "\t",  "a:egressx",
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_direction_is_one_hop),
        cmocka_unit_test(without_one_it_is_both),
        cmocka_unit_test(namespaces_have_three_forms),
        cmocka_unit_test(others_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
