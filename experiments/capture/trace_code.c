// SPDX-License-Identifier: MIT
#include "experiments/capture/trace_code.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/code/code_files.h"
#include "analysis/perf/perf_data.h"
#include "analysis/perf/perf_data_maps.h"
#include "base/array.h"
#include "base/name_pool.h"
#include "base/new_file.h"
#include "experiments/capture/run_time_code.h"
#include "experiments/common/copy_file.h"
#include "experiments/common/run_folder.h"

struct collection {
    const char *folder;
    bool with_files;
    uint64_t reserve_bytes;
    struct ARRAY_OF(uint32_t) ran; // processes, ascending
    struct name_pool *paths;
    struct ARRAY_OF(uint64_t) inodes; // that were mapped first under each of the paths
    struct name_pool *lacking;        // what is not there, by where it would be
    struct trace_code *out;
};

// --- who ran -------------------------------------------------------------------------------------

static int by_number(const void *left, const void *right)
{
    return order_of(*(const uint32_t *)left, *(const uint32_t *)right);
}

static int find_who_ran(struct collection *to, const struct perf_data *data)
{
    int result = 0;
    for (size_t i = 0; i < data->switches.count; i++) {
        const struct perf_switches *one = &data->switches.items[i];
        for (size_t k = 0; k < one->stints.count && result == 0; k++) {
            uint32_t pid = one->stints.items[k].pid;
            if (to->ran.count == 0 || to->ran.items[to->ran.count - 1] != pid)
                result = array_push(&to->ran, pid);
        }
        if (one->has_before && result == 0)
            result = array_push(&to->ran, one->before.pid);
    }
    if (to->ran.count)
        qsort(to->ran.items, to->ran.count, sizeof *to->ran.items, by_number);
    return result;
}

// Where no switches were recorded everybody may have run.
static bool has_run(const struct collection *collection, uint32_t pid)
{
    return collection->ran.count == 0 ||
           bsearch(&pid, collection->ran.items, collection->ran.count, sizeof pid, by_number);
}

// --- files ---------------------------------------------------------------------------------------

// Once, however many processes have it: `to` is where it would be.
static void count_lack(struct collection *collection, uint64_t *counter, const char *path,
                       const char *to)
{
    struct trace_code *out = collection->out;
    const uint32_t before = name_pool_count(collection->lacking);
    const uint32_t number = name_pool_add(collection->lacking, to, strlen(to));
    if (number < before)
        return;
    if (!out->example[0])
        snprintf(out->example, sizeof out->example, "%.290s", path);
    ++*counter;
}

// Makes the folders above a path; those that are there are left alone.
static bool make_folders(char *path)
{
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        bool made = mkdir(path, 0755) == 0 || errno == EEXIST;
        *slash = '/';
        if (!made)
            return false;
    }
    return true;
}

// As the process sees it, if it still runs: it may have a file system of its own.
static bool find_path(uint32_t pid, const char *path, char out[PATH_MAX], struct stat *status)
{
    int length = snprintf(out, PATH_MAX, "/proc/%" PRIu32 "/root%s", pid, path);
    if (length > 0 && length < PATH_MAX && stat(out, status) == 0)
        return S_ISREG(status->st_mode);
    length = snprintf(out, PATH_MAX, "%s", path);
    return length > 0 && length < PATH_MAX && stat(out, status) == 0 && S_ISREG(status->st_mode);
}

static bool is_mapped_file(const struct perf_mapping *mapping, const struct stat *status)
{
    return !mapping->inode || mapping->inode == status->st_ino;
}

// What a process has mapped is there as long as it runs, be it that its path has been removed, or
// is another file's by now. found: what was at the path, where that is another file.
static bool find_source(uint32_t pid, const struct perf_mapping *mapping, char out[PATH_MAX],
                        struct stat *status, bool *found)
{
    *found = find_path(pid, mapping->path, out, status);
    if (*found && is_mapped_file(mapping, status))
        return true;
    snprintf(out, PATH_MAX, "/proc/%" PRIu32 "/map_files/%" PRIx64 "-%" PRIx64, pid, mapping->begin,
             mapping->end);
    return stat(out, status) == 0 && S_ISREG(status->st_mode) && is_mapped_file(mapping, status);
}

// Where a mapped file goes: a path belongs to the inode that is met first, whether or not that can
// be copied; another container's file of the same path is told apart by its own.
static bool name_copy(struct collection *collection, const struct perf_mapping *mapping,
                      char out[PATH_MAX])
{
    const char *path = mapping->path;
    uint32_t number = name_pool_add(collection->paths, path, strlen(path));
    if (number == UINT32_MAX || strstr(path, "/../") ||
        (number == collection->inodes.count && array_push(&collection->inodes, mapping->inode) < 0))
        return false;
    int length = snprintf(out, PATH_MAX, "%s/symfs%s", collection->folder, path);
    if (mapping->inode != collection->inodes.items[number] && length > 0 && length < PATH_MAX)
        length += snprintf(out + length, PATH_MAX - (size_t)length, CODE_BY_INODE, mapping->inode);
    return length > 0 && length < PATH_MAX;
}

