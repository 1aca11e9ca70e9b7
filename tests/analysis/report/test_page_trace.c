// SPDX-License-Identifier: MIT
//
// The page of a processor trace has the spans that were decoded, in their order; where they are too
// many, those left out are the shortest and are counted.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <jansson.h>
#include <unistd.h>

#include "analysis/pt/pt_trace.h"
#include "analysis/report/page/page_trace.h"
#include "analysis/trace_export.h"
#include "tests/analysis/pt/pt_round_trip.h"
#include "tests/analysis/report/page_read.h"

struct nested_spans ARRAY_OF(struct pt_nested_span);

struct fixture {
    struct program program;
    struct pt_symbols symbols;
    struct pt_trace trace;
    struct machine machine;
    char page[64];
};

static char *program_name(void *context, uint64_t key, char *out, size_t bytes)
{
    (void)context;
    snprintf(out, bytes, "</script><b>%" PRIx64, key);
    return out;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct error err = {0};
    struct scenario one = {.seed = 9, .bytes = 20000, .psb_bytes = 1500, .faults = true};
    program_make(&f->program, 9, 0);
    f->symbols = (struct pt_symbols){&f->program, program_find, program_name};
    assert_int_equal(pt_trace_init(&f->trace, &err), 0);
    f->trace.symbols = &f->symbols;
    assert_int_equal(memory_of(&f->program, &f->trace.memory, &err), 0);
    assert_int_equal(machine_run(&f->machine, &f->program, &one), 0);
    struct pt_trace_stream *stream = pt_trace_add(&f->trace, &err);
    snprintf(stream->name, sizeof stream->name, "cpu 0");
    stream->stream.bytes = (struct pt_bytes){.bytes = writer_offset(&f->machine.writer),
                                             .data = f->machine.writer.data};
    stream->stream.recorder.nominal_ratio = NOMINAL_RATIO;
    stream->switches.items = f->machine.switches.items;
    stream->switches.count = f->machine.switches.count;
    assert_int_equal(pt_trace_scan(&f->trace, &err), 0);
    snprintf(f->page, sizeof f->page, "/tmp/pt-page-%d.html", getpid());
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    f->trace.streams.items[0]->switches.items = NULL; // the machine's
    pt_trace_free(&f->trace);
    machine_fini(&f->machine);
    unlink(f->page);
    free(f);
    return 0;
}

static int keep(void *context, const struct pt_nested_span *spans, size_t count, struct error *err)
{
    (void)err;
    for (size_t i = 0; i < count; i++)
        assert_int_equal(array_push((struct nested_spans *)context, spans[i]), 0);
    return 0;
}

// The document in the page's data element; owned by the caller.
static json_t *read_page(const char *path)
{
    char *page = page_read(path), *data = page_read_data(page);
    json_error_t problem;
    json_t *document = json_loads(data, 0, &problem);
    if (!document)
        fail_msg("the page's data at %d: %s", problem.position, problem.text);
    free(data);
    free(page);
    return document;
}

