// SPDX-License-Identifier: MIT
//
// Finds the file that a process (or the kernel) had mapped, and verifies that it is the same file.
// Each file is searched for once.
#include "analysis/code/code_files.h"

#include <elf.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

// The result of checking a candidate; the complaint names the largest of all candidates' results.
enum verdict {
    VERDICT_MISSING,
    VERDICT_UNREADABLE,
    VERDICT_OTHER_INODE,
    VERDICT_OTHER_BUILD,
    FOUND
};

struct search {
    struct code_finder *finder;
    const struct perf_mapping *mapping;
    uint8_t build_id[20]; // zero-padded
    bool has_build_id;
    bool kernel;
    bool vdso;
    enum verdict verdict;
    char path[PATH_BYTES]; // of the candidate with that verdict
    const char *why;       // unreadable
    uint32_t file;
};

int code_finder_init(struct code_finder *finder, struct code_images *images,
                     const struct code_image_options *options, struct error *err)
{
    *finder =
        (struct code_finder){.images = images, .options = options, .questions = name_pool_alloc()};
    return finder->questions ? 0 : error_set(err, ERROR_FAILED, "out of memory");
}

void code_finder_free(struct code_finder *finder)
{
    for (size_t i = 0; i < finder->facts.count; i++)
        elf_facts_free(&finder->facts.items[i]);
    array_free(&finder->facts);
    array_free(&finder->answers);
    name_pool_free(finder->questions);
}

uint32_t code_add_file(struct code_finder *finder, const char *path, const char *mapped_path,
                       enum code_file_kind kind, bool kernel, bool verified,
                       struct elf_facts *facts)
{
    struct code_images *images = finder->images;
    struct code_file file = {.path = strdup(path),
                             .mapped_path = strdup(mapped_path),
                             .kind = kind,
                             .kernel = kernel,
                             .verified = verified,
                             .build_id_size = facts->build_id_size};
    memcpy(file.build_id, facts->build_id, sizeof file.build_id);
    if (file.path && file.mapped_path && array_push(&finder->facts, *facts) == 0) {
        if (array_push(&images->files, file) == 0) {
            *facts = (struct elf_facts){0};
            return (uint32_t)(images->files.count - 1);
        }
        finder->facts.count--;
    }
    free(file.path);
    free(file.mapped_path);
    elf_facts_free(facts);
    finder->out_of_memory = true;
    return CODE_NONE;
}

int code_add_loads(const struct code_finder *finder, struct code_section_array *sections,
                   uint32_t file, uint64_t moved_by, bool elf_addresses)
{
    const struct elf_facts *facts = &finder->facts.items[file];
    for (size_t i = 0; i < facts->loads.count; i++) {
        const struct elf_load *load = &facts->loads.items[i];
        if (!load->executable)
            continue;
        uint64_t address = load->address + moved_by;
        struct code_section section = {.address = address,
                                       .bytes = load->bytes,
                                       .file_offset = load->file_offset,
                                       .elf_address = elf_addresses ? load->address : address,
                                       .file = file};
        if (code_add_section(sections, section) < 0)
            return -1;
    }
    return 0;
}

static void search_note_verdict(struct search *search, enum verdict verdict, const char *path,
                                const char *why)
{
    if (verdict < search->verdict || search->verdict == FOUND)
        return;
    search->verdict = verdict;
    search->why = why;
    snprintf(search->path, sizeof search->path, "%s", path);
}

