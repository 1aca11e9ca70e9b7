// SPDX-License-Identifier: MIT
//
// Symbols: of this very program in all the forms a file can have them, of text tables, and of a
// recording put together from them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "analysis/code/code_build.h"
#include "analysis/code/code_elf.h"
#include "analysis/code/symbols.h"
#include "analysis/code/symbols_table.h"
#include "analysis/perf/perf_data.h"
#include "tests/analysis/perf/capture_folder.h"
#include "tests/analysis/perf/perf_data_maker.h"
#include "tests/skip.h"

static struct capture_folder folder;

static void write_file(const char *name, const char *text, char *path, size_t path_bytes)
{
    snprintf(path, path_bytes, "%s/%s", folder.path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

// --- names -------------------------------------------------------------------------------------

static void equal_names_have_equal_numbers(void **state)
{
    (void)state;
    enum { COUNT = 50000 };
    struct name_pool *pool = name_pool_alloc();
    char name[32];
    for (uint32_t i = 0; i < COUNT; i++) {
        int length = snprintf(name, sizeof name, "function_%u", i);
        assert_int_equal(name_pool_add(pool, name, (size_t)length), i);
    }
    const char *kept = name_pool_text(pool, 17);
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "function_%u and more", i);
        assert_int_equal(name_pool_add(pool, name, strcspn(name, " ")), i);
    }
    assert_int_equal(name_pool_count(pool), COUNT);
    assert_int_equal(name_pool_find(pool, "function_17.cold", 11), 17);
    assert_int_equal(name_pool_find(pool, "function_17.cold", 16), UINT32_MAX);
    assert_int_equal(name_pool_count(pool), COUNT);
    assert_ptr_equal(name_pool_text(pool, 17), kept);
    assert_string_equal(kept, "function_17");
    char *long_name = malloc(200001);
    memset(long_name, 'x', 200000);
    long_name[200000] = '\0';
    uint32_t number = name_pool_add(pool, long_name, 200000);
    assert_string_equal(name_pool_text(pool, number), long_name);
    free(long_name);
    name_pool_free(pool);
}

static void mangled_names_become_readable(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"_ZNSt6vectorIiSaIiEE9push_backERKi",
         "std::vector<int, std::allocator<int> >::push_back(int const&)"},
        {"memcached_loop", "memcached_loop"},
        {"_Znothing at all", "_Znothing at all"},
        {"_Z", "_Z"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char *readable = symbol_demangle(pairs[i][0]);
        assert_string_equal(readable, pairs[i][1]);
        free(readable);
    }
}

// --- text tables -------------------------------------------------------------------------------

static const char *name_at(const struct symbol_table *table, const struct name_pool *pool,
                           uint64_t address)
{
    const struct symbol *symbol = symbol_table_find(table, address);
    return symbol ? name_pool_text(pool, symbol->name) : "-";
}

static void kallsyms_are_read(void **state)
{
    (void)state;
    char path[200];
    write_file("kallsyms",
               "ffffffff81000000 T _text\n"
               "ffffffff81000000 t alias_of_text\n"
               "ffffffff81000100 t asm_thing\n"
               "ffffffff81000140 D some_data\n"
               "ffffffff81000200 W weak_one\n"
               "not a line\n"
               "7ffffffff81000000 T too_large\n"
               "ffffffffc0000000 t module_function\t[module]\n",
               path, sizeof path);
    struct symbol_table table = {0};
    struct name_pool *pool = name_pool_alloc();
    struct error err;
    assert_int_equal(symbol_table_add_kallsyms(&table, pool, path, &err), 0);
    symbol_table_sort(&table);
    assert_string_equal(name_at(&table, pool, 0xffffffff81000000), "_text");
    assert_string_equal(name_at(&table, pool, 0xffffffff810000ff), "_text");
    assert_string_equal(name_at(&table, pool, 0xffffffff81000150), "asm_thing");
    assert_string_equal(name_at(&table, pool, 0xffffffff81000200), "weak_one");
    assert_string_equal(name_at(&table, pool, 0xffffffffc0000010), "module_function");
    assert_string_equal(name_at(&table, pool, 0xffffffff80ffffff), "-");
    assert_string_equal(name_at(&table, pool, UINT64_MAX), "-");
    assert_int_equal(table.symbols.items[table.symbols.count - 1].address, 0xffffffffc0000000);
    assert_string_equal(name_at(&table, pool, 0xffffffffc0002000), "-");
    assert_int_equal(table.symbols.count, 4);
    symbol_table_free(&table);

    write_file("hidden", "0000000000000000 T _text\n0000000000000000 t more\n", path, sizeof path);
    assert_int_equal(symbol_table_add_kallsyms(&table, pool, path, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "kptr_restrict"));
    assert_int_equal(symbol_table_add_kallsyms(&table, pool, "/no/such", &err), -ERROR_INPUT);
    symbol_table_free(&table);
    name_pool_free(pool);
}

