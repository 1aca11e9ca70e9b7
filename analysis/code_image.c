// SPDX-License-Identifier: MIT
//
// Lays out the code of every address space as sections of files; see code_image.h.
#include "analysis/code_image_private.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t kernel_begins = (uint64_t)1 << 63;

const char *code_problem_name(enum code_problem problem)
{
    static const char *const names[CODE_PROBLEMS] = {
        [CODE_NOT_FOUND] = "not found",   [CODE_MISMATCH] = "another build",
        [CODE_UNREADABLE] = "unreadable", [CODE_NEEDS_KCORE] = "needs kcore",
        [CODE_NO_FILE] = "in no file",
    };
    return names[problem];
}

// --- options -------------------------------------------------------------------------------------

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

// --- sections --------------------------------------------------------------------------------

// The first section that ends after the address.
static size_t first_ending_after(const struct code_section_array *sections, uint64_t address)
{
    size_t low = 0, high = sections->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct code_section *section = &sections->items[middle];
        if (section->address + section->bytes <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int insert_section(struct code_section_array *sections, size_t place,
                          struct code_section section)
{
    if (array_push(sections, section) < 0)
        return -1;
    struct code_section *at = &sections->items[place];
    memmove(at + 1, at, (sections->count - 1 - place) * sizeof *at);
    *at = section;
    return 0;
}

static struct code_section part_of(const struct code_section *section, uint64_t begin, uint64_t end)
{
    struct code_section part = *section;
    part.address = begin;
    part.bytes = end - begin;
    part.file_offset += begin - section->address;
    part.elf_address += begin - section->address;
    return part;
}

// Adds what of the section is not covered yet: what comes first wins.
static int add_section(struct code_section_array *sections, struct code_section section)
{
    if (section.bytes > UINT64_MAX - section.address)
        section.bytes = UINT64_MAX - section.address;
    uint64_t at = section.address, end = section.address + section.bytes;
    for (size_t place = first_ending_after(sections, at); at < end; place++) {
        uint64_t free_until = end, go_on = end;
        if (place < sections->count && sections->items[place].address < end) {
            free_until = sections->items[place].address;
            go_on = sections->items[place].address + sections->items[place].bytes;
        }
        if (free_until > at) {
            if (insert_section(sections, place, part_of(&section, at, free_until)) < 0)
                return -1;
            place++;
        }
        at = go_on;
    }
    return 0;
}

static int add_loads(struct code_section_array *sections, const struct elf_facts *facts,
                     uint32_t file, uint64_t moved_by, bool elf_addresses)
{
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
        if (add_section(sections, section) < 0)
            return -1;
    }
    return 0;
}

// --- by hand -----------------------------------------------------------------------------------

static int add_page(struct code_finder *finder, struct code_section_array *sections,
                    const struct code_given *given, struct error *err)
{
    struct stat status;
    if (stat(given->path, &status) < 0)
        return error_set_errno(err, ERROR_INPUT, "--page %s", given->path);
    if (!S_ISREG(status.st_mode) || status.st_size == 0)
        return error_set(err, ERROR_INPUT, "--page %s: not a file with bytes in it", given->path);
    struct elf_facts facts = {.file_bytes = (uint64_t)status.st_size};
    uint32_t file = code_add_file(finder, given->path, given->path, CODE_RAW,
                                  given->address >= kernel_begins, true, &facts);
    if (file == CODE_NONE)
        return error_set(err, ERROR_FAILED, "out of memory");
    struct code_section section = {.address = given->address,
                                   .bytes = (uint64_t)status.st_size,
                                   .elf_address = given->address,
                                   .file = file};
    if (add_section(sections, section) < 0)
        return error_set(err, ERROR_FAILED, "out of memory");
    return 0;
}

static int add_elf(struct code_finder *finder, struct code_section_array *sections,
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
                                  lowest + moved_by >= kernel_begins, true, &facts);
    if (file == CODE_NONE ||
        add_loads(sections, &finder->images->private->facts.items[file], file, moved_by, !core) < 0)
        return error_set(err, ERROR_FAILED, "out of memory");
    return 0;
}

// --- kcore -------------------------------------------------------------------------------------

