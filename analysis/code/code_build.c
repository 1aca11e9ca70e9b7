// SPDX-License-Identifier: MIT
//
// Lays out the code of every address space as sections of files.
#include "analysis/code/code_build.h"

#include "analysis/code/code_files.h"
#include "base/array.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// --- code given by hand: --page and --elf --------------------------------------------------------

static bool parse_hex(const char *text, const char *end, uint64_t *out)
{
    char *stopped;
    if (end - text < 3 || text[0] != '0' || (text[1] | 32) != 'x')
        return false;
    errno = 0;
    *out = strtoull(text, &stopped, 16);
    return errno == 0 && stopped == end;
}

int code_given_parse_page(const char *text, struct code_given *out, struct error *err)
{
    *out = (struct code_given){.raw = true, .has_address = true};
    const char *equals = strchr(text, '=');
    if (!equals || !equals[1] || !parse_hex(text, equals, &out->address))
        return error_set(err, ERROR_INPUT,
                         "--page %s: expected 0xADDRESS=FILE, as in 0x7f0012340000=code.bin", text);
    out->path = strdup(equals + 1);
    return out->path ? 0 : error_set(err, ERROR_FAILED, "out of memory");
}

int code_given_parse_elf(const char *text, struct code_given *out, struct error *err)
{
    *out = (struct code_given){0};
    const char *at = strrchr(text, '@');
    if (at && parse_hex(at + 1, text + strlen(text), &out->address))
        out->has_address = true;
    else if (at && strncmp(at, "@0x", 3) == 0)
        return error_set(err, ERROR_INPUT,
                         "--elf %s: %s is no address; expected FILE or FILE@0xBASE", text, at + 1);
    size_t length = out->has_address ? (size_t)(at - text) : strlen(text);
    if (!length)
        return error_set(err, ERROR_INPUT, "--elf %s: expected FILE or FILE@0xBASE", text);
    out->path = strndup(text, length);
    return out->path ? 0 : error_set(err, ERROR_FAILED, "out of memory");
}

void code_given_free(struct code_given *given)
{
    free((char *)(uintptr_t)given->path);
    given->path = NULL;
}

// Adds its sections, for every address space. Files that cannot be read are ERROR_INPUT.
static int code_add_page(struct code_finder *finder, struct code_section_array *sections,
                         const struct code_given *given, struct error *err)
{
    struct stat status;
    if (stat(given->path, &status) < 0)
        return error_set_errno(err, ERROR_INPUT, "--page %s", given->path);
    if (!S_ISREG(status.st_mode) || status.st_size == 0)
        return error_set(err, ERROR_INPUT, "--page %s: not a file with bytes in it", given->path);
    struct elf_facts facts = {.file_bytes = (uint64_t)status.st_size};
    uint32_t file = code_add_file(finder, given->path, given->path, CODE_RAW,
                                  given->address >= code_kernel_begins, true, &facts);
    if (file == CODE_NONE)
        return error_set(err, ERROR_FAILED, "out of memory");
    struct code_section section = {.address = given->address,
                                   .bytes = (uint64_t)status.st_size,
                                   .elf_address = given->address,
                                   .file = file,
                                   .page = true};
    if (code_add_section(sections, section) < 0)
        return error_set(err, ERROR_FAILED, "out of memory");
    return 0;
}

static int code_add_elf(struct code_finder *finder, struct code_section_array *sections,
                        const struct code_given *given, struct error *err)
{
    enum { PAGE_MASK = 4095 };
    struct elf_facts facts;
    const char *why = "";
    bool missing;
    if (elf_facts_read(given->path, &facts, &why, &missing) < 0)
        return error_set(err, ERROR_INPUT, "--elf %s: %s", given->path, why);
    uint64_t lowest = UINT64_MAX;
    bool any = false;
    for (size_t i = 0; i < facts.loads.count; i++) {
        if (facts.loads.items[i].address < lowest)
            lowest = facts.loads.items[i].address & ~(uint64_t)PAGE_MASK;
        any = any || facts.loads.items[i].executable;
    }
    if (!any || !facts.has_code) {
        elf_facts_free(&facts);
        return error_set(err, ERROR_INPUT, "--elf %s: loads no code", given->path);
    }
    bool core = facts.type == ET_CORE;
    uint64_t moved_by = given->has_address ? given->address - lowest : 0;
    uint32_t file = code_add_file(finder, given->path, given->path, core ? CODE_CORE : CODE_ELF,
                                  lowest + moved_by >= code_kernel_begins, true, &facts);
    if (file == CODE_NONE || code_add_loads(finder, sections, file, moved_by, !core) < 0)
        return error_set(err, ERROR_FAILED, "out of memory");
    return 0;
}

