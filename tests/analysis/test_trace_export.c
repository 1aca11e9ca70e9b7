// SPDX-License-Identifier: MIT
//
// What is written of a trace is what was decoded: every slice of the Perfetto file is a span and
// the other way round, stacks are nested as their spans, and times add up.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <unistd.h>

#include "analysis/export/pt_perfetto.h"
#include "analysis/pt/pt_result.h"
#include "analysis/pt/pt_trace.h"
#include "analysis/pt/pt_strip.h"
#include "analysis/trace_export.h"
#include "tests/analysis/export/perfetto_reader.h"
#include "tests/analysis/pt/pt_round_trip.h"
#include "tests/skip.h"

enum { CPUS = 3 };

struct fixture {
    struct program program;
    struct pt_symbols symbols;
    struct pt_trace trace;
    struct machine machines[CPUS];
    struct truth_spans spans[CPUS]; // as they ended
    char perfetto[64], folded[64], csv[64];
};

static char *program_name(void *context, uint64_t key, char *out, size_t bytes)
{
    (void)context;
    snprintf(out, bytes, "function %" PRIx64, key);
    return out;
}

static void make_trace(struct fixture *f, uint64_t seed)
{
    struct error err = {0};
    program_make(&f->program, seed, 0);
    f->symbols = (struct pt_symbols){&f->program, program_find, program_name};
    assert_int_equal(pt_trace_init(&f->trace, &err), 0);
    f->trace.symbols = &f->symbols;
    assert_int_equal(memory_of(&f->program, &f->trace.memory, &err), 0);
    for (uint32_t i = 0; i < CPUS; i++) {
        struct scenario one = {
            .seed = seed * CPUS + i, .bytes = 20000, .psb_bytes = 1500, .faults = true};
        struct machine *machine = &f->machines[i];
        assert_int_equal(machine_run(machine, &f->program, &one), 0);
        struct pt_trace_stream *stream = pt_trace_add(&f->trace, &err);
        assert_non_null(stream);
        snprintf(stream->name, sizeof stream->name, "cpu %u", i);
        stream->cpu = i;
        stream->stream.bytes = (struct pt_bytes){.bytes = writer_offset(&machine->writer),
                                                 .data = machine->writer.data};
        stream->stream.recorder.nominal_ratio = NOMINAL_RATIO;
        stream->switches.items = machine->switches.items;
        stream->switches.count = machine->switches.count;
    }
    assert_int_equal(pt_trace_scan(&f->trace, &err), 0);
    for (uint32_t task = 1; task <= TASKS; task++) {
        struct pt_task_name name = {.task = task, .process = task == 3 ? 2 : task};
        snprintf(name.name, sizeof name.name, "task%u", task);
        array_push(&f->trace.tasks, name);
    }
}

static int setup(void **state, uint64_t seed)
{
    struct fixture *f = calloc(1, sizeof *f);
    snprintf(f->perfetto, sizeof f->perfetto, "/tmp/pt-export-%d.pftrace", getpid());
    snprintf(f->folded, sizeof f->folded, "/tmp/pt-export-%d.folded", getpid());
    snprintf(f->csv, sizeof f->csv, "/tmp/pt-export-%d.csv", getpid());
    make_trace(f, seed);
    *state = f;
    return 0;
}

static int setup_first(void **state)
{
    return setup(state, 5);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (uint32_t i = 0; i < CPUS; i++) {
        f->trace.streams.items[i]->switches.items = NULL; // the machine's
        array_free(&f->spans[i]);
    }
    pt_trace_free(&f->trace);
    for (uint32_t i = 0; i < CPUS; i++)
        machine_fini(&f->machines[i]);
    unlink(f->perfetto);
    unlink(f->folded);
    unlink(f->csv);
    free(f);
    return 0;
}

// --- Perfetto ----------------------------------------------------------------------------------

struct expected {
    uint64_t begin, end;
    char name[120];
    uint64_t core_track, thread_track;
    bool on_core, seen;
};
struct expected_spans ARRAY_OF(struct expected);

static int compare_expected(const void *left, const void *right)
{
    const struct expected *a = left, *b = right;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end)
        return a->end < b->end ? -1 : 1;
    return strcmp(a->name, b->name);
}