static void jit_maps_are_read_and_the_last_word_counts(void **state)
{
    (void)state;
    char path[200];
    write_file("map",
               "7f0000001000 20 LazyCompile:*first file.js:1\n"
               "7f0000001040 10 second\n"
               "garbage\n"
               "7f0000001060 0 empty\n"
               "ffffffffffffffff ff beyond\n"
               "7f0000001000 30 compiled again\n",
               path, sizeof path);
    struct symbol_table table = {0};
    struct name_pool *pool = name_pool_alloc();
    struct error err;
    uint64_t malformed = 0;
    assert_int_equal(symbol_table_add_jit_map(&table, pool, path, &malformed, &err), 0);
    symbol_table_sort(&table);
    assert_int_equal(malformed, 3);
    assert_string_equal(name_at(&table, pool, 0x7f000000102f), "compiled again");
    assert_string_equal(name_at(&table, pool, 0x7f0000001030), "-");
    assert_string_equal(name_at(&table, pool, 0x7f000000104f), "second");
    symbol_table_free(&table);
    name_pool_free(pool);
}

static void an_alias_may_know_the_size(void **state)
{
    (void)state;
    struct symbol_table table = {0};
    struct name_pool *pool = name_pool_alloc();
    uint32_t entry = name_pool_add(pool, "entry", 5), alias = name_pool_add(pool, "alias", 5);
    uint32_t inner = name_pool_add(pool, "inner", 5);
    const struct symbol symbols[] = {
        {0x1000, 0, entry, 9}, {0x1000, 0x1100, alias, 1}, {0x1040, 0x1050, inner, 1}};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(array_push(&table.symbols, symbols[i]), 0);
    symbol_table_sort(&table);
    assert_string_equal(name_at(&table, pool, 0x1000), "entry");
    assert_string_equal(name_at(&table, pool, 0x1045), "inner");
    assert_string_equal(name_at(&table, pool, 0x1060), "entry"); // around what lies within it
    assert_string_equal(name_at(&table, pool, 0x10ff), "entry");
    assert_string_equal(name_at(&table, pool, 0x1100), "-");
    symbol_table_free(&table);
    name_pool_free(pool);
}

// --- ELF ---------------------------------------------------------------------------------------

__attribute__((noinline, noclone, used)) static int file_local_function(int value)
{
    return value * 3 + 1;
}

static uint64_t own_address(const char *name)
{
    uint64_t value = 0;
    assert_true(elf_symbol_value("/proc/self/exe", name, &value));
    return value;
}

static void read_elf(const char *path, struct symbol_table *table, struct name_pool *pool)
{
    struct error err;
    if (symbol_table_add_elf(table, pool, path, folder.path, &err) < 0)
        fail_msg("%s", err.text);
    symbol_table_sort(table);
}