// --- the kernel's code ---------------------------------------------------------------------------
// The kernel's code as it was when it ran: a copy of /proc/kcore with kallsyms and modules, made by
// `perf record --kcore` beside the recording or by `perf buildid-cache --kcore` in perf's cache.

static char *existing_path(const char *folder, const char *name)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return NULL;
    if (access(path, R_OK) == 0)
        return path;
    free(path);
    return NULL;
}

// The kernel's text as the recording mapped it, or NULL.
static const struct perf_mapping *kernel_mapping(const struct perf_maps *maps)
{
    for (size_t i = 0; maps && i < maps->spaces.count; i++) {
        const struct perf_address_space *space = &maps->spaces.items[i];
        for (size_t k = 0; space->pid == PERF_NO_PID && k < space->mappings.count; k++)
            if (strncmp(space->mappings.items[k].path, "[kernel.", 8) == 0)
                return &space->mappings.items[k];
    }
    return NULL;
}

static bool elf_covers(const struct elf_facts *facts, uint64_t address)
{
    for (size_t i = 0; i < facts->loads.count; i++)
        if (address - facts->loads.items[i].address < facts->loads.items[i].bytes)
            return true;
    return false;
}

static int not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

// <cache>/[kernel.kcore]/<build-id>/<time>: the newest whose kernel lies where the recording's did
// (it lies elsewhere after every boot).
static char *cached_kcore(const struct code_image_options *options,
                          const struct perf_mapping *kernel)
{
    char parent[4096], id[41];
    if (!kernel || kernel->build_id_size != 20 || !code_cache_folder(options, parent, 3000))
        return NULL;
    code_hex(kernel->build_id, 20, id);
    size_t used = strlen(parent);
    snprintf(parent + used, sizeof parent - used, "/[kernel.kcore]/%s", id);
    struct dirent **entries = NULL;
    int count = scandir(parent, &entries, not_hidden, alphasort);
    char *found = NULL;
    for (int i = count - 1; i >= 0; i--) {
        char *folder = found ? NULL : existing_path(parent, entries[i]->d_name);
        char *path = folder ? existing_path(folder, "kcore") : NULL;
        struct elf_facts facts;
        const char *why;
        bool missing;
        if (path && elf_facts_read(path, &facts, &why, &missing) == 0) {
            if (elf_covers(&facts, kernel->begin)) {
                found = folder;
                folder = NULL;
            }
            elf_facts_free(&facts);
        }
        free(path);
        free(folder);
        free(entries[i]);
    }
    free(entries);
    return found;
}

// What `taillight capture` kept beside a recording that has no kcore of its own.
static char *kallsyms_beside(const char *recording)
{
    const char *slash = recording ? strrchr(recording, '/') : NULL;
    char *folder = slash ? strndup(recording, (size_t)(slash - recording)) : NULL;
    char *found = folder ? existing_path(folder, "kallsyms") : NULL;
    free(folder);
    return found;
}

// Adds its sections to `kernel`, where there is one for the recording; names kallsyms and modules
// beside it in the images. A kcore that the user named and that cannot be read is ERROR_INPUT.
static int code_add_kcore(struct code_finder *finder, const struct perf_maps *maps,
                          struct code_section_array *kernel, struct error *err)
{
    const struct code_image_options *options = finder->options;
    struct code_images *images = finder->images;
    bool asked = options->kcore_dir != NULL;
    char *folder = NULL;
    if (asked)
        folder = strdup(options->kcore_dir);
    else if (options->recording)
        folder = existing_path(options->recording, "kcore_dir");
    if (!folder)
        folder = cached_kcore(options, kernel_mapping(maps));
    if (!folder) {
        images->kallsyms = kallsyms_beside(options->recording);
        return 0;
    }
    char *path = existing_path(folder, "kcore");
    images->kallsyms = existing_path(folder, "kallsyms");
    images->modules = existing_path(folder, "modules");
    int result = 0;
    if (path) {
        struct elf_facts facts;
        const char *why = "";
        bool missing;
        uint32_t file = CODE_NONE;
        if (elf_facts_read(path, &facts, &why, &missing) < 0)
            result = error_set(err, ERROR_INPUT, "%s: %s", path, why);
        else if ((file = code_add_file(finder, path, "[kernel.kcore]", CODE_KCORE, true, true,
                                       &facts)) == CODE_NONE ||
                 code_add_loads(finder, kernel, file, 0, false) < 0)
            result = error_set(err, ERROR_FAILED, "out of memory");
    } else if (asked) {
        result = error_set(err, ERROR_INPUT, "%s: has no kcore that can be read", folder);
    }
    free(path);
    free(folder);
    return result;
}

