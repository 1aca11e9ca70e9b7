// SPDX-License-Identifier: MIT
//
// The keys of a workload in YAML, in a file of its own or inside of an experiment.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fields.h"
#include "base/suggestion.h"
#include "base/text.h"
#include "base/units.h"
#include "workloads/protocols/custom_file.h"
#include "workloads/protocols/protocols.h"
#include "workloads/workload.h"

enum { HEADERS_MAX = 32 }; // of HTTP requests

// --- keys and values -----------------------------------------------------------------------------

// The smallest and the largest size a distribution is sure to ask for; those without bounds are
// clamped, not refused.
static int check_sizes(const struct binding *binding, const struct node *node,
                       const struct distribution *size, double low, double high, const char *why)
{
    const struct node *given = node_entry(node_child(node, "size"), 0);
    if (!distribution_is_bounded(size))
        return 0;
    double ends[2] = {size->first, size->kind == DISTRIBUTION_FIXED ? size->first : size->second};
    if (size->table) {
        ends[0] = size->table->values[0];
        ends[1] = size->table->values[size->table->count - 1];
    }
    for (unsigned i = 0; i < 2; i++)
        if (ends[i] < low || ends[i] > high)
            return document_error(binding->document, given ? given : node, binding->err,
                                  "%s: %.10g bytes, but %s must have %.0f to %.0f",
                                  distribution_name(size->kind), ends[i], why, low, high);
    return 0;
}

static int read_popularity(const struct binding *binding, const struct node *node, void *object)
{
    struct popularity *popularity = object;
    const struct node *zipf = node_child(node, "zipf"), *uniform = node_child(node, "uniform");
    if (uniform && strcmp(node_text(uniform), "true") != 0)
        return document_error(binding->document, uniform, binding->err,
                              "uniform: \"%s\" is not true; leave uniform away, or write {zipf: "
                              "0.99}",
                              node_text(uniform));
    if (uniform && zipf)
        return document_error(binding->document, node, binding->err,
                              "popularity: either zipf or uniform, not both");
    if (uniform)
        *popularity = (struct popularity){POPULARITY_UNIFORM, 0};
    else if (zipf)
        popularity->kind = POPULARITY_ZIPF;
    return 0;
}

static const struct field popularity_rows[] = {
    {"zipf", FIELD_NUMBER, .low = "0", .low_excluded = true, .high = "2", .high_excluded = true,
     .outside = "is not between 0 and 2 (both excluded; {uniform: true} is the limit at 0)",
     INTO(struct popularity, exponent), .help = "P(rank k) in proportion to 1 / k^this, below 2"},
    {"uniform", FIELD_TEXT, .help = "true: every key as often as any other"},
};
static const struct fields popularity_fields = FIELDS(
    popularity_rows, struct popularity, .example = "e.g. `{zipf: 0.99}`", .check = read_popularity);

static int check_keys(const struct binding *binding, const struct node *node, void *object)
{
    const struct workload *workload = object;
    char why[96];
    snprintf(why, sizeof why, "each of %s different keys", TEXT_COUNT(workload->key_count));
    return check_sizes(binding, node, &workload->key_size_bytes,
                       (double)workload_key_digits(workload), WORKLOAD_KEY_BYTES_MAX, why);
}

static const struct field keys_rows[] = {
    {"count", FIELD_COUNT, "100k", .low = "1", .high = "4294967295",
     INTO(struct workload, key_count), .help = "how many there are"},
    {"size", FIELD_GROUP, .fields = &distribution_fields, .otherwise = "fixed: 31",
     INTO(struct workload, key_size_bytes), .help = "bytes of a key, by one of"},
    {"popularity", FIELD_GROUP, .fields = &popularity_fields, .otherwise = "uniform: true",
     INTO(struct workload, popularity), .help = "which keys are asked for, by one of"},
    {"multiget", FIELD_COUNT, "10", .low = "2", .high = "500", INTO(struct workload, multiget_keys),
     .help = "how many a `multiget` asks for at once"},
};
static const struct fields keys_fields = FIELDS(keys_rows, struct workload, .check = check_keys);
_Static_assert(MULTIGET_KEYS_MAX == 500, "the row of `multiget` says how many there may be");