static int64_t item(const json_t *stream, const char *column, size_t i)
{
    json_t *value = json_array_get(json_object_get(stream, column), i);
    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static void the_page_has_the_spans_that_were_decoded(void **state)
{
    struct fixture *f = *state;
    struct nested_spans wanted = {0};
    struct pt_order order = {.sink = keep, .context = &wanted};
    void *contexts[] = {&order};
    struct pt_decode_options how = {.threads = 1};
    struct pt_export_files files = {.page = f->page};
    struct pt_result result;
    struct error err = {0};
    char text[PT_LABEL_BYTES];
    assert_int_equal(pt_result_decode(&f->trace, &how, pt_order_take, contexts, &result, &err), 0);
    assert_int_equal(pt_order_finish(&order, &err), 0);
    uint64_t begin = result.streams[0].first, end = result.streams[0].last;
    pt_result_free(&result);
    assert_int_equal(pt_export_decode(&f->trace, &how, &files, &result, &err), 0);

    json_t *page = read_page(f->page),
           *stream = json_array_get(json_object_get(page, "streams"), 0);
    const json_t *names = json_object_get(page, "names");
    assert_true(wanted.count > 1000);
    assert_int_equal(json_array_size(json_object_get(stream, "kind")), wanted.count);
    assert_string_equal(json_string_value(json_object_get(page, "unit")), "ticks");
    assert_int_equal(json_integer_value(json_object_get(page, "length")), end - begin);
    assert_int_equal(json_integer_value(json_object_get(stream, "left_out")), 0);
    for (size_t i = 0; i < wanted.count; i++) {
        const struct pt_span *span = &wanted.items[i].span;
        uint64_t number = span->kind == PT_SPAN_TASK ? span->task : span->function;
        const char *name =
            json_string_value(json_array_get(names, (size_t)item(stream, "label", i)));
        assert_string_equal(name,
                            pt_label(&f->trace, span->kind, number, span->function_known, text));
        assert_int_equal(item(stream, "kind", i), span->kind);
        assert_int_equal(item(stream, "depth", i), wanted.items[i].depth);
        assert_int_equal(item(stream, "task", i),
                         span->task == PT_NO_TASK ? -1 : (int64_t)span->task);
        assert_int_equal(item(stream, "from", i), span->begin - begin);
        assert_int_equal(item(stream, "span", i), span->end - span->begin);
        assert_int_equal(item(stream, "cut", i), span->cut_begin + 2 * span->cut_end);
    }
    json_decref(page);
    pt_result_free(&result);
    pt_order_free(&order);
    array_free(&wanted);
}

static struct pt_nested_span span_of(uint64_t begin, uint64_t end, uint32_t depth, uint64_t inner)
{
    return (struct pt_nested_span){.span = {.begin = begin, .end = end, .inner = inner},
                                   .depth = depth};
}

static void the_shortest_are_left_out_and_counted(void **state)
{
    (void)state;
    enum { PAIRS = 1000 };
    struct pt_page_stream stream = {.most = 100};
    struct error err;
    uint64_t self = 0;
    for (uint64_t i = 0; i < PAIRS; i++) {
        uint64_t begin = i * 10000, length = 100 + i * 7919 % 1000;
        struct pt_nested_span pair[] = {span_of(begin, begin + length, 0, length / 2),
                                        span_of(begin, begin + length / 2, 1, 0)};
        self += length;
        assert_int_equal(pt_page_take(&stream, pair, 2, &err), 0);
        assert_true(stream.spans.count <= 100);
    }
    assert_int_equal(stream.spans.count + stream.left_out, 2 * PAIRS);
    assert_true(stream.spans.count > 10);
    uint64_t open = 0;
    for (size_t i = 0; i < stream.spans.count; i++) {
        const struct pt_nested_span *kept = &stream.spans.items[i];
        uint64_t length = kept->span.end - kept->span.begin;
        assert_true(length >= stream.least);
        if (kept->depth == 0)
            open = kept->span.begin;
        else
            assert_int_equal(open, kept->span.begin); // what encloses it is there
        self -= length - kept->span.inner;
    }
    assert_int_equal(self, stream.left_out_self);
    pt_page_free(&stream);
}

static void a_page_that_cannot_be_written_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct pt_decode_options how = {.threads = 1};
    struct pt_export_files files = {.page = "/nowhere/page.html"};
    struct pt_result result;
    struct error err = {0};
    assert_true(pt_export_decode(&f->trace, &how, &files, &result, &err) < 0);
    assert_non_null(strstr(err.text, "/nowhere/page.html"));
    pt_result_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_page_has_the_spans_that_were_decoded, setup, teardown),
        cmocka_unit_test_setup_teardown(a_page_that_cannot_be_written_is_an_error, setup, teardown),
        cmocka_unit_test(the_shortest_are_left_out_and_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
