// SPDX-License-Identifier: MIT
//
// Lays out the code of every address space as sections of files; see code_image.h.
#include "analysis/code/code_image_private.h"
#include "base/array.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *code_problem_name(enum code_problem problem)
{
    static const char *const names[CODE_PROBLEMS] = {
        [CODE_NOT_FOUND] = "not found",   [CODE_MISMATCH] = "another build",
        [CODE_UNREADABLE] = "unreadable", [CODE_NEEDS_KCORE] = "needs kcore",
        [CODE_NO_FILE] = "in no file",
    };
    return names[problem];
}

// --- sections --------------------------------------------------------------------------------

// The first section that ends after the address.
static size_t first_ending_after(const struct code_section_array *sections, uint64_t address)
{
    return array_bound(0, sections->count, at,
                       sections->items[at].address + sections->items[at].bytes <= address);
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
int code_add_section(struct code_section_array *sections, struct code_section section)
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

int code_add_loads(struct code_section_array *sections, const struct elf_facts *facts,
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
        if (code_add_section(sections, section) < 0)
            return -1;
    }
    return 0;
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
    return code_add_section(sections, section);
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
    return code_add_loads(sections, facts, file, mapping->begin - linked, true);
}

static int copy_sections(struct code_section_array *to, const struct code_section_array *from)
{
    for (size_t i = 0; i < from->count; i++)
        if (code_add_section(to, from->items[i]) < 0)
            return -1;
    return 0;
}

// What every space gets besides its mappings.
struct layers {
    struct code_section_array first; // wins over mappings: given by hand, kcore
    struct code_section_array last;  // fills what they leave: core dumps, which have no symbols
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
    for (size_t i = 0; resolve && result == 0 && i < space->mappings.count; i++)
        result = kernel ? add_kernel_mapping(finder, &built.sections, &space->mappings.items[i])
                        : add_user_mapping(finder, &built.sections, &space->mappings.items[i]);
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

// Sorts what was given by hand into the kernel's and everybody else's, first and last.
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
    struct code_finder finder = {.images = out, .options = options};
    struct code_section_array given = {0};
    struct layers user = {0}, kernel = {0}, everything = {0};
    bool has_kcore = false;
    out->private = calloc(1, sizeof *out->private);
    if (out->private)
        out->private->questions = name_pool_alloc();
    int result =
        out->private && out->private->questions ? 0 : error_set(err, ERROR_FAILED, "out of memory");
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
        struct code_space *fallback = &out->private->fallback;
        fallback->to = UINT64_MAX;
        if (copy_sections(&fallback->sections, &user.first) < 0 ||
            copy_sections(&fallback->sections, &user.last) < 0)
            result = error_set(err, ERROR_FAILED, "out of memory");
    }
    array_free(&given);
    free_layers(&user);
    free_layers(&kernel);
    if (result < 0)
        code_images_free(out);
    return result;
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
        name_pool_free(private->questions);
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
    // the first behind (pid, time)
    size_t low =
        array_bound(0, images->spaces.count, at,
                    images->spaces.items[at].pid < pid || (images->spaces.items[at].pid == pid &&
                                                           images->spaces.items[at].from <= time));
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
