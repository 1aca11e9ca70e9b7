// SPDX-License-Identifier: MIT
//
// A table of keys: what it binds, what it says of mistakes and where, what is told of it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/fields.h"

enum colour { RED, GREEN };

struct part {
    char name[FIELD_NAME_BYTES];
    uint16_t port;
    struct word_array words;
};

struct piece {
    double share;
};

struct whole {
    char title[9];
    const char *text;
    enum colour colour;
    bool on;
    int nice;
    uint64_t count, time_ns, bytes;
    struct {
        double rate;
    } load;
    struct ARRAY_OF(struct part) parts;
    struct ARRAY_OF(struct piece) pieces;
};

static const char *colour_name(unsigned index)
{
    static const char *const names[] = {"red", "green", NULL};
    return names[index];
}

static int check_part(const struct binding *binding, const struct node *node, void *object)
{
    const struct part *part = object;
    if (part->port != 13)
        return 0;
    return document_error(binding->document, node_child(node, "port"), binding->err,
                          "port: %s is not for 13", part->name);
}

static const struct field part_rows[] = {
    {"port", FIELD_COUNT, "80", .low = "1", .high = "65535", INTO(struct part, port), .help = "p"},
    {"words", FIELD_TEXTS, .low = "1", .high = "3", INTO(struct part, words), .help = "w"},
};
static const struct fields part_fields = FIELDS(part_rows, struct part, .check = check_part);

static const struct field piece_rows[] = {
    {"share", FIELD_NUMBER, .low = "0", .low_excluded = true, .high = "1", .needed = "no share",
     .outside = "is no share", INTO(struct piece, share), .help = "of it"},
};
static const struct fields piece_fields =
    FIELDS(piece_rows, struct piece, .example = "e.g. `{share: 1}`");

static const struct field load_rows[] = {
    {"rate", FIELD_NUMBER, "1.5k", .offset = 0, .size = sizeof(double), .help = "a rate"},
    {"connections", FIELD_COUNT, .otherwise = "many", .help = "of them"},
};
static const struct fields load_fields = FIELDS(load_rows, double);

static const struct field whole_rows[] = {
    {"title", FIELD_NAME, .needed = "`title` is missing", INTO(struct whole, title), .help = "t"},
    {"text", FIELD_TEXT, "none", INTO(struct whole, text), .help = "a text"},
    {"colour", FIELD_WORD, "green", .word = colour_name, INTO(struct whole, colour), .help = "c"},
    {"on", FIELD_SWITCH, "yes", INTO(struct whole, on), .help = "a switch"},
    {"nice", FIELD_INTEGER, "-3", .low = "-20", .high = "19", INTO(struct whole, nice),
     .help = "a priority"},
    {"count", FIELD_COUNT, "2k", INTO(struct whole, count), .help = "a count"},
    {"time", FIELD_DURATION, "5us", .low = "1us", .high = "1s", INTO(struct whole, time_ns),
     .help = "a time"},
    {"bytes", FIELD_BYTES, "1KiB", .low = "1KiB", INTO(struct whole, bytes), .help = "a size"},
    {"load", FIELD_GROUP, .fields = &load_fields, INTO(struct whole, load), .help = "a load"},
    {"parts", FIELD_MAP, .fields = &part_fields, INTO(struct whole, parts), .help = "parts"},
    {"pieces", FIELD_LIST, .fields = &piece_fields, INTO(struct whole, pieces), .help = "pieces"},
    {"steps", FIELD_MAP_LISTS, .fields = &piece_fields, .help = "lists by name"},
    {"rest", FIELD_ANYTHING, .help = "anything"},
};
static const struct fields whole_fields = FIELDS(whole_rows, struct whole);

static int read_text(const char *text, struct document **document, struct whole *whole,
                     struct error *err)
{
    *whole = (struct whole){.text = NULL};
    assert_int_equal(document_parse("x.yaml", text, strlen(text), document, err), 0);
    struct binding binding = {.document = *document, .root = &whole_fields, .err = err};
    fields_set_defaults(&whole_fields, whole);
    return fields_read(&binding, &whole_fields, document_root(*document), whole);
}

static void refuse(const char *text, const char *sentence)
{
    struct document *document;
    struct whole whole;
    struct error err = {0};
    assert_int_equal(read_text(text, &document, &whole, &err), -ERROR_INPUT);
    assert_int_equal(err.kind, ERROR_INPUT);
    assert_string_equal(err.text, sentence);
    fields_free(&whole_fields, &whole);
    document_free(document);
}

