// SPDX-License-Identifier: MIT
//
// Workloads from YAML: what is taken, what is refused and where the blame is laid; keys and values.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "workloads/protocols/protocols.h"
#include "workloads/protocols/redis.h"
#include "workloads/workload.h"

static int load_text_of(const struct protocol *otherwise, const char *text, size_t bytes,
                        struct workload *workload, struct error *err)
{
    char path[] = "/tmp/test-workload-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, bytes), (ssize_t)bytes);
    close(fd);
    memset(err, 0, sizeof *err);
    int result = workload_load_file(path, otherwise, workload, err);
    if (result < 0) { // the file's name is not the same twice: compare what follows it
        assert_int_equal(result, -ERROR_INPUT);
        assert_int_equal(strncmp(err->text, path, strlen(path)), 0);
        memmove(err->text, err->text + strlen(path), strlen(err->text + strlen(path)) + 1);
    }
    unlink(path);
    return result;
}

static int load_text(const char *text, size_t bytes, struct workload *workload, struct error *err)
{
    return load_text_of(NULL, text, bytes, workload, err);
}

// Structs have padding: member by member.
static void assert_same(const struct workload *a, const struct workload *b)
{
    assert_ptr_equal(a->protocol, b->protocol);
    for (unsigned i = 0; i < WORKLOAD_OPERATIONS; i++)
        assert_true(a->mix[i] == b->mix[i]);
    assert_int_equal(a->key_count, b->key_count);
    assert_int_equal(a->popularity.kind, b->popularity.kind);
    assert_true(a->popularity.exponent == b->popularity.exponent);
    const struct distribution *sizes[2][2] = {{&a->key_size_bytes, &b->key_size_bytes},
                                              {&a->value_size_bytes, &b->value_size_bytes}};
    assert_int_equal(a->small_value_count, b->small_value_count);
    for (unsigned i = 0; i < a->small_value_count; i++)
        assert_true(a->small_values[i] == b->small_values[i]);
    assert_int_equal(a->arrivals.kind, b->arrivals.kind);
    assert_true(a->arrivals.second == b->arrivals.second);
    assert_int_equal(a->pattern.kind, b->pattern.kind);
    assert_true(a->pattern.values[2] == b->pattern.values[2]);
    assert_int_equal(a->service_given, b->service_given);
    assert_int_equal(a->read_through, b->read_through);
    assert_int_equal(a->expiry_ns, b->expiry_ns);
    assert_true(a->service_ns.third == b->service_ns.third);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(sizes[i][0]->third == sizes[i][1]->third);
        assert_int_equal(sizes[i][0]->kind, sizes[i][1]->kind);
        assert_true(sizes[i][0]->first == sizes[i][1]->first);
        assert_true(sizes[i][0]->second == sizes[i][1]->second);
    }
}

static void everything_is_taken(void **state)
{
    (void)state;
    struct workload workload;
    struct error err;
    static const char text[] = "protocol: memcached\n"
                               "mix: {get: 3, set: 1}\n"
                               "keys:\n"
                               "  count: 2k\n"
                               "  size: {uniform: [10, 20]}\n"
                               "  popularity: {zipf: 0.99}\n"
                               "values: {size: {exponential: 1kB}}\n";
    assert_int_equal(load_text(text, sizeof text - 1, &workload, &err), 0);
    assert_string_equal(workload.protocol->name, "memcached");
    assert_true(workload.mix[WORKLOAD_GET] == 3 && workload.mix[WORKLOAD_SET] == 1);
    assert_int_equal(workload.key_count, 2000);
    assert_int_equal(workload.key_size_bytes.kind, DISTRIBUTION_UNIFORM);
    assert_true(workload.key_size_bytes.first == 10 && workload.key_size_bytes.second == 20);
    assert_int_equal(workload.popularity.kind, POPULARITY_ZIPF);
    assert_true(workload.popularity.exponent == 0.99);
    assert_int_equal(workload.value_size_bytes.kind, DISTRIBUTION_EXPONENTIAL);
    assert_true(workload.value_size_bytes.first == 1000);
}

