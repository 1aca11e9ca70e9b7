// SPDX-License-Identifier: MIT
#include "analysis/pt/image/pt_code.h"

#include "analysis/code/code_build.h"

#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// --- names -------------------------------------------------------------------------------------

// A function's key: its file and its name's number, so that the cold part of a function, which the
// compiler put elsewhere as "name.cold", has the same. Bits: the kernel's, 7 set, 24 file, 32 name;
// never 0.
enum { NO_FILE = 0xfffffe, MOST_SETS = 128 };

static uint64_t key_of(bool kernel, uint64_t set, uint32_t file, uint32_t name)
{
    uint64_t place = file < NO_FILE ? file : NO_FILE;
    return (uint64_t)kernel << 63 | set << 56 | (place + 1) << 32 | name;
}

static bool is_cold(const char *name, size_t *base_length)
{
    const char *cold = strstr(name, ".cold");
    if (!cold || (cold[5] != '\0' && cold[5] != '.'))
        return false;
    *base_length = (size_t)(cold - name);
    return true;
}

static size_t set_number(const struct pt_code *code, const struct pt_code_set *set)
{
    size_t i = 0;
    while (code->sets.items[i] != set)
        i++;
    return i;
}

static bool code_find_function(void *context, uint32_t space, uint64_t address,
                               struct pt_function *out)
{
    const struct pt_code *code = context;
    struct symbol_hit hit;
    uint32_t state = pt_state_of(space);
    space = pt_space_of(space);
    if (space >= code->places.count || !code->places.items[space].set)
        space = PT_SPACE_ALL;
    const struct pt_code_place *place = &code->places.items[space];
    uint64_t time = place->time;
    if (address >> 63 && code->patches)
        time = pt_patches_begin(code->patches, state);
    if (!place->set)
        return false;
    if (!symbols_find(place->set->symbols, place->pid, time, address, &hit)) {
        *out = (struct pt_function){.low = hit.begin, .high = hit.end};
        return false;
    }
    size_t length;
    struct name_pool *names = symbols_names(place->set->symbols);
    const char *name = name_pool_text(names, hit.name);
    uint32_t number = hit.name;
    bool cold = is_cold(name, &length);
    if (cold)
        number = name_pool_find(names, name, length);
    if (number == UINT32_MAX) // the rest of the name is not in the symbol
        number = hit.name;
    *out = (struct pt_function){
        .low = hit.begin,
        .high = hit.end,
        .key = key_of(address >> 63 != 0, set_number(code, place->set), hit.file, number),
        .whole = !cold || number == hit.name};
    return true;
}

static char *code_function_name(void *context, uint64_t key, char *out, size_t out_bytes)
{
    const struct pt_code *code = context;
    size_t set = (size_t)(key >> 56) % MOST_SETS;
    if (set >= code->sets.count) {
        snprintf(out, out_bytes, "[unknown]");
        return out;
    }
    const char *text = name_pool_text(symbols_names(code->sets.items[set]->symbols), (uint32_t)key);
    char *readable = symbol_demangle(text);
    snprintf(out, out_bytes, "%s", readable ? readable : text);
    free(readable);
    return out;
}

// --- building ----------------------------------------------------------------------------------

