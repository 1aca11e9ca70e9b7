// SPDX-License-Identifier: MIT
#include "workloads/workload.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/units.h"
#include "workloads/protocols/encode.h"
#include "workloads/protocols/protocols.h"

static void take_default_mix(struct workload *workload)
{
    for (unsigned i = 0; i < WORKLOAD_OPERATIONS; i++)
        workload->mix[i] =
            i < workload->protocol->operation_count ? workload->protocol->operations[i].weight : 0;
}

void workload_defaults(struct workload *workload)
{
    *workload = (struct workload){
        .protocol = protocols[0],
        .key_count = 100000,
        .key_size_bytes = {.kind = DISTRIBUTION_FIXED, .first = 31},
        .popularity = {POPULARITY_UNIFORM, 0},
        .multiget_keys = 10,
        .fanout = 1,
        .value_size_bytes = {.kind = DISTRIBUTION_FIXED, .first = 200},
        .arrivals = {.kind = DISTRIBUTION_EXPONENTIAL, .first = 1},
    };
    take_default_mix(workload);
}

void workload_free(struct workload *workload)
{
    distribution_free(&workload->key_size_bytes);
    distribution_free(&workload->value_size_bytes);
    distribution_free(&workload->arrivals);
    distribution_free(&workload->service_ns);
    http_words_free(&workload->http);
    custom_free(workload->custom);
    workload->custom = NULL;
    free(workload->recording);
    workload->recording = NULL;
}

static bool has_default_mix(const struct workload *workload)
{
    struct workload plain = {.protocol = workload->protocol};
    take_default_mix(&plain);
    for (unsigned i = 0; i < WORKLOAD_OPERATIONS; i++)
        if (fabs(plain.mix[i] - workload->mix[i]) > 0)
            return false;
    return true;
}

int workload_set_protocol(struct workload *workload, const struct protocol *protocol,
                          struct error *err)
{
    double mix[WORKLOAD_OPERATIONS] = {0};
    const struct protocol *old = workload->protocol;
    if (protocol == &custom_protocol && workload->custom)
        protocol = &workload->custom->protocol;
    if (has_default_mix(workload)) {
        workload->protocol = protocol;
        take_default_mix(workload);
        return 0;
    }
    for (unsigned i = 0; i < old->operation_count; i++) {
        char names[200];
        int operation = protocol_operation_find(protocol, old->operations[i].name);
        if (workload->mix[i] > 0 && operation < 0)
            return error_set(err, ERROR_INPUT,
                             "protocol %s has no %s, which the workload asks for; it has %s",
                             protocol->name, old->operations[i].name,
                             protocol_operation_names(protocol, names, sizeof names));
        if (operation >= 0)
            mix[operation] = workload->mix[i];
    }
    workload->protocol = protocol;
    memcpy(workload->mix, mix, sizeof mix);
    return 0;
}

size_t workload_key_digits(const struct workload *workload)
{
    static const uint64_t powers[] = {0,
                                      10u,
                                      100u,
                                      1000u,
                                      10000u,
                                      100000u,
                                      1000000u,
                                      10000000u,
                                      100000000u,
                                      1000000000u,
                                      10000000000u,
                                      100000000000u,
                                      1000000000000u,
                                      10000000000000u,
                                      100000000000000u,
                                      1000000000000000u,
                                      10000000000000000u,
                                      100000000000000000u,
                                      1000000000000000000u,
                                      10000000000000000000u};
    const uint64_t largest = workload->key_count - 1;
    const unsigned bits = 64 - (unsigned)__builtin_clzll(largest | 1);
    const size_t digits = bits * 1233 >> 12; // times log10(2): it, or one too many
    return digits + (largest >= powers[digits]);
}

static const char replay[] = "replay:";

int workload_set_arrivals(struct workload *workload, const char *text, struct error *err)
{
    struct distribution times = {.kind = DISTRIBUTION_EXPONENTIAL, .first = 1};
    char *recording = NULL;
    if (strncmp(text, replay, strlen(replay)) != 0) {
        int status = arrivals_parse(text, &times, err);
        if (status < 0)
            return status;
    } else if (!text[strlen(replay)]) {
        return error_set(err, ERROR_INPUT, "\"%s\" names no file", text);
    } else if (!(recording = strdup(text + strlen(replay)))) {
        return error_set(err, ERROR_FAILED, "out of memory");
    }
    distribution_free(&workload->arrivals);
    free(workload->recording);
    workload->arrivals = times;
    workload->recording = recording;
    return 0;
}

