// SPDX-License-Identifier: MIT
//
// Recordings: what is read is what is sent, and what is no recording is refused with its place.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/log_file.h"
#include "loadgen/recording/recording_csv.h"
#include "loadgen/recording/recording_file.h"
#include "loadgen/client/sample_log.h"
#include "workloads/multiget.h"
#include "workloads/protocols/memcached_text.h"
#include "workloads/protocols/redis.h"
#include "workloads/transactions.h"

enum { SAMPLES = 1000 };

static int parse(const char *text, struct recording *recording, struct error *err)
{
    struct workload workload;
    workload_defaults(&workload);
    return recording_parse(text, strlen(text), "r.csv", &workload, recording, err);
}

static void times_come_back_at_any_rate(void **state)
{
    (void)state;
    struct recording recording;
    struct schedule schedule;
    struct workload workload = {0};
    struct error err;
    workload_defaults(&workload);
    assert_int_equal(parse("# seconds\n0.5\n\n 0.5\r\n1e0\n2\n", &recording, &err), 0);
    assert_int_equal(recording.requests.count, 4);
    assert_false(recording.has_keys || recording.has_operations);
    assert_true(recording_rate(&recording) == 2);
    assert_int_equal(recording_draw(&recording, &workload, 4, 900000000, 1, &schedule, &err), 0);
    assert_int_equal(schedule.count, 3); // the last, at 1 s, is cut off
    assert_int_equal(schedule.items[0].offset_ns, 250000000);
    assert_int_equal(schedule.items[2].offset_ns, 500000000);
    schedule_free(&schedule);
    recording_free(&recording);
    workload_free(&workload);
}

// As Twitter publishes them: whole seconds from anywhere, names that nobody can read, sizes.
static void a_trace_of_a_cache_is_sent_again(void **state)
{
    (void)state;
    static const char text[] = "1600000000,qq,2,0,1,get,0\n"
                               "1600000000,zz,9,400,1,add,99999999\n"
                               "1600000000,qq,2,300,7,set,60\n"
                               "1600000000,qq,2,0,7,delete,0\n"
                               "1600000000,qq,2,0,7,touch,9\n"
                               "1600000001,a,1,70000000,1,gets,0\n"
                               "1600000002,zz,9,100,1,GET,0\n";
    static const struct scheduled_request wanted[] = {
        {0, 0, WORKLOAD_GET},          {250000000, 1, WORKLOAD_SET},
        {500000000, 0, WORKLOAD_SET},  {750000000, 0, MEMCACHED_DELETE},
        {1000000000, 2, WORKLOAD_GET}, {2000000000, 1, WORKLOAD_GET}};
    struct recording recording;
    struct schedule schedule;
    struct workload workload;
    struct error err;
    char key[WORKLOAD_KEY_BYTES_MAX], *value = malloc(WORKLOAD_VALUE_BYTES_MAX);
    assert_non_null(value);
    workload_defaults(&workload);
    assert_int_equal(parse(text, &recording, &err), 0);
    assert_int_equal(recording.left_out, 1);
    assert_string_equal(recording.left_out_names, "touch");
    recording_apply(&recording, &workload);
    assert_int_equal(workload.key_count, 3);
    assert_int_equal(workload_key(&workload, 0, key), 2);
    assert_int_equal(workload_key(&workload, 1, key), 9);
    assert_int_equal(workload_key_bytes_max(&workload), 9);
    assert_int_equal(workload_value_bytes(&workload, 0), 300); // the get found nothing
    assert_int_equal(workload_value_bytes(&workload, 1), 400); // the largest
    assert_int_equal(workload_value_bytes_max(&workload), WORKLOAD_VALUE_BYTES_MAX);
    // Of what expires the longest, as long as the server counts seconds; else as the workload has
    // it.
    workload.expiry_ns = 5000000000;
    static const uint32_t expiries_s[] = {60, 2592000, 5};
    for (unsigned i = 0; i < 3; i++) {
        struct request request;
        workload_request(&workload, WORKLOAD_SET, i, 0, 0, key, value, &request);
        assert_int_equal(request.expiry_s, expiries_s[i]);
    }
    free(value);
    assert_int_equal(recording_draw(&recording, &workload, recording_rate(&recording), 9000000000,
                                    1, &schedule, &err),
                     0);
    assert_int_equal(schedule.count, sizeof wanted / sizeof *wanted);
    for (size_t i = 0; i < schedule.count; i++) {
        assert_int_equal(schedule.items[i].key, wanted[i].key);
        assert_int_equal(schedule.items[i].operation, wanted[i].operation);
        assert_in_range(schedule.items[i].offset_ns, wanted[i].offset_ns, wanted[i].offset_ns + 2);
    }
    schedule_free(&schedule);
    recording_free(&recording);
}