static char *existing(const char *folder, const char *name)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, name) < 0)
        return NULL;
    if (access(path, R_OK) == 0)
        return path;
    free(path);
    return NULL;
}

static int add_kcore(struct code_finder *finder, struct code_section_array *kernel,
                     struct error *err)
{
    const struct code_image_options *options = finder->options;
    struct code_images *images = finder->images;
    bool asked = options->kcore_dir != NULL;
    char *folder = NULL;
    if (asked)
        folder = strdup(options->kcore_dir);
    else if (options->recording)
        folder = existing(options->recording, "kcore_dir");
    if (!folder)
        return 0;
    char *path = existing(folder, "kcore");
    images->kallsyms = existing(folder, "kallsyms");
    images->modules = existing(folder, "modules");
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
                 add_loads(kernel, &images->private->facts.items[file], file, 0, false) < 0)
            result = error_set(err, ERROR_FAILED, "out of memory");
    } else if (asked) {
        result = error_set(err, ERROR_INPUT, "%s: has no kcore that can be read", folder);
    }
    free(path);
    free(folder);
    return result;
}

// --- mappings ----------------------------------------------------------------------------------

static int add_user_mapping(struct code_finder *finder, struct code_section_array *sections,
                            const struct perf_mapping *mapping)
{
    uint32_t file = code_find_file(finder, mapping, false);
    if (file == CODE_NONE)
        return 0;
    const struct elf_facts *facts = &finder->images->private->facts.items[file];
    if (mapping->file_offset >= facts->file_bytes)
        return 0; // pages behind the file's end hold nothing
    uint64_t bytes = mapping->end - mapping->begin;
    if (bytes > facts->file_bytes - mapping->file_offset)
        bytes = facts->file_bytes - mapping->file_offset;
    struct code_section section = {.address = mapping->begin,
                                   .bytes = bytes,
                                   .file_offset = mapping->file_offset,
                                   .elf_address =
                                       elf_address_of_offset(facts, mapping->file_offset),
                                   .file = file};
    return add_section(sections, section);
}

// vmlinux: moved by as much as its first code symbol, which the mapping's name ends with ("_text",
// "_stext"), was when it ran.
static int add_kernel_mapping(struct code_finder *finder, struct code_section_array *sections,
                              const struct perf_mapping *mapping)
{
    uint32_t file = code_find_file(finder, mapping, true);
    if (file == CODE_NONE)
        return 0;
    const struct elf_facts *facts = &finder->images->private->facts.items[file];
    const char *bracket = strchr(mapping->path, ']');
    uint64_t linked = 0;
    if (!bracket || !bracket[1] ||
        !elf_symbol_value(finder->images->files.items[file].path, bracket + 1, &linked)) {
        linked = UINT64_MAX;
        for (size_t i = 0; i < facts->loads.count; i++)
            if (facts->loads.items[i].executable && facts->loads.items[i].address < linked)
                linked = facts->loads.items[i].address;
    }
    return add_loads(sections, facts, file, mapping->begin - linked, true);
}

static int copy_sections(struct code_section_array *to, const struct code_section_array *from)
{
    for (size_t i = 0; i < from->count; i++)
        if (add_section(to, from->items[i]) < 0)
            return -1;
    return 0;
}

static int build_space(struct code_finder *finder, const struct perf_address_space *space,
                       const struct code_section_array *first, bool resolve)
{
    struct code_space built = {.pid = space->pid, .from = space->from, .to = space->to};
    bool kernel = space->pid == PERF_NO_PID;
    int result = copy_sections(&built.sections, first);
    for (size_t i = 0; resolve && result == 0 && i < space->mappings.count; i++)
        result = kernel ? add_kernel_mapping(finder, &built.sections, &space->mappings.items[i])
                        : add_user_mapping(finder, &built.sections, &space->mappings.items[i]);
    if (result == 0 && !finder->out_of_memory)
        result = array_push(&finder->images->spaces, built);
    if (result < 0 || finder->out_of_memory) {
        array_free(&built.sections);
        return -1;
    }
    return 0;
}

static int build_spaces(struct code_finder *finder, const struct perf_maps *maps,
                        const struct code_section_array *user,
                        const struct code_section_array *kernel, bool has_kcore)
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
    if (!kernel_built && kernel->count)
        return build_space(finder, &whole, kernel, false);
    return 0;
}

