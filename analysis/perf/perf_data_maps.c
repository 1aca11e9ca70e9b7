// SPDX-License-Identifier: MIT
//
// Replays mapping events into address spaces; see perf_data_maps.h.
#include "analysis/perf/perf_data_maps.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/perf/perf_data_events.h"
#include "base/array.h"
#include "base/hash.h"
#include "base/map.h"

enum { MAPPINGS_MOST_IN_SPACE = 1 << 16 }; // Linux allows 65,530 unless told otherwise
static const uint64_t default_limit = 16 * 1000 * 1000;

#define SHARED_PATH UINT64_MAX // instead of an inode

struct current { // the latest space of a process
    uint32_t pid;
    size_t space; // index
};
struct current_array ARRAY_OF(struct current);

struct named_id { // a build-id of the header, found by path
    const char *path;
    const struct perf_build_id *id;
    uint64_t inode; // of the first mapping of that path
};

struct builder {
    struct perf_maps *maps;
    struct current_array current;
    struct map processes; // the mapping's place in it
    struct named_id *named;
    size_t named_count;
    bool paths_are_shared; // files of different inodes have one path
    uint64_t mappings, limit;
    bool out_of_memory;
};

// --- build-ids of the header -------------------------------------------------------------------

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct named_id *)a)->path, ((const struct named_id *)b)->path);
}

static int index_build_ids(struct builder *builder, const struct perf_data *data)
{
    size_t count = data->build_ids.count;
    if (!count)
        return 0;
    builder->named = calloc(count, sizeof *builder->named);
    if (!builder->named)
        return -1;
    for (size_t i = 0; i < count; i++)
        builder->named[i] =
            (struct named_id){data->build_ids.items[i].path, &data->build_ids.items[i], 0};
    builder->named_count = count;
    qsort(builder->named, count, sizeof *builder->named, by_path);
    return 0;
}

static struct named_id *build_id_of(const struct builder *builder, const char *path)
{
    // "[kernel.kallsyms]_text" is recorded with the build-id of "[kernel.kallsyms]".
    char kernel[64] = "";
    const char *bracket = path[0] == '[' ? strchr(path, ']') : NULL;
    if (bracket && bracket[1] && (size_t)(bracket - path) + 2 <= sizeof kernel) {
        memcpy(kernel, path, (size_t)(bracket - path) + 1);
        path = kernel;
    }
    struct named_id wanted = {.path = path};
    if (!builder->named_count)
        return NULL;
    return bsearch(&wanted, builder->named, builder->named_count, sizeof *builder->named, by_path);
}

// Gives a mapping the build-id that the header has for its path.
static void name_build(struct builder *builder, struct perf_mapping *mapping)
{
    struct named_id *named = build_id_of(builder, mapping->path);
    if (!named)
        return;
    if (!named->inode) {
        named->inode = mapping->inode;
    } else if (mapping->inode && mapping->inode != named->inode) {
        named->inode = SHARED_PATH;
        builder->paths_are_shared = true;
    }
    mapping->build_id = named->id->bytes;
    mapping->build_id_size = named->id->size;
}

// Containers have different files of one path: which of them the header's build-id is of, if it has
// not several, the path does not tell.
static void forget_shared_paths(struct builder *builder)
{
    for (size_t i = 0; i < builder->maps->spaces.count && builder->paths_are_shared; i++) {
        const struct perf_mapping_array *mappings = &builder->maps->spaces.items[i].mappings;
        for (size_t k = 0; k < mappings->count; k++) {
            struct perf_mapping *mapping = &mappings->items[k];
            const struct named_id *named = build_id_of(builder, mapping->path);
            if (named && named->inode == SHARED_PATH && mapping->build_id == named->id->bytes) {
                mapping->build_id = NULL;
                mapping->build_id_size = 0;
            }
        }
    }
}

// --- spaces ----------------------------------------------------------------------------------

static uint32_t find_current(const struct builder *builder, uint32_t pid)
{
    return map_find(&builder->processes, hash64(pid), at, builder->current.items[at].pid == pid);
}

static int current_set(struct builder *builder, uint32_t pid, size_t space)
{
    uint32_t found = find_current(builder, pid);
    if (found != MAP_NONE) {
        builder->current.items[found].space = space;
        return 0;
    }
    if (array_push(&builder->current, (struct current){pid, space}) < 0)
        return -1;
    return map_add(&builder->processes, hash64(pid), builder->current.count - 1);
}

static struct perf_address_space *current_space(struct builder *builder, uint32_t pid)
{
    uint32_t found = find_current(builder, pid);
    return found == MAP_NONE ? NULL
                             : &builder->maps->spaces.items[builder->current.items[found].space];
}