static void functions_of_an_elf_file_are_found(void **state)
{
    (void)state;
    struct symbol_table table = {0};
    struct name_pool *pool = name_pool_alloc();
    read_elf("/proc/self/exe", &table, pool);
    uint64_t address = own_address("file_local_function");
    assert_int_equal(file_local_function(1), 4);
    assert_string_equal(name_at(&table, pool, address), "file_local_function");
    assert_string_equal(name_at(&table, pool, address + 3), "file_local_function");
    assert_string_equal(name_at(&table, pool, own_address("main")), "main");
    bool has_stub = false;
    for (size_t i = 0; i < table.symbols.count; i++) {
        const struct symbol *one = &table.symbols.items[i];
        assert_true(one->end > one->address);
        assert_true(!i || one[-1].address < one->address);
        has_stub = has_stub || strcmp(name_pool_text(pool, one->name), "snprintf@plt") == 0 ||
                   strcmp(name_pool_text(pool, one->name), "mkdtemp@plt") == 0;
    }
    assert_true(has_stub);
    symbol_table_free(&table);
    name_pool_free(pool);
}

static bool run_in_folder(const char *command)
{
    char whole[1024];
    snprintf(whole, sizeof whole, "cd '%s' && %s", folder.path, command);
    return run_quietly(whole);
}

static void a_stripped_file_has_its_separate_debug_file(void **state)
{
    (void)state;
    char command[512], id[41], path[200];
    struct elf_facts facts;
    const char *why;
    bool missing;
    assert_int_equal(elf_facts_read("/proc/self/exe", &facts, &why, &missing), 0);
    elf_facts_free(&facts);
    for (int i = 0; i < 20; i++)
        snprintf(id + 2 * i, 3, "%02x", facts.build_id[i]);
    snprintf(command, sizeof command,
             "cp /proc/%d/exe whole && mkdir -p .build-id/%.2s && "
             "objcopy --only-keep-debug whole .build-id/%.2s/%s.debug && strip -o stripped whole",
             (int)getpid(), id, id, id + 2);
    assert_true(run_in_folder(command));
    struct symbol_table table = {0};
    struct name_pool *pool = name_pool_alloc();
    snprintf(path, sizeof path, "%s/stripped", folder.path);
    read_elf(path, &table, pool);
    uint64_t address = own_address("file_local_function");
    assert_string_equal(name_at(&table, pool, address), "file_local_function");
    symbol_table_free(&table);

    // Beside the file, by .gnu_debuglink.
    snprintf(command, sizeof command,
             "mkdir -p other && mv .build-id/%.2s/%s.debug other/linked.debug && "
             "rm -r .build-id && objcopy --add-gnu-debuglink=other/linked.debug stripped "
             "other/with-link",
             id, id + 2);
    assert_true(run_in_folder(command));
    snprintf(path, sizeof path, "%s/other/with-link", folder.path);
    read_elf(path, &table, pool);
    assert_string_equal(name_at(&table, pool, address), "file_local_function");
    symbol_table_free(&table);

    // And without it, only what is exported.
    snprintf(path, sizeof path, "%s/stripped", folder.path);
    read_elf(path, &table, pool);
    assert_string_not_equal(name_at(&table, pool, address), "file_local_function");
    symbol_table_free(&table);
    name_pool_free(pool);
}

// As distributions do it: the local functions' symbols, compressed, within the stripped file.
static void a_stripped_file_has_its_minidebuginfo(void **state)
{
    (void)state;
    char command[512], path[200];
    snprintf(command, sizeof command,
             "cp /proc/%d/exe full && objcopy --only-keep-debug full mini && "
             "strip --strip-debug mini && xz -k mini && strip -o bare-exe full && "
             "objcopy --add-section .gnu_debugdata=mini.xz bare-exe with-mini",
             (int)getpid());
    if (!run_in_folder(command))
        skip_case("there is no xz, strip or objcopy");
    struct symbol_table table = {0};
    struct name_pool *pool = name_pool_alloc();
    snprintf(path, sizeof path, "%s/with-mini", folder.path);
    read_elf(path, &table, pool);
    assert_string_equal(name_at(&table, pool, own_address("file_local_function")),
                        "file_local_function");
    symbol_table_free(&table);
    name_pool_free(pool);
}