static void defaults_are_those_of_the_rows(void **state)
{
    (void)state;
    struct document *document;
    struct whole whole;
    struct error err = {0};
    assert_int_equal(read_text("title: a\nparts: {p: {}}\n", &document, &whole, &err), 0);
    assert_string_equal(whole.title, "a");
    assert_string_equal(whole.text, "none");
    assert_int_equal(whole.colour, GREEN);
    assert_true(whole.on);
    assert_int_equal(whole.nice, -3);
    assert_int_equal(whole.count, 2000);
    assert_int_equal(whole.time_ns, 5000);
    assert_int_equal(whole.bytes, 1024);
    assert_true(whole.load.rate == 1500);
    assert_int_equal(whole.parts.items[0].port, 80);
    assert_int_equal(whole.pieces.count, 0);
    fields_free(&whole_fields, &whole);
    document_free(document);
}

static void everything_lands_in_its_member(void **state)
{
    (void)state;
    struct document *document;
    struct whole whole;
    struct error err = {0};
    assert_int_equal(read_text("title: a.b-c\ntext: x y\ncolour: red\non: off\nnice: -20\n"
                               "count: 7\ntime: 1s\nbytes: 2MiB\nload: {rate: 3}\n"
                               "parts: {p: {port: 1}, q: {words: [a, b]}}\n"
                               "pieces: [{share: 1}, {share: 0.5}]\nrest: [{}]\n",
                               &document, &whole, &err),
                     0);
    assert_string_equal(whole.title, "a.b-c");
    assert_string_equal(whole.text, "x y");
    assert_int_equal(whole.colour, RED);
    assert_false(whole.on);
    assert_int_equal(whole.nice, -20);
    assert_int_equal(whole.count, 7);
    assert_int_equal(whole.time_ns, 1000000000);
    assert_int_equal(whole.bytes, 2 << 20);
    assert_true(whole.load.rate == 3);
    assert_int_equal(whole.parts.count, 2);
    assert_string_equal(whole.parts.items[1].name, "q");
    assert_int_equal(whole.parts.items[0].port, 1);
    assert_string_equal(whole.parts.items[1].words.items[1], "b");
    assert_null(whole.parts.items[1].words.items[2]);
    assert_true(whole.pieces.items[1].share == 0.5);
    json_t *said = fields_values(json_object(), &whole_fields, &whole);
    json_t *part = fields_values(json_object(), &part_fields, &whole.parts.items[1]);
    json_t *expected = json_pack("{s:s,s:s,s:s,s:b,s:i,s:i,s:i,s:i}", "title", "a.b-c", "text",
                                 "x y", "colour", "red", "on", 0, "nice", -20, "count", 7,
                                 "time_ns", 1000000000, "bytes_bytes", 2 << 20);
    assert_true(json_equal(said, expected));
    assert_int_equal(json_integer_value(json_object_get(part, "port")), 80);
    assert_int_equal(json_array_size(json_object_get(part, "words")), 2);
    json_decref(said);
    json_decref(part);
    json_decref(expected);
    fields_free(&whole_fields, &whole);
    assert_null(whole.parts.items);
    document_free(document);
}

static void wrong_forms_are_placed(void **state)
{
    (void)state;
    refuse("- a\n", "x.yaml:1:1: the document takes keys with values, not a list");
    refuse("title: [a]\n", "x.yaml:1:8: `title` takes a single value, not a list");
    refuse("parts: [a]\n", "x.yaml:1:8: `parts` takes names: {a: ..., b: ...}, not a list");
    refuse("parts: {a: 5}\n", "x.yaml:1:12: `a` takes keys with values, not a single value");
    refuse("pieces: {}\n",
           "x.yaml:1:9: `pieces` takes a list: [{...}, {...}], not keys with values");
    refuse("pieces: [1]\n", "x.yaml:1:10: `pieces` takes keys with values, not a single value, "
                            "e.g. `{share: 1}`");
    refuse("steps: {a: {}}\n",
           "x.yaml:1:12: `a` takes a list: [{...}, {...}], not keys with values");
    refuse("colour: rad\n", "x.yaml:1:9: `rad` is not known here; did you mean `red`?");
    refuse("on: perhaps\n",
           "x.yaml:1:5: `perhaps` is not known here; it may be: true, false, yes, no, on, off");
    refuse("parts: {a: {words: []}}\n", "x.yaml:1:20: `words` takes 1 to 3 values, not 0");
    refuse("parts: {a: {words: [[]]}}\n",
           "x.yaml:1:21: `words` takes single values in its list, not a list");
}

