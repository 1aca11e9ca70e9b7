// SPDX-License-Identifier: MIT
//
// Code images of real recordings, whose files came with them: the code that is found is what the
// process's core dump has at those addresses.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>
#include <cmocka.h>

#include "analysis/code/code_build.h"
#include "analysis/code/code_elf.h"
#include "analysis/code/symbols.h"
#include "analysis/perf/perf_data.h"
#include "tests/analysis/perf/capture_folder.h"

static struct capture_folder hase;

struct opened {
    struct perf_data data;
    struct perf_maps maps;
    struct code_images images;
};

static void open_recording(struct opened *opened, const char *path,
                           const struct code_image_options *options)
{
    struct error err;
    if (perf_data_open(path, NULL, &opened->data, &err) < 0 ||
        perf_maps_build(&opened->data, 0, &opened->maps, &err) < 0 ||
        code_images_build(&opened->maps, options, &opened->images, &err) < 0)
        fail_msg("%s", err.text);
}

static void close_recording(struct opened *opened)
{
    code_images_free(&opened->images);
    perf_maps_free(&opened->maps);
    perf_data_free(&opened->data);
}

static void read_at(const char *path, uint64_t offset, uint8_t *bytes, size_t count)
{
    int file = open(path, O_RDONLY);
    assert_true(file >= 0);
    assert_int_equal(pread(file, bytes, count, (off_t)offset), count);
    close(file);
}

static void the_program_is_what_its_core_dump_holds(void **state)
{
    (void)state;
    enum { PID = 11181 };
    char path[512], symfs[512], core[512];
    snprintf(path, sizeof path, "%s/control_flow-20180515T180451/perf.data.1", hase.path);
    snprintf(symfs, sizeof symfs, "%s/control_flow-20180515T180451/binaries", hase.path);
    snprintf(core, sizeof core, "%s/control_flow-20180515T180451/core.1", hase.path);
    struct opened opened;
    struct code_given given = {.path = core};
    struct code_image_options options = {
        .symfs = symfs, .no_host_files = true, .given = &given, .given_count = 1};
    open_recording(&opened, path, &options);
    const struct code_space *space = code_images_at(&opened.images, PID, UINT64_MAX - 1);
    const struct code_section *section = code_space_find(space, 0x400000);
    assert_non_null(section);
    const struct code_file *program = &opened.images.files.items[section->file];
    assert_int_equal(program->kind, CODE_ELF);
    assert_int_equal(section->bytes, 0x1000);

    struct elf_facts facts;
    const char *why;
    bool missing;
    assert_int_equal(elf_facts_read(core, &facts, &why, &missing), 0);
    uint8_t ours[0x1000], theirs[0x1000];
    size_t compared = 0;
    for (size_t i = 0; i < facts.loads.count; i++) {
        const struct elf_load *load = &facts.loads.items[i];
        if (load->address != section->address)
            continue;
        assert_true(load->bytes >= sizeof theirs);
        read_at(core, load->file_offset, theirs, sizeof theirs);
        read_at(program->path, section->file_offset, ours, sizeof ours);
        assert_memory_equal(ours, theirs, sizeof ours);
        compared++;
    }
    elf_facts_free(&facts);
    assert_int_equal(compared, 1);

    // The vdso comes from the core dump; what is nowhere is said.
    uint64_t vdso = 0;
    for (size_t i = 0; i < opened.maps.spaces.count; i++)
        for (size_t k = 0; k < opened.maps.spaces.items[i].mappings.count; k++)
            if (strcmp(opened.maps.spaces.items[i].mappings.items[k].path, "[vdso]") == 0)
                vdso = opened.maps.spaces.items[i].mappings.items[k].begin;
    section = code_space_find(space, vdso);
    assert_non_null(section);
    assert_int_equal(opened.images.files.items[section->file].kind, CODE_CORE);
    assert_int_equal(opened.images.problems[CODE_NEEDS_KCORE], 1);

    struct error err;
    struct symbols *symbols = symbols_alloc(&opened.data, &opened.images, NULL, NULL, &err);
    struct symbol_hit hit;
    uint64_t main_at = 0;
    assert_non_null(symbols);
    if (elf_symbol_value(program->path, "main", &main_at)) {
        assert_true(symbols_find(symbols, PID, UINT64_MAX - 1, main_at, &hit));
        assert_string_equal(name_pool_text(symbols_names(symbols), hit.name), "main");
        assert_int_equal(hit.begin, main_at);
    }
    assert_true(main_at != 0);
    symbols_free(symbols);
    close_recording(&opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_program_is_what_its_core_dump_holds),
    };
    bool here = unpack_capture(&hase, "perf-data-hase.tar.xz");
    int failed = here ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
    remove_capture(&hase);
    return failed;
}