// Sorts sections given by hand into the kernel's and everybody else's.
static int split_given(const struct code_section_array *given, struct code_section_array *user,
                       struct code_section_array *kernel)
{
    for (size_t i = 0; i < given->count; i++) {
        struct code_section *section = &given->items[i];
        if (add_section(section->address >= kernel_begins ? kernel : user, *section) < 0)
            return -1;
    }
    return 0;
}

int code_images_build(const struct perf_maps *maps, const struct code_image_options *options,
                      struct code_images *out, struct error *err)
{
    memset(out, 0, sizeof *out);
    struct code_finder finder = {.images = out, .options = options};
    struct code_section_array given = {0}, user = {0}, kernel = {0};
    out->private = calloc(1, sizeof *out->private);
    int result = out->private ? 0 : error_set(err, ERROR_FAILED, "out of memory");
    for (size_t i = 0; result == 0 && i < options->given_count; i++)
        result = options->given[i].raw ? add_page(&finder, &given, &options->given[i], err)
                                       : add_elf(&finder, &given, &options->given[i], err);
    if (result == 0 && split_given(&given, &user, &kernel) < 0)
        result = error_set(err, ERROR_FAILED, "out of memory");
    size_t by_hand = kernel.count;
    if (result == 0)
        result = add_kcore(&finder, &kernel, err);
    if (result == 0 && maps &&
        build_spaces(&finder, maps, &user, &kernel, kernel.count > by_hand) < 0)
        result = error_set(err, ERROR_FAILED, "out of memory");
    if (result == 0 && !maps) {
        struct perf_address_space whole = {.pid = PERF_NO_PID, .to = UINT64_MAX};
        if (build_space(&finder, &whole, &given, false) < 0)
            result = error_set(err, ERROR_FAILED, "out of memory");
    }
    array_free(&given);
    array_free(&kernel);
    if (result < 0) {
        array_free(&user);
        code_images_free(out);
        return result;
    }
    out->private->fallback = (struct code_space){.to = UINT64_MAX, .sections = user};
    return 0;
}

void code_images_free(struct code_images *images)
{
    for (size_t i = 0; i < images->files.count; i++) {
        free(images->files.items[i].path);
        free(images->files.items[i].mapped_path);
    }
    for (size_t i = 0; i < images->spaces.count; i++)
        array_free(&images->spaces.items[i].sections);
    for (size_t i = 0; i < images->complaints.count; i++)
        free(images->complaints.items[i].text);
    array_free(&images->files);
    array_free(&images->spaces);
    array_free(&images->complaints);
    free(images->kallsyms);
    free(images->modules);
    struct code_images_private *private = images->private;
    if (private) {
        for (size_t i = 0; i < private->facts.count; i++)
            elf_facts_free(&private->facts.items[i]);
        for (size_t i = 0; i < private->answers.count; i++)
            free(private->answers.items[i].mapped_path);
        for (size_t i = 0; i < private->descriptors.count; i++)
            close(private->descriptors.items[i]);
        array_free(&private->facts);
        array_free(&private->answers);
        array_free(&private->descriptors);
        array_free(&private->fallback.sections);
        free(private);
    }
    memset(images, 0, sizeof *images);
}

// --- asking ------------------------------------------------------------------------------------

const struct code_space *code_images_at(const struct code_images *images, uint32_t pid,
                                        uint64_t time)
{
    size_t low = 0, high = images->spaces.count; // the first behind (pid, time)
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct code_space *space = &images->spaces.items[middle];
        if (space->pid < pid || (space->pid == pid && space->from <= time))
            low = middle + 1;
        else
            high = middle;
    }
    const struct code_space *space = low ? &images->spaces.items[low - 1] : NULL;
    if (space && space->pid == pid && time < space->to)
        return space;
    return images->private->fallback.sections.count ? &images->private->fallback : NULL;
}

const struct code_section *code_space_find(const struct code_space *space, uint64_t address)
{
    size_t place = first_ending_after(&space->sections, address);
    if (place < space->sections.count && space->sections.items[place].address <= address)
        return &space->sections.items[place];
    return NULL;
}
