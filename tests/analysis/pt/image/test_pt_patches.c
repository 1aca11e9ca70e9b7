// SPDX-License-Identifier: MIT
//
// Kernel code that is patched while it is traced, and BPF programs that come and go: a perf.data
// made here, with a trace made by libipt's encoder, decodes to exactly what was executed, before,
// between and after the changes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "analysis/perf/perf_data.h"
#include "analysis/pt/image/pt_patches.h"
#include "analysis/pt/pt_result.h"
#include "analysis/pt/pt_trace.h"
#include "base/log_file.h"
#include "profiler/trace/bpf_code_log.h"
#include "tests/analysis/perf/perf_data_maker.h"
#include "tests/analysis/pt/pt_writer.h"

#define KERNEL     UINT64_C(0xffffffff81000000)
#define ELSEWHERE  (KERNEL + 0x40)
#define HANDLER    (KERNEL + 0x80)
#define TRAMPOLINE (KERNEL + 0x10000)

static const uint8_t nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
static const uint8_t jump[] = {0xe9, 0x3b, 0x00, 0x00, 0x00}; // to ELSEWHERE
static const uint8_t jump_rax[] = {0xff, 0xe0};
static const uint8_t trampoline[] = {0x90, 0x90, 0xff, 0xe0};

static char folder[] = "/tmp/taillight-patches-XXXXXX";
static char code_path[64], data_path[64], log_path[64];

static void write_file(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    fclose(file);
}

// The kernel's code as some copy of it has it: with the nop, or as it was patched later.
static void write_code(bool patched)
{
    uint8_t code[256];
    memset(code, 0xcc, sizeof code);
    memcpy(code, patched ? jump : nop5, sizeof nop5);
    memcpy(code + 5, jump_rax, 2);
    memcpy(code + 0x40, "\x90\x90\x90\xff\xe0", 5);
    memcpy(code + 0x80, "\x48\xcf", 2); // iretq
    write_file(code_path, code, sizeof code);
}

enum { BEFORE = 10, AFTER = 7, PATCHES = 3 };

// Executes the loop as the nop has it, is interrupted, executes it as the jump has it, visits the
// trampoline, is interrupted, and executes it as the nop has it again. *patched: when, in TSC.
static size_t write_trace(uint8_t *out, size_t bytes, uint64_t patched[PATCHES])
{
    struct pt_config config;
    pt_config_init(&config);
    config.begin = out;
    config.end = out + bytes;
    struct writer writer = {
        .encoder = pt_alloc_encoder(&config), .now = 1000000, .ratio = NOMINAL_RATIO};
    write_psb(&writer, KERNEL);
    for (int i = 0; i < BEFORE; i++, writer.now += 10)
        write_address(&writer, ppt_tip, KERNEL);
    patched[0] = writer.now + 100;
    patched[1] = writer.now + 200;
    writer.now += 1000;
    write_address(&writer, ppt_fup, KERNEL);
    write_address(&writer, ppt_tip, HANDLER);
    write_address(&writer, ppt_tip, KERNEL);
    for (int i = 0; i < AFTER; i++, writer.now += 10)
        write_address(&writer, ppt_tip, KERNEL);
    write_address(&writer, ppt_tip, TRAMPOLINE);
    write_address(&writer, ppt_tip, KERNEL);
    patched[2] = writer.now + 100;
    writer.now += 1000;
    write_address(&writer, ppt_fup, KERNEL);
    write_address(&writer, ppt_tip, HANDLER);
    write_address(&writer, ppt_tip, KERNEL);
    for (int i = 0; i < BEFORE; i++, writer.now += 10)
        write_address(&writer, ppt_tip, KERNEL);
    write_address(&writer, ppt_fup, KERNEL);
    write_address(&writer, ppt_tip_pgd, KERNEL);
    assert_false(writer.failed);
    size_t written = writer_offset(&writer);
    pt_free_encoder(writer.encoder);
    return written;
}

enum { EXECUTED = 2 * BEFORE + 1 + 5 * (AFTER + 1) + 3 + 1 + 2 * BEFORE };

