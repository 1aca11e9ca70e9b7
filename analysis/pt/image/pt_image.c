// SPDX-License-Identifier: MIT
#include "analysis/pt/image/pt_image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// How much libipt may keep mapped, including its block caches. Without a limit above the sections'
// size it unmaps and forgets on every change of section, and decoding is a hundred times slower.
static const uint64_t cache_limit = UINT64_MAX / 4;

void pt_memory_free(struct pt_memory *memory)
{
    for (size_t i = 0; i < memory->sections.count; i++)
        free(memory->sections.items[i].path);
    for (size_t i = 0; i < memory->descriptors.count; i++)
        close(memory->descriptors.items[i]);
    array_free(&memory->descriptors);
    array_free(&memory->sections);
}

int pt_memory_add_file(struct pt_memory *memory, const char *path, uint64_t offset, uint64_t bytes,
                       uint64_t address, uint32_t space, struct error *err)
{
    struct stat status;
    if (stat(path, &status) < 0)
        return error_set_errno(err, ERROR_INPUT, "%s: cannot read code from it", path);
    if (!S_ISREG(status.st_mode))
        return error_set(err, ERROR_INPUT, "%s: not a regular file, so not code", path);
    if (offset >= (uint64_t)status.st_size || bytes == 0)
        return error_set(err, ERROR_INPUT,
                         "%s: nothing there to be code at 0x%" PRIx64 ": %" PRIu64
                         " bytes at offset %" PRIu64 " of %" PRIu64,
                         path, address, bytes, offset, (uint64_t)status.st_size);
    if (bytes > (uint64_t)status.st_size - offset)
        bytes = (uint64_t)status.st_size - offset;
    if (bytes - 1 > UINT64_MAX - address)
        return error_set(err, ERROR_INPUT,
                         "%s: %" PRIu64 " bytes at address 0x%" PRIx64 " reach over the end of the "
                         "address space",
                         path, bytes, address);
    struct pt_section_entry entry = {
        .path = strdup(path),
        .offset = offset,
        .bytes = bytes,
        .address = address,
        .space = space,
        .end_state = PT_STATES_MOST,
    };
    if (!entry.path || array_push(&memory->sections, entry) < 0) {
        free(entry.path);
        return error_set(err, ERROR_FAILED, "out of memory for code sections");
    }
    memory->bytes += bytes;
    return 0;
}

// libipt's cache accepts files only, so the bytes are written to an unnamed file.
static int make_file(struct pt_memory *memory, struct error *err)
{
    int descriptor = memfd_create("taillight-code", MFD_CLOEXEC);
    if (descriptor >= 0 && array_push(&memory->descriptors, descriptor) == 0)
        return descriptor;
    int result = error_set_errno(err, ERROR_FAILED, "cannot make a file for code in memory");
    if (descriptor >= 0)
        close(descriptor);
    return result;
}

static int file_append(int descriptor, const void *data, size_t bytes, struct error *err)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t wrote = write(descriptor, (const char *)data + done, bytes - done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return error_set_errno(err, ERROR_FAILED, "cannot hold %zu bytes of code", bytes);
        done += (size_t)wrote;
    }
    return 0;
}

int pt_memory_add_bytes(struct pt_memory *memory, const void *data, size_t bytes, uint64_t address,
                        uint32_t space, struct error *err)
{
    char path[64];
    int descriptor = make_file(memory, err);
    int result = descriptor < 0 ? descriptor : file_append(descriptor, data, bytes, err);
    if (result < 0)
        return result;
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    return pt_memory_add_file(memory, path, 0, bytes, address, space, err);
}

int pt_memory_add_state(struct pt_memory *memory, const void *data, size_t bytes, uint64_t address,
                        uint32_t first_state, uint32_t end_state, struct error *err)
{
    char path[64];
    int result = memory->states ? memory->states : make_file(memory, err);
    if (result < 0)
        return result;
    memory->states = result;
    result = file_append(memory->states, data, bytes, err);
    snprintf(path, sizeof path, "/proc/self/fd/%d", memory->states);
    if (result == 0)
        result = pt_memory_add_file(memory, path, memory->states_bytes, bytes, address,
                                    PT_SPACE_ALL, err);
    if (result < 0)
        return result;
    memory->states_bytes += bytes;
    struct pt_section_entry *entry = &memory->sections.items[memory->sections.count - 1];
    entry->first_state = first_state;
    entry->end_state = end_state;
    return 0;
}

// Cuts a section in two there; the second follows the first, since the order says who hides whom.
static int split_section(struct pt_memory *memory, size_t i, uint64_t address, struct error *err)
{
    struct pt_section_entries *all = &memory->sections;
    struct pt_section_entry second = all->items[i];
    uint64_t bytes = address - second.address;
    second.path = strdup(second.path);
    second.offset += bytes;
    second.address += bytes;
    second.bytes -= bytes;
    if (!second.path || array_push(all, second) < 0) {
        free(second.path);
        return error_set(err, ERROR_FAILED, "out of memory for code sections");
    }
    memmove(&all->items[i + 2], &all->items[i + 1], (all->count - i - 2) * sizeof second);
    all->items[i + 1] = second;
    all->items[i].bytes = bytes;
    return 0;
}