// A new size applies to all values, including the small ones that a preset listed separately.
static int read_values(const struct binding *binding, const struct node *node, void *object)
{
    double sum = 0;
    struct workload *workload = object;
    struct error inner;
    const struct node *small = node_child(node, "small");
    if (small || node_count(node_child(node, "size")))
        workload->small_value_count = (unsigned)node_count(small);
    for (unsigned i = 0; i < node_count(small); i++) {
        const struct node *entry = node_entry(small, i);
        if (units_parse_number(node_text(entry), &workload->small_values[i], &inner) < 0)
            return document_error(binding->document, entry, binding->err, "small: %s", inner.text);
        sum += workload->small_values[i];
    }
    if (sum > 1 + 1e-9)
        return document_error(binding->document, small, binding->err,
                              "small: probabilities that add up to %.10g", sum);
    if (workload->expiry_ns % 1000000000u)
        return document_error(binding->document, node_child(node, "expiry"), binding->err,
                              "expiry: servers count whole seconds");
    if (workload->expiry_ns && !protocol_has_get_and_set(workload->protocol))
        return document_error(binding->document, node_child(node, "expiry"), binding->err,
                              "expiry: protocol %s has no set", workload->protocol->name);
    if (workload->expiry_ns && workload->custom &&
        !custom_says_expiry(workload->custom, WORKLOAD_SET))
        return document_error(binding->document, node_child(node, "expiry"), binding->err,
                              "expiry: the request set of `custom` has no {expiry_s}");
    return check_sizes(binding, node, &workload->value_size_bytes, 0, WORKLOAD_VALUE_BYTES_MAX,
                       "a value");
}

static const struct field values_rows[] = {
    {"size", FIELD_GROUP, .fields = &distribution_fields, .otherwise = "fixed: 200",
     INTO(struct workload, value_size_bytes), .help = "bytes of a value, by one of"},
    {"small", FIELD_TEXTS, .low = "1", .high = "64", .otherwise = "none",
     .help = "how likely values of 0, 1, ... bytes are; `size` is that of the others"},
    {"expiry", FIELD_DURATION, .otherwise = "they stay", .low = "1s", .high = "720h",
     INTO(struct workload, expiry_ns),
     .help = "how long the server is to keep what a `set` stores; what --prepare stores stays"},
};
static const struct fields values_fields =
    FIELDS(values_rows, struct workload, .check = read_values);
_Static_assert(WORKLOAD_SMALL_VALUES == 64, "the row of `small` says how many there may be");

// --- HTTP ----------------------------------------------------------------------------------------

static int read_http(const struct binding *binding, const struct node *node, void *object)
{
    struct workload *workload = object;
    struct error inner;
    const struct node *list = node_child(node, "headers");
    const char *headers[HEADERS_MAX];
    if (!workload->protocol->takes_http_words)
        return document_error(binding->document, node, binding->err,
                              "http: the protocol is %s, which knows neither paths nor headers",
                              workload->protocol->name);
    for (size_t i = 0; i < node_count(list); i++)
        headers[i] = node_text(node_entry(list, i));
    int status = http_words_set(&workload->http, node_text(node_child(node, "path")),
                                node_text(node_child(node, "host")), list ? headers : NULL,
                                node_count(list), &inner);
    return status < 0 ? document_error(binding->document, node, binding->err, "%s", inner.text) : 0;
}

static const struct field http_rows[] = {
    {"path", FIELD_TEXT, .otherwise = "/{key}",
     .help = "what is asked for; {key} stands for the key, and without it all ask for the same"},
    {"host", FIELD_TEXT, .otherwise = "the URL's, or taillight", .help = "the header Host"},
    {"headers", FIELD_TEXTS, .high = "32", .otherwise = "none",
     .help = "more headers, each \"Name: value\""},
};
static const struct fields http_fields = FIELDS(
    http_rows, struct workload, .example = "e.g. `{path: \"/a/{key}\"}`", .check = read_http);
_Static_assert(HEADERS_MAX == 32, "the row of `headers` says how many there may be");

// --- the whole -----------------------------------------------------------------------------------