static uint64_t time_of(uint64_t tsc)
{
    const struct perf_time_conversion clock = {
        .valid = true, .shift = 31, .mult = 1789569706, .zero = 1000};
    return perf_time_of_tsc(&clock, tsc);
}

static void write_recording(bool pokes)
{
    uint8_t trace[4096];
    uint64_t patched[PATCHES];
    size_t bytes = write_trace(trace, sizeof trace, patched);
    struct maker maker = make_file();
    make_pt_info(&maker, false);
    if (pokes) {
        make_text_poke(&maker, KERNEL, nop5, 5, jump, 5, time_of(patched[0]));
        make_text_poke(&maker, TRAMPOLINE, NULL, 0, trampoline, 4, time_of(patched[1]));
        make_text_poke(&maker, KERNEL, jump, 5, nop5, 5, time_of(patched[2]));
    }
    make_auxtrace(&maker, 0, 0, 0, trace, bytes);
    make_file_end(&maker);
    write_file(data_path, maker.bytes, maker.count);
    free(maker.bytes);
}

// How many spans have which name, and what was missing.
struct named_spans {
    const struct pt_trace *trace;
    unsigned first, second;
    uint64_t notes;
};

static int take_span(void *context, const struct pt_span *span, struct error *err)
{
    struct named_spans *found = context;
    const struct pt_symbols *symbols = found->trace->symbols;
    char name[64] = "";
    (void)err;
    if (span->function_known && span->kind == PT_SPAN_FUNCTION)
        symbols->name(symbols->context, span->function, name, sizeof name);
    found->first += strcmp(name, "bpf_prog_1") == 0;
    found->second += strcmp(name, "bpf_prog_2") == 0;
    return 0;
}

static void decode(struct pt_trace *trace, unsigned threads, struct named_spans *named,
                   struct pt_walk_counts *counts, uint64_t *errors)
{
    void *const contexts[] = {named};
    struct error err;
    struct pt_result result;
    const struct code_given page = {
        .path = code_path, .address = KERNEL, .has_address = true, .raw = true};
    const struct code_image_options options = {
        .given = &page, .given_count = 1, .no_host_files = true};
    const struct pt_decode_options how = {.threads = threads};
    if (pt_trace_init(trace, &err) < 0 || pt_trace_load_perf(trace, data_path, &options, &err) < 0)
        fail_msg("%s", err.text);
    named->trace = trace;
    if (pt_result_decode(trace, &how, take_span, contexts, &result, &err) < 0)
        fail_msg("%s", err.text);
    *counts = result.streams[0].counts;
    *errors = result.streams[0].error_count;
    named->notes = trace->notes_count;
    pt_result_free(&result);
    pt_trace_free(trace);
}

static void each_stretch_is_decoded_with_the_code_of_its_time(void **state)
{
    (void)state;
    struct pt_trace trace;
    struct named_spans named = {0};
    struct pt_walk_counts counts;
    uint64_t errors;
    for (int patched = 0; patched < 2; patched++) { // whenever the copy was made
        write_code(patched);
        write_recording(true);
        decode(&trace, 1, &named, &counts, &errors);
        assert_int_equal(errors, 0);
        assert_int_equal(counts.instructions, EXECUTED);
        assert_int_equal(counts.interrupts, 2);
    }
}

static void without_the_records_it_goes_wrong(void **state)
{
    (void)state;
    struct pt_trace trace;
    struct named_spans named = {0};
    struct pt_walk_counts counts;
    uint64_t errors;
    write_code(false);
    write_recording(false);
    decode(&trace, 1, &named, &counts, &errors);
    assert_true(errors > 0 || counts.instructions != EXECUTED);
}

// --- BPF programs --------------------------------------------------------------------------------

#define PROGRAM (KERNEL + 0x20000)