static void dwarf_names_a_file_without_symbol_table(void **state)
{
    (void)state;
    if (!run_in_folder("printf 'int first(int a){return a*3;}\\nint second(int a){return "
                       "first(a)+1;}\\nvoid _start(void){for(;;)second(1);}\\n' >bare.c && "
                       "cc -g -O0 -static -nostdlib -fno-pie -no-pie -o bare bare.c 2>/dev/null && "
                       "nm bare | grep -w first | cut -c1-16 >first && "
                       "strip --strip-all --keep-section='.debug*' bare -o bare-stripped"))
        skip_case("there is no compiler, nm or strip");
    char path[200];
    uint64_t address = 0;
    snprintf(path, sizeof path, "%s/first", folder.path);
    FILE *file = fopen(path, "r");
    assert_int_equal(fscanf(file, "%lx", &address), 1);
    fclose(file);
    struct symbol_table table = {0};
    struct name_pool *pool = name_pool_alloc();
    snprintf(path, sizeof path, "%s/bare-stripped", folder.path);
    read_elf(path, &table, pool);
    assert_int_equal(table.symbols.count, 3);
    assert_string_equal(name_at(&table, pool, address + 1), "first");
    symbol_table_free(&table);
    name_pool_free(pool);
}

static void what_is_no_elf_file_is_an_error(void **state)
{
    (void)state;
    struct symbol_table table = {0};
    struct name_pool *pool = name_pool_alloc();
    struct error err;
    assert_int_equal(symbol_table_add_elf(&table, pool, "/etc/passwd", NULL, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "/etc/passwd"));
    assert_int_equal(symbol_table_add_elf(&table, pool, "/no/such", NULL, &err), -ERROR_INPUT);
    symbol_table_free(&table);
    name_pool_free(pool);
}

// --- a recording ---------------------------------------------------------------------------------

struct asker {
    struct symbols *symbols;
    uint64_t address;
    size_t found;
};

static void *ask_many_times(void *context)
{
    struct asker *asker = context;
    for (uint64_t i = 0; i < 20000; i++) {
        struct symbol_hit hit;
        uint64_t address = i % 3 == 0 ? asker->address + i % 4 : i * 977;
        asker->found += symbols_find(asker->symbols, i % 2 ? 5 : 6, 10, address, &hit);
    }
    return NULL;
}

// Once everything is loaded, asking changes nothing.
static void ask_from_several_threads(struct symbols *symbols, uint64_t address)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    struct asker askers[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        askers[i] = (struct asker){symbols, address, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, ask_many_times, &askers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(askers[i].found >= 6666);
        assert_int_equal(askers[i].found, askers[0].found);
    }
}

static const char *made_name(const struct made_symbols *made, const struct name_pool *names,
                             uint64_t address, uint64_t time)
{
    const struct symbol *symbol = made_symbols_find(made, address, time);
    return symbol ? name_pool_text(names, symbol->name) : "";
}

static void an_address_has_one_name_after_another(void **state)
{
    (void)state;
    struct maker maker = make_file();
    make_ksymbol(&maker, false, 0x1000, 64, "old", 0);
    make_ksymbol(&maker, true, 0x1000, 64, "old", 100);
    make_ksymbol(&maker, false, 0x1000, 32, "new", 200);
    make_ksymbol(&maker, false, 0xf80, 256, "over both", 300); // after both, in other pieces
    make_ksymbol(&maker, true, 0x1000, 32, "new", 300);
    make_file_end(&maker);
    struct perf_input input = {"made", maker.bytes, maker.count};
    struct perf_data data;
    struct made_symbols made = {0};
    struct name_pool *names = name_pool_alloc();
    struct error err;
    assert_int_equal(perf_data_parse(&input, 1, NULL, &data, &err), 0);
    assert_int_equal(made_symbols_read(&data, names, &made), 0);
    assert_int_equal(made.count, 3);
    assert_string_equal(made_name(&made, names, 0x1010, 0), "old");
    assert_string_equal(made_name(&made, names, 0x1010, 99), "old");
    assert_string_equal(made_name(&made, names, 0x1010, 200), "new");
    assert_string_equal(made_name(&made, names, 0x1010, 300), "over both");
    assert_string_equal(made_name(&made, names, 0x1030, 250), "old"); // none then: another time's
    assert_string_equal(made_name(&made, names, 0xf80, 300), "over both");
    assert_string_equal(made_name(&made, names, 0x1080, 300), "");
    array_free(&made);
    name_pool_free(names);
    perf_data_free(&data);
    free(maker.bytes);
}