static void what_is_absent_is_the_default(void **state)
{
    (void)state;
    struct workload workload, defaults;
    struct error err;
    static const char text[] = "keys: {popularity: {uniform: true}}\n";
    workload_defaults(&defaults);
    assert_int_equal(load_text(text, sizeof text - 1, &workload, &err), 0);
    assert_same(&workload, &defaults);
}

static void faults_are_placed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"", ":1:1: the file is empty"},
        {"keys: {count: 1k}\nmixes: {}\n",
         ":2:1: unknown key `mixes`; it may be: preset, protocol, mix"},
        {"keys:\n  count: 1k\n  sizes: {fixed: 3}\n",
         ":3:3: unknown key `sizes`; did you mean `size`?"},
        {"keys: [1, 2]\n", ":1:7: `keys` takes keys with values, not a list"},
        {"keys: {size: 31}\n", ":1:14: `size` takes keys with values, not a single value"},
        {"keys: {popularity: zipf}\n", ":1:20: `popularity` takes keys with values"},
        {"protocol: {a: b}\n", ":1:11: `protocol` takes a single value, not keys with values"},
        {"protocol: gopher\n", ":1:11: `gopher` is not known here; it may be: memcached, "},
        {"keys: {count: 1k}\nkeys: {count: 2k}\n", ":2:1: key `keys` is given twice"},
        {"keys: {count: 0}\n", ":1:15: count: 0 is outside 1 to 4294967295"},
        {"keys: {count: many}\n", ":1:15: count: \"many\" is not a number"},
        {"keys: {count: 5G}\n", ":1:15: count: 5G is outside 1 to"},
        {"keys:\n  count: 100k\n  size: {fixed: 4}\n", ":3:17: fixed: 4 bytes, but each of"},
        {"keys: {size: {fixed: 251}}\n", ":1:22: fixed: 251 bytes"},
        {"keys: {size: {uniform: [30, 20]}}\n", ":1:24: uniform: [30, 20] ends"},
        {"keys: {size: {uniform: [30]}}\n", ":1:24: `uniform` takes 2 values, not 1"},
        {"keys: {size: {fixed: 30, exponential: 3}}\n",
         ":1:26: one distribution, please: fixed or exponential"},
        {"keys: {popularity: {zipf: 2}}\n", ":1:27: zipf: 2 is not between 0 and 2"},
        {"keys: {popularity: {zipf: -1}}\n", ":1:27: zipf: \"-1\" is negative"},
        {"keys: {popularity: {zipf: 1, uniform: true}}\n", ":1:20: popularity: either"},
        {"mix: {get: 0, set: 0}\n", ":1:6: mix: the weights must add up"},
        {"mix: {get: x}\n", ":1:12: get: \"x\" is not a number"},
        {"mix: {lpush: 1}\n", ":1:7: mix: protocol memcached has no lpush; it has get, set"},
        {"protocol: http\nmix: {get: 1, set: 1}\n",
         ":2:15: mix: protocol http has no set; it has get"},
        {"mix: {append: 1}\n", ":1:7: mix: protocol memcached has no append; it has get, set"},
        {"mix: {gett: 1}\n", ":1:7: mix: protocol memcached has no gett (did you mean `get`?); it"},
        {"read_through: true\nprotocol: http\n",
         ":1:15: read_through: protocol http has no get and set"},
        {"values: {expiry: 1500ms}\n", ":1:18: expiry: servers count whole seconds"},
        {"values: {expiry: 721h}\n", ":1:18: expiry: 721h is outside 1s to 720h"},
        {"protocol: http\nvalues: {expiry: 5s}\n", ":2:18: expiry: protocol http has no set"},
        {"read_through: perhaps\n", ":1:15: `perhaps` is not known here"},
        {"preset: tec\n", ":1:9: preset: there is no preset \"tec\"; there are etc, usr, var"},
        {"preset: var\nprotocol: http\n", ":2:11: protocol: protocol http has no set"},
        {"arrivals: never\n", ":1:11: arrivals: \"never\" is neither exponential"},
        {"pattern: hilly\n", ":1:10: pattern: \"hilly\" is no pattern"},
        {"pattern: ramp:1\n", ":1:10: pattern: ramp takes at least 2"},
        {"pattern: ramp:1,2,3\n", ":1:10: pattern: ramp takes at most 2"},
        {"pattern: step:0,0\n", ":1:10: pattern: step:0,0: no request would ever"},
        {"pattern: diurnal:1.5\n", ":1:10: pattern: diurnal:1.5: the amplitude must"},
        {"pattern: step:1,x\n", ":1:10: pattern: \"x\" is not a number"},
        {"service: fixed:1us\n", ":1:10: service: protocol memcached does not tell"},
        {"protocol: lab\nservice: fixed:1\n", ":2:10: service: fixed: \"1\" is not a duration"},
        {"values:\n  size: {gpd: [0, 1]}\n", ":2:15: `gpd` takes 3 values, not 2"},
        {"values:\n  size: {gpd: [0, 1, x]}\n", ":2:15: gpd: \"x\" is not a number"},
        {"values: {size: {bimodal: [1, 65MiB, 0.1]}}\n",
         ":1:26: bimodal: 68157440 bytes, but a value"},
        {"values: {size: {empirical: /nonexistent.csv}}\n", ":1:28: empirical: cannot open"},
        {"values: {size: {fixed: 65MiB}}\n", ":1:24: fixed: 68157440 bytes, but a value"},
        {"values: {small: 0.5}\n", ":1:17: `small` takes a list"},
        {"values: {small: []}\n", ":1:17: `small` takes 1 to 64 values, not 0"},
        {"values: {small: [0.5, x]}\n", ":1:23: small: \"x\" is not a number"},
        {"values: {small: [0.5, 0.6]}\n", ":1:17: small: probabilities that add up to 1.1"},
        {"values: {size: {exponential: 0}}\n", ":1:30: exponential: 0 must be more than 0"},
        {"keys: {count: 1\n", ":2:1: did not find"},
        {"count: 1k\n", ":1:1: unknown key `count`; did you mean `keys.count`?"},
        {"preset: etc\nkeys: {popularity: {uniform: false}}\n", ":2:30: uniform: \"false\" is"},
        {"a: &x [*x]\n", ":1:4: nested deeper than"},
        {"custom: {requests: {get: a}}\n", ":1:9: custom: the protocol is memcached"},
        {"protocol: custom\ncustom: {}\n", ":2:9: requests: what is sent, by name"},
        {"protocol: custom\ncustom: {requests: {}}\n", ":2:20: requests: what is sent"},
        {"protocol: custom\ncustom:\n  requests:\n    a: \"{kye}\"\n",
         ":4:8: a: {kye} is not known here; there are {key}, {value}"},
        {"protocol: custom\ncustom: {requests: {a: \"{number:u17}\"}}\n",
         ":2:24: a: {number:u17} is not known here"},
        {"protocol: custom\ncustom: {requests: {a: \"{key:u8}\"}}\n", ":2:24: a: {key:u8} is not"},
        {"protocol: custom\ncustom: {requests: {a: \"{key\"}}\n", ":2:24: a: \"{key\": a brace"},
        {"protocol: custom\ncustom: {requests: {a: \"\"}}\n", ":2:24: a: no bytes at all"},
        {"protocol: custom\ncustom: {requests: {a: '{key}\\r\\n'}}\n", ":2:24: a: a backslash"},
        {"protocol: custom\ncustom: {requests: {a: \"\\x80\"}}\n", ":2:24: a: a byte beyond ASCII"},
        {"protocol: custom\ncustom: {requests: {a: \"{hex:0}\"}}\n", ":2:24: a: {hex:0}: not two"},
        {"protocol: custom\ncustom: {requests: {a: \"{hex:0g}\"}}\n",
         ":2:24: a: {hex:0g}: \"0g\" is"},
        {"protocol: custom\ncustom: {requests: {a: \"{value}{value}\"}}\n",
         ":2:24: a: {value} more than once"},
        {"protocol: custom\ncustom: {requests: {a: \"{rest_size:u8}{key}\"}}\n",
         ":2:24: a: {rest_size:u8} has no room"},
        {"protocol: custom\ncustom: {requests: {a: \"{rest_size-4}{key}ab\"}}\n",
         ":2:24: a: {rest_size-4}: only 3 bytes are sure"},
        {"protocol: custom\ncustom: {requests: {a: \"{key_size+1}\"}}\n",
         ":2:24: a: {key_size+1} is"},
        {"protocol: custom\ncustom: {requests: {a: \"{rest_size-}{key}\"}}\n",
         ":2:24: a: {rest_size-} is"},
        {"protocol: custom\ncustom: {requests: {\"a b\": x}}\n", ":2:21: "},
        {"protocol: custom\ncustom: {requests: {a: x}, reply: {most: 1k}}\n",
         ":2:35: reply: either until or length"},
        {"protocol: custom\ncustom: {requests: {a: x}, reply: {until: a, length: {at: 0}}}\n",
         ":2:35: reply: either until or length"},
        {"protocol: custom\ncustom: {requests: {a: x}, reply: {until: \"{key}\"}}\n",
         ":2:43: until: \"{key}\": what replies have"},
        {"protocol: custom\ncustom: {requests: {a: x}, reply: {until: a, ok: [b, \"\"]}}\n",
         ":2:54: ok: no bytes at all"},
        {"protocol: custom\ncustom: {requests: {a: x}, reply: {length: {bytes: 9}}}\n",
         ":2:52: bytes: 9 is outside 1 to 8"},
        {"protocol: custom\nmix: {b: 1}\ncustom: {requests: {a: x}}\n",
         ":2:7: mix: protocol custom has no b; it has a"},
        {"protocol: custom\nvalues: {expiry: 1s}\n"
         "custom: {requests: {get: x, set: \"{value}\"}}\n",
         ":2:18: expiry: the request set of `custom` has no {expiry_s}"},
        {"preset: etc\nprotocol: custom\ncustom: {requests: {get: x}}\n",
         ":2:11: protocol: protocol custom has no set"},
        {"- 1\n", ":1:1: the document takes keys with values"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct workload workload;
        struct error err;
        int result = load_text(cases[i].text, strlen(cases[i].text), &workload, &err);
        if (result == 0 || strncmp(err.text, cases[i].said, strlen(cases[i].said)) != 0)
            fail_msg("case %zu: expected \"%s\", got \"%s\"", i, cases[i].said, err.text);
    }
}