// Executes the program at PROGRAM, is interrupted, and executes the other one that is there then.
static size_t write_program_trace(uint8_t *out, size_t bytes, uint64_t *replaced)
{
    struct pt_config config;
    pt_config_init(&config);
    config.begin = out;
    config.end = out + bytes;
    struct writer writer = {
        .encoder = pt_alloc_encoder(&config), .now = 1000000, .ratio = NOMINAL_RATIO};
    write_psb(&writer, KERNEL);
    write_address(&writer, ppt_tip, PROGRAM);
    write_address(&writer, ppt_tip, KERNEL);
    *replaced = writer.now + 100;
    writer.now += 1000;
    write_address(&writer, ppt_fup, KERNEL);
    write_address(&writer, ppt_tip, HANDLER);
    write_address(&writer, ppt_tip, KERNEL);
    write_address(&writer, ppt_tip, PROGRAM);
    write_address(&writer, ppt_tip, KERNEL);
    writer.now += 1000;
    write_address(&writer, ppt_fup, KERNEL);
    write_address(&writer, ppt_tip_pgd, KERNEL);
    assert_false(writer.failed);
    size_t written = writer_offset(&writer);
    pt_free_encoder(writer.encoder);
    return written;
}

enum { OUTSIDE = 2 + 1 + 2, FIRST = 2, SECOND = 4 };

// with: of the programs 1 and 2, whose code the recording has (bits).
static void write_program_recording(unsigned with)
{
    static const uint8_t first[] = {0x90, 0xff, 0xe0};
    static const uint8_t second[] = {0x90, 0x90, 0x90, 0xff, 0xe0};
    uint8_t trace[4096];
    uint64_t replaced;
    size_t bytes = write_program_trace(trace, sizeof trace, &replaced);
    struct maker maker = make_file(), programs = {0};
    make_pt_info(&maker, false);
    make_ksymbol(&maker, false, PROGRAM, sizeof first, "bpf_prog_1", 0);
    make_bpf_event(&maker, true, 1, 0);
    make_bpf_event(&maker, false, 1, time_of(replaced));
    make_ksymbol(&maker, true, PROGRAM, sizeof first, "bpf_prog_1", time_of(replaced));
    make_ksymbol(&maker, false, PROGRAM, sizeof second, "bpf_prog_2", time_of(replaced) + 1);
    make_bpf_event(&maker, true, 2, time_of(replaced) + 1);
    make_auxtrace(&maker, 0, 0, 0, trace, bytes);
    make_file_end(&maker);
    make_u32(&programs, (uint32_t)__builtin_popcount(with));
    if (with & 2)
        make_bpf_program(&programs, 2, PROGRAM, second, sizeof second);
    if (with & 1)
        make_bpf_program(&programs, 1, PROGRAM, first, sizeof first);
    if (with)
        make_feature(&maker, PERF_FEATURE_BPF_PROGRAMS, &programs);
    write_file(data_path, maker.bytes, maker.count);
    free(programs.bytes);
    free(maker.bytes);
}

static void programs_come_and_go(void **state)
{
    (void)state;
    struct pt_trace trace;
    struct named_spans named = {0};
    struct pt_walk_counts counts;
    uint64_t errors;
    write_code(false);
    write_program_recording(0);
    decode(&trace, 1, &named, &counts, &errors);
    assert_true(errors > 0);
    named = (struct named_spans){0};
    write_program_recording(3);
    decode(&trace, 1, &named, &counts, &errors);
    assert_int_equal(errors, 0);
    assert_int_equal(counts.instructions, OUTSIDE + FIRST + SECOND);
    assert_int_equal(named.first, 1);
    assert_int_equal(named.second, 1);
}

// The first program's code is no guess at the second's.
static void where_nobody_has_the_code_is_a_hole(void **state)
{
    (void)state;
    struct pt_trace trace;
    struct named_spans named = {0};
    struct pt_walk_counts counts;
    uint64_t errors;
    write_code(false);
    write_program_recording(1);
    decode(&trace, 1, &named, &counts, &errors);
    assert_int_equal(errors, 1);
    assert_int_equal(counts.instructions, OUTSIDE + FIRST);
    assert_int_equal(named.first, 1);
    assert_int_equal(named.notes, 1);
}

// What a capture wrote beside the recording, the second program in two records and one malformed.
static void write_bpf_log(void)
{
    struct error err;
    const struct bpf_code records[] = {
        {PROGRAM, 2, 2, {0x90, 0x90}},
        {PROGRAM + 2, 2, 3, {0x90, 0xff, 0xe0}},
        {PROGRAM, 2, BPF_CODE_BYTES + 1, {0xcc}},
    };
    assert_int_equal(log_write(log_path, LOG_BPF_CODE, BPF_CODE_LOG_VERSION, sizeof *records,
                               records, 3, 0, &err),
                     0);
}