char *workload_format_arrivals(const struct workload *workload, char *out, size_t out_bytes)
{
    if (!workload->recording)
        return arrivals_format(&workload->arrivals, out, out_bytes);
    snprintf(out, out_bytes, "%s%s", replay, workload->recording);
    return out;
}

// --- keys and values -----------------------------------------------------------------------------

// Which of an index's hashes is wanted; the low bits keep them apart.
enum hash_use { HASH_KEY_SIZE, HASH_VALUE_SIZE, HASH_VALUE, HASH_SERVICE, HASH_USES };

static size_t size_at(const struct distribution *size, double p, double low, double high)
{
    const bool fixed = size->kind == DISTRIBUTION_FIXED; // as most are: of each request's key
    const double bytes = (fixed ? size->first : distribution_quantile(size, p)) + 0.5;
    return (size_t)(bytes >= low ? bytes > high ? high : bytes : low); // also for NaN
}

static size_t key_size_at(const struct workload *workload, double p)
{
    return size_at(&workload->key_size_bytes, p, (double)workload_key_digits(workload),
                   WORKLOAD_KEY_BYTES_MAX);
}

static size_t key_bytes_of(const struct workload *workload, uint64_t index)
{
    const uint8_t recorded = workload->recorded ? workload->recorded[index].key_bytes : 0;
    if (recorded) {
        const size_t least = workload_key_digits(workload);
        return recorded > least ? recorded : least;
    }
    const bool fixed = workload->key_size_bytes.kind == DISTRIBUTION_FIXED;
    return key_size_at(workload, fixed ? 0 : hash_fraction(index * HASH_USES + HASH_KEY_SIZE));
}

size_t workload_key(const struct workload *workload, uint64_t index, char *out)
{
    static const char zeros[] = "00000000";
    enum { AT_ONCE = sizeof zeros - 1 };
    const size_t bytes = key_bytes_of(workload, index);
    size_t at = 0;
    // The index in decimal, zeros in front: keys of different lengths still differ as numbers.
    for (; at + AT_ONCE <= bytes; at += AT_ONCE)
        memcpy(out + at, zeros, AT_ONCE);
    for (; at < bytes; at++)
        out[at] = '0';
    write_digits(out, out + bytes, index);
    return bytes;
}

// The small values first; the rest of p decides among the others.
static size_t value_size_at(const struct workload *workload, double p)
{
    double left = 1;
    for (unsigned i = 0; i < workload->small_value_count; i++) {
        if (p < workload->small_values[i])
            return i;
        p -= workload->small_values[i];
        left -= workload->small_values[i];
    }
    p = p < left ? p / left : 0;
    return size_at(&workload->value_size_bytes, fmin(p, 1 - 0x1p-53), 0,
                   distribution_is_bounded(&workload->value_size_bytes) ? WORKLOAD_VALUE_BYTES_MAX
                                                                        : WORKLOAD_TAIL_BYTES_MAX);
}

size_t workload_value_bytes(const struct workload *workload, uint64_t index)
{
    if (workload->recorded && workload->recorded[index].value_bytes != RECORDED_UNKNOWN)
        return workload->recorded[index].value_bytes;
    return value_size_at(workload, hash_fraction(index * HASH_USES + HASH_VALUE_SIZE));
}

void workload_value(const struct workload *workload, uint64_t index, char *out)
{
    size_t bytes = workload_value_bytes(workload, index);
    uint64_t state = hash64(index * HASH_USES + HASH_VALUE);
    for (size_t at = 0; at < bytes; at += sizeof state, state = hash64(state))
        memcpy(out + at, &state, bytes - at < sizeof state ? bytes - at : sizeof state);
}

static uint32_t expiry_s_of(const struct workload *workload, uint64_t index)
{
    const uint32_t recorded = workload->recorded ? workload->recorded[index].expiry_s : 0;
    return recorded ? recorded : (uint32_t)(workload->expiry_ns / 1000000000u);
}