// Ends the process's space at `from` and begins another one with copies of the given mappings.
static struct perf_address_space *begin_space(struct builder *builder, uint32_t pid, uint64_t from,
                                              const struct perf_mapping_array *copied)
{
    struct perf_address_space fresh = {.pid = pid, .from = from, .to = UINT64_MAX};
    size_t count = copied ? copied->count : 0;
    if (builder->mappings + count > builder->limit) {
        builder->maps->over_limit += count;
        count = 0;
    }
    if (count) {
        if (array_reserve(&fresh.mappings, count) < 0)
            goto no_memory;
        memcpy(fresh.mappings.items, copied->items, count * sizeof *copied->items);
        fresh.mappings.count = count;
        builder->mappings += count;
    }
    struct perf_address_space *before = current_space(builder, pid);
    if (before && before->from == from) { // nothing happened in it
        builder->mappings -= before->mappings.count;
        array_free(&before->mappings);
        before->mappings = fresh.mappings;
        return before;
    }
    if (before)
        before->to = from;
    size_t space = builder->maps->spaces.count;
    if (array_push(&builder->maps->spaces, fresh) < 0)
        goto no_memory;
    if (current_set(builder, pid, space) < 0) {
        builder->out_of_memory = true;
        return NULL;
    }
    return &builder->maps->spaces.items[space];

no_memory:
    array_free(&fresh.mappings);
    builder->out_of_memory = true;
    return NULL;
}

// --- mappings ----------------------------------------------------------------------------------

// The first mapping that ends after the address.
static size_t first_ending_after(const struct perf_mapping_array *mappings, uint64_t address)
{
    return array_bound(0, mappings->count, at, mappings->items[at].end <= address);
}

// Whether both map the same bytes where they overlap.
static bool same_contents(const struct perf_mapping *a, const struct perf_mapping *b)
{
    return a->begin - a->file_offset == b->begin - b->file_offset &&
           strcmp(a->path, b->path) == 0 && a->inode == b->inode &&
           a->build_id_size == b->build_id_size &&
           (a->build_id_size == 0 || memcmp(a->build_id, b->build_id, a->build_id_size) == 0);
}

static bool changes_meaning(const struct perf_mapping_array *mappings,
                            const struct perf_mapping *mapping, bool executable)
{
    for (size_t i = first_ending_after(mappings, mapping->begin);
         i < mappings->count && mappings->items[i].begin < mapping->end; i++)
        if (!executable || !same_contents(&mappings->items[i], mapping))
            return true;
    return false;
}

static void insert_mapping(struct builder *builder, struct perf_mapping_array *mappings,
                           size_t place, struct perf_mapping mapping)
{
    if (builder->mappings >= builder->limit || mappings->count >= MAPPINGS_MOST_IN_SPACE) {
        builder->maps->over_limit++;
        return;
    }
    if (array_push(mappings, mapping) < 0) {
        builder->out_of_memory = true;
        return;
    }
    builder->mappings++;
    struct perf_mapping *at = &mappings->items[place];
    memmove(at + 1, at, (mappings->count - 1 - place) * sizeof *at);
    *at = mapping;
}

static void remove_mappings(struct builder *builder, struct perf_mapping_array *mappings,
                            size_t from, size_t count)
{
    struct perf_mapping *at = &mappings->items[from];
    memmove(at, at + count, (mappings->count - from - count) * sizeof *at);
    mappings->count -= count;
    builder->mappings -= count;
}

// Removes [begin, end) from the mappings.
static void clear_range(struct builder *builder, struct perf_mapping_array *mappings,
                        uint64_t begin, uint64_t end)
{
    size_t first = first_ending_after(mappings, begin);
    if (first < mappings->count && mappings->items[first].begin < begin) {
        struct perf_mapping rest = mappings->items[first];
        mappings->items[first++].end = begin;
        if (rest.end > end) { // the mapping continues after the range
            rest.file_offset += end - rest.begin;
            rest.begin = end;
            insert_mapping(builder, mappings, first, rest);
            return;
        }
    }
    size_t covered = 0;
    while (first + covered < mappings->count && mappings->items[first + covered].end <= end)
        covered++;
    if (covered)
        remove_mappings(builder, mappings, first, covered);
    if (first < mappings->count && mappings->items[first].begin < end) {
        mappings->items[first].file_offset += end - mappings->items[first].begin;
        mappings->items[first].begin = end;
    }
}

static void add_mapping(struct builder *builder, uint32_t pid, uint64_t time,
                        const struct perf_mapping *mapping, bool executable)
{
    struct perf_address_space *space = current_space(builder, pid);
    if (!space && !executable)
        return;
    if (!space)
        space = begin_space(builder, pid, 0, NULL);
    if (!space)
        return;
    if (time > space->from && changes_meaning(&space->mappings, mapping, executable)) {
        // A copy of the array's struct: begin_space may move the spaces.
        struct perf_mapping_array mappings = space->mappings;
        space = begin_space(builder, pid, time, &mappings);
        if (!space)
            return;
    }
    clear_range(builder, &space->mappings, mapping->begin, mapping->end);
    if (executable)
        insert_mapping(builder, &space->mappings,
                       first_ending_after(&space->mappings, mapping->begin), *mapping);
}