// --- every process -------------------------------------------------------------------------------

// --- mappings ----------------------------------------------------------------------------------

static int add_user_mapping(struct code_finder *finder, struct code_section_array *sections,
                            const struct perf_mapping *mapping)
{
    uint32_t file = code_find_file(finder, mapping, false);
    if (file == CODE_NONE)
        return 0;
    const struct elf_facts *facts = &finder->facts.items[file];
    if (mapping->file_offset >= facts->file_bytes)
        return 0; // pages after the file's end contain nothing
    uint64_t bytes = mapping->end - mapping->begin;
    if (bytes > facts->file_bytes - mapping->file_offset)
        bytes = facts->file_bytes - mapping->file_offset;
    struct code_section section = {.address = mapping->begin,
                                   .bytes = bytes,
                                   .file_offset = mapping->file_offset,
                                   .elf_address =
                                       elf_address_of_offset(facts, mapping->file_offset),
                                   .file = file};
    return code_add_section(sections, section);
}

// vmlinux is moved by the distance between the address of its first code symbol and where that
// symbol was when the kernel ran. The mapping's name ends with the symbol ("_text", "_stext").
static int add_kernel_mapping(struct code_finder *finder, struct code_section_array *sections,
                              const struct perf_mapping *mapping)
{
    uint32_t file = code_find_file(finder, mapping, true);
    if (file == CODE_NONE)
        return 0;
    const struct elf_facts *facts = &finder->facts.items[file];
    const char *bracket = strchr(mapping->path, ']');
    uint64_t linked = 0;
    if (!bracket || !bracket[1] ||
        !elf_symbol_value(finder->images->files.items[file].path, bracket + 1, &linked)) {
        linked = UINT64_MAX;
        for (size_t i = 0; i < facts->loads.count; i++)
            if (facts->loads.items[i].executable && facts->loads.items[i].address < linked)
                linked = facts->loads.items[i].address;
    }
    return code_add_loads(finder, sections, file, mapping->begin - linked, true);
}

// The code that the process had made at the end of the recording, where `taillight capture` kept
// it.
static int add_run_time_code(struct code_finder *finder, struct code_section_array *sections,
                             const struct perf_address_space *space)
{
    const char *recording = finder->options->recording;
    const char *slash = recording ? strrchr(recording, '/') : NULL;
    char path[4096];
    struct elf_facts facts;
    const char *why;
    bool missing;
    if (space->to != UINT64_MAX) // it has become another program since
        return 0;
    snprintf(path, sizeof path, "%.*s" CODE_RUN_TIME, slash ? (int)(slash + 1 - recording) : 0,
             slash ? recording : "", space->pid);
    if (!recording || elf_facts_read(path, &facts, &why, &missing) < 0)
        return 0;
    uint32_t file =
        code_add_file(finder, path, "[made at run time]", CODE_CORE, false, true, &facts);
    return file == CODE_NONE ? -1 : code_add_loads(finder, sections, file, 0, false);
}

static bool is_made(const struct code_finder *finder, const struct code_section_array *sections,
                    const struct perf_mapping *mapping)
{
    for (size_t i = 0; code_in_no_file(mapping->path) && i < sections->count; i++)
        if (finder->images->files.items[sections->items[i].file].kind == CODE_CORE &&
            sections->items[i].address < mapping->end &&
            sections->items[i].address + sections->items[i].bytes > mapping->begin)
            return true;
    return false;
}

static int copy_sections(struct code_section_array *to, const struct code_section_array *from)
{
    for (size_t i = 0; i < from->count; i++)
        if (code_add_section(to, from->items[i]) < 0)
            return -1;
    return 0;
}

// The code that every space gets besides its mappings.
struct layers {
    struct code_section_array first; // replaces mappings: files named by the user, kcore
    struct code_section_array
        last; // fills the gaps between mappings: core dumps, which have no symbols
};

static void free_layers(struct layers *layers)
{
    array_free(&layers->first);
    array_free(&layers->last);
}

