// SPDX-License-Identifier: MIT
#include "analysis/pt/pt_image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// What libipt may keep mapped, with its block caches. Without a limit above the sections' size it
// unmaps and forgets on every change of section, and decoding is a hundred times slower.
static const uint64_t cache_limit = UINT64_MAX / 4;

int pt_memory_init(struct pt_memory *memory, struct error *err)
{
    memset(memory, 0, sizeof *memory);
    memory->cache = pt_iscache_alloc("taillight");
    if (!memory->cache)
        return error_set(err, ERROR_FAILED, "out of memory for a cache of code");
    pt_iscache_set_limit(memory->cache, cache_limit);
    return 0;
}

void pt_memory_free(struct pt_memory *memory)
{
    pt_iscache_free(memory->cache);
    memory->cache = NULL;
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
    int isid = pt_iscache_add_file(memory->cache, path, offset, bytes, address);
    if (isid <= 0)
        return error_set(err, ERROR_INPUT, "%s: cannot use it as code at 0x%" PRIx64 ": %s", path,
                         address, pt_errstr(pt_errcode(isid)));
    struct pt_section_entry entry = {address, bytes, isid, space};
    if (array_push(&memory->sections, entry) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for code sections");
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

static int add_sections(const struct pt_memory *memory, struct pt_image *image, uint32_t space,
                        struct error *err)
{
    for (size_t i = 0; i < memory->sections.count; i++) {
        const struct pt_section_entry *entry = &memory->sections.items[i];
        if (entry->space != space)
            continue;
        int status = pt_image_add_cached(image, memory->cache, entry->isid, NULL);
        if (status < 0)
            return error_set(err, ERROR_FAILED, "cannot map the code at 0x%" PRIx64 ": %s",
                             entry->address, pt_errstr(pt_errcode(status)));
    }
    return 0;
}

int pt_memory_image(const struct pt_memory *memory, uint32_t space, struct pt_image **out,
                    struct error *err)
{
    struct pt_image *image = pt_image_alloc("taillight");
    if (!image)
        return error_set(err, ERROR_FAILED, "out of memory for an image of code");
    int result = add_sections(memory, image, PT_SPACE_ALL, err);
    if (result == 0 && space != PT_SPACE_ALL)
        result = add_sections(memory, image, space, err);
    if (result < 0) {
        pt_image_free(image);
        return result;
    }
    *out = image;
    return 0;
}