static void nothing_takes_more_than_anybody_would_write(void **state)
{
    (void)state;
    char text[2000] = "title: a\nrest: {}\npieces: [";
    for (int i = 0; i < 65; i++)
        strcat(text, "{share: 1}, ");
    strcat(text, "]\n");
    refuse(text, "x.yaml:3:9: `pieces` takes 0 to 64 values, not 65");
}

static void wrong_values_are_placed(void **state)
{
    (void)state;
    refuse("text: a\n", "x.yaml:1:1: `title` is missing");
    refuse("title: a/b\n", "x.yaml:1:8: `a/b` is not a name: a letter or digit, then letters, "
                           "digits, `-`, `_`, `.`, 8 at most");
    refuse("title: a\nnice: 20\n", "x.yaml:2:7: nice: 20 is outside -20 to 19");
    refuse("title: a\nnice: low\n", "x.yaml:2:7: nice: `low` is not a number");
    refuse("title: a\ntime: 2s\n", "x.yaml:2:7: time: 2s is outside 1us to 1s");
    refuse("title: a\ntime: 2\n",
           "x.yaml:2:7: time: \"2\" is not a duration (write it like 10us, 250ms or 10s)");
    refuse("title: a\nbytes: 3\n", "x.yaml:2:8: bytes: 3 is less than 1KiB");
    refuse("title: a\nparts: {p: {port: 65536}}\n",
           "x.yaml:2:19: port: 65536 is outside 1 to 65535");
    refuse("title: a\nparts: {p: {port: 13}}\n", "x.yaml:2:19: port: p is not for 13");
    refuse("title: a\npieces: [{share: 0}]\n", "x.yaml:2:18: share: 0 is no share");
    refuse("title: a\npieces: [{}]\n", "x.yaml:2:10: no share");
}

static void a_misplaced_key_is_shown_its_place(void **state)
{
    (void)state;
    refuse("tilte: a\n", "x.yaml:1:1: unknown key `tilte`; did you mean `title`?");
    refuse("conections: 3\n",
           "x.yaml:1:1: unknown key `conections`; did you mean `load.connections`?");
    refuse("parts: {p: {rate: 1}}\n", "x.yaml:1:13: unknown key `rate`; did you mean `load.rate`?");
    refuse("load: {port: 1}\n", "x.yaml:1:8: unknown key `port`; did you mean `parts.NAME.port`?");
    refuse("load: {share: 1}\n", "x.yaml:1:8: unknown key `share`; did you mean `pieces[].share`?");
    refuse("load: {title: a}\n",
           "x.yaml:1:8: unknown key `title`; did you mean `title` of the whole file?");
    refuse("load: {zzz: 1}\n", "x.yaml:1:8: unknown key `zzz`; it may be: rate, connections");
}

static void the_table_is_told(void **state)
{
    (void)state;
    json_t *schema = fields_schema(&whole_fields);
    json_t *properties = json_object_get(schema, "properties");
    json_t *time = json_object_get(properties, "time"), *load = json_object_get(properties, "load");
    assert_int_equal(json_object_size(properties), sizeof whole_rows / sizeof *whole_rows);
    assert_string_equal(json_string_value(json_object_get(time, "description")),
                        "a time, 1us to 1s [5us]");
    assert_string_equal(json_string_value(json_object_get(time, "default")), "5us");
    assert_non_null(json_object_get(json_object_get(load, "properties"), "connections"));
    json_decref(schema);
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    fields_print_help(&whole_fields, out);
    fclose(out);
    assert_non_null(strstr(text, "colour: red|green         c [green]\n"));
    assert_non_null(strstr(text, "load:                     a load\n"
                                 "  rate: NUMBER            a rate [1.5k]\n"
                                 "  connections: COUNT      of them [many]\n"));
    assert_non_null(strstr(text, "  NAME:\n    port: COUNT           p, 1 to 65535 [80]\n"));
    assert_non_null(strstr(text, "  - share: NUMBER         of it; needed\n"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_the_rows),
        cmocka_unit_test(everything_lands_in_its_member),
        cmocka_unit_test(wrong_forms_are_placed),
        cmocka_unit_test(nothing_takes_more_than_anybody_would_write),
        cmocka_unit_test(wrong_values_are_placed),
        cmocka_unit_test(a_misplaced_key_is_shown_its_place),
        cmocka_unit_test(the_table_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