static void odd_bytes_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"\xff\xfe\xff", "keys: \x01", "{{{{", "\t", "? ? ?", "%X"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct workload workload;
        struct error err;
        assert_int_equal(load_text(texts[i], strlen(texts[i]), &workload, &err), -ERROR_INPUT);
    }
}

static void small_values_come_before_the_others(void **state)
{
    (void)state;
    static const char text[] = "values: {small: [0, 0.25, 0, 0.5], size: {fixed: 100}}\n";
    static const char again[] = "preset: etc\nvalues: {size: {fixed: 2}}\n";
    struct workload workload;
    struct error err;
    unsigned seen[101] = {0};
    assert_int_equal(load_text(text, strlen(text), &workload, &err), 0);
    for (uint64_t i = 0; i < workload.key_count; i++)
        seen[workload_value_bytes(&workload, i)]++;
    assert_int_equal(seen[1] + seen[3] + seen[100], workload.key_count);
    assert_in_range(seen[1], 24500, 25500);
    assert_in_range(seen[3], 49500, 50500);
    assert_int_equal(workload_value_bytes_max(&workload), 100);
    workload_free(&workload);
    // A size of one's own is that of all values; and what is small may be the largest, too.
    assert_int_equal(load_text(again, strlen(again), &workload, &err), 0);
    for (uint64_t i = 0; i < workload.key_count; i++)
        assert_int_equal(workload_value_bytes(&workload, i), 2);
    workload_free(&workload);
    static const char small_only[] =
        "values: {small: [0.25, 0.25, 0.25, 0.25], size: {fixed: 1}}\n";
    assert_int_equal(load_text(small_only, strlen(small_only), &workload, &err), 0);
    assert_int_equal(workload_value_bytes_max(&workload), 3);
    for (uint64_t i = 0; i < workload.key_count; i++)
        assert_in_range(workload_value_bytes(&workload, i), 0, 3);
    workload_free(&workload);
}

