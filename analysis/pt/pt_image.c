// SPDX-License-Identifier: MIT
#include "analysis/pt/pt_image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// What libipt may keep mapped, with its block caches. Without a limit above the sections' size it
// unmaps and forgets on every change of section, and decoding is a hundred times slower.
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
    struct pt_section_entry entry = {strdup(path), offset, bytes, address, space};
    if (!entry.path || array_push(&memory->sections, entry) < 0) {
        free(entry.path);
        return error_set(err, ERROR_FAILED, "out of memory for code sections");
    }
    memory->bytes += bytes;
    return 0;
}

// libipt's cache takes files only, so the bytes become one that has no name.
int pt_memory_add_bytes(struct pt_memory *memory, const void *data, size_t bytes, uint64_t address,
                        uint32_t space, struct error *err)
{
    int descriptor = memfd_create("taillight-code", MFD_CLOEXEC);
    if (descriptor < 0 || array_push(&memory->descriptors, descriptor) < 0) {
        int result = error_set_errno(err, ERROR_FAILED, "cannot hold %zu bytes of code", bytes);
        if (descriptor >= 0)
            close(descriptor);
        return result;
    }
    for (size_t done = 0; done < bytes;) {
        ssize_t wrote = write(descriptor, (const char *)data + done, bytes - done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return error_set_errno(err, ERROR_FAILED, "cannot hold %zu bytes of code", bytes);
        done += (size_t)wrote;
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    return pt_memory_add_file(memory, path, 0, bytes, address, space, err);
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
    struct space_images images;
};

struct pt_code_view *pt_code_view_alloc(const struct pt_memory *memory, struct error *err)
{
    struct pt_code_view *view = calloc(1, sizeof *view);
    if (view)
        view->cache = pt_iscache_alloc("taillight");
    if (!view || !view->cache) {
        free(view);
        error_set(err, ERROR_FAILED, "out of memory for a cache of code");
        return NULL;
    }
    view->memory = memory;
    pt_iscache_set_limit(view->cache, cache_limit);
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
    free(view);
}

static int add_sections(struct pt_code_view *view, struct pt_image *image, uint32_t space,
                        struct error *err)
{
    for (size_t i = 0; i < view->memory->sections.count; i++) {
        const struct pt_section_entry *entry = &view->memory->sections.items[i];
        if (entry->space != space)
            continue;
        int isid = pt_iscache_add_file(view->cache, entry->path, entry->offset, entry->bytes,
                                       entry->address);
        int status = isid > 0 ? pt_image_add_cached(image, view->cache, isid, NULL) : isid;
        if (status < 0)
            return error_set(err, ERROR_INPUT, "%s: cannot use it as code at 0x%" PRIx64 ": %s",
                             entry->path, entry->address, pt_errstr(pt_errcode(status)));
    }
    return 0;
}

int pt_code_view_image(struct pt_code_view *view, uint32_t space, struct pt_image **out,
                       struct error *err)
{
    for (size_t i = 0; i < view->images.count; i++)
        if (view->images.items[i].space == space) {
            *out = view->images.items[i].image;
            return 0;
        }
    struct space_image added = {space, pt_image_alloc("taillight")};
    if (!added.image || array_push(&view->images, added) < 0) {
        pt_image_free(added.image);
        return error_set(err, ERROR_FAILED, "out of memory for an image of code");
    }
    *out = added.image;
    int result = add_sections(view, added.image, PT_SPACE_ALL, err);
    if (result == 0 && space != PT_SPACE_ALL)
        result = add_sections(view, added.image, space, err);
    return result;
}

int pt_code_view_read(struct pt_code_view *view, int isid, uint64_t address, uint8_t *out,
                      size_t bytes)
{
    return pt_iscache_read(view->cache, out, bytes, isid, address);
}
