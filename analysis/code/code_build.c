// SPDX-License-Identifier: MIT
//
// Lays out the code of every address space as sections of files.
#include "analysis/code/code_build.h"

#include "analysis/code/code_given.h"
#include "analysis/code/code_kcore.h"
#include "base/array.h"

#include <string.h>

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