static void absent_file_is_named(void **state)
{
    (void)state;
    struct workload workload;
    struct error err = {0};
    assert_int_equal(workload_load_file("/nonexistent/w.yaml", NULL, &workload, &err),
                     -ERROR_INPUT);
    assert_non_null(strstr(err.text, "/nonexistent/w.yaml"));
}

static void writing_and_reading_agree(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}\n",
        "mix: {set: 1.5}\nkeys: {count: 7, size: {exponential: 20}, popularity: {zipf: 1.25}}\n"
        "values: {size: {uniform: [0, 9]}}\n",
        "preset: etc\nprotocol: redis\nmix: {lrange: 1, hget: 0.25}\narrivals: uniform\n"
        "pattern: step:0.5,1,0.25\nread_through: true\n",
        "values: {small: [0.1, 0.2], size: {fixed: 20}, expiry: 2m}\n",
        "protocol: lab\nservice: bimodal:5us,1ms,0.125\nkeys: {size: {gev: [30.5, 8.25, -0.5]}}\n"
        "values: {size: {lognormal: [100, 0.5]}}\narrivals: gpd:0,16.0292,0.154971\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct workload first, second;
        struct error err;
        assert_int_equal(load_text(texts[i], strlen(texts[i]), &first, &err), 0);
        char *yaml = workload_to_yaml(&first);
        assert_non_null(yaml);
        assert_int_equal(load_text(yaml, strlen(yaml), &second, &err), 0);
        assert_same(&first, &second);
        free(yaml);
    }
}