void workload_request_key(const struct workload *workload, unsigned operation, uint64_t index,
                          char *key, struct request *request)
{
    *request = (struct request){.operation = operation,
                                .key = key,
                                .key_bytes = workload_key(workload, index, key),
                                .key_operations =
                                    workload->recorded ? workload->recorded[index].operations : 0};
}

void workload_request(const struct workload *workload, unsigned operation, uint64_t index,
                      uint64_t place, uint64_t number, char *key, char *value,
                      struct request *request)
{
    workload_request_key(workload, operation, index, key, request);
    request->number = number;
    request->service_ns = request_service_from_server;
    request->http = workload->http.before ? &workload->http : NULL;
    request->custom = workload->custom;
    const struct protocol_operation *kind = &workload->protocol->operations[operation];
    if (kind->carries_value || kind->states_size)
        request->value_bytes = workload_value_bytes(workload, index);
    if (kind->carries_value) {
        request->value = value;
        request->expiry_s = expiry_s_of(workload, index);
        workload_value(workload, index, value);
    }
    if (workload->service_given)
        request->service_ns =
            (uint64_t)fmin(distribution_quantile(&workload->service_ns,
                                                 hash_fraction(place * HASH_USES + HASH_SERVICE)),
                           0x1p62);
}

// The largest hash fraction, which decides the largest size. All are computed as long as that takes
// at most some 20 ms: with heavy tails every buffer would otherwise be as large as the limit.
static double largest_fraction(const struct workload *workload, enum hash_use use)
{
    enum { LOOK_AT_MOST = 1 << 23 };
    double largest = 0;
    if (workload->key_count > LOOK_AT_MOST)
        return 1 - 0x1p-53; // of hash_fraction
    for (uint64_t i = 0; i < workload->key_count; i++) {
        double fraction = hash_fraction(i * HASH_USES + use);
        largest = fraction > largest ? fraction : largest;
    }
    return largest;
}

// The most bytes that any key of a recording has, or its value.
static size_t recorded_max(const struct workload *workload,
                           size_t (*bytes_of)(const struct workload *workload, uint64_t index))
{
    size_t most = 0;
    for (uint64_t i = 0; i < workload->key_count; i++) {
        size_t bytes = bytes_of(workload, i);
        most = bytes > most ? bytes : most;
    }
    return most;
}

size_t workload_key_bytes_max(const struct workload *workload)
{
    return workload->recorded ? recorded_max(workload, key_bytes_of)
                              : key_size_at(workload, largest_fraction(workload, HASH_KEY_SIZE));
}

size_t workload_value_bytes_max(const struct workload *workload)
{
    if (workload->recorded)
        return recorded_max(workload, workload_value_bytes);
    size_t largest = value_size_at(workload, largest_fraction(workload, HASH_VALUE_SIZE));
    return largest + 1 < workload->small_value_count ? workload->small_value_count - 1 : largest;
}

size_t workload_carried_bytes_max(const struct workload *workload)
{
    // A recording may have operations that the mix has not.
    bool carries = workload->recording || workload->read_through;
    for (unsigned i = 0; i < workload->protocol->operation_count; i++)
        carries |= workload->mix[i] > 0 && workload->protocol->operations[i].carries_value;
    return carries ? workload_value_bytes_max(workload) : 0;
}

// --- writing it down -----------------------------------------------------------------------------

static bool has_multigets(const struct workload *workload)
{
    for (unsigned i = 0; i < workload->protocol->operation_count; i++)
        if (workload->mix[i] > 0 && workload->protocol->operations[i].many_keys)
            return true;
    return false;
}

