// SPDX-License-Identifier: MIT
//
// The kernel's code as it was when it ran: a copy of /proc/kcore with kallsyms and modules, made by
// `perf record --kcore` beside the recording or by `perf buildid-cache --kcore` in perf's cache.
#include "analysis/code/code_kcore.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

int code_add_kcore(struct code_finder *finder, const struct perf_maps *maps,
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
    if (!folder)
        return 0;
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
