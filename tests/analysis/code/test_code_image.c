// SPDX-License-Identifier: MIT
//
// Code images: a recording of this very process is made up from /proc/self/maps, so that every
// section's bytes can be compared with memory.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "analysis/code/code_build.h"
#include "analysis/code/code_elf.h"
#include "analysis/perf/perf_data.h"
#include "tests/analysis/perf/capture_folder.h"
#include "tests/analysis/perf/perf_data_maker.h"
#include "tests/skip.h"

static struct capture_folder folder;
static struct maker maker;
static struct perf_data data;
static struct perf_maps maps;
static struct code_images images;

struct line {
    uint64_t begin, end, offset, inode;
    char path[512];
};

// The executable file mappings of this process (and the vdso).
static size_t own_mappings(struct line *lines, size_t most)
{
    FILE *file = fopen("/proc/self/maps", "r");
    char text[1024], protection[8];
    size_t count = 0;
    assert_non_null(file);
    while (count < most && fgets(text, sizeof text, file)) {
        struct line *line = &lines[count];
        line->path[0] = '\0';
        int fields =
            sscanf(text, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %" SCNu64 " %511s",
                   &line->begin, &line->end, protection, &line->offset, &line->inode, line->path);
        if (fields == 6 && protection[2] == 'x' && strcmp(line->path, "[vsyscall]") != 0)
            count++;
    }
    fclose(file);
    return count;
}

static void map_line(const struct line *line, const struct elf_facts *facts, const char *path,
                     uint64_t inode)
{
    bool build_id = facts != NULL;
    make_record(&maker, PERF_MMAP2, PERF_MISC_USER | (build_id ? PERF_MISC_MMAP_BUILD_ID : 0));
    make_u32(&maker, 5);
    make_u32(&maker, 5);
    make_u64(&maker, line->begin);
    make_u64(&maker, line->end - line->begin);
    make_u64(&maker, line->offset);
    if (build_id) {
        const uint8_t head[4] = {facts->build_id_size};
        make_bytes(&maker, head, 4);
        make_bytes(&maker, facts->build_id, 20);
    } else {
        make_u32(&maker, 0);
        make_u32(&maker, 0);
        make_u64(&maker, inode);
        make_u64(&maker, 0);
    }
    make_u32(&maker, PROT_READ | PROT_EXEC);
    make_u32(&maker, MAP_PRIVATE);
    make_text(&maker, path);
    make_sample_id(&maker, 5, 5, 10, 0, 7);
}

static int begin(void **state)
{
    (void)state;
    maker = make_file();
    return 0;
}

static void build(const struct code_image_options *options)
{
    make_file_end(&maker);
    struct perf_input input = {"made", maker.bytes, maker.count};
    struct error err;
    if (perf_data_parse(&input, 1, NULL, &data, &err) < 0 ||
        perf_maps_build(&data, 0, &maps, &err) < 0 ||
        code_images_build(&maps, options, &images, &err) < 0)
        fail_msg("%s", err.text);
}

static int end(void **state)
{
    (void)state;
    code_images_free(&images);
    perf_maps_free(&maps);
    perf_data_free(&data);
    free(maker.bytes);
    return 0;
}

// Compares a section's file with the memory of this process.
static void same_as_memory(const struct code_section *section)
{
    const struct code_file *file = &images.files.items[section->file];
    int descriptor = open(file->path, O_RDONLY);
    assert_true(descriptor >= 0);
    uint8_t *bytes = malloc(section->bytes);
    assert_int_equal(pread(descriptor, bytes, section->bytes, (off_t)section->file_offset),
                     section->bytes);
    assert_memory_equal(bytes, (const void *)(uintptr_t)section->address, section->bytes);
    free(bytes);
    close(descriptor);
}

static struct elf_facts facts_of(const char *path)
{
    struct elf_facts facts;
    const char *why;
    bool missing;
    if (elf_facts_read(path, &facts, &why, &missing) < 0)
        fail_msg("%s: %s", path, why);
    elf_facts_free(&facts);
    return facts;
}