int pt_code_init(struct pt_code *code, struct error *err)
{
    *code = (struct pt_code){
        .symbols = {.context = code, .find = code_find_function, .name = code_function_name}};
    if (array_push(&code->places, (struct pt_code_place){.pid = PERF_NO_PID}) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for address spaces");
    return 0;
}

void pt_code_free(struct pt_code *code)
{
    for (size_t i = 0; i < code->sets.count; i++) {
        symbols_free(code->sets.items[i]->symbols);
        code_images_free(&code->sets.items[i]->images);
        array_free(&code->sets.items[i]->numbers);
        free(code->sets.items[i]);
    }
    array_free(&code->sets);
    array_free(&code->places);
}

static int add_sections(struct pt_memory *memory, const struct code_images *images,
                        const struct code_space *from, uint32_t space, struct error *err)
{
    int result = 0;
    for (size_t i = 0; result == 0 && i < from->sections.count; i++) {
        const struct code_section *section = &from->sections.items[i];
        result =
            pt_memory_add_file(memory, images->files.items[section->file].path,
                               section->file_offset, section->bytes, section->address, space, err);
    }
    return result;
}

static struct pt_code_set *add_set(struct pt_code *code, struct error *err)
{
    struct pt_code_set *set = calloc(1, sizeof *set);
    if (!set || code->sets.count >= MOST_SETS || array_push(&code->sets, set) < 0) {
        free(set);
        error_set(err, ERROR_FAILED, "out of memory for code");
        return NULL;
    }
    return set;
}

// recording: its path, beside which JIT maps may lie; NULL: none.
static int load_symbols(struct pt_code_set *set, const struct perf_data *data,
                        const char *recording, struct error *err)
{
    char *copy = recording ? strdup(recording) : NULL;
    set->symbols = symbols_alloc(data, &set->images, copy ? dirname(copy) : NULL, NULL, err);
    free(copy);
    return set->symbols ? symbols_load_all(set->symbols, err) : -ERROR_FAILED;
}

static int set_place(struct pt_code *code, uint32_t space, struct pt_code_place place,
                     struct error *err)
{
    if (space < code->places.count)
        code->places.items[space] = place;
    else if (array_push(&code->places, place) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for address spaces");
    return 0;
}

int pt_code_add_given(struct pt_code *code, struct pt_memory *memory,
                      const struct code_given *given, size_t count, uint32_t space,
                      struct error *err)
{
    struct pt_code_set *set = add_set(code, err);
    if (!set)
        return -ERROR_FAILED;
    memory->kernel_apart = false; // the names in each space are its own
    struct code_image_options options = {.given = given, .given_count = count};
    int result = code_images_build(NULL, &options, &set->images, err);
    for (size_t i = 0; result == 0 && i < set->images.spaces.count; i++)
        result = add_sections(memory, &set->images, &set->images.spaces.items[i], space, err);
    if (result == 0)
        result = load_symbols(set, NULL, NULL, err);
    if (result == 0)
        result = set_place(code, space, (struct pt_code_place){set, PERF_NO_PID, 0}, err);
    return result;
}

int pt_code_add_recording(struct pt_code *code, struct pt_memory *memory,
                          const struct perf_data *data, const struct perf_maps *maps,
                          const struct code_image_options *options, struct error *err)
{
    struct pt_code_set *set = add_set(code, err);
    if (!set)
        return -ERROR_FAILED;
    int result = code_images_build(maps, options, &set->images, err);
    if (result == 0)
        result = set_place(code, PT_SPACE_ALL, (struct pt_code_place){set, PERF_NO_PID, 0}, err);
    for (size_t i = 0; result == 0 && i < set->images.spaces.count; i++) {
        const struct code_space *from = &set->images.spaces.items[i];
        bool kernel = from->pid == PERF_NO_PID;
        uint32_t space = kernel ? PT_SPACE_ALL : (uint32_t)code->places.count;
        if (space >= PT_SPACES_MOST)
            return error_set(err, ERROR_FAILED, "more than %d address spaces: cannot be told apart",
                             PT_SPACES_MOST);
        struct pt_code_place place = {set, from->pid, from->from};
        result = add_sections(memory, &set->images, from, space, err);
        if (result == 0 && !kernel)
            result = set_place(code, space, place, err);
        if (result == 0 && array_push(&set->numbers, space) < 0)
            result = error_set(err, ERROR_FAILED, "out of memory for address spaces");
    }
    memory->kernel_apart = code->sets.count == 1;
    return result < 0 ? result : load_symbols(set, data, options->recording, err);
}

uint32_t pt_code_space_at(const struct pt_code *code, uint32_t pid, uint64_t time, uint64_t *until)
{
    *until = UINT64_MAX;
    for (size_t i = 0; i < code->sets.count && pid != PERF_NO_PID; i++) {
        const struct pt_code_set *set = code->sets.items[i];
        const struct code_space *space = code_images_at(&set->images, pid, time);
        size_t index = space ? (size_t)(space - set->images.spaces.items) : SIZE_MAX;
        if (index >= set->numbers.count)
            continue;
        *until = space->to;
        return set->numbers.items[index];
    }
    return PT_SPACE_ALL;
}

bool pt_code_locate(const struct pt_code *code, uint64_t address, char *out, size_t out_bytes)
{
    for (size_t i = 0; i < code->sets.count; i++) {
        const struct code_images *images = &code->sets.items[i]->images;
        for (size_t k = 0; k < images->spaces.count; k++) {
            const struct code_section *at = code_space_find(&images->spaces.items[k], address);
            const struct code_file *file = at ? &images->files.items[at->file] : NULL;
            if (!file || file->kernel || file->kind != CODE_ELF)
                continue;
            const char *name = strrchr(file->mapped_path, '/');
            snprintf(out, out_bytes, "%s+0x%" PRIx64, name ? name + 1 : file->mapped_path,
                     at->elf_address + (address - at->address));
            return true;
        }
    }
    return false;
}