static void protocols_have_their_own_mixes(void **state)
{
    (void)state;
    struct workload workload;
    struct error err;
    static const char redis[] = "protocol: redis\nmix: {zadd: 2, get: 1}\n";
    assert_int_equal(load_text(redis, sizeof redis - 1, &workload, &err), 0);
    for (unsigned i = 0; i < WORKLOAD_OPERATIONS; i++)
        assert_true(workload.mix[i] == (i == REDIS_ZADD ? 2 : i == REDIS_GET ? 1 : 0));
    static const char lab[] = "protocol: lab\nservice: bimodal:5us,100us,0.05\n";
    assert_int_equal(load_text(lab, sizeof lab - 1, &workload, &err), 0);
    assert_true(workload.mix[0] == 1 && workload.mix[1] == 0);
    assert_true(workload.service_given && workload.service_ns.second == 100000);
}

// What is written down is the same protocol again.
static void a_description_is_kept(void **state)
{
    (void)state;
    struct workload workload, again;
    struct request request;
    struct error err;
    char key[WORKLOAD_KEY_BYTES_MAX], value[300], out[1024], other[1024];
    static const char text[] =
        "protocol: custom\nmix: {put: 3, set: 1}\nvalues: {expiry: 5s, size: {fixed: 4}}\n"
        "keys: {count: 10, size: {fixed: 3}}\n"
        "custom:\n"
        "  requests:\n"
        "    put: \"{{{hex:00}{rest_size:u16le}{key}={value:letters}\"\n"
        "    set: \"set {key} {expiry_s} {value_size}\\r\\n{value}\\r\\n\"\n"
        "    get: \"{number}\"\n"
        "  reply: {length: {at: 2, bytes: 2, order: little, adds: -4}, number: {at: 4},\n"
        "    most: 1MiB, status_at: 8, ok: [a], miss: [b, \"{hex:7b5c}\"], stored: [c], error: "
        "[d]}\n";
    assert_int_equal(load_text(text, sizeof text - 1, &workload, &err), 0);
    assert_true(protocol_has_get_and_set(workload.protocol));
    assert_int_equal(protocol_operation_find(workload.protocol, "put"), 2);
    assert_true(workload.mix[2] > 2 && workload.mix[1] > 0 && workload.mix[0] < 0.5);
    char *yaml = workload_to_yaml(&workload);
    if (workload_parse("again", yaml, strlen(yaml), &again, &err) < 0)
        fail_msg("%s in %s", err.text, yaml);
    assert_memory_equal(&again.custom->reply, &workload.custom->reply, sizeof again.custom->reply);
    for (unsigned operation = 0; operation < 3; operation++) {
        workload_request(&workload, operation, 7, 0, 11, key, value, &request);
        size_t bytes = workload.protocol->encode(&request, out, sizeof out);
        request.custom = again.custom;
        assert_int_equal(again.protocol->encode(&request, other, sizeof other), bytes);
        assert_memory_equal(out, other, bytes);
    }
    assert_int_equal(workload_set_protocol(&workload, protocol_find("http"), &err), -ERROR_INPUT);
    assert_int_equal(workload_set_protocol(&workload, &custom_protocol, &err), 0);
    assert_ptr_equal(workload.protocol, &workload.custom->protocol);
    free(yaml);
    workload_free(&again);
    workload_free(&workload);
}