static void files_are_found_by_build_id(void **state)
{
    (void)state;
    struct line lines[64];
    size_t count = own_mappings(lines, 64), files = 0;
    for (size_t i = 0; i < count; i++) {
        if (lines[i].path[0] != '/')
            continue;
        struct elf_facts facts = facts_of(lines[i].path);
        map_line(&lines[i], facts.build_id_size ? &facts : NULL, lines[i].path, lines[i].inode);
        files++;
    }
    build(&(struct code_image_options){.build_id_cache = folder.path});
    assert_true(files >= 3); // this program, libc, the loader
    const struct code_space *space = code_images_at(&images, 5, 10);
    assert_non_null(space);
    assert_int_equal(space->sections.count, files);
    for (size_t i = 0; i < space->sections.count; i++)
        same_as_memory(&space->sections.items[i]);
    assert_int_equal(images.complaints.count, 0);
    uint64_t here = (uintptr_t)files_are_found_by_build_id;
    const struct code_section *section = code_space_find(space, here);
    assert_non_null(section);
    // In the file's own terms this function is where its symbol says.
    uint64_t value;
    assert_true(elf_symbol_value("/proc/self/exe", "files_are_found_by_build_id", &value));
    assert_int_equal(section->elf_address + (here - section->address), value);
    assert_null(code_space_find(space, 0x10));
    assert_null(code_images_at(&images, 6, 10));
}

static void another_build_is_left_out_and_said(void **state)
{
    (void)state;
    struct line lines[64];
    size_t count = own_mappings(lines, 64);
    for (size_t i = 0; i < count; i++) {
        if (lines[i].path[0] != '/')
            continue;
        struct elf_facts facts = facts_of(lines[i].path);
        facts.build_id_size = 20;
        facts.build_id[3] ^= 1;
        map_line(&lines[i], &facts, lines[i].path, 0);
        lines[i].begin = 0x10000 + i * 0x10000; // the same file once more
        lines[i].end = lines[i].begin + 0x1000;
        map_line(&lines[i], &facts, lines[i].path, 0);
    }
    build(&(struct code_image_options){.build_id_cache = folder.path});
    assert_int_equal(code_images_at(&images, 5, 10)->sections.count, 0);
    assert_true(images.problems[CODE_MISMATCH] >= 3);
    assert_int_equal(images.complaints.count, images.problems[CODE_MISMATCH]);
    assert_int_equal(images.complaints.items[0].mappings, 2);
    assert_non_null(strstr(images.complaints.items[0].text, "another build"));
}

static void without_build_id_the_inode_must_be_the_same(void **state)
{
    (void)state;
    struct line line;
    char self[512] = "";
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    struct stat status;
    assert_int_equal(stat(self, &status), 0);
    line = (struct line){.begin = 0x10000, .end = 0x11000};
    map_line(&line, NULL, self, status.st_ino);
    line = (struct line){.begin = 0x20000, .end = 0x21000};
    map_line(&line, NULL, self, status.st_ino + 1);
    line = (struct line){.begin = 0x30000, .end = 0x31000};
    map_line(&line, NULL, "/no/such/file", 1);
    line = (struct line){.begin = 0x40000, .end = 0x41000};
    map_line(&line, NULL, "//anon", 0);
    line = (struct line){.begin = 0x50000, .end = 0x51000};
    map_line(&line, NULL, "/etc/passwd", 0);
    build(&(struct code_image_options){.build_id_cache = folder.path});
    const struct code_space *space = code_images_at(&images, 5, 10);
    assert_int_equal(space->sections.count, 1);
    assert_int_equal(space->sections.items[0].address, 0x10000);
    assert_int_equal(images.unverified, 1);
    assert_int_equal(images.problems[CODE_MISMATCH], 1);
    assert_int_equal(images.problems[CODE_NOT_FOUND], 1);
    assert_int_equal(images.problems[CODE_NO_FILE], 1);
    assert_int_equal(images.problems[CODE_UNREADABLE], 1);
}