static void copy_mapped(struct collection *collection, uint32_t pid,
                        const struct perf_mapping *mapping)
{
    char from[PATH_MAX], to[PATH_MAX];
    struct stat status;
    struct error ignored;
    struct trace_code *out = collection->out;
    bool found;
    if (!name_copy(collection, mapping, to) || access(to, F_OK) == 0)
        return;
    if (!find_source(pid, mapping, from, &status, &found)) {
        count_lack(collection, found ? &out->changed : &out->missing, mapping->path, to);
    } else if (free_disk_bytes(collection->folder) <
               collection->reserve_bytes + (uint64_t)status.st_size) {
        count_lack(collection, &out->unfit, mapping->path, to);
    } else if (!make_folders(to) || copy_file(from, to, &ignored) < 0) {
        count_lack(collection, &out->missing, mapping->path, to);
        unlink(to);
    } else {
        out->files++;
        out->bytes += (uint64_t)status.st_size;
    }
}

// This kernel's, as it is in every process.
static void write_vdso(struct collection *collection)
{
    enum { BYTES_MOST = 8 * 4096 };
    char path[PATH_MAX];
    struct error ignored;
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)getauxval(AT_SYSINFO_EHDR);
    if (!header)
        return;
    size_t bytes = header->e_shoff + (size_t)header->e_shentsize * header->e_shnum;
    snprintf(path, sizeof path, "%.3900s/symfs/[vdso]", collection->folder);
    if (bytes <= BYTES_MOST && make_folders(path) && access(path, F_OK) < 0 &&
        new_file_write(path, (const char *)header, bytes, &ignored) == 0)
        collection->out->files++;
}

// What a compiler at run time calls its code, of processes that wrote it where perf expects it.
static void copy_run_time_map(struct collection *collection, uint32_t pid)
{
    char name[64], from[PATH_MAX], to[PATH_MAX];
    struct stat status;
    struct error ignored;
    snprintf(name, sizeof name, "/tmp/perf-%" PRIu32 ".map", pid);
    snprintf(to, sizeof to, "%.4000s/perf-%" PRIu32 ".map", collection->folder, pid);
    if (access(to, F_OK) == 0 || !find_path(pid, name, from, &status) ||
        free_disk_bytes(collection->folder) < collection->reserve_bytes + (uint64_t)status.st_size)
        return;
    collection->out->maps += copy_file(from, to, &ignored) == 0;
}

// The code that a process made at run time, if it still lives.
static void copy_run_time_code(struct collection *collection, uint32_t pid)
{
    const uint64_t at_most = 256 << 20;
    char to[PATH_MAX], what[64];
    struct error ignored;
    uint64_t bytes, room = free_disk_bytes(collection->folder);
    room = room > collection->reserve_bytes ? room - collection->reserve_bytes : 0;
    snprintf(to, sizeof to, "%.4000s/" CODE_RUN_TIME, collection->folder, pid);
    if (access(to, F_OK) == 0)
        return;
    int result = run_time_code_copy(pid, to, room < at_most ? room : at_most, &bytes, &ignored);
    if (result == 0) {
        collection->out->bytes += bytes;
        collection->out->made += bytes > 0;
        return;
    }
    snprintf(what, sizeof what, "what process %" PRIu32 " made at run time", pid);
    if (result == -ERROR_FAILED)
        count_lack(collection, &collection->out->unfit, what, to);
}

// --- the whole -----------------------------------------------------------------------------------

// A file whose path has been removed is one.
static bool is_file(const char *path)
{
    return path[0] == '/' && !code_in_no_file(path);
}

static void collect_space(struct collection *collection, const struct perf_address_space *space)
{
    if (space->pid == PERF_NO_PID || !has_run(collection, space->pid))
        return;
    for (size_t i = 0; collection->with_files && i < space->mappings.count; i++)
        if (is_file(space->mappings.items[i].path))
            copy_mapped(collection, space->pid, &space->mappings.items[i]);
    copy_run_time_map(collection, space->pid);
    copy_run_time_code(collection, space->pid);
}

int trace_code_collect(const char *recording, const char *folder, bool with_files,
                       uint64_t reserve_bytes, struct trace_code *out, struct error *err)
{
    struct collection collection = {
        .folder = folder, .with_files = with_files, .reserve_bytes = reserve_bytes, .out = out};
    struct perf_limits lean = perf_default_limits;
    struct perf_data data;
    struct perf_maps maps = {0};
    *out = (struct trace_code){0};
    lean.lean = true;
    int result = perf_data_open(recording, &lean, &data, err);
    if (result < 0)
        return result;
    if (!(collection.paths = name_pool_alloc()) || !(collection.lacking = name_pool_alloc()))
        result = error_set(err, ERROR_FAILED, "out of memory for the files of the trace");
    if (result == 0)
        result = perf_maps_build(&data, 0, &maps, err);
    if (result == 0 && find_who_ran(&collection, &data) < 0)
        result = error_set(err, ERROR_FAILED, "out of memory for the processes of the trace");
    if (result == 0 && with_files)
        write_vdso(&collection);
    for (size_t i = 0; i < maps.spaces.count && result == 0; i++)
        collect_space(&collection, &maps.spaces.items[i]);
    array_free(&collection.ran);
    array_free(&collection.inodes);
    name_pool_free(collection.paths);
    name_pool_free(collection.lacking);
    perf_maps_free(&maps);
    perf_data_free(&data);
    return result;
}