static void code_beside_the_recording_is_taken_in(void **state)
{
    (void)state;
    struct pt_trace trace;
    struct named_spans named = {0};
    struct pt_walk_counts counts;
    uint64_t errors;
    write_code(false);
    write_program_recording(1);
    write_bpf_log();
    decode(&trace, 1, &named, &counts, &errors);
    unlink(log_path);
    assert_int_equal(errors, 0);
    assert_int_equal(counts.instructions, OUTSIDE + FIRST + SECOND);
    assert_int_equal(named.second, 1);
    assert_int_equal(named.notes, 1); // of what was malformed
}

// --- the code in its states ----------------------------------------------------------------------

static void add_patches(struct maker *maker, struct pt_memory *memory, struct pt_patches *patches)
{
    struct perf_data data;
    struct error err;
    make_file_end(maker);
    struct perf_input input = {"made", maker->bytes, maker->count};
    if (perf_data_parse(&input, 1, NULL, &data, &err) < 0)
        fail_msg("%s", err.text);
    if (pt_patches_add(&data, memory, patches, &err) < 0)
        fail_msg("%s", err.text);
    perf_data_free(&data);
    free(maker->bytes);
}

// The code at an address in a state, '.' where there is none.
static void read_code(const struct pt_memory *memory, uint32_t state, uint64_t address, char *out,
                      size_t bytes)
{
    memset(out, '.', bytes);
    for (size_t i = 0; i < memory->sections.count; i++) {
        const struct pt_section_entry *entry = &memory->sections.items[i];
        uint64_t from = entry->address > address ? entry->address : address;
        uint64_t to = entry->address + entry->bytes;
        to = to < address + bytes ? to : address + bytes;
        if (state < entry->first_state || state >= entry->end_state || from >= to)
            continue;
        FILE *file = fopen(entry->path, "r");
        assert_non_null(file);
        assert_int_equal(fseek(file, (long)(entry->offset + (from - entry->address)), SEEK_SET), 0);
        assert_int_equal(fread(out + (from - address), 1, to - from, file), to - from);
        fclose(file);
    }
}

static void assert_code(const struct pt_memory *memory, uint32_t state, uint64_t address,
                        const char *wanted)
{
    char got[16] = "";
    read_code(memory, state, address, got, strlen(wanted));
    assert_string_equal(got, wanted);
}

static void overlapping_patches_add_up(void **state)
{
    (void)state;
    struct maker maker = make_file();
    struct pt_memory memory = {0};
    struct pt_patches patches;
    uint64_t until;
    make_text_poke(&maker, KERNEL + 2, "cd", 2, "CD", 2, 200);
    make_text_poke(&maker, KERNEL, "abCD", 4, "wxyz", 4, 300);
    make_text_poke(&maker, KERNEL + 3, "ze", 2, "ZE", 2, 300);
    make_text_poke(&maker, KERNEL + 0x20, NULL, 0, "new", 3, 400);
    make_text_poke(&maker, KERNEL + 0x20, "new", 3, NULL, 0, 500); // goes away: nothing to do
    add_patches(&maker, &memory, &patches);
    assert_int_equal(patches.times.count, 3);
    assert_int_equal(pt_patches_state(&patches, 0, &until), 0);
    assert_int_equal(until, 200);
    assert_int_equal(pt_patches_state(&patches, 299, &until), 1);
    assert_int_equal(pt_patches_state(&patches, 300, &until), 2);
    assert_int_equal(until, 400);
    assert_int_equal(pt_patches_state(&patches, 1000, &until), 3);
    assert_true(until == UINT64_MAX);
    static const char *const wanted[] = {"abcde.", "abCDe.", "wxyZE.", "wxyZE."};
    for (uint32_t i = 0; i < 4; i++) {
        assert_code(&memory, i, KERNEL, wanted[i]);
        assert_code(&memory, i, KERNEL + 0x20, i < 3 ? "...." : "new.");
    }
    pt_patches_free(&patches);
    pt_memory_free(&memory);
}