// What the keys override: the defaults or the preset, with the protocol's operations.
static int begin_workload(const struct binding *binding, const struct node *node, void *object)
{
    struct workload *workload = object;
    struct error inner;
    const char *preset = node_text(node_child(node, "preset")),
               *name = node_text(node_child(node, "protocol"));
    const struct node *custom = node_child(node, "custom");
    workload_defaults(workload);
    if (preset && workload_load_preset(preset, workload, &inner) < 0)
        return field_misread(binding, node, "preset", &inner);
    const struct protocol *protocol = name ? protocol_find(name) : NULL;
    if (!name && !preset && binding->root == &workload_fields)
        protocol = binding->context; // of a file of its own: what its reader said
    if (custom && protocol != &custom_protocol)
        return document_error(binding->document, custom, binding->err,
                              "custom: the protocol is %s, which needs no description; write "
                              "protocol: custom",
                              (protocol ? protocol : workload->protocol)->name);
    if (custom && custom_read(binding, custom, &workload->custom) < 0)
        return -ERROR_INPUT;
    if (protocol && workload_set_protocol(workload, protocol, &inner) < 0)
        return field_misread(binding, node, "protocol", &inner);
    return 0;
}

// " (did you mean `get`?)", or nothing.
static const char *near_operation(const struct protocol *protocol, const char *written, char *out,
                                  size_t out_bytes)
{
    const char *names[WORKLOAD_OPERATIONS];
    for (unsigned i = 0; i < protocol->operation_count; i++)
        names[i] = protocol->operations[i].name;
    const char *near = suggestion_nearest(written, names, protocol->operation_count);
    out[0] = '\0';
    if (near && strlen(written) > 3) // any "set" is near "get"
        snprintf(out, out_bytes, " (did you mean `%s`?)", near);
    return out;
}

static int read_mix(const struct binding *binding, const struct node *node,
                    struct workload *workload)
{
    double mix[WORKLOAD_OPERATIONS] = {0}, sum = 0;
    struct error inner;
    for (size_t i = 0; i < node_count(node); i++) {
        char names[200], near[80];
        const char *name = node_text(node_entry_key(node, i));
        int operation = protocol_operation_find(workload->protocol, name);
        if (operation < 0)
            return document_error(
                binding->document, node_entry_key(node, i), binding->err,
                "mix: protocol %s has no %s%s; it has %s", workload->protocol->name, name,
                near_operation(workload->protocol, name, near, sizeof near),
                protocol_operation_names(workload->protocol, names, sizeof names));
        if (units_parse_number(node_text(node_entry(node, i)), &mix[operation], &inner) < 0)
            return field_misread(binding, node, name, &inner);
        sum += mix[operation];
    }
    if (node_count(node) == 0)
        return 0;
    if (!(sum > 0) || !isfinite(sum))
        return document_error(binding->document, node, binding->err,
                              "mix: the weights must add up to more than 0");
    memcpy(workload->mix, mix, sizeof mix);
    return 0;
}

static int read_workload(const struct binding *binding, const struct node *node, void *object)
{
    struct workload *workload = object;
    struct distribution times;
    struct error inner;
    const char *arrivals = node_text(node_child(node, "arrivals")),
               *pattern = node_text(node_child(node, "pattern")),
               *service = node_text(node_child(node, "service"));
    int result = read_mix(binding, node_child(node, "mix"), workload);
    if (result < 0)
        return result;
    if (arrivals && workload_set_arrivals(workload, arrivals, &inner) < 0)
        return field_misread(binding, node, "arrivals", &inner);
    if (pattern && rate_pattern_parse(pattern, &workload->pattern, &inner) < 0)
        return field_misread(binding, node, "pattern", &inner);
    if (workload->read_through && !protocol_has_get_and_set(workload->protocol))
        return document_error(binding->document, node_child(node, "read_through"), binding->err,
                              "read_through: protocol %s has no get and set",
                              workload->protocol->name);
    if (workload->fanout > 1 && workload->recording)
        return document_error(binding->document, node_child(node, "fanout"), binding->err,
                              "fanout: a recording says when each request is due, so that none "
                              "are due together but its own");
    if (!service)
        return 0;
    char able[200];
    if (!workload->protocol->says_service)
        return document_error(binding->document, node_child(node, "service"), binding->err,
                              "service: protocol %s does not tell the server how long to work; of "
                              "the protocols, %s can",
                              workload->protocol->name,
                              protocol_names_with_service(able, sizeof able));
    if (distribution_parse(service, UNIT_NS, &times, &inner) < 0)
        return field_misread(binding, node, "service", &inner);
    distribution_free(&workload->service_ns);
    workload->service_ns = times;
    workload->service_given = true;
    return 0;
}