// trusted: the user said where it is, so a file without a build-id is accepted.
static bool try_file(struct search *search, const char *path, bool trusted)
{
    struct elf_facts facts;
    const char *why = "";
    bool missing = false;
    if (elf_facts_read(path, &facts, &why, &missing) < 0) {
        search_note_verdict(search, missing ? VERDICT_MISSING : VERDICT_UNREADABLE, path, why);
        return false;
    }
    enum verdict verdict = FOUND;
    uint64_t inode = search->mapping->inode;
    if (search->has_build_id) {
        if (memcmp(facts.build_id, search->build_id, sizeof search->build_id) != 0)
            verdict = VERDICT_OTHER_BUILD;
    } else if (!trusted && inode && facts.inode != inode) {
        verdict = VERDICT_OTHER_INODE;
    }
    if (verdict == FOUND && !facts.has_code) {
        verdict = VERDICT_UNREADABLE;
        why = "holds no code (a separate debug file?)";
    }
    search_note_verdict(search, verdict, path, why);
    if (verdict != FOUND) {
        elf_facts_free(&facts);
        return false;
    }
    search->file = code_add_file(search->finder, path, search->mapping->path, CODE_ELF,
                                 search->kernel, search->has_build_id, &facts);
    return true;
}

static bool try_format(struct search *search, bool trusted, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool try_format(struct search *search, bool trusted, const char *format, ...)
{
    char path[PATH_BYTES];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(path, sizeof path, format, args);
    va_end(args);
    return length > 0 && (size_t)length < sizeof path && try_file(search, path, trusted);
}

void code_hex(const uint8_t *bytes, size_t count, char *out)
{
    for (size_t i = 0; i < count; i++)
        sprintf(out + 2 * i, "%02x", bytes[i]);
}

bool code_cache_folder(const struct code_image_options *options, char *out, size_t out_bytes)
{
    const char *home = getenv("HOME");
    int length = -1;
    if (options->build_id_cache)
        length = snprintf(out, out_bytes, "%s", options->build_id_cache);
    else if (home)
        length = snprintf(out, out_bytes, "%s/.debug", home);
    return length > 0 && (size_t)length < out_bytes;
}

// perf's cache: ~/.debug/.build-id/ab/cdef…/{elf,vdso}; before Linux 4.9 that was the file itself.
static bool try_cache(struct search *search)
{
    char cache[PATH_BYTES - 128], folder[PATH_BYTES], id[41];
    if (!search->has_build_id || !code_cache_folder(search->finder->options, cache, sizeof cache))
        return false;
    code_hex(search->build_id, 20, id);
    snprintf(folder, sizeof folder, "%s/.build-id/%.2s/%s", cache, id, id + 2);
    return try_format(search, true, "%s/elf", folder) ||
           try_format(search, true, "%s/vdso", folder) || try_format(search, true, "%s", folder);
}

// This process's vdso, written to a memory file, which has a path.
static bool try_own_vdso(struct search *search)
{
    enum { VDSO_BYTES_MOST = 4 * 4096, PAGE = 4096 };
    const char *image = (const char *)getauxval(AT_SYSINFO_EHDR);
    if (!image)
        return false;
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;
    size_t bytes = header->e_shoff + (size_t)header->e_shentsize * header->e_shnum;
    bytes = (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
    struct elf_facts facts;
    const char *why;
    if (bytes > VDSO_BYTES_MOST || elf_facts_of_memory(image, bytes, &facts, &why) < 0)
        return false;
    struct utsname host;
    const char *release = search->finder->options->os_release;
    bool same = search->has_build_id
                    ? memcmp(facts.build_id, search->build_id, sizeof search->build_id) == 0
                    : release && uname(&host) == 0 && strcmp(host.release, release) == 0;
    int memory = same ? memfd_create("vdso", MFD_CLOEXEC) : -1;
    if (memory < 0 || write(memory, image, bytes) != (ssize_t)bytes ||
        array_push(&search->finder->images->descriptors, memory) < 0) {
        if (same || search->has_build_id)
            search_note_verdict(search, same ? VERDICT_UNREADABLE : VERDICT_OTHER_BUILD,
                                "this machine's vdso", "cannot be copied");
        if (memory >= 0)
            close(memory);
        elf_facts_free(&facts);
        return false;
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
    search->verdict = FOUND;
    search->file = code_add_file(search->finder, path, search->mapping->path, CODE_ELF, false,
                                 search->has_build_id, &facts);
    return true;
}

static bool search_user(struct search *search)
{
    const struct code_image_options *options = search->finder->options;
    const char *path = search->mapping->path, *slash = path[0] == '/' ? "" : "/";
    if (options->symfs && search->mapping->inode &&
        try_format(search, true, "%s%s%s" CODE_BY_INODE, options->symfs, slash, path,
                   search->mapping->inode))
        return true;
    if (options->symfs && try_format(search, true, "%s%s%s", options->symfs, slash, path))
        return true;
    if (try_cache(search))
        return true;
    if (search->vdso)
        return try_own_vdso(search);
    return !options->no_host_files && path[0] == '/' && try_file(search, path, false);
}

static bool search_kernel(struct search *search)
{
    const struct code_image_options *options = search->finder->options;
    const char *debug = options->debug_dir ? options->debug_dir : "/usr/lib/debug";
    const char *release = options->os_release;
    if (options->symfs && (try_format(search, true, "%s/vmlinux", options->symfs) ||
                           try_format(search, true, "%s/boot/vmlinux", options->symfs)))
        return true;
    if (options->symfs && release &&
        (try_format(search, true, "%s/boot/vmlinux-%s", options->symfs, release) ||
         try_format(search, true, "%s/usr/lib/debug/boot/vmlinux-%s", options->symfs, release)))
        return true;
    if (try_cache(search))
        return true;
    if (options->no_host_files || !release)
        return false;
    // Different builds may have the same release name: a file of this host must have the right
    // build-id.
    return search->has_build_id &&
           (try_format(search, false, "%s/boot/vmlinux-%s", debug, release) ||
            try_format(search, false, "%s/lib/modules/%s/vmlinux", debug, release) ||
            try_format(search, false, "/boot/vmlinux-%s", release) ||
            try_format(search, false, "/lib/modules/%s/build/vmlinux", release));
}

// --- complaints --------------------------------------------------------------------------------

static enum code_problem problem_of(enum verdict verdict)
{
    switch (verdict) {
    case VERDICT_OTHER_BUILD:
    case VERDICT_OTHER_INODE:
        return CODE_MISMATCH;
    case VERDICT_UNREADABLE:
        return CODE_UNREADABLE;
    default:
        return CODE_NOT_FOUND;
    }
}

static char *describe_problem(const struct search *search, enum code_problem problem)
{
    const char *mapped = search->mapping->path;
    char id[41] = "", *text = NULL;
    int length = -1;
    code_hex(search->build_id, 20, id);
    switch (problem) {
    case CODE_NO_FILE:
        length = asprintf(&text, "%s: code that is in no file (JIT?); give its bytes with --page",
                          mapped);
        break;
    case CODE_NEEDS_KCORE:
        length = asprintf(&text, "kernel modules: their files are not linked to where they ran; "
                                 "record with perf record --kcore");
        break;
    case CODE_MISMATCH:
        length = search->verdict == VERDICT_OTHER_BUILD
                     ? asprintf(&text,
                                "%s: %s is another build than the one that ran (%s); give "
                                "the recorded machine's files with --symfs",
                                mapped, search->path, id)
                     : asprintf(&text,
                                "%s: %s may be another file than the one that ran (no "
                                "build-id was recorded, and the inode differs); if it is the "
                                "same, say so with --symfs",
                                mapped, search->path);
        break;
    case CODE_UNREADABLE:
        length = asprintf(&text, "%s: %s %s", mapped, search->path, search->why);
        break;
    default:
        if (search->kernel)
            length = asprintf(&text,
                              "%s: no image of the kernel that ran; record with perf record "
                              "--kcore, or give its vmlinux under --symfs",
                              mapped);
        else if (search->vdso)
            length =
                asprintf(&text, "[vdso]: not this machine's; give a core dump of the process with "
                                "--elf, or the bytes with --page");
        else
            length = asprintf(&text,
                              "%s: not on this machine; give the recorded machine's files with "
                              "--symfs",
                              mapped);
        break;
    }
    return length < 0 ? NULL : text;
}

static uint32_t count_complaint(struct search *search, enum code_problem problem)
{
    struct code_images *images = search->finder->images;
    struct code_complaint complaint = {.problem = problem,
                                       .bytes = search->mapping->end - search->mapping->begin,
                                       .text = describe_problem(search, problem)};
    if (!complaint.text || array_push(&images->complaints, complaint) < 0) {
        free(complaint.text);
        search->finder->out_of_memory = true;
        return CODE_NONE;
    }
    images->problems[problem]++;
    return (uint32_t)(images->complaints.count - 1);
}

// --- searching once ------------------------------------------------------------------------------

static bool is_deleted(const char *path)
{
    size_t length = strlen(path);
    static const char deleted[] = " (deleted)";
    return length >= sizeof deleted - 1 &&
           strcmp(path + length - (sizeof deleted - 1), deleted) == 0;
}

bool code_in_no_file(const char *path)
{
    return strncmp(path, "//", 2) == 0 || strncmp(path, "/anon", 5) == 0 ||
           strncmp(path, "/memfd:", 7) == 0 || strncmp(path, "/dev/", 5) == 0 ||
           strncmp(path, "/SYSV", 5) == 0 || path[0] == '\0' ||
           (path[0] == '[' && strcmp(path, "[vdso]") != 0);
}

static struct code_answer answer_for(struct search *search, bool module)
{
    struct code_answer answer = {.file = CODE_NONE, .complaint = CODE_NONE};
    if (module)
        answer.complaint = count_complaint(search, CODE_NEEDS_KCORE);
    else if (!search->kernel && code_in_no_file(search->mapping->path))
        answer.complaint = count_complaint(search, CODE_NO_FILE);
    else if (search->kernel ? search_kernel(search) : search_user(search))
        answer.file = search->file;
    else if (is_deleted(search->mapping->path)) // and nobody kept it
        answer.complaint = count_complaint(search, CODE_NO_FILE);
    else
        answer.complaint = count_complaint(search, problem_of(search->verdict));
    if (answer.file != CODE_NONE && !search->has_build_id)
        search->finder->images->unverified++;
    return answer;
}

uint32_t code_find_file(struct code_finder *finder, const struct perf_mapping *mapping, bool kernel)
{
    struct search search = {.finder = finder,
                            .mapping = mapping,
                            .kernel = kernel,
                            .vdso = strcmp(mapping->path, "[vdso]") == 0,
                            .file = CODE_NONE};
    static const uint8_t nothing[20];
    if (mapping->build_id)
        memcpy(search.build_id, mapping->build_id, mapping->build_id_size);
    search.has_build_id = memcmp(search.build_id, nothing, sizeof nothing) != 0;
    // All modules share one answer.
    bool module = kernel && strncmp(mapping->path, "[kernel.", 8) != 0;
    char question[PATH_BYTES + 100], id[41];
    code_hex(search.build_id, sizeof search.build_id, id);
    if (module)
        snprintf(question, sizeof question, "modules");
    else
        snprintf(question, sizeof question, "%s %" PRIu64 " %s", id, mapping->inode, mapping->path);

    uint32_t number = name_pool_add(finder->questions, question, sizeof question);
    if (number == finder->answers.count) { // not searched for before
        struct code_answer answer = answer_for(&search, module);
        if (array_push(&finder->answers, answer) < 0)
            number = UINT32_MAX;
    }
    if (number == UINT32_MAX) {
        finder->out_of_memory = true;
        return CODE_NONE;
    }
    const struct code_answer *known = &finder->answers.items[number];
    if (known->complaint != CODE_NONE)
        finder->images->complaints.items[known->complaint].mappings++;
    return known->file;
}