static void symfs_and_the_cache_come_first(void **state)
{
    (void)state;
    char command[2048], id[41];
    struct elf_facts facts = facts_of("/proc/self/exe");
    assert_int_equal(facts.build_id_size, 20);
    for (int i = 0; i < 20; i++)
        snprintf(id + 2 * i, 3, "%02x", facts.build_id[i]);
    snprintf(
        command, sizeof command,
        "cd '%s' && mkdir -p sys/opt cache/.build-id/%.2s/%s && cp /proc/%d/exe sys/opt/one && "
        "cp /proc/%d/exe cache/.build-id/%.2s/%s/elf",
        folder.path, id, id + 2, (int)getpid(), (int)getpid(), id, id + 2);
    assert_true(run_quietly(command));
    struct line line = {.begin = 0x10000, .end = 0x11000};
    map_line(&line, NULL, "/opt/one", 1);
    line = (struct line){.begin = 0x20000, .end = 0x21000};
    map_line(&line, &facts, "/gone/two", 0);
    char symfs[200], cache[200], expected[300];
    snprintf(symfs, sizeof symfs, "%s/sys", folder.path);
    snprintf(cache, sizeof cache, "%s/cache", folder.path);
    build(&(struct code_image_options){.symfs = symfs, .build_id_cache = cache});
    const struct code_space *space = code_images_at(&images, 5, 10);
    assert_int_equal(space->sections.count, 2);
    snprintf(expected, sizeof expected, "%s/opt/one", symfs);
    const struct code_file *one = &images.files.items[space->sections.items[0].file];
    assert_string_equal(one->path, expected);
    assert_false(one->verified);
    snprintf(expected, sizeof expected, "%s/.build-id/%.2s/%s/elf", cache, id, id + 2);
    const struct code_file *two = &images.files.items[space->sections.items[1].file];
    assert_string_equal(two->path, expected);
    assert_true(two->verified);
    assert_string_equal(two->mapped_path, "/gone/two");
}

static void the_vdso_of_this_machine_is_used_when_it_is_the_same(void **state)
{
    (void)state;
    struct line lines[64];
    size_t count = own_mappings(lines, 64);
    const struct line *vdso = NULL;
    for (size_t i = 0; i < count; i++)
        if (strcmp(lines[i].path, "[vdso]") == 0)
            vdso = &lines[i];
    if (!vdso)
        skip_case("this process has no vdso");
    struct elf_facts facts;
    const char *why;
    assert_int_equal(elf_facts_of_memory((const void *)(uintptr_t)vdso->begin,
                                         vdso->end - vdso->begin, &facts, &why),
                     0);
    elf_facts_free(&facts);
    map_line(vdso, &facts, "[vdso]", 0);
    facts.build_id[0] ^= 1;
    struct line other = {.begin = 0x10000, .end = 0x12000};
    map_line(&other, &facts, "[vdso]", 0);
    build(&(struct code_image_options){.build_id_cache = folder.path});
    const struct code_space *space = code_images_at(&images, 5, 10);
    assert_int_equal(space->sections.count, 1);
    same_as_memory(&space->sections.items[0]);
    assert_int_equal(images.problems[CODE_MISMATCH], 1);
}

