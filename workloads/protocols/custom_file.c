// SPDX-License-Identifier: MIT
#include "workloads/protocols/custom_file.h"

#include <inttypes.h>
#include <string.h>

#include "base/fields.h"

static const char *order_name(unsigned index)
{
    static const char *const names[] = {"big", "little", NULL};
    return names[index];
}

static const struct field number_rows[] = {
    {"at", FIELD_COUNT, "0", .low = "0", .high = "256", INTO(struct custom_number, at),
     .help = "how many bytes of the reply are in front of it"},
    {"bytes", FIELD_COUNT, "4", .low = "1", .high = "8", INTO(struct custom_number, bytes),
     .help = "how many it has"},
    {"order", FIELD_WORD, .word = order_name, .otherwise = "big", INTO(struct custom_number, order),
     .help = "big: its highest byte is the first"},
    {"adds", FIELD_INTEGER, "0", .low = "-1048576", .high = "1048576",
     INTO(struct custom_number, adds), .help = "what is added to it: -4 where it counts itself"},
};
static const struct fields number_fields =
    FIELDS(number_rows, struct custom_number, .example = "e.g. `{at: 0, bytes: 4}`");

static int read_number(const struct binding *binding, const struct node *node,
                       struct custom_number *number)
{
    *number = (struct custom_number){0};
    if (!node)
        return 0;
    fields_set_defaults(&number_fields, number);
    return fields_bind(binding, &number_fields, node, number);
}

// What a reply's texts say, and which of them exclude each other.
static int read_reply(const struct binding *binding, const struct node *node, void *object)
{
    struct custom_reply *reply = object;
    struct error inner;
    const struct node *until = node_child(node, "until"), *length = node_child(node, "length"),
                      *number = node_child(node, "number");
    if (!until == !length)
        return document_error(binding->document, node, binding->err,
                              "reply: either until or length says where it ends");
    reply->until = (struct custom_mark){0};
    if (read_number(binding, length, &reply->length) < 0 ||
        read_number(binding, number, &reply->number) < 0)
        return -ERROR_INPUT;
    if (until && custom_mark_read(node_text(until), &reply->until, &inner) < 0)
        return field_misread(binding, node, "until", &inner);
    for (unsigned verdict = 0; verdict < CUSTOM_VERDICTS; verdict++) {
        const char *name = custom_verdict_names[verdict];
        const struct node *marks = node_child(node, name);
        for (size_t i = 0; i < node_count(marks); i++)
            if (custom_mark_read(node_text(node_entry(marks, i)),
                                 &reply->marks[verdict][reply->mark_count[verdict]++], &inner) < 0)
                return document_error(binding->document, node_entry(marks, i), binding->err,
                                      "%s: %s", name, inner.text);
    }
    return 0;
}

static const struct field reply_rows[] = {
    {"until", FIELD_TEXT, .otherwise = "its length says where it ends",
     .help = "what it ends with: \"\\r\\n\", \"{hex:00}\""},
    {"length", FIELD_GROUP, .fields = &number_fields, .otherwise = "`until` says where it ends",
     .help = "where it says how many bytes are behind that number"},
    {"number", FIELD_GROUP, .fields = &number_fields, .otherwise = "it has none",
     .help = "where it repeats the request's {number}; another is out of order"},
    {"most", FIELD_BYTES, "64MiB", .low = "1", .high = "1GiB",
     INTO(struct custom_reply, most_bytes), .help = "a reply of more bytes counts as oversized"},
    {"status_at", FIELD_COUNT, "0", .low = "0", .high = "256", INTO(struct custom_reply, status_at),
     .help = "how many bytes are in front of what the following begin with"},
    {"ok", FIELD_TEXTS, .low = "1", .high = "8", .otherwise = "whatever is none of the others",
     .help = "how replies begin that are as they should be"},
    {"miss", FIELD_TEXTS, .low = "1", .high = "8", .otherwise = "none",
     .help = "how replies begin that say that there is no such key"},
    {"stored", FIELD_TEXTS, .low = "1", .high = "8", .otherwise = "none",
     .help = "how replies begin that say that a value was stored"},
    {"error", FIELD_TEXTS, .low = "1", .high = "8", .otherwise = "none",
     .help = "how replies begin that are errors"},
};
static const struct fields reply_fields = FIELDS(
    reply_rows, struct custom_reply, .example = "e.g. `{until: \"\\r\\n\"}`", .check = read_reply);
_Static_assert(CUSTOM_MARKS_MAX == 8, "the rows of marks say how many there may be");
_Static_assert(CUSTOM_HEAD_BYTES >= 256 + 8 + CUSTOM_MARK_BYTES_MAX, "what is looked at is kept");
_Static_assert(CUSTOM_HEAD_BYTES == sizeof((struct reply_parser *)0)->line, "it is kept there");

static int read_custom(const struct binding *binding, const struct node *node, void *object)
{
    struct custom *custom = object;
    struct error inner;
    const struct node *requests = node_child(node, "requests"), *reply = node_child(node, "reply");
    for (size_t i = 0; i < node_count(requests); i++) {
        const struct node *key = node_entry_key(requests, i), *text = node_entry(requests, i);
        const char *name = node_text(key);
        if (field_check_name(binding, key, name, CUSTOM_NAME_BYTES) < 0)
            return -ERROR_INPUT;
        if (custom_add(custom, name, node_text(text), &inner) < 0)
            return document_error(binding->document, text, binding->err, "%s: %s", name,
                                  inner.text);
    }
    return reply ? fields_bind(binding, &reply_fields, reply, &custom->reply) : 0;
}

static const struct field custom_rows[] = {
    {"requests", FIELD_MAP, .needed = "requests: what is sent, by name: {get: \"GET {key}\\r\\n\"}",
     .help = "what requests say, by names that `mix` knows"},
    {"reply", FIELD_GROUP, .fields = &reply_fields, .otherwise = "a line",
     .help = "where a reply ends, and what it counts as"},
};
const struct fields custom_fields =
    FIELDS(custom_rows, struct custom, .example = "e.g. `{requests: {get: \"GET {key}\\r\\n\"}}`",
           .check = read_custom);

int custom_read(const struct binding *binding, const struct node *node, struct custom **out)
{
    struct custom *custom = *out = custom_alloc();
    return custom ? fields_bind(binding, &custom_fields, node, custom)
                  : field_out_of_memory(binding);
}
