// SPDX-License-Identifier: MIT
//
// Mapping events replayed into address spaces.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "analysis/perf/perf_data_maps.h"
#include "analysis/perf/perf_data.h"
#include "tests/analysis/perf/perf_data_maker.h"

enum { EXECUTABLE = PROT_READ | PROT_EXEC };

static struct maker maker;
static struct perf_data data;
static struct perf_maps maps;

static int begin(void **state)
{
    (void)state;
    maker = make_file();
    return 0;
}

static void replay(uint64_t limit)
{
    make_file_end(&maker);
    struct perf_input input = {"made", maker.bytes, maker.count};
    struct error err;
    if (perf_data_parse(&input, 1, NULL, &data, &err) < 0 ||
        perf_maps_build(&data, limit, &maps, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(data.complaint_count, 0);
}

static int end(void **state)
{
    (void)state;
    perf_maps_free(&maps);
    perf_data_free(&data);
    free(maker.bytes);
    return 0;
}

// What is at the address then: "path+offset", or "-".
static const char *at(uint32_t pid, uint64_t time, uint64_t address)
{
    static char text[200];
    const struct perf_address_space *space = perf_maps_at(&maps, pid, time);
    const struct perf_mapping *mapping = space ? perf_address_space_find(space, address) : NULL;
    if (!mapping)
        return "-";
    snprintf(text, sizeof text, "%s+%llx", mapping->path,
             (unsigned long long)(mapping->file_offset + address - mapping->begin));
    return text;
}

static void what_joins_was_there_from_the_beginning(void **state)
{
    (void)state;
    make_mmap2(&maker, 5, 0x1000, 0x1000, 0, "/a", 10, EXECUTABLE);
    make_mmap2(&maker, 5, 0x5000, 0x2000, 0x3000, "/b", 20, EXECUTABLE);
    make_mmap2(&maker, 5, 0x9000, 0x1000, 0, "/data", 30, PROT_READ);
    make_mmap2(&maker, 5, 0x6000, 0x2000, 0x4000, "/b", 40, EXECUTABLE); // the same, and more
    replay(0);
    assert_int_equal(maps.spaces.count, 1);
    assert_string_equal(at(5, 1, 0x1fff), "/a+fff");
    assert_string_equal(at(5, 15, 0x5010), "/b+3010");
    assert_string_equal(at(5, 15, 0x7fff), "/b+5fff");
    assert_string_equal(at(5, 99, 0x2000), "-");
    assert_string_equal(at(5, 99, 0x9000), "-");
    assert_string_equal(at(6, 99, 0x1000), "-");
}

static void what_is_laid_over_begins_another_space(void **state)
{
    (void)state;
    make_mmap2(&maker, 5, 0x1000, 0x9000, 0, "/a", 10, EXECUTABLE);
    make_mmap2(&maker, 5, 0x3000, 0x2000, 0, "/b", 20, EXECUTABLE);
    make_mmap2(&maker, 5, 0x8000, 0x4000, 0, "/data", 30, PROT_READ | PROT_WRITE);
    replay(0);
    assert_int_equal(maps.spaces.count, 3);
    assert_string_equal(at(5, 19, 0x3000), "/a+2000");
    assert_string_equal(at(5, 20, 0x3000), "/b+0");
    assert_string_equal(at(5, 20, 0x2fff), "/a+1fff");
    assert_string_equal(at(5, 20, 0x5000), "/a+4000"); // behind the hole
    assert_string_equal(at(5, 29, 0x9000), "/a+8000");
    assert_string_equal(at(5, 30, 0x9000), "-");
    assert_string_equal(at(5, 30, 0x7fff), "/a+6fff");
    assert_string_equal(at(5, UINT64_MAX - 1, 0x4000), "/b+1000");
}

static void exec_empties_and_fork_copies(void **state)
{
    (void)state;
    make_mmap2(&maker, 5, 0x1000, 0x1000, 0, "/shell", 0, EXECUTABLE);
    make_task(&maker, PERF_FORK, 6, 5, 100);
    make_comm(&maker, 6, "ls", 110, true);
    make_mmap2(&maker, 6, 0x4000, 0x1000, 0, "/ls", 111, EXECUTABLE);
    make_mmap2(&maker, 5, 0x7000, 0x1000, 0, "/late", 120, EXECUTABLE);
    make_task(&maker, PERF_FORK, 6, 5, 200); // the number again, another process
    make_task(&maker, PERF_FORK, 5, 5, 210); // a thread: nothing changes
    replay(0);
    assert_int_equal(maps.spaces.count, 1 + 3);
    assert_string_equal(at(6, 99, 0x1000), "-");
    assert_string_equal(at(6, 105, 0x1000), "/shell+0");
    assert_string_equal(at(6, 105, 0x7000), "-");
    assert_string_equal(at(6, 111, 0x1000), "-");
    assert_string_equal(at(6, 111, 0x4000), "/ls+0");
    assert_string_equal(at(6, 199, 0x4000), "/ls+0");
    assert_string_equal(at(6, 200, 0x4000), "-");
    assert_string_equal(at(6, 200, 0x7000), "/late+0");
    assert_string_equal(at(5, 50, 0x1000), "/shell+0");
}

static void the_kernel_is_in_every_process(void **state)
{
    (void)state;
    make_record(&maker, PERF_MMAP2, PERF_MISC_KERNEL); // as perf 6.1 makes it: no protection
    make_u32(&maker, PERF_NO_PID);
    make_u32(&maker, 0);
    make_u64(&maker, 0xffffffff81000000);
    make_u64(&maker, 0x1000000);
    make_u64(&maker, 0xffffffff81000000);
    for (int i = 0; i < 3; i++)
        make_u64(&maker, 0);
    make_u64(&maker, 0);
    make_text(&maker, "[kernel.kallsyms]_text");
    make_sample_id(&maker, 0, 0, 0, 0, 0);
    replay(0);
    assert_string_equal(at(PERF_NO_PID, 0, 0xffffffff81000010),
                        "[kernel.kallsyms]_text+ffffffff81000010");
}

static void more_mappings_than_allowed_are_counted(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 20; i++)
        make_mmap2(&maker, 5, 0x1000 + i * 0x2000, 0x1000, 0, "/a", 10 + i, EXECUTABLE);
    replay(12);
    assert_int_equal(maps.spaces.items[0].mappings.count, 12);
    assert_int_equal(maps.over_limit, 8);
}

// Against a plain model: an array of what every page is, at every time.
static void random_mappings_are_what_a_model_says(void **state)
{
    (void)state;
    enum { PAGES = 64, STEPS = 200 };
    static uint8_t model[STEPS + 1][PAGES];
    srand(7);
    for (int step = 1; step <= STEPS; step++) {
        memcpy(model[step], model[step - 1], PAGES);
        unsigned from = (unsigned)rand() % PAGES;
        unsigned count = 1 + (unsigned)rand() % (PAGES - from);
        bool executable = rand() % 4 != 0;
        unsigned file = 1 + (unsigned)rand() % 3;
        char path[8];
        snprintf(path, sizeof path, "/%u", file);
        // The offset is the address: pieces of one file always agree with one another.
        make_mmap2(&maker, 5, from * 0x1000, count * 0x1000, from * 0x1000, path,
                   (uint64_t)step * 10, executable ? EXECUTABLE : PROT_READ);
        memset(&model[step][from], executable ? (int)file : 0, count);
    }
    replay(0);
    for (int step = 1; step <= STEPS; step++) {
        for (unsigned page = 0; page < PAGES; page++) {
            uint64_t time = (uint64_t)step * 10 + 5;
            const struct perf_address_space *space = perf_maps_at(&maps, 5, time);
            const struct perf_mapping *found =
                space ? perf_address_space_find(space, page * 0x1000 + 0x800) : NULL;
            if (!model[step][page]) {
                // Free; what is found there all the same joined before the space ended.
                bool joined = !found;
                for (int later = step + 1; later <= STEPS && !joined; later++)
                    joined = (uint64_t)later * 10 < space->to &&
                             model[later][page] == found->path[1] - '0';
                assert_true(joined);
                continue;
            }
            assert_non_null(found);
            assert_int_equal(found->path[1] - '0', model[step][page]);
            assert_int_equal(found->begin, found->file_offset);
        }
    }
    for (size_t i = 0; i < maps.spaces.count; i++)
        for (size_t k = 1; k < maps.spaces.items[i].mappings.count; k++)
            assert_true(maps.spaces.items[i].mappings.items[k - 1].end <=
                        maps.spaces.items[i].mappings.items[k].begin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_joins_was_there_from_the_beginning, begin, end),
        cmocka_unit_test_setup_teardown(what_is_laid_over_begins_another_space, begin, end),
        cmocka_unit_test_setup_teardown(exec_empties_and_fork_copies, begin, end),
        cmocka_unit_test_setup_teardown(the_kernel_is_in_every_process, begin, end),
        cmocka_unit_test_setup_teardown(more_mappings_than_allowed_are_counted, begin, end),
        cmocka_unit_test_setup_teardown(random_mappings_are_what_a_model_says, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
