// SPDX-License-Identifier: MIT
#include "workloads/workload.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "workloads/hash.h"
#include "workloads/memcached_text.h"
#include "workloads/protocol.h"

const char *const workload_operation_names[WORKLOAD_OPERATIONS] = {"get", "set"};

#define OPTIONAL_STRING(key, type, member)                                                         \
    CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, type, member, 0,         \
                           CYAML_UNLIMITED)

static const cyaml_schema_value_t string_value = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 0, CYAML_UNLIMITED),
};

const cyaml_schema_field_t distribution_text_fields[] = {
    OPTIONAL_STRING("fixed", struct distribution_text, fixed),
    CYAML_FIELD_SEQUENCE_FIXED("uniform", CYAML_FLAG_OPTIONAL | CYAML_FLAG_FLOW,
                               struct distribution_text, uniform, &string_value, 2),
    OPTIONAL_STRING("exponential", struct distribution_text, exponential),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t mix_fields[] = {
    OPTIONAL_STRING("get", struct workload_mix_text, get),
    OPTIONAL_STRING("set", struct workload_mix_text, set),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t popularity_fields[] = {
    OPTIONAL_STRING("zipf", struct workload_popularity_text, zipf),
    OPTIONAL_STRING("uniform", struct workload_popularity_text, uniform),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t keys_fields[] = {
    OPTIONAL_STRING("count", struct workload_keys_text, count),
    CYAML_FIELD_MAPPING("size", CYAML_FLAG_OPTIONAL, struct workload_keys_text, size,
                        distribution_text_fields),
    CYAML_FIELD_MAPPING("popularity", CYAML_FLAG_OPTIONAL, struct workload_keys_text, popularity,
                        popularity_fields),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t values_fields[] = {
    CYAML_FIELD_MAPPING("size", CYAML_FLAG_OPTIONAL, struct workload_values_text, size,
                        distribution_text_fields),
    CYAML_FIELD_END,
};

const cyaml_schema_field_t workload_text_fields[] = {
    OPTIONAL_STRING("protocol", struct workload_text, protocol),
    CYAML_FIELD_MAPPING("mix", CYAML_FLAG_OPTIONAL, struct workload_text, mix, mix_fields),
    CYAML_FIELD_MAPPING("keys", CYAML_FLAG_OPTIONAL, struct workload_text, keys, keys_fields),
    CYAML_FIELD_MAPPING("values", CYAML_FLAG_OPTIONAL, struct workload_text, values, values_fields),
    CYAML_FIELD_END,
};

void workload_defaults(struct workload *workload)
{
    *workload = (struct workload){
        .protocol = &memcached_text_protocol,
        .mix = {[WORKLOAD_GET] = 90, [WORKLOAD_SET] = 10},
        .key_count = 100000,
        .key_size_bytes = {DISTRIBUTION_FIXED, 31, 0},
        .popularity = {POPULARITY_UNIFORM, 0},
        .value_size_bytes = {DISTRIBUTION_FIXED, 200, 0},
    };
}

static int resolve_bytes(const char *text, const char *path, const char *key, double *out,
                         struct error *err)
{
    uint64_t bytes;
    if (units_parse_bytes(text, &bytes, err) < 0)
        return error_prefix(err, "%s.%s", path, key);
    *out = (double)bytes;
    return 0;
}

int distribution_resolve(const struct distribution_text *text, const char *path,
                         struct distribution *distribution, struct error *err)
{
    bool uniform = text->uniform[0] && text->uniform[1];
    int kinds = (text->fixed != NULL) + uniform + (text->exponential != NULL);
    if (kinds == 0)
        return 1;
    if (kinds > 1)
        return error_set(err, ERROR_INPUT,
                         "%s: one distribution, please: fixed, uniform or "
                         "exponential",
                         path);
    struct distribution result = {0};
    int status = 0;
    if (text->fixed) {
        result.kind = DISTRIBUTION_FIXED;
        status = resolve_bytes(text->fixed, path, "fixed", &result.first, err);
    } else if (text->exponential) {
        result.kind = DISTRIBUTION_EXPONENTIAL;
        status = resolve_bytes(text->exponential, path, "exponential", &result.first, err);
        if (status == 0 && !(result.first > 0))
            status = error_set(err, ERROR_INPUT,
                               "%s.exponential: a mean of 0 leaves nothing to draw; write fixed: 0",
                               path);
    } else {
        result.kind = DISTRIBUTION_UNIFORM;
        status = resolve_bytes(text->uniform[0], path, "uniform", &result.first, err);
        if (status == 0)
            status = resolve_bytes(text->uniform[1], path, "uniform", &result.second, err);
        if (status == 0 && result.first > result.second)
            status = error_set(err, ERROR_INPUT, "%s.uniform: [%s, %s] ends before it begins", path,
                               text->uniform[0], text->uniform[1]);
    }
    if (status == 0)
        *distribution = result;
    return status;
}

static size_t digits_of(uint64_t count)
{
    size_t digits = 1;
    for (uint64_t largest = count - 1; largest >= 10; largest /= 10)
        digits++;
    return digits;
}

// The smallest and the largest size a distribution is sure to ask for; an exponential one's are
// clamped, not refused.
static int check_sizes(const struct distribution *size, const char *path, double low, double high,
                       const char *why, struct error *err)
{
    double smallest = size->first,
           largest = size->kind == DISTRIBUTION_UNIFORM ? size->second : size->first;
    if (size->kind == DISTRIBUTION_EXPONENTIAL)
        smallest = high;
    if (smallest >= low && largest <= high)
        return 0;
    return error_set(err, ERROR_INPUT, "%s.%s: %.0f bytes, but %s must have %.0f to %.0f", path,
                     distribution_name(size->kind), smallest < low ? smallest : largest, why, low,
                     high);
}

static int resolve_mix(const struct workload_mix_text *text, struct workload *workload,
                       struct error *err)
{
    const char *const texts[WORKLOAD_OPERATIONS] = {text->get, text->set};
    if (!text->get && !text->set)
        return 0;
    double sum = 0;
    for (unsigned i = 0; i < WORKLOAD_OPERATIONS; i++) {
        workload->mix[i] = 0;
        if (texts[i] && units_parse_number(texts[i], &workload->mix[i], err) < 0)
            return error_prefix(err, "mix.%s", workload_operation_names[i]);
        sum += workload->mix[i];
    }
    if (!(sum > 0) || !isfinite(sum))
        return error_set(err, ERROR_INPUT, "mix: the weights must add up to more than 0");
    return 0;
}

static int resolve_popularity(const struct workload_popularity_text *text,
                              struct popularity *popularity, struct error *err)
{
    if (text->uniform && strcmp(text->uniform, "true") != 0)
        return error_set(err, ERROR_INPUT,
                         "keys.popularity.uniform: \"%s\" is not true; leave uniform away, or "
                         "write {zipf: 0.99}",
                         text->uniform);
    if (text->uniform && text->zipf)
        return error_set(err, ERROR_INPUT, "keys.popularity: either zipf or uniform, not both");
    if (!text->zipf)
        return 0;
    double exponent;
    if (units_parse_number(text->zipf, &exponent, err) < 0)
        return error_prefix(err, "keys.popularity.zipf");
    if (!(exponent > 0 && exponent < 2))
        return error_set(err, ERROR_INPUT,
                         "keys.popularity.zipf: the exponent %s is not between 0 and 2 (both "
                         "excluded; {uniform: true} is the limit at 0)",
                         text->zipf);
    *popularity = (struct popularity){POPULARITY_ZIPF, exponent};
    return 0;
}

static int resolve_keys(const struct workload_keys_text *text, struct workload *workload,
                        struct error *err)
{
    if (text->count) {
        if (units_parse_count(text->count, &workload->key_count, err) < 0)
            return error_prefix(err, "keys.count");
        if (workload->key_count == 0 || workload->key_count > UINT32_MAX)
            return error_set(err, ERROR_INPUT, "keys.count: %s is not between 1 and %u",
                             text->count, UINT32_MAX);
    }
    if (distribution_resolve(&text->size, "keys.size", &workload->key_size_bytes, err) < 0)
        return -ERROR_INPUT;
    char why[96];
    snprintf(why, sizeof why, "each of %" PRIu64 " different keys", workload->key_count);
    if (check_sizes(&workload->key_size_bytes, "keys.size", (double)digits_of(workload->key_count),
                    WORKLOAD_KEY_BYTES_MAX, why, err) < 0)
        return -ERROR_INPUT;
    return resolve_popularity(&text->popularity, &workload->popularity, err);
}

int workload_resolve(const struct workload_text *text, struct workload *workload, struct error *err)
{
    workload_defaults(workload);
    if (text->protocol) {
        workload->protocol = protocol_find(text->protocol);
        if (!workload->protocol)
            return error_set(err, ERROR_INPUT,
                             "protocol: \"%s\" is not a protocol I speak; I speak %s",
                             text->protocol, protocol_names());
    }
    if (resolve_mix(&text->mix, workload, err) < 0 || resolve_keys(&text->keys, workload, err) < 0)
        return -ERROR_INPUT;
    if (distribution_resolve(&text->values.size, "values.size", &workload->value_size_bytes, err) <
        0)
        return -ERROR_INPUT;
    return check_sizes(&workload->value_size_bytes, "values.size", 0, WORKLOAD_VALUE_BYTES_MAX,
                       "a value", err);
}

// --- keys and values -----------------------------------------------------------------------------

// Which of an index's hashes is meant; the low bits keep them apart.
enum hash_use { HASH_KEY_SIZE = 0, HASH_VALUE_SIZE = 1, HASH_VALUE = 2, HASH_USES = 4 };

static size_t size_at(const struct distribution *size, double p, double low, double high)
{
    double bytes = floor(distribution_quantile(size, p) + 0.5);
    return (size_t)(bytes < low ? low : bytes > high ? high : bytes);
}

static size_t key_size_at(const struct workload *workload, double p)
{
    return size_at(&workload->key_size_bytes, p, (double)digits_of(workload->key_count),
                   WORKLOAD_KEY_BYTES_MAX);
}

size_t workload_key(const struct workload *workload, uint64_t index, char *out)
{
    size_t bytes = key_size_at(workload, hash_fraction(index * HASH_USES + HASH_KEY_SIZE));
    // The index in decimal, zeros in front: keys of different lengths still differ as numbers.
    for (size_t i = bytes; i-- > 0; index /= 10)
        out[i] = (char)('0' + index % 10);
    return bytes;
}

size_t workload_value_bytes(const struct workload *workload, uint64_t index)
{
    return size_at(&workload->value_size_bytes, hash_fraction(index * HASH_USES + HASH_VALUE_SIZE),
                   0, WORKLOAD_VALUE_BYTES_MAX);
}

void workload_value(const struct workload *workload, uint64_t index, char *out)
{
    size_t bytes = workload_value_bytes(workload, index);
    uint64_t state = hash64(index * HASH_USES + HASH_VALUE);
    for (size_t at = 0; at < bytes; at += sizeof state, state = hash64(state))
        memcpy(out + at, &state, bytes - at < sizeof state ? bytes - at : sizeof state);
}

static const double largest_fraction = 1 - 0x1p-53; // of hash_fraction

size_t workload_key_bytes_max(const struct workload *workload)
{
    return key_size_at(workload, largest_fraction);
}

size_t workload_value_bytes_max(const struct workload *workload)
{
    return size_at(&workload->value_size_bytes, largest_fraction, 0, WORKLOAD_VALUE_BYTES_MAX);
}

// --- writing it down -----------------------------------------------------------------------------

static json_t *distribution_to_json(const struct distribution *distribution)
{
    const char *name = distribution_name(distribution->kind);
    if (distribution->kind == DISTRIBUTION_UNIFORM)
        return json_pack("{s:[I,I]}", name, (json_int_t)distribution->first,
                         (json_int_t)distribution->second);
    return json_pack("{s:I}", name, (json_int_t)distribution->first);
}

json_t *workload_to_json(const struct workload *workload)
{
    json_t *popularity = workload->popularity.kind == POPULARITY_ZIPF
                             ? json_pack("{s:f}", "zipf", workload->popularity.exponent)
                             : json_pack("{s:b}", "uniform", 1);
    return json_pack("{s:s, s:{s:f, s:f}, s:{s:I, s:o, s:o}, s:{s:o}}", "protocol",
                     workload->protocol->name, "mix", "get", workload->mix[WORKLOAD_GET], "set",
                     workload->mix[WORKLOAD_SET], "keys", "count", (json_int_t)workload->key_count,
                     "size", distribution_to_json(&workload->key_size_bytes), "popularity",
                     popularity, "values", "size",
                     distribution_to_json(&workload->value_size_bytes));
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