// What Redis prints of what it is asked: keys as long as they were, values of what is stored, and
// nothing of scripts and of commands without a like here.
static void what_monitor_printed_is_sent_again(void **state)
{
    (void)state;
    static const char text[] =
        "OK\n"
        "1339518083.107412 [0 127.0.0.1:60866] \"get\" \"user:1\"\n"
        "1339518083.107500 [0 127.0.0.1:60866] \"PING\"\n"
        "1339518083.107600 [0 127.0.0.1:60866] \"get\" \"\"\n" // a key to Redis
        "1339518083.207412 [3 [::1]:60866] \"SETEX\" \"a\\x00\\\"\\n\" \"60\" \"b, ] \\\\c\"\n"
        "1339518083.207500 [0 lua] \"get\" \"user:1\"\n"
        "1339518083.207600 [0 127.0.0.1:60866] \"\" \"user:1\"\n"
        "+1339518083.307412 [0 unix:/tmp/r] \"set\" \"user:1\" \"abc\" \"EX\" \"5\"\r\n"
        "1339518083.407412 [0 127.0.0.1:1] \"get\" \"b\"\n";
    struct recording recording;
    struct workload workload;
    struct error err;
    workload_defaults(&workload);
    if (parse(text, &recording, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(recording.requests.count, 4);
    assert_int_equal(recording.left_out, 4);
    assert_string_equal(recording.left_out_names,
                        "PING, command without a key, lua, command without a name");
    recording_apply(&recording, &workload);
    static const unsigned operations[] = {WORKLOAD_GET, WORKLOAD_SET, WORKLOAD_SET, WORKLOAD_GET};
    static const uint32_t keys[] = {0, 1, 0, 2};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(recording.requests.items[i].operation, operations[i]);
        assert_int_equal(recording.requests.items[i].key, keys[i]);
        assert_in_range(recording.requests.items[i].offset_ns,
                        i * 100000000 > 200 ? i * 100000000 - 200 : 0, i * 100000000 + 200);
    }
    assert_int_equal(recording.keys.items[0].key_bytes, 6);
    assert_int_equal(recording.keys.items[1].key_bytes, 4);
    assert_int_equal(workload_value_bytes(&workload, 0), 3);
    assert_int_equal(workload_value_bytes(&workload, 1), 7);
    assert_int_equal(workload_value_bytes(&workload, 2), 200); // nothing is known of it
    recording_free(&recording);
}

// A command of several keys is one request of all of them; of one key it is a get.
static void what_mget_asks_for_is_one_request(void **state)
{
    (void)state;
    static const char text[] = "1 [0 a:1] \"get\" \"a\"\n"
                               "2 [0 a:1] \"MGET\" \"b\\x00\" \"a\" \"a\"\n"
                               "3 [0 a:1] \"mget\" \"b\\x00\"\n"
                               "4 [0 a:1] \"mget\" \"a\" \"\"\n" // an empty key is sent by nobody
                               "5 [0 a:1] \"multi\"\n"
                               "5 [0 a:1] \"mget\" \"a\" \"b\"\n"
                               "5 [0 a:1] \"get\" \"a\"\n"
                               "5 [0 a:1] \"exec\"\n"
                               "6 [0 a:1] \"mget\" \"c\" \"a\"\n";
    struct recording recording;
    struct workload workload;
    struct multiget multiget;
    struct error err;
    workload_defaults(&workload);
    workload.protocol = &redis_protocol;
    assert_int_equal(recording_parse(text, strlen(text), "r.csv", &workload, &recording, &err), 0);
    assert_int_equal(recording.requests.count, 5);
    assert_int_equal(recording.left_out, 2);
    assert_string_equal(recording.left_out_names, "get of several keys there");
    recording_apply(&recording, &workload);
    multiget_init(&multiget, &workload);
    assert_int_equal(multiget.count, 3);
    // Keys by their number, in the order they were asked for.
    static const struct {
        bool many;
        unsigned count;
        uint64_t keys[3];
    } asked[] = {
        {false, 1, {0}}, {true, 3, {1, 0, 0}}, {false, 1, {1}}, {false}, {true, 2, {2, 0}}};
    char *room = malloc(multiget_room(&multiget));
    for (size_t i = 0; i < 5; i++) {
        const struct scheduled_request *one = &recording.requests.items[i];
        char key[WORKLOAD_KEY_BYTES_MAX], text_of[4000], expected[400], *at = expected;
        struct request request;
        assert_int_equal(redis_protocol.operations[one->operation].many_keys, asked[i].many);
        if (!asked[i].count)
            continue; // the transaction
        workload_request(&workload, one->operation, one->key, i, 0, key, NULL, &request);
        if (asked[i].many)
            multiget_add_keys(&multiget, one->key, i, &request, room);
        at += sprintf(at, "*%u\r\n%s\r\n", asked[i].count + 1,
                      asked[i].many ? "$4\r\nMGET" : "$3\r\nGET");
        for (unsigned k = 0; k < asked[i].count; k++) {
            char name[WORKLOAD_KEY_BYTES_MAX];
            const size_t bytes = workload_key(&workload, asked[i].keys[k], name);
            at += sprintf(at, "$%zu\r\n%.*s\r\n", bytes, (int)bytes, name);
        }
        const size_t bytes = (size_t)(at - expected);
        assert_int_equal(redis_protocol.encode(&request, text_of, sizeof text_of), bytes);
        assert_memory_equal(text_of, expected, bytes);
    }
    free(room);
    recording_free(&recording);
}

// What MULTI and EXEC enclose is one request, whoever speaks in between; what is no whole
// transaction is counted.
static void what_multi_encloses_is_one_request(void **state)
{
    (void)state;
    static const char text[] = "1.0 [0 a:1] \"MULTI\"\n"
                               "1.1 [0 b:1] \"get\" \"k\"\n"
                               "1.2 [3 a:1] \"lpush\" \"l\" \"abc\"\n"
                               "1.2 [3 lua] \"get\" \"k\"\n"
                               "1.2 [3 a:1] \"touch\" \"l\"\n"
                               "1.2 [3 a:1] \"lpop\" \"l\"\n"
                               "1.3 [3 a:1] \"exec\"\n"
                               "1.4 [0 a:1] \"incr\" \"n\"\n"
                               "1.5 [0 b:1] \"multi\"\n"
                               "1.5 [0 b:1] \"multi\"\n"
                               "1.5 [0 b:1] \"exec\"\n"
                               "1.6 [0 b:1] \"exec\"\n"
                               "1.6 [0 b:1] \"reset\"\n"
                               "1.7 [0 b:1] \"multi\"\n"
                               "1.7 [0 b:1] \"get\" \"k\"\n"
                               "1.7 [0 b:1] \"discard\"\n"
                               "1.8 [0 c:1] \"multi\"\n"
                               "1.8 [0 c:1] \"get\" \"k\"\n"
                               "1.9 [0 b:1] \"set\" \"k\" \"12\"\n";
    static const char said[] = "*1\r\n$5\r\nMULTI\r\n"
                               "*3\r\n$5\r\nLPUSH\r\n$6\r\nlist:1\r\n$3\r\n";
    static const char then[] = "*2\r\n$4\r\nLPOP\r\n$6\r\nlist:1\r\n*1\r\n$4\r\nEXEC\r\n";
    struct recording recording;
    struct workload workload;
    struct error err;
    workload_defaults(&workload);
    workload.protocol = &redis_protocol;
    assert_int_equal(recording_parse(text, strlen(text), "r.csv", &workload, &recording, &err), 0);
    static const unsigned operations[] = {REDIS_GET, REDIS_TRANSACTION, REDIS_INCR, REDIS_SET};
    assert_int_equal(recording.requests.count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(recording.requests.items[i].operation, operations[i]);
    assert_in_range(recording.requests.items[1].offset_ns, 299999000, 300001000); // EXEC's
    assert_int_equal(recording.requests.items[1].key, 1);
    assert_int_equal(recording.left_out, 2); // touch, and what a script called
    const struct lost_transactions *lost = &recording.lost;
    assert_int_equal(lost->discarded, 1);
    assert_int_equal(lost->unended, 1);
    assert_int_equal(lost->empty, 1);
    assert_int_equal(lost->nested, 1);
    assert_int_equal(lost->unbegun, 1);
    assert_int_equal(lost->commands, 2);
    assert_int_equal(lost->too_long, 0);

    recording_apply(&recording, &workload);
    assert_null(transactions_find(workload.transactions, 0));
    assert_null(transactions_find(workload.transactions, 3));
    const struct recorded_transaction *one = transactions_find(workload.transactions, 1);
    assert_non_null(one);
    assert_int_equal(one->count, 2);
    const struct transaction_most most = transactions_most(&workload);
    assert_int_equal(most.commands, 2);
    struct request *commands = calloc(most.commands, sizeof *commands), request = {0};
    char *room = malloc(most.room_bytes), *out = malloc(most.request_bytes);
    assert_true(commands && room && out);
    request.operation = REDIS_TRANSACTION;
    transaction_add_commands(&workload, one, 1, commands, room, &request);
    const size_t bytes = workload.protocol->encode(&request, out, most.request_bytes);
    assert_int_equal(bytes, strlen(said) + 3 + 2 + strlen(then));
    assert_memory_equal(out, said, strlen(said));
    assert_memory_equal(out + bytes - strlen(then), then, strlen(then));
    assert_int_equal(workload.protocol->encode(&request, out, bytes - 1), 0);
    free(out);
    free(room);
    free(commands);
    recording_free(&recording);
}

// Longer ones than the replies can be counted of are not sent, nor is any where the protocol has
// none: what it encloses then is.
static void transactions_that_cannot_be_sent(void **state)
{
    (void)state;
    struct recording recording;
    struct workload workload;
    struct error err;
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    fputs("1 [0 a:1] \"get\" \"k\"\n2.5 [0 a:1] \"multi\"\n", out);
    for (int i = 0; i <= TRANSACTION_COMMANDS_MAX; i++)
        fputs("2.5 [0 a:1] \"get\" \"k\"\n", out);
    fputs("2.5 [0 a:1] \"exec\"\n3 [0 a:1] \"get\" \"k\"\n", out);
    fclose(out);
    workload_defaults(&workload);
    workload.protocol = &redis_protocol;
    assert_int_equal(recording_parse(text, bytes, "r.csv", &workload, &recording, &err), 0);
    assert_int_equal(recording.requests.count, 2);
    assert_int_equal(recording.lost.too_long, 1);
    assert_int_equal(recording.lost.commands, TRANSACTION_COMMANDS_MAX + 1);
    recording_free(&recording);
    workload_defaults(&workload);
    assert_int_equal(recording_parse(text, bytes, "r.csv", &workload, &recording, &err), 0);
    assert_int_equal(recording.requests.count, TRANSACTION_COMMANDS_MAX + 3);
    assert_int_equal(recording.left_out, 2);
    recording_free(&recording);
    free(text);
}

// Columns by name, in any order; what is not recorded is drawn.
static void columns_have_names(void **state)
{
    (void)state;
    struct recording recording;
    struct schedule schedule;
    struct workload workload;
    struct error err;
    workload_defaults(&workload);
    workload.key_size_bytes.first = 20;
    assert_int_equal(parse("\xef\xbb\xbf" // as spreadsheets begin UTF-8
                           "# a trace\nhost,Key,time,value_size\n"
                           "x,a,10.5,7\nx,b, 11.0 ,8\ny,a,11.5,5\n",
                           &recording, &err),
                     0);
    assert_true(recording.has_keys && !recording.has_operations);
    recording_apply(&recording, &workload);
    assert_int_equal(workload.key_count, 2);
    assert_int_equal(workload_key_bytes_max(&workload), 20);
    assert_int_equal(workload_value_bytes(&workload, 1), 8);
    assert_int_equal(recording_draw(&recording, &workload, 2 * recording_rate(&recording),
                                    9000000000, 1, &schedule, &err),
                     0);
    assert_int_equal(schedule.count, 3);
    assert_int_equal(schedule.items[2].offset_ns, 500000000);
    assert_int_equal(schedule.items[1].key, 1);
    assert_int_equal(schedule.items[2].key, 0);
    schedule_free(&schedule);
    recording_free(&recording);
}

// In quotes a key may have commas, and quotes that are doubled; others may have them within.
static void columns_may_be_quoted(void **state)
{
    (void)state;
    static const char text[] = "\"time\",\"Key\" , note,\"ttl\"\n"
                               "0.0,\"a,b\",\"x\",\"2.5\"\n"
                               "\"1.0\",\"a,b\",\"\",\n"
                               "2.0,\"\"\"\",a\"b\"c,0\r\n"
                               "3.0,\t \"a\"\t,\"y,\"\"\",1\n"
                               "4.0,a,,1\n";
    static const uint32_t keys[] = {0, 0, 1, 2, 2};
    struct recording recording;
    struct error err;
    assert_int_equal(parse(text, &recording, &err), 0);
    assert_int_equal(recording.requests.count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(recording.requests.items[i].key, keys[i]);
    assert_int_equal(recording.keys.items[0].expiry_s, 3);
    assert_int_equal(recording.keys.items[1].expiry_s, 0);
    recording_free(&recording);
}

static void what_is_no_recording_is_refused_with_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"0\n1\nx\n", "r.csv:3: what stands here is no time in seconds"},
        {"0\n1,get\n", "r.csv:2: what stands here has 2 columns, not 1"},
        {"0,a,b\n", "r.csv:1: what stands here has columns that no line above names"},
        {"key,op\na,get\n", "r.csv:1: what stands here is no time in seconds, nor names"},
        {"time,key,time\n", "r.csv:1: what stands here names a column twice"},
        {"time,key\n0,a\n1,\n", "r.csv:3: what stands here has no key"},
        {"time,key,size\n0,a,-1\n", "r.csv:2: what stands here has a size that is no number"},
        {"time,key,size\n0,a,x\n", "r.csv:2: what stands here has a size that is no number"},
        {"time,op\n0,touch\n1,touch\n2,get\n",
         "r.csv:2: protocol memcached has no touch, and without such requests"},
        {"time,key,ttl\n0,a,-1\n", "r.csv:2: what stands here has an expiry that is no number"},
        {"time,key\n0,\"a\n", "r.csv:2: what stands here has quotes that do not end"},
        {"time,key\n0,\"a\"b\n", "r.csv:2: what stands here has quotes that do not end"},
        {"time,key\n0,\"\"\"\n", "r.csv:2: what stands here has quotes that do not end"},
        {"time,key\n0,\"\"\n", "r.csv:2: what stands here has no key"},
        {",,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,\n",
         "r.csv:1: what stands here has too many columns"},
        {"nan\n", "r.csv:1: what stands here is no time"},
        {"0x1p3\n", "r.csv:1: what stands here is no time"},
        {"1\n0.5\n", "r.csv:2: what stands here is before the one above it"},
        {"-1\n2\n", "r.csv:1: what stands here is before"},
        {"0\n1e300\n", "r.csv:2: what stands here is later than a week"},
        {"1\n", "r.csv: a recording has two requests at least"},
        {"1.5 [0 a:1] \"get\" \"a\"\n2.5 [0 a:1] \"get\" \"a\n",
         "r.csv:2: what stands here is no line of"},
        {"1.5 [0 a:1] \"get\" \"a\"\n2.5,get,a\n",
         "r.csv:2: what stands here is no line of MONITOR"},
        {"1.5 [0 a:1] \"get\" \"a\"\n1.4 [0 a:1] \"get\" \"a\"\n",
         "r.csv:2: what stands here is before"},
        {"1.5 [0 a:1] \"get\"\n", "r.csv:1: protocol memcached has no command without a key"},
        {"1.5 [0 a:1\n", "r.csv:1: what stands here is no line of MONITOR"},
        {"1.5 [0 a:1] get a\n", "r.csv:1: what stands here is no line of MONITOR"},
        {"1.5 [0 a:1] \"get\" \"a\\x\n", "r.csv:1: what stands here is no line of MONITOR"},
        {"0\n0\n", "r.csv: a recording has two requests at least"},
        {"", "r.csv: a recording has two requests at least"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct recording recording;
        struct error err;
        assert_int_equal(parse(cases[i].text, &recording, &err), -ERROR_INPUT);
        assert_non_null(strstr(err.text, cases[i].error));
        recording_free(&recording);
    }
}

static void a_sample_log_is_repeated_whole(void **state)
{
    (void)state;
    static struct sample samples[SAMPLES];
    char path[] = "/tmp/met-recording-XXXXXX";
    struct recording recording;
    struct schedule schedule;
    struct workload workload = {0};
    struct error err;
    workload_defaults(&workload);
    close(mkstemp(path));
    for (size_t i = 0; i < SAMPLES; i++) // a TSC of 2 GHz, a request every 100 us
        samples[i] = (struct sample){.intended_tsc = 1000 + i * 200000,
                                     .sent_tsc = 9000 + i * 200000,
                                     .tx_ns = 77000 + i * 100000,
                                     .tx_source = STAMP_SOFTWARE,
                                     .operation = i % 2,
                                     .key = (uint32_t)i};
    assert_int_equal(log_write(path, LOG_SAMPLES, SAMPLE_LOG_VERSION, sizeof *samples, samples,
                               SAMPLES, 0, &err),
                     0);
    assert_int_equal(recording_load(path, &workload, &recording, &err), 0);
    assert_true(recording.has_keys && recording.has_operations);
    assert_int_equal(recording_draw(&recording, &workload, recording_rate(&recording), 10000000000,
                                    1, &schedule, &err),
                     0);
    assert_int_equal(schedule.count, SAMPLES);
    for (size_t i = 0; i < SAMPLES; i++) {
        assert_in_range(schedule.items[i].offset_ns, i * 100000 - (i > 0), i * 100000 + 1);
        assert_int_equal(schedule.items[i].key, i);
        assert_int_equal(schedule.items[i].operation, i % 2);
    }
    schedule_free(&schedule);
    recording_free(&recording);

    samples[500].key = UINT32_MAX;
    assert_int_equal(log_write(path, LOG_SAMPLES, SAMPLE_LOG_VERSION, sizeof *samples, samples,
                               SAMPLES, 0, &err),
                     0);
    assert_int_equal(recording_load(path, &workload, &recording, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "request 501 has a key beyond"));
    assert_int_equal(
        log_write(path, LOG_CALLS, SAMPLE_LOG_VERSION, sizeof *samples, samples, SAMPLES, 0, &err),
        0);
    assert_int_equal(recording_load(path, &workload, &recording, &err), -ERROR_INPUT);
    unlink(path);
    assert_int_equal(recording_load(path, &workload, &recording, &err), -ERROR_INPUT);
    assert_int_equal(recording_load("/tmp", &workload, &recording, &err), -ERROR_INPUT);
    workload_free(&workload);
}

static void what_is_compressed_is_to_be_unpacked_first(void **state)
{
    (void)state;
    static const char *const files[][2] = {
        {"\x1f\x8b\x08", "by gzip: unpack it first (gunzip -k /"},
        {"\x28\xb5\x2f\xfd", "by zstd: unpack it first (unzstd /"}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[] = "/tmp/test-recording-XXXXXX";
        struct recording recording;
        struct workload workload;
        struct error err;
        workload_defaults(&workload);
        int fd = mkstemp(path);
        assert_int_equal(write(fd, files[i][0], strlen(files[i][0])), strlen(files[i][0]));
        close(fd);
        assert_int_equal(recording_load(path, &workload, &recording, &err), -ERROR_INPUT);
        assert_non_null(strstr(err.text, files[i][1]));
        unlink(path);
        workload_free(&workload);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_come_back_at_any_rate),
        cmocka_unit_test(a_trace_of_a_cache_is_sent_again),
        cmocka_unit_test(what_monitor_printed_is_sent_again),
        cmocka_unit_test(what_mget_asks_for_is_one_request),
        cmocka_unit_test(what_multi_encloses_is_one_request),
        cmocka_unit_test(transactions_that_cannot_be_sent),
        cmocka_unit_test(columns_have_names),
        cmocka_unit_test(columns_may_be_quoted),
        cmocka_unit_test(what_is_no_recording_is_refused_with_its_line),
        cmocka_unit_test(a_sample_log_is_repeated_whole),
        cmocka_unit_test(what_is_compressed_is_to_be_unpacked_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