static void http_has_words_of_its_own(void **state)
{
    (void)state;
    struct workload workload, again;
    struct request request;
    struct error err;
    char key[WORKLOAD_KEY_BYTES_MAX], value[300];
    static const char text[] =
        "protocol: http\nmix: {get: 9, post: 1}\n"
        "http: {path: \"/a/{key}\", host: web, headers: [\"A: b\", \"C: d\"]}\n";
    assert_int_equal(load_text(text, sizeof text - 1, &workload, &err), 0);
    workload_request(&workload, 2, 7, 0, 0, key, value, &request);
    assert_ptr_equal(request.value, value);
    assert_string_equal(request.http->before, " /a/");
    char *yaml = workload_to_yaml(&workload);
    assert_int_equal(workload_parse("again", yaml, strlen(yaml), &again, &err), 0);
    assert_string_equal(again.http.after, workload.http.after);
    assert_string_equal(again.http.headers, "A: b\r\nC: d\r\n");
    free(yaml);
    workload_free(&again);
    workload_free(&workload);
    static const char other[] = "http: {path: /a}\n", bad[] = "protocol: http\nhttp:\n  path: a\n";
    assert_int_equal(load_text(other, sizeof other - 1, &workload, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "the protocol is memcached"));
    assert_int_equal(load_text(bad, sizeof bad - 1, &workload, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, ":3:3: path: \"a\" does not begin with /"));
}

static void changing_protocols_keeps_the_mix_by_name(void **state)
{
    (void)state;
    struct workload workload;
    struct error err = {0};
    static const char text[] = "protocol: redis\nmix: {set: 3, get: 1}\n";
    assert_int_equal(load_text(text, sizeof text - 1, &workload, &err), 0);
    assert_int_equal(workload_set_protocol(&workload, protocol_find("memcached-meta"), &err), 0);
    assert_true(workload.mix[WORKLOAD_GET] == 1 && workload.mix[WORKLOAD_SET] == 3);
    assert_int_equal(workload_set_protocol(&workload, protocol_find("http"), &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "http has no set"));
    assert_string_equal(workload.protocol->name, "memcached-meta"); // as it was
    workload_defaults(&workload);
    assert_int_equal(workload_set_protocol(&workload, protocol_find("http"), &err), 0);
    assert_true(workload.mix[0] == 1 && workload.mix[1] == 0); // http's own
}