static struct expected_spans expect_spans(struct fixture *f)
{
    struct expected_spans all = {0};
    for (size_t s = 0; s < CPUS; s++)
        for (size_t i = 0; i < f->spans[s].count; i++) {
            const struct pt_span *span = &f->spans[s].items[i];
            struct expected one = {.begin = span->begin,
                                   .end = span->end,
                                   .core_track = pt_perfetto_core_track(s),
                                   .thread_track = pt_perfetto_thread_track(span->task),
                                   .on_core = span->kind == PT_SPAN_TASK ||
                                              span->kind == PT_SPAN_LOST ||
                                              span->kind == PT_SPAN_INTERRUPT};
            char text[PT_LABEL_BYTES];
            uint64_t number = span->kind == PT_SPAN_TASK ? span->task : span->function;
            snprintf(one.name, sizeof one.name, "%s",
                     pt_label(&f->trace, span->kind, number, span->function_known, text));
            array_push(&all, one);
        }
    qsort(all.items, all.count, sizeof *all.items, compare_expected);
    return all;
}

// Finds the span that a slice shows, and takes it away.
static void take_expected(struct expected_spans *all, const struct read_slice *slice)
{
    size_t low = 0, high = all->count;
    struct expected wanted = {.begin = slice->begin, .end = slice->end};
    memcpy(wanted.name, slice->name, sizeof wanted.name);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_expected(&all->items[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < all->count && compare_expected(&all->items[low], &wanted) == 0; low++) {
        struct expected *one = &all->items[low];
        bool core = slice->track == one->core_track;
        if (one->seen || (!core && (one->on_core || slice->track != one->thread_track)))
            continue;
        one->seen = true;
        return;
    }
    fail_msg("no span for slice %s [%" PRIu64 ", %" PRIu64 "] of track %" PRIx64, slice->name,
             slice->begin, slice->end, slice->track);
}

static void check_tracks(const struct read_trace *read)
{
    unsigned cores = 0, threads = 0;
    for (size_t i = 0; i < read->tracks.count; i++) {
        const struct read_track *track = &read->tracks.items[i];
        if (track->thread) {
            char name[32];
            snprintf(name, sizeof name, "task%u", track->thread);
            assert_string_equal(track->name, name);
            assert_true(track->track == pt_perfetto_thread_track(track->thread));
            threads++;
        } else if (strncmp(track->name, "cpu ", 4) == 0) {
            assert_true(track->track == pt_perfetto_core_track(cores++));
            assert_int_equal(track->parent, 1);
        }
    }
    assert_int_equal(cores, CPUS);
    assert_int_equal(threads, TASKS);
}

static void every_slice_is_a_span(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    for (unsigned threads = 1; threads <= 4; threads += 3) {
        struct pt_decode_options how = {.threads = threads, .piece_bytes = 2000};
        struct pt_export_files files = {.perfetto = f->perfetto};
        struct pt_result result;
        void *contexts[CPUS] = {&f->spans[0], &f->spans[1], &f->spans[2]};
        for (size_t i = 0; i < CPUS; i++)
            f->spans[i].count = 0;
        assert_int_equal(pt_result_decode(&f->trace, &how, trip_take_span, contexts, &result, &err),
                         0);
        pt_result_free(&result);
        assert_int_equal(pt_export_decode(&f->trace, &how, &files, &result, &err), 0);
        pt_result_free(&result);
        struct read_trace read = read_perfetto(f->perfetto);
        if (read.wrong)
            fail_msg("%s", read.wrong);
        assert_int_equal(read.clock_snapshots, 1);
        assert_int_equal(read.sequences_begun, CPUS);
        check_tracks(&read);
        struct expected_spans expected = expect_spans(f);
        assert_true(expected.count > 1000);
        assert_int_equal(read.slices.count, expected.count);
        size_t deepest = 0, runs = 0;
        for (size_t i = 0; i < read.slices.count; i++) {
            const struct read_slice *slice = &read.slices.items[i];
            take_expected(&expected, slice);
            deepest = slice->depth > deepest ? slice->depth : deepest;
            bool task = strcmp(slice->category, "task") == 0;
            assert_int_equal(slice->flow != 0, task);
            runs += task;
        }
        assert_true(deepest > 5 && runs > 10);
        print_message("%zu slices, %zu deep, %zu runs of tasks\n", read.slices.count, deepest,
                      runs);
        array_free(&expected);
        read_trace_free(&read);
    }
}

static void protoc_reads_it(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct pt_decode_options how = {0};
    struct pt_export_files files = {.perfetto = f->perfetto};
    struct pt_result result;
    char command[256];
    if (system("command -v protoc >/dev/null") != 0)
        skip_case("protoc is missing (apt-get install protobuf-compiler)");
    assert_int_equal(pt_export_decode(&f->trace, &how, &files, &result, &err), 0);
    pt_result_free(&result);
    snprintf(command, sizeof command, "protoc --decode_raw < %s | grep -c '^1 {' > %s", f->perfetto,
             f->csv);
    assert_int_equal(system(command), 0);
    struct read_trace read = read_perfetto(f->perfetto);
    FILE *counted = fopen(f->csv, "r");
    unsigned long packets = 0;
    assert_non_null(counted);
    assert_int_equal(fscanf(counted, "%lu", &packets), 1);
    fclose(counted);
    assert_int_equal(packets, read.packets);
    read_trace_free(&read);
}

static void a_file_that_cannot_be_written_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct pt_decode_options how = {0};
    struct pt_result result;
    const struct pt_export_files wrong[] = {{.perfetto = "/nowhere/at/all"},
                                            {.folded = "/nowhere/at/all"},
                                            {.csv = "/nowhere/at/all"},
                                            {.folded = "/dev/full"},
                                            {.csv = "/dev/full"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_true(pt_export_decode(&f->trace, &how, &wrong[i], &result, &err) < 0);
        assert_non_null(strstr(err.text, "cannot "));
        pt_result_free(&result);
    }
}

// --- stacks and functions ----------------------------------------------------------------------

static void stacks_and_functions_add_up(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct pt_decode_options how = {0};
    struct pt_export_files files = {.folded = f->folded, .csv = f->csv};
    struct pt_result result;
    char line[8192];
    double folded = 0, listed = 0, wanted = 0, lost = 0;
    assert_int_equal(pt_export_decode(&f->trace, &how, &files, &result, &err), 0);
    for (size_t s = 0; s < CPUS; s++)
        for (size_t i = 0; i < result.streams[s].functions.list.count; i++)
            wanted += (double)result.streams[s].functions.list.items[i].self;
    FILE *file = fopen(f->folded, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        char *number = strrchr(line, ' ');
        assert_non_null(number);
        assert_int_equal(strncmp(line, "task", 4), 0); // every stack begins with its task
        *(strstr(line, "[lost]") ? &lost : &folded) += strtod(number, NULL);
    }
    fclose(file);
    assert_true(lost > 0);
    file = fopen(f->csv, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(line, "process,command,function,space,calls,total,self\n");
    while (fgets(line, sizeof line, file)) {
        unsigned process;
        assert_int_equal(sscanf(line, "%u,task%u,", &process, &process), 2);
        assert_true(process == 1 || process == 2);
        listed += strtod(strrchr(line, ',') + 1, NULL);
    }
    fclose(file);
    assert_true(folded == wanted);
    assert_true(listed == wanted);
    struct pt_function_list all = pt_functions_by_process(&result);
    size_t first = pt_functions_of_process(&all, 0);
    assert_true(first > 0 && first < all.count);
    assert_true(pt_functions_time(&all, 0, first) >=
                pt_functions_time(&all, first, all.count - first));
    array_free(&all);
    pt_result_free(&result);
}

// A letter for each CPU and column, and what it stands for.
static void a_terminal_shows_who_ran(void **state)
{
    struct fixture *f = *state;
    struct error err = {0};
    struct pt_decode_options how = {0};
    char *text = NULL;
    size_t bytes = 0, lines = 0;
    struct pt_export_files files = {.strips = open_memstream(&text, &bytes)};
    struct pt_result result;
    assert_non_null(files.strips);
    assert_int_equal(pt_export_decode(&f->trace, &how, &files, &result, &err), 0);
    assert_int_equal(fclose(files.strips), 0);
    for (const char *at = text; (at = strstr(at, "cpu ")); at++, lines++) {
        const char *begin = strchr(at, '|') + 1;
        assert_int_equal(strcspn(begin, "|"), PT_STRIP_COLUMNS);
        assert_true(strspn(begin, " ABC~") >= PT_STRIP_COLUMNS);
        assert_true(strcspn(begin, "ABC") < PT_STRIP_COLUMNS);
    }
    assert_int_equal(lines, CPUS);
    assert_non_null(strstr(text, ", A task"));
    assert_non_null(strstr(text, ", C task"));
    free(text);
    pt_result_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_slice_is_a_span, setup_first, teardown),
        cmocka_unit_test_setup_teardown(protoc_reads_it, setup_first, teardown),
        cmocka_unit_test_setup_teardown(a_file_that_cannot_be_written_is_an_error, setup_first,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_terminal_shows_who_ran, setup_first, teardown),
        cmocka_unit_test_setup_teardown(stacks_and_functions_add_up, setup_first, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