// An ELF core file with two pieces of kernel, as perf copies /proc/kcore.
static void make_kcore(const char *path, uint64_t text)
{
    Elf64_Ehdr header = {.e_type = ET_CORE,
                         .e_machine = EM_X86_64,
                         .e_version = EV_CURRENT,
                         .e_phoff = sizeof header,
                         .e_ehsize = sizeof header,
                         .e_phentsize = sizeof(Elf64_Phdr),
                         .e_phnum = 2};
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    Elf64_Phdr pieces[2] = {{.p_type = PT_LOAD,
                             .p_flags = PF_R | PF_W | PF_X,
                             .p_offset = 0x1000,
                             .p_vaddr = text,
                             .p_filesz = 0x2000,
                             .p_memsz = 0x2000},
                            {.p_type = PT_LOAD,
                             .p_flags = PF_R | PF_W | PF_X,
                             .p_offset = 0x3000,
                             .p_vaddr = 0xffffffffc0000000,
                             .p_filesz = 0x1000,
                             .p_memsz = 0x1000}};
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fwrite(&header, sizeof header, 1, file);
    fwrite(pieces, sizeof pieces, 1, file);
    assert_int_equal(ftruncate(fileno(file), 0x4000), 0);
    fclose(file);
}

static void the_kernel_is_the_recordings_kcore(void **state)
{
    (void)state;
    char path[200], kcore[600];
    snprintf(path, sizeof path, "%s/rec", folder.path);
    snprintf(kcore, sizeof kcore, "mkdir -p %s/kcore_dir && touch %s/kcore_dir/kallsyms", path,
             path);
    assert_true(run_quietly(kcore));
    snprintf(kcore, sizeof kcore, "%s/kcore_dir/kcore", path);
    make_kcore(kcore, 0xffffffff81000000);
    make_record(&maker, PERF_MMAP, PERF_MISC_KERNEL);
    make_u32(&maker, PERF_NO_PID);
    make_u32(&maker, 0);
    make_u64(&maker, 0xffffffff81000000);
    make_u64(&maker, 0x2000);
    make_u64(&maker, 0);
    make_text(&maker, "[kernel.kallsyms]_text");
    make_sample_id(&maker, 0, 0, 0, 0, 0);
    build(&(struct code_image_options){.recording = path});
    const struct code_space *space = code_images_at(&images, PERF_NO_PID, 0);
    assert_non_null(space);
    assert_int_equal(space->sections.count, 2);
    const struct code_section *section = code_space_find(space, 0xffffffff81001234);
    assert_int_equal(section->file_offset, 0x1000);
    section = code_space_find(space, 0xffffffffc0000fff);
    assert_int_equal(section->file_offset, 0x3000);
    assert_int_equal(images.files.items[section->file].kind, CODE_KCORE);
    assert_non_null(images.kallsyms);
    assert_null(images.modules);
    assert_int_equal(images.complaints.count, 0);
}

static void the_kernel_may_be_in_perfs_cache(void **state)
{
    (void)state;
    char cache[200], command[800], path[400];
    struct elf_facts kernel = {.build_id_size = 20};
    memset(kernel.build_id, 0xab, 20);
    snprintf(cache, sizeof cache, "%s/kcores", folder.path);
    snprintf(command, sizeof command,
             "d='%s/[kernel.kcore]/abababababababababababababababababababab' && "
             "mkdir -p \"$d/2024010112000000\" \"$d/2024010212000000\" \"$d/2024010312000000\" && "
             "touch \"$d/2024010112000000/kallsyms\" && ln -s \"$d\" %s/short",
             cache, cache);
    assert_true(run_quietly(command));
    // The newest is damaged, the next is of another boot: the kernel lay elsewhere.
    snprintf(path, sizeof path, "%s/short/2024010312000000/kcore", cache);
    fclose(fopen(path, "w"));
    snprintf(path, sizeof path, "%s/short/2024010212000000/kcore", cache);
    make_kcore(path, 0xffffffff92000000);
    snprintf(path, sizeof path, "%s/short/2024010112000000/kcore", cache);
    make_kcore(path, 0xffffffff81000000);
    make_record(&maker, PERF_MMAP2, PERF_MISC_KERNEL | PERF_MISC_MMAP_BUILD_ID);
    make_u32(&maker, PERF_NO_PID);
    make_u32(&maker, 0);
    make_u64(&maker, 0xffffffff81000000);
    make_u64(&maker, 0x2000);
    make_u64(&maker, 0);
    make_bytes(&maker, "\x14\0\0\0", 4);
    make_bytes(&maker, kernel.build_id, 20);
    make_u64(&maker, 0);
    make_text(&maker, "[kernel.kallsyms]_text");
    make_sample_id(&maker, 0, 0, 0, 0, 0);
    build(&(struct code_image_options){.build_id_cache = cache});
    const struct code_space *space = code_images_at(&images, PERF_NO_PID, 0);
    assert_non_null(code_space_find(space, 0xffffffff81000000));
    assert_non_null(images.kallsyms);
    assert_non_null(strstr(images.kallsyms, "2024010112000000"));
    assert_int_equal(images.complaints.count, 0);
}