static void requests_follow_from_their_places(void **state)
{
    (void)state;
    enum { PLACES = 20000 };
    struct workload workload;
    struct request request;
    struct error err;
    char key[WORKLOAD_KEY_BYTES_MAX], value[300];
    static const char text[] = "protocol: lab\nservice: exponential:10us\n";
    workload_defaults(&workload);
    workload_request(&workload, WORKLOAD_SET, 7, 0, 41, key, value, &request);
    assert_ptr_equal(request.value, value);
    assert_int_equal(request.value_bytes, 200);
    assert_int_equal(request.number, 41);
    assert_true(request.service_ns == request_service_from_server);
    workload_request(&workload, WORKLOAD_GET, 7, 0, 41, key, value, &request);
    assert_null(request.value);
    assert_int_equal(load_text(text, sizeof text - 1, &workload, &err), 0);
    double sum = 0;
    for (uint64_t place = 0; place < PLACES; place++) { // the same key at every place
        workload_request(&workload, 0, 7, place, place, key, value, &request);
        sum += (double)request.service_ns;
    }
    // An exponential distribution's deviation is its mean: 5 standard errors.
    assert_true(sum / PLACES > 10000 * 0.965 && sum / PLACES < 10000 * 1.035);
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void keys_differ_and_fit(void **state)
{
    (void)state;
    enum { KEYS = 20000 };
    struct workload workload;
    workload_defaults(&workload);
    workload.key_count = KEYS;
    workload.key_size_bytes = (struct distribution){.kind = DISTRIBUTION_EXPONENTIAL, .first = 30};
    char **keys = calloc(KEYS, sizeof *keys);
    size_t longest = 0, total = 0;
    assert_non_null(keys);
    for (size_t i = 0; i < KEYS; i++) {
        keys[i] = calloc(1, WORKLOAD_KEY_BYTES_MAX + 1);
        assert_non_null(keys[i]);
        size_t bytes = workload_key(&workload, i, keys[i]);
        assert_true(bytes >= 5 && bytes <= WORKLOAD_KEY_BYTES_MAX && strlen(keys[i]) == bytes);
        assert_int_equal(strtoull(keys[i], NULL, 10), i);
        longest = bytes > longest ? bytes : longest;
        total += bytes;
    }
    assert_true(longest <= workload_key_bytes_max(&workload));
    // Clamping at 5 and 250 moves the mean of 30 by 5 - 30 (1 - exp(-5/30)), less 0.01.
    assert_true(total > 29.9 * KEYS && total < 31 * KEYS);
    qsort(keys, KEYS, sizeof *keys, compare_keys);
    for (size_t i = 0; i + 1 < KEYS; i++)
        assert_string_not_equal(keys[i], keys[i + 1]);
    for (size_t i = 0; i < KEYS; i++)
        free(keys[i]);
    free(keys);
}

static void the_largest_index_says_how_many_digits(void **state)
{
    (void)state;
    struct workload workload;
    workload_defaults(&workload);
    size_t digits = 1;
    for (uint64_t power = 1; digits <= 20; power *= 10, digits++) {
        workload.key_count = power + 1; // indices up to it
        assert_int_equal(workload_key_digits(&workload), digits);
        workload.key_count = power;
        assert_int_equal(workload_key_digits(&workload), digits > 1 ? digits - 1 : 1);
    }
}

static void values_follow_from_their_index(void **state)
{
    (void)state;
    struct workload workload;
    workload_defaults(&workload);
    workload.value_size_bytes = (struct distribution){.kind = DISTRIBUTION_UNIFORM, .second = 40};
    char one[41], two[41];
    bool differ = false;
    for (size_t i = 0; i < 1000; i++) {
        size_t bytes = workload_value_bytes(&workload, i);
        assert_true(bytes <= workload_value_bytes_max(&workload) && bytes <= 40);
        char *exact = malloc(bytes + 1); // the sanitizers see a byte too many
        assert_non_null(exact);
        workload_value(&workload, i, exact);
        memcpy(one, exact, bytes);
        free(exact);
        workload_value(&workload, i, two);
        assert_memory_equal(one, two, bytes);
        differ |= bytes != workload_value_bytes(&workload, i + 1);
    }
    assert_true(differ);
}

static void files_are_named_and_renamed(void **state)
{
    char path[] = "/tmp/test-workload-XXXXXX", yaml[300];
    const char *paths[WORKLOAD_FILES_MAX];
    const char *const others[] = {"workload/sizes", "workload/times"};
    struct workload workload;
    struct error err;
    int fd = mkstemp(path);
    (void)state;
    assert_int_equal(write(fd, "1\n2\n", 4), 4);
    close(fd);
    int length = snprintf(yaml, sizeof yaml,
                          "values: {size: {empirical: %s}}\narrivals: replay:old.csv\n", path);
    assert_int_equal(workload_parse("test", yaml, (size_t)length, &workload, &err), 0);
    unlink(path);
    assert_int_equal(workload_files(&workload, paths), 2);
    assert_string_equal(paths[0], path);
    assert_string_equal(paths[1], "old.csv");
    char *renamed = workload_to_yaml_with(&workload, others);
    assert_non_null(strstr(renamed, "{\"empirical\": \"workload/sizes\"}"));
    assert_non_null(strstr(renamed, "replay:workload/times"));
    assert_null(strstr(renamed, path));
    free(renamed);
    assert_int_equal(workload_files(&workload, paths), 2); // and this one is as it was
    assert_string_equal(paths[0], path);
    workload_free(&workload);
    workload_defaults(&workload);
    assert_int_equal(workload_files(&workload, paths), 0);
    workload_free(&workload);
}

// What --protocol says counts for what the file says of a protocol's own, unless it names another.
static void a_file_is_of_the_protocol_that_was_asked_for(void **state)
{
    static const char words[] = "mix: {get: 1, post: 1}\nhttp: {path: \"/a/{key}\"}\n";
    static const char named[] = "protocol: memcached\nhttp: {path: \"/a/{key}\"}\n";
    struct workload workload;
    struct error err;
    (void)state;
    assert_int_equal(load_text_of(&http2_protocol, words, sizeof words - 1, &workload, &err), 0);
    assert_ptr_equal(workload.protocol, &http2_protocol);
    assert_string_equal(workload.http.path, "/a/{key}");
    workload_free(&workload);
    assert_int_equal(load_text(words, sizeof words - 1, &workload, &err), -ERROR_INPUT);
    assert_int_equal(load_text_of(&http2_protocol, named, sizeof named - 1, &workload, &err),
                     -ERROR_INPUT);
    assert_non_null(strstr(err.text, "the protocol is memcached"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_taken),
        cmocka_unit_test(what_is_absent_is_the_default),
        cmocka_unit_test(faults_are_placed),
        cmocka_unit_test(odd_bytes_are_refused),
        cmocka_unit_test(small_values_come_before_the_others),
        cmocka_unit_test(absent_file_is_named),
        cmocka_unit_test(writing_and_reading_agree),
        cmocka_unit_test(protocols_have_their_own_mixes),
        cmocka_unit_test(a_description_is_kept),
        cmocka_unit_test(http_has_words_of_its_own),
        cmocka_unit_test(changing_protocols_keeps_the_mix_by_name),
        cmocka_unit_test(requests_follow_from_their_places),
        cmocka_unit_test(keys_differ_and_fit),
        cmocka_unit_test(the_largest_index_says_how_many_digits),
        cmocka_unit_test(values_follow_from_their_index),
        cmocka_unit_test(files_are_named_and_renamed),
        cmocka_unit_test(a_file_is_of_the_protocol_that_was_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