json_t *workload_to_json(const struct workload *workload)
{
    char arrivals[4200], text[4200];
    json_t *mix = json_object();
    json_t *popularity = workload->popularity.kind == POPULARITY_ZIPF
                             ? json_pack("{s:f}", "zipf", workload->popularity.exponent)
                             : json_pack("{s:b}", "uniform", 1);
    for (unsigned i = 0; i < workload->protocol->operation_count; i++)
        json_object_set_new(mix, workload->protocol->operations[i].name,
                            json_real(workload->mix[i]));
    workload_format_arrivals(workload, arrivals, sizeof arrivals);
    json_t *json = json_pack(
        "{s:s, s:o, s:{s:I, s:o, s:o}, s:{s:o}, s:s}", "protocol", workload->protocol->name, "mix",
        mix, "keys", "count", (json_int_t)workload->key_count, "size",
        distribution_to_json(&workload->key_size_bytes, UNIT_BYTES), "popularity", popularity,
        "values", "size", distribution_to_json(&workload->value_size_bytes, UNIT_BYTES), "arrivals",
        arrivals);
    if (json && has_multigets(workload))
        json_object_set_new(json_object_get(json, "keys"), "multiget",
                            json_integer(workload->multiget_keys));
    if (json && workload->small_value_count) {
        json_t *small = json_array();
        for (unsigned i = 0; i < workload->small_value_count; i++)
            json_array_append_new(small, json_real(workload->small_values[i]));
        json_object_set_new(json_object_get(json, "values"), "small", small);
    }
    if (json && workload->expiry_ns)
        json_object_set_new(
            json_object_get(json, "values"), "expiry",
            json_sprintf("%llus", (unsigned long long)(workload->expiry_ns / 1000000000u)));
    if (json && workload->pattern.kind != PATTERN_CONSTANT)
        json_object_set_new(
            json, "pattern",
            json_string(rate_pattern_format(&workload->pattern, text, sizeof text)));
    if (json && workload->service_given)
        json_object_set_new(
            json, "service",
            json_string(distribution_format(&workload->service_ns, UNIT_NS, text, sizeof text)));
    if (json && workload->read_through)
        json_object_set_new(json, "read_through", json_true());
    if (json && workload->fanout > 1)
        json_object_set_new(json, "fanout", json_integer(workload->fanout));
    if (json && workload->http.before)
        json_object_set_new(json, "http", http_words_to_json(&workload->http));
    if (json && workload->protocol->custom)
        json_object_set_new(json, "custom", custom_to_json(workload->custom));
    return json;
}

char *workload_to_yaml(const struct workload *workload)
{
    // A JSON value is a YAML value: one line a key keeps the file readable.
    json_t *json = workload_to_json(workload);
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = json ? open_memstream(&text, &bytes) : NULL;
    if (out) {
        const char *key;
        json_t *value;
        json_object_foreach(json, key, value)
        {
            fprintf(out, "%s: ", key);
            json_dumpf(value, out, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
            fputc('\n', out);
        }
        if (fclose(out) != 0) {
            free(text);
            text = NULL;
        }
    }
    json_decref(json);
    return text;
}

// --- files ---------------------------------------------------------------------------------------

enum { TABLES = WORKLOAD_FILES_MAX - 1 };

// All places where a table may be.
static void find_tables(struct workload *workload, struct distribution *found[TABLES])
{
    struct distribution *const all[TABLES] = {&workload->key_size_bytes,
                                              &workload->value_size_bytes, &workload->arrivals,
                                              &workload->service_ns};
    for (size_t i = 0; i < TABLES; i++)
        found[i] = all[i];
}

size_t workload_files(const struct workload *workload, const char *paths[WORKLOAD_FILES_MAX])
{
    struct workload copy = *workload;
    struct distribution *tables[TABLES];
    size_t count = 0;
    find_tables(&copy, tables);
    for (size_t i = 0; i < TABLES; i++)
        if (tables[i]->table)
            paths[count++] = tables[i]->table->path;
    if (workload->recording)
        paths[count++] = workload->recording;
    return count;
}

char *workload_to_yaml_with(const struct workload *workload, const char *const *paths)
{
    struct workload copy = *workload;
    struct distribution *tables[TABLES];
    struct distribution_table renamed[TABLES];
    find_tables(&copy, tables);
    for (size_t i = 0; i < TABLES; i++)
        if (tables[i]->table) {
            renamed[i] = *tables[i]->table;
            renamed[i].path = (char *)(uintptr_t)*paths++;
            tables[i]->table = &renamed[i];
        }
    if (copy.recording)
        copy.recording = (char *)(uintptr_t)*paths;
    return workload_to_yaml(&copy);
}