int pt_memory_end(struct pt_memory *memory, uint64_t address, uint64_t bytes, uint32_t state,
                  struct error *err)
{
    int result = 0;
    uint64_t last = address + (bytes - 1);
    for (size_t i = 0; bytes && i < memory->sections.count && result == 0; i++) {
        const struct pt_section_entry *entry = &memory->sections.items[i];
        uint64_t low = entry->address, high = low + (entry->bytes - 1);
        if (entry->space != PT_SPACE_ALL || entry->end_state <= state || high < address ||
            low > last)
            continue;
        if (low < address) { // the rest is the next
            result = split_section(memory, i, address, err);
            continue;
        }
        if (high > last)
            result = split_section(memory, i, last + 1, err);
        memory->sections.items[i].end_state = state;
    }
    return result;
}

// --- one thread's view -------------------------------------------------------------------------

struct space_image {
    uint32_t space;
    struct pt_image *image;
};
struct space_images ARRAY_OF(struct space_image);

struct pt_code_view {
    const struct pt_memory *memory;
    struct pt_image_section_cache *cache;
    int *isids; // number in the cache of each of the memory's sections; 0: not there yet
    struct space_images images;
};

struct pt_code_view *pt_code_view_alloc(const struct pt_memory *memory, struct error *err)
{
    struct pt_code_view *view = calloc(1, sizeof *view);
    if (view)
        view->memory = memory;
    else
        error_set(err, ERROR_FAILED, "out of memory for code");
    return view;
}

void pt_code_view_free(struct pt_code_view *view)
{
    if (!view)
        return;
    for (size_t i = 0; i < view->images.count; i++)
        pt_image_free(view->images.items[i].image);
    array_free(&view->images);
    pt_iscache_free(view->cache);
    free(view->isids);
    free(view);
}

// Many short traces need no image.
static int view_begin(struct pt_code_view *view, struct error *err)
{
    if (!view->cache) {
        view->cache = pt_iscache_alloc("taillight");
        view->isids = calloc(view->memory->sections.count + 1, sizeof *view->isids);
    }
    if (!view->cache || !view->isids)
        return error_set(err, ERROR_FAILED, "out of memory for a cache of code");
    pt_iscache_set_limit(view->cache, cache_limit);
    return 0;
}

static int add_sections(struct pt_code_view *view, struct pt_image *image, uint32_t space,
                        uint32_t state, struct error *err)
{
    for (size_t i = 0; i < view->memory->sections.count; i++) {
        const struct pt_section_entry *entry = &view->memory->sections.items[i];
        if (entry->space != space || state < entry->first_state || state >= entry->end_state)
            continue;
        int *isid = &view->isids[i];
        if (*isid <= 0) // avoids libipt's own search, whose time grows with the number of sections
            *isid = pt_iscache_add_file(view->cache, entry->path, entry->offset, entry->bytes,
                                        entry->address);
        int status = *isid > 0 ? pt_image_add_cached(image, view->cache, *isid, NULL) : *isid;
        if (status < 0)
            return error_set(err, ERROR_INPUT, "%s: cannot use it as code at 0x%" PRIx64 ": %s",
                             entry->path, entry->address, pt_errstr(pt_errcode(status)));
    }
    return 0;
}

// Only the latest images of patched code are kept, since each holds all sections.
static void forget_oldest(struct pt_code_view *view)
{
    size_t i = 0;
    while (i < view->images.count && pt_state_of(view->images.items[i].space) == 0)
        i++;
    if (view->images.count - i < PT_IMAGES_MOST)
        return;
    pt_image_free(view->images.items[i].image);
    view->images.count--;
    memmove(&view->images.items[i], &view->images.items[i + 1],
            (view->images.count - i) * sizeof *view->images.items);
}

int pt_code_view_image(struct pt_code_view *view, uint32_t space, struct pt_image **out,
                       struct error *err)
{
    for (size_t i = 0; i < view->images.count; i++)
        if (view->images.items[i].space == space) {
            *out = view->images.items[i].image;
            return 0;
        }
    if (view_begin(view, err) < 0)
        return -ERROR_FAILED;
    forget_oldest(view);
    struct space_image added = {space, pt_image_alloc("taillight")};
    if (!added.image || array_push(&view->images, added) < 0) {
        pt_image_free(added.image);
        return error_set(err, ERROR_FAILED, "out of memory for an image of code");
    }
    *out = added.image;
    uint32_t state = pt_state_of(space);
    space = pt_space_of(space);
    int result = add_sections(view, added.image, PT_SPACE_ALL, state, err);
    if (result == 0 && space != PT_SPACE_ALL)
        result = add_sections(view, added.image, space, state, err);
    return result;
}

int pt_code_view_read(struct pt_code_view *view, int isid, uint64_t address, uint8_t *out,
                      size_t bytes)
{
    return pt_iscache_read(view->cache, out, bytes, isid, address);
}