static const struct field workload_rows[] = {
    {"preset", FIELD_TEXT, .otherwise = "these defaults", .help = "begin with etc, usr or var"},
    {"protocol", FIELD_TEXT, .word = protocol_name, .otherwise = "memcached",
     .help = "that requests are written in"},
    {"mix", FIELD_MAP, .otherwise = "the protocol's",
     .help = "weights of its operations: {get: 90, set: 10}"},
    {"keys", FIELD_GROUP, .fields = &keys_fields, IN_PLACE, .help = "what is asked for"},
    {"values", FIELD_GROUP, .fields = &values_fields, IN_PLACE, .help = "what is stored"},
    {"arrivals", FIELD_TEXT, .otherwise = "exponential",
     .help = "the shape of the gaps between requests: exponential, fixed, uniform, a distribution "
             "like gpd:0,16,0.15, or replay:FILE"},
    {"pattern", FIELD_TEXT, .otherwise = "constant",
     .help = "how the rate changes over a run: ramp:0.5,1.5"},
    {"service", FIELD_TEXT, .otherwise = "the server's own",
     .help = "of protocol lab: how long the server is to work: exponential:10us"},
    {"read_through", FIELD_SWITCH, "false", INTO(struct workload, read_through),
     .help =
         "whether a get that finds nothing is followed by a set of its key, which is told apart "
         "from the requests"},
    {"fanout", FIELD_COUNT, "1", .low = "1", .high = "1000", INTO(struct workload, fanout),
     .help = "how many requests are due together, as one logical request, whose latency is that of "
             "the slowest; rates count logical requests"},
    {"http", FIELD_GROUP, .fields = &http_fields, IN_PLACE,
     .help = "of protocols http, http2 and grpc: what requests say besides the key"},
    {"custom", FIELD_GROUP, .fields = &custom_fields,
     .otherwise = "a line with the key, a line back", .help = "of protocol custom: what it is"},
};
_Static_assert(WORKLOAD_FANOUT_MAX == 1000, "the row of `fanout` says how many there may be");
const struct fields workload_fields =
    FIELDS(workload_rows, struct workload, .begin = begin_workload, .check = read_workload);

// --- files ---------------------------------------------------------------------------------------

// Frees the document.
static int read_document(struct document *document, const struct protocol *otherwise,
                         struct workload *workload, struct error *err)
{
    const struct binding binding = {.document = document,
                                    .context = (void *)(uintptr_t)otherwise,
                                    .root = &workload_fields,
                                    .err = err};
    workload_defaults(workload);
    int result = fields_read(&binding, &workload_fields, document_root(document), workload);
    document_free(document);
    if (result < 0) {
        workload_free(workload);
        workload_defaults(workload);
    }
    return result;
}

int workload_parse(const char *path, const char *text, size_t bytes, struct workload *workload,
                   struct error *err)
{
    struct document *document;
    int result = document_parse(path, text, bytes, &document, err);
    return result < 0 ? result : read_document(document, NULL, workload, err);
}

int workload_load_preset(const char *name, struct workload *workload, struct error *err)
{
    size_t bytes;
    const char *text = workload_preset(name, &bytes);
    if (!text)
        return error_set(err, ERROR_INPUT, "there is no preset \"%s\"; there are %s", name,
                         workload_preset_names());
    return workload_parse(name, text, bytes, workload, err);
}

int workload_load_file(const char *path, const struct protocol *otherwise,
                       struct workload *workload, struct error *err)
{
    size_t bytes;
    struct document *document;
    if (workload_preset(path, &bytes))
        return workload_load_preset(path, workload, err);
    int result = document_open(path, &document, err);
    return result < 0 ? result : read_document(document, otherwise, workload, err);
}