static void add_old_code(struct pt_memory *memory)
{
    struct error err;
    if (pt_memory_add_bytes(memory, "oldold", 6, KERNEL, PT_SPACE_ALL, &err) < 0 ||
        pt_memory_add_bytes(memory, "OLD", 3, KERNEL + 3, PT_SPACE_ALL, &err) < 0)
        fail_msg("%s", err.text);
}

static void what_came_unknown_is_no_code_any_more(void **state)
{
    (void)state;
    struct maker maker = make_file();
    struct pt_memory memory = {0};
    struct pt_patches patches;
    make_ksymbol(&maker, false, KERNEL, 6, "bpf_prog_there", 0); // when the recording began
    make_ksymbol(&maker, true, KERNEL, 6, "bpf_prog_there", 100);
    make_ksymbol(&maker, false, KERNEL + 1, 3, "bpf_prog_unknown", 200);
    make_ksymbol(&maker, true, KERNEL + 1, 3, "bpf_prog_unknown", 300);
    make_ksymbol(&maker, false, KERNEL + 2, 4, "trampoline", 400);
    make_text_poke(&maker, KERNEL + 2, NULL, 0, "XY", 2, 500);
    make_ksymbol(&maker, false, KERNEL + 2, 1, "bpf_prog_unknown_too", 600);
    add_old_code(&memory);
    add_patches(&maker, &memory, &patches);
    assert_int_equal(patches.times.count, 4);
    assert_int_equal(patches.unknown, 2);
    assert_int_equal(patches.left_out, 0);
    assert_code(&memory, 0, KERNEL, "oldOLD");
    assert_code(&memory, 1, KERNEL, "o...LD");
    assert_code(&memory, 2, KERNEL, "o.....");
    assert_code(&memory, 3, KERNEL, "o.XY..");
    assert_code(&memory, 4, KERNEL, "o..Y..");
    pt_patches_free(&patches);
    pt_memory_free(&memory);
}

static void a_function_may_be_too_large(void **state)
{
    (void)state;
    struct maker maker = make_file();
    struct pt_memory memory = {0};
    struct pt_patches patches;
    make_ksymbol(&maker, false, KERNEL, UINT32_MAX, "bpf_prog_huge", 100);
    make_ksymbol(&maker, false, UINT64_MAX - 1, 8, "bpf_prog_around", 200);
    add_old_code(&memory);
    add_patches(&maker, &memory, &patches);
    assert_int_equal(patches.left_out, 1);
    assert_int_equal(patches.unknown, 0);
    assert_code(&memory, 0, KERNEL, "oldOLD");
    pt_patches_free(&patches);
    pt_memory_free(&memory);
}

static void there_may_be_too_many(void **state)
{
    (void)state;
    struct maker maker = make_file();
    struct pt_memory memory = {0};
    struct pt_patches patches;
    for (uint32_t i = 0; i < PT_STATES_MOST + 10; i++)
        make_text_poke(&maker, KERNEL + i % 7 * 8, "a", 1, "b", 1, 100 + i);
    add_patches(&maker, &memory, &patches);
    assert_int_equal(patches.times.count, PT_STATES_MOST - 1);
    assert_int_equal(patches.left_out, 11);
    pt_patches_free(&patches);
    pt_memory_free(&memory);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    snprintf(code_path, sizeof code_path, "%s/code", folder);
    snprintf(data_path, sizeof data_path, "%s/perf.data", folder);
    snprintf(log_path, sizeof log_path, "%s/" BPF_CODE_LOG_NAME, folder);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_stretch_is_decoded_with_the_code_of_its_time),
        cmocka_unit_test(without_the_records_it_goes_wrong),
        cmocka_unit_test(programs_come_and_go),
        cmocka_unit_test(where_nobody_has_the_code_is_a_hole),
        cmocka_unit_test(code_beside_the_recording_is_taken_in),
        cmocka_unit_test(overlapping_patches_add_up),
        cmocka_unit_test(what_came_unknown_is_no_code_any_more),
        cmocka_unit_test(a_function_may_be_too_large),
        cmocka_unit_test(there_may_be_too_many),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(code_path);
    unlink(data_path);
    rmdir(folder);
    return failed;
}