static void what_cannot_be_read_is_told(void **state)
{
    (void)state;
    char path[600], recording[200];
    snprintf(recording, sizeof recording, "%s/hid", folder.path);
    snprintf(path, sizeof path, "mkdir -p %s/kcore_dir", recording);
    assert_true(run_quietly(path));
    write_file("hid/kcore_dir/kallsyms", "0000000000000000 T _text\n", path, sizeof path);
    write_file("perf-6.map", "30000 100 jitted\nno line of a map\n", path, sizeof path);
    struct maker maker = make_file();
    make_mmap2(&maker, 6, 0x30000, 0x1000, 0, "//anon", 10, PROT_READ | PROT_EXEC);
    make_file_end(&maker);
    struct perf_input input = {"made", maker.bytes, maker.count};
    struct perf_data data;
    struct perf_maps maps;
    struct code_images images;
    struct error err;
    struct code_image_options options = {.recording = recording};
    assert_int_equal(perf_data_parse(&input, 1, NULL, &data, &err), 0);
    assert_int_equal(perf_maps_build(&data, 0, &maps, &err), 0);
    assert_int_equal(code_images_build(&maps, &options, &images, &err), 0);
    struct symbols *symbols = symbols_alloc(&data, &images, folder.path, NULL, &err);
    assert_non_null(symbols);
    assert_int_equal(symbols_load_all(symbols, &err), 0);
    const struct symbol_complaints *complaints = symbols_complaints(symbols);
    assert_int_equal(complaints->count, 2);
    assert_non_null(strstr(complaints->items[0], "kallsyms: all addresses are 0"));
    assert_non_null(strstr(complaints->items[1], "perf-6.map: 1 malformed line left out"));
    symbols_free(symbols);
    code_images_free(&images);
    perf_maps_free(&maps);
    perf_data_free(&data);
    free(maker.bytes);
}