static void replay_mmap(struct builder *builder, const struct perf_event *event)
{
    struct perf_mmap mmap;
    perf_event_mmap(event, &mmap);
    uint64_t end;
    if (__builtin_add_overflow(mmap.address, mmap.bytes, &end))
        end = UINT64_MAX;
    if (end <= mmap.address)
        return;
    struct perf_mapping mapping = {.begin = mmap.address,
                                   .end = end,
                                   .file_offset = mmap.file_offset,
                                   .path = mmap.path,
                                   .inode = mmap.inode};
    if (mmap.build_id_size) {
        mapping.build_id = event->record + 44;
        mapping.build_id_size = mmap.build_id_size;
    } else {
        name_build(builder, &mapping);
    }
    bool kernel = mmap.kernel || mmap.pid == PERF_NO_PID;
    add_mapping(builder, kernel ? PERF_NO_PID : mmap.pid, event->time, &mapping, mmap.executable);
}

static void replay_fork(struct builder *builder, const struct perf_event *event)
{
    struct perf_task task;
    perf_event_task(event, &task);
    if (task.pid == task.parent_pid) // a thread
        return;
    if (event->time == 0 || event->misc & PERF_MISC_FORK_EXEC) // synthesized
        return;
    const struct perf_address_space *parent = current_space(builder, task.parent_pid);
    struct perf_mapping_array mappings = parent ? parent->mappings : (struct perf_mapping_array){0};
    begin_space(builder, task.pid, event->time, &mappings);
}

static void replay_exec(struct builder *builder, const struct perf_event *event)
{
    struct perf_comm comm;
    perf_event_comm(event, &comm);
    if (!comm.exec || event->time == 0)
        return;
    struct perf_address_space *space = current_space(builder, comm.pid);
    if (!space || !space->mappings.count)
        return; // its later mappings replace nothing
    if (space->from < event->time) {
        begin_space(builder, comm.pid, event->time, NULL);
    } else {
        builder->mappings -= space->mappings.count;
        space->mappings.count = 0;
    }
}

static int by_pid_and_time(const void *a, const void *b)
{
    const struct perf_address_space *left = a, *right = b;
    return order_of(left->pid, right->pid) ?: order_of(left->from, right->from);
}

int perf_maps_build(const struct perf_data *data, uint64_t mapping_limit, struct perf_maps *out,
                    struct error *err)
{
    memset(out, 0, sizeof *out);
    struct builder builder = {.maps = out, .limit = mapping_limit ? mapping_limit : default_limit};
    builder.out_of_memory = index_build_ids(&builder, data) < 0;
    for (size_t i = 0; i < data->events.count && !builder.out_of_memory; i++) {
        const struct perf_event *event = &data->events.items[i];
        if (event->type == PERF_MMAP || event->type == PERF_MMAP2)
            replay_mmap(&builder, event);
        else if (event->type == PERF_FORK)
            replay_fork(&builder, event);
        else if (event->type == PERF_COMM)
            replay_exec(&builder, event);
    }
    forget_shared_paths(&builder);
    array_sort(&out->spaces, by_pid_and_time);
    array_free(&builder.current);
    map_free(&builder.processes);
    free(builder.named);
    if (!builder.out_of_memory)
        return 0;
    perf_maps_free(out);
    return error_set(err, ERROR_FAILED, "out of memory for the mappings of %s",
                     data->input_count ? data->inputs[0].name : "the recording");
}

void perf_maps_free(struct perf_maps *maps)
{
    for (size_t i = 0; i < maps->spaces.count; i++)
        array_free(&maps->spaces.items[i].mappings);
    array_free(&maps->spaces);
}

const struct perf_address_space *perf_maps_at(const struct perf_maps *maps, uint32_t pid,
                                              uint64_t time)
{
    // the first one after (pid, time)
    size_t low =
        array_bound(0, maps->spaces.count, at,
                    maps->spaces.items[at].pid < pid ||
                        (maps->spaces.items[at].pid == pid && maps->spaces.items[at].from <= time));
    if (!low)
        return NULL;
    const struct perf_address_space *space = &maps->spaces.items[low - 1];
    return space->pid == pid && time < space->to ? space : NULL;
}

const struct perf_mapping *perf_address_space_find(const struct perf_address_space *space,
                                                   uint64_t address)
{
    size_t place = first_ending_after(&space->mappings, address);
    if (place < space->mappings.count && space->mappings.items[place].begin <= address)
        return &space->mappings.items[place];
    return NULL;
}