static int build_space(struct code_finder *finder, const struct perf_address_space *space,
                       const struct layers *layers, bool resolve)
{
    struct code_space built = {.pid = space->pid, .from = space->from, .to = space->to};
    bool kernel = space->pid == PERF_NO_PID;
    int result = copy_sections(&built.sections, &layers->first);
    if (!kernel && result == 0)
        result = add_run_time_code(finder, &built.sections, space);
    for (size_t i = 0; resolve && result == 0 && i < space->mappings.count; i++)
        if (kernel)
            result = add_kernel_mapping(finder, &built.sections, &space->mappings.items[i]);
        else if (!is_made(finder, &built.sections, &space->mappings.items[i]))
            result = add_user_mapping(finder, &built.sections, &space->mappings.items[i]);
    if (result == 0)
        result = copy_sections(&built.sections, &layers->last);
    if (result == 0 && !finder->out_of_memory)
        result = array_push(&finder->images->spaces, built);
    if (result < 0 || finder->out_of_memory) {
        array_free(&built.sections);
        return -1;
    }
    return 0;
}

static int build_spaces(struct code_finder *finder, const struct perf_maps *maps,
                        const struct layers *user, const struct layers *kernel, bool has_kcore)
{
    bool kernel_built = false;
    for (size_t i = 0; i < maps->spaces.count; i++) {
        const struct perf_address_space *space = &maps->spaces.items[i];
        bool is_kernel = space->pid == PERF_NO_PID;
        kernel_built = kernel_built || is_kernel;
        if (build_space(finder, space, is_kernel ? kernel : user, !(is_kernel && has_kcore)) < 0)
            return -1;
    }
    struct perf_address_space whole = {.pid = PERF_NO_PID, .to = UINT64_MAX};
    if (!kernel_built && kernel->first.count + kernel->last.count)
        return build_space(finder, &whole, kernel, false);
    return 0;
}

// Divides files named by the user into the kernel's and the processes', and into those that replace
// mappings and those that fill gaps.
static int split_given(const struct code_images *images, const struct code_section_array *given,
                       struct layers *user, struct layers *kernel)
{
    for (size_t i = 0; i < given->count; i++) {
        struct code_section *section = &given->items[i];
        struct layers *whose = section->address >= code_kernel_begins ? kernel : user;
        bool core = images->files.items[section->file].kind == CODE_CORE;
        if (code_add_section(core ? &whose->last : &whose->first, *section) < 0)
            return -1;
    }
    return 0;
}

// Everything that does not depend on the mappings.
static int build_layers(struct code_finder *finder, struct code_section_array *given,
                        const struct perf_maps *maps, struct layers *user, struct layers *kernel,
                        bool *has_kcore, struct error *err)
{
    const struct code_image_options *options = finder->options;
    for (size_t i = 0; i < options->given_count; i++) {
        int result = options->given[i].raw ? code_add_page(finder, given, &options->given[i], err)
                                           : code_add_elf(finder, given, &options->given[i], err);
        if (result < 0)
            return result;
    }
    if (split_given(finder->images, given, user, kernel) < 0)
        return error_set(err, ERROR_FAILED, "out of memory");
    size_t by_hand = kernel->first.count;
    int result = code_add_kcore(finder, maps, &kernel->first, err);
    *has_kcore = kernel->first.count > by_hand;
    return result;
}

int code_images_build(const struct perf_maps *maps, const struct code_image_options *options,
                      struct code_images *out, struct error *err)
{
    memset(out, 0, sizeof *out);
    struct code_finder finder;
    struct code_section_array given = {0};
    struct layers user = {0}, kernel = {0}, everything = {0};
    bool has_kcore = false;
    int result = code_finder_init(&finder, out, options, err);
    if (result == 0)
        result = build_layers(&finder, &given, maps, &user, &kernel, &has_kcore, err);
    if (result == 0 && maps && build_spaces(&finder, maps, &user, &kernel, has_kcore) < 0)
        result = error_set(err, ERROR_FAILED, "out of memory");
    if (result == 0 && !maps) {
        struct perf_address_space whole = {.pid = PERF_NO_PID, .to = UINT64_MAX};
        everything.first = given;
        if (build_space(&finder, &whole, &everything, false) < 0)
            result = error_set(err, ERROR_FAILED, "out of memory");
    }
    if (result == 0) {
        struct code_space *fallback = &out->fallback;
        fallback->to = UINT64_MAX;
        if (copy_sections(&fallback->sections, &user.first) < 0 ||
            copy_sections(&fallback->sections, &user.last) < 0)
            result = error_set(err, ERROR_FAILED, "out of memory");
    }
    array_free(&given);
    free_layers(&user);
    free_layers(&kernel);
    code_finder_free(&finder);
    if (result < 0)
        code_images_free(out);
    return result;
}