static void a_recordings_addresses_are_named(void **state)
{
    (void)state;
    char kallsyms[600], map[200], recording[200], self[512] = "";
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    snprintf(recording, sizeof recording, "%s/rec", folder.path);
    snprintf(kallsyms, sizeof kallsyms, "mkdir -p %s/kcore_dir", recording);
    assert_true(run_quietly(kallsyms));
    write_file("rec/kcore_dir/kallsyms", "ffffffff81000000 T _text\nffffffff81000100 T do_it\n",
               kallsyms, sizeof kallsyms);
    write_file("perf-5.map", "20000 100 jitted\n", map, sizeof map);
    struct maker maker = make_file();
    make_mmap2(&maker, 5, 0x20000, 0x1000, 0, "//anon", 10, PROT_READ | PROT_EXEC);
    make_record(&maker, PERF_KSYMBOL, 0);
    make_u64(&maker, 0xffffffffc0000000);
    make_u32(&maker, 64);
    make_u32(&maker, 1);
    make_text(&maker, "bpf_prog_abc");
    make_sample_id(&maker, 0, 0, 20, 0, 7);
    make_file_end(&maker);
    struct perf_input input = {"made", maker.bytes, maker.count};
    struct perf_data data;
    struct perf_maps maps;
    struct code_images images;
    struct error err;
    struct code_given given[] = {
        {.path = self, .address = 0x40000000, .has_address = true},
        {.path = map, .address = 0x50000000, .has_address = true, .raw = true},
    };
    assert_int_equal(perf_data_parse(&input, 1, NULL, &data, &err), 0);
    assert_int_equal(perf_maps_build(&data, 0, &maps, &err), 0);
    struct code_image_options options = {.recording = recording, .given = given, .given_count = 2};
    assert_int_equal(code_images_build(&maps, &options, &images, &err), 0);

    for (int all = 0; all < 2; all++) {
        struct symbols *symbols = symbols_alloc(&data, &images, folder.path, NULL, &err);
        assert_non_null(symbols);
        if (all)
            assert_int_equal(symbols_load_all(symbols, &err), 0);
        struct name_pool *names = symbols_names(symbols);
        struct symbol_hit hit;
        uint64_t mine = 0x40000000 + own_address("file_local_function");
        assert_true(symbols_find(symbols, 5, 10, mine + 2, &hit));
        assert_string_equal(name_pool_text(names, hit.name), "file_local_function");
        assert_int_equal(hit.begin, mine);
        assert_true(hit.end > mine + 2 && !hit.kernel && hit.known);
        assert_true(symbols_find(symbols, 5, 10, 0x20010, &hit));
        assert_string_equal(name_pool_text(names, hit.name), "jitted");
        assert_true(symbols_find(symbols, 5, 10, 0xffffffff81000110, &hit));
        assert_string_equal(name_pool_text(names, hit.name), "do_it");
        assert_true(hit.kernel);
        assert_true(symbols_find(symbols, 5, 10, 0xffffffffc0000020, &hit));
        assert_string_equal(name_pool_text(names, hit.name), "bpf_prog_abc");
        assert_false(symbols_find(symbols, 5, 10, 0x999, &hit));
        assert_string_equal(name_pool_text(names, hit.name), "[unknown]");
        assert_int_equal(hit.begin, 0x999);
        assert_false(symbols_find(symbols, 5, 10, 0x50000004, &hit));
        assert_string_equal(name_pool_text(names, hit.name), "[perf-5.map]");
        assert_false(hit.known);
        assert_int_equal(hit.begin, 0x50000004); // the process has symbols of code made meanwhile
        assert_false(symbols_find(symbols, PERF_NO_PID, 10, 0x50000004, &hit));
        assert_int_equal(hit.begin, 0x50000000);
        assert_true(hit.end > 0x50000004);
        assert_int_equal(symbols_complaints(symbols)->count, 0);
        if (all)
            ask_from_several_threads(symbols, mine);
        symbols_free(symbols);
    }
    code_images_free(&images);
    perf_maps_free(&maps);
    perf_data_free(&data);
    free(maker.bytes);
}

int main(void)
{
    snprintf(folder.path, sizeof folder.path, "/tmp/taillight-symbols-XXXXXX");
    if (!mkdtemp(folder.path))
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_names_have_equal_numbers),
        cmocka_unit_test(mangled_names_become_readable),
        cmocka_unit_test(kallsyms_are_read),
        cmocka_unit_test(jit_maps_are_read_and_the_last_word_counts),
        cmocka_unit_test(an_alias_may_know_the_size),
        cmocka_unit_test(functions_of_an_elf_file_are_found),
        cmocka_unit_test(a_stripped_file_has_its_separate_debug_file),
        cmocka_unit_test(a_stripped_file_has_its_minidebuginfo),
        cmocka_unit_test(dwarf_names_a_file_without_symbol_table),
        cmocka_unit_test(what_is_no_elf_file_is_an_error),
        cmocka_unit_test(an_address_has_one_name_after_another),
        cmocka_unit_test(what_cannot_be_read_is_told),
        cmocka_unit_test(a_recordings_addresses_are_named),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_capture(&folder);
    return failed;
}