static void without_kcore_modules_are_asked_for_once(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "[module%d]", (int)i);
        make_record(&maker, PERF_MMAP, PERF_MISC_KERNEL);
        make_u32(&maker, PERF_NO_PID);
        make_u32(&maker, 0);
        make_u64(&maker, 0xffffffffc0000000 + i * 0x10000);
        make_u64(&maker, 0x2000);
        make_u64(&maker, 0);
        make_text(&maker, i ? name : "[kernel.kallsyms]_text");
        make_sample_id(&maker, 0, 0, 0, 0, 0);
    }
    build(&(struct code_image_options){.build_id_cache = folder.path});
    assert_int_equal(images.complaints.count, 2);
    assert_int_equal(images.problems[CODE_NEEDS_KCORE], 1);
    assert_int_equal(images.problems[CODE_NOT_FOUND], 1);
    for (size_t i = 0; i < 2; i++)
        assert_non_null(strstr(images.complaints.items[i].text, "--kcore"));
}

static void code_may_be_given_by_hand(void **state)
{
    (void)state;
    struct error err;
    struct code_given given[5];
    char page[200], text[300];
    snprintf(page, sizeof page, "%s/page", folder.path);
    FILE *file = fopen(page, "w");
    fputs("0123456789abcdef", file);
    fclose(file);
    snprintf(text, sizeof text, "0x10010=%s", page);
    assert_int_equal(code_given_parse_page(text, &given[0], &err), 0);
    assert_int_equal(code_given_parse_elf("/proc/self/exe@0x40000000", &given[1], &err), 0);
    snprintf(text, sizeof text, "0xffffffff80000000=%s", page);
    assert_int_equal(code_given_parse_page(text, &given[2], &err), 0);
    snprintf(text, sizeof text, "0xfff8=%s", page);
    assert_int_equal(code_given_parse_page(text, &given[3], &err), 0);
    snprintf(text, sizeof text, "0x10ff8=%s", page);
    assert_int_equal(code_given_parse_page(text, &given[4], &err), 0);
    // A page in the middle of a mapping: given bytes win, the rest stays.
    char self[512] = "";
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    struct stat status;
    assert_int_equal(stat(self, &status), 0);
    struct line line = {.begin = 0x10000, .end = 0x11000, .offset = 0x1000};
    map_line(&line, NULL, self, status.st_ino);
    struct code_image_options options = {.given = given, .given_count = 5};
    build(&options);
    const struct code_space *space = code_images_at(&images, 5, 10);
    const struct code_section *section = code_space_find(space, 0x1001f);
    assert_int_equal(images.files.items[section->file].kind, CODE_RAW);
    assert_int_equal(section->bytes, 16);
    section = code_space_find(space, 0x10020);
    assert_int_equal(section->file_offset, 0x1020);
    assert_int_equal(section->bytes, 0xfd8);
    const struct code_section *before = code_space_find(space, 0x1000f);
    assert_int_equal(section->elf_address - before->elf_address, 0x18);
    assert_int_equal(before->bytes, 8);
    // Pages have other bytes, not other functions than what they lie over, as far as they do.
    for (uint64_t at = 0xfff8; at < 0x11008; at += 8) {
        section = code_space_find(space, at);
        bool over = section->page && at >= 0x10000 && at < 0x11000;
        assert_int_equal(section->named_by, over ? before->file + 1 : 0);
        if (over)
            assert_int_equal(section->elf_address - section->address,
                             before->elf_address - before->address);
    }
    uint64_t value;
    assert_true(elf_symbol_value(self, "code_may_be_given_by_hand", &value));
    section = code_space_find(space, 0x40000000 + value);
    assert_non_null(section);
    assert_int_equal(section->elf_address + 0x40000000 + value - section->address, value);
    assert_non_null(code_images_at(&images, 4711, 0)); // also where nothing is known
    section = code_space_find(code_images_at(&images, PERF_NO_PID, 0), 0xffffffff80000008);
    assert_non_null(section);

    struct code_images bare;
    assert_int_equal(code_images_build(NULL, &options, &bare, &err), 0);
    assert_int_equal(bare.spaces.count, 1);
    assert_non_null(code_space_find(&bare.spaces.items[0], 0x10010));
    assert_non_null(code_space_find(&bare.spaces.items[0], 0xffffffff80000008));
    code_images_free(&bare);
    for (size_t i = 0; i < 5; i++)
        code_given_free(&given[i]);
}

static void bad_values_are_refused_in_words(void **state)
{
    (void)state;
    struct error err;
    struct code_given given;
    const char *pages[] = {
        "", "0x=f", "1000=f", "0x1000", "0x1000=", "0xg=f", "0x11112222333344445=f"};
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        assert_int_equal(code_given_parse_page(pages[i], &given, &err), -ERROR_INPUT);
    assert_int_equal(code_given_parse_elf("f@0x10zz", &given, &err), -ERROR_INPUT);
    assert_int_equal(code_given_parse_elf("", &given, &err), -ERROR_INPUT);
    assert_int_equal(code_given_parse_elf("@0x1000", &given, &err), -ERROR_INPUT);
    assert_int_equal(code_given_parse_elf("odd@name", &given, &err), 0);
    assert_string_equal(given.path, "odd@name");
    struct code_images none;
    struct code_image_options options = {.given = &given, .given_count = 1};
    assert_int_equal(code_images_build(NULL, &options, &none, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "odd@name"));
    code_given_free(&given);
    assert_int_equal(code_given_parse_elf("/etc/passwd", &given, &err), 0);
    assert_int_equal(code_images_build(NULL, &options, &none, &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "not an ELF file"));
    code_given_free(&given);
    assert_int_equal(code_given_parse_page("0x1000=/no/such", &given, &err), 0);
    assert_int_equal(code_images_build(NULL, &options, &none, &err), -ERROR_INPUT);
    code_given_free(&given);
    options = (struct code_image_options){.kcore_dir = "/no/such"};
    assert_int_equal(code_images_build(NULL, &options, &none, &err), -ERROR_INPUT);
}

int main(void)
{
    snprintf(folder.path, sizeof folder.path, "/tmp/taillight-image-XXXXXX");
    if (!mkdtemp(folder.path))
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_are_found_by_build_id, begin, end),
        cmocka_unit_test_setup_teardown(another_build_is_left_out_and_said, begin, end),
        cmocka_unit_test_setup_teardown(without_build_id_the_inode_must_be_the_same, begin, end),
        cmocka_unit_test_setup_teardown(symfs_and_the_cache_come_first, begin, end),
        cmocka_unit_test_setup_teardown(the_vdso_of_this_machine_is_used_when_it_is_the_same, begin,
                                        end),
        cmocka_unit_test_setup_teardown(the_kernel_is_the_recordings_kcore, begin, end),
        cmocka_unit_test_setup_teardown(the_kernel_may_be_in_perfs_cache, begin, end),
        cmocka_unit_test_setup_teardown(without_kcore_modules_are_asked_for_once, begin, end),
        cmocka_unit_test_setup_teardown(code_may_be_given_by_hand, begin, end),
        cmocka_unit_test(bad_values_are_refused_in_words),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    remove_capture(&folder);
    return failed;
}
