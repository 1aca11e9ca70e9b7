// SPDX-License-Identifier: MIT
#include "analysis/pt/image/pt_code_bytes.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// Whether the memory keeps its promise.
static bool kernel_is_apart(const struct pt_memory *memory)
{
    bool apart = memory->kernel_apart;
    for (size_t i = 0; apart && i < memory->sections.count; i++) {
        const struct pt_section_entry *entry = &memory->sections.items[i];
        bool stays = entry->first_state == 0 && entry->end_state == PT_STATES_MOST;
        apart = pt_code_same_half(entry->address, entry->address + (entry->bytes - 1)) &&
                (entry->address >> 63 ? entry->space == PT_SPACE_ALL : stays);
    }
    return apart;
}

int pt_code_bytes_init(struct pt_code_bytes *bytes, const struct pt_memory *memory,
                       struct error *err)
{
    *bytes =
        (struct pt_code_bytes){.memory = memory,
                               .mapped = calloc(memory->sections.count + 1, sizeof *bytes->mapped),
                               .kernel_apart = kernel_is_apart(memory)};
    return bytes->mapped ? 0 : error_set(err, ERROR_FAILED, "out of memory for code");
}

// --- where files are mapped ----------------------------------------------------------------------

// Mappings begin at a page.
static uint64_t before_page(uint64_t offset)
{
    return offset % (uint64_t)sysconf(_SC_PAGESIZE);
}

static const uint8_t *map_section(const struct pt_section_entry *entry)
{
    uint64_t skip = before_page(entry->offset);
    struct stat status;
    void *data = MAP_FAILED;
    int descriptor = open(entry->path, O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0 && fstat(descriptor, &status) == 0 &&
        (uint64_t)status.st_size >= entry->offset &&
        (uint64_t)status.st_size - entry->offset >= entry->bytes)
        data = mmap(NULL, entry->bytes + skip, PROT_READ, MAP_PRIVATE, descriptor,
                    (off_t)(entry->offset - skip));
    if (descriptor >= 0)
        close(descriptor);
    return data == MAP_FAILED ? NULL : (const uint8_t *)data + skip;
}

void pt_code_bytes_free(struct pt_code_bytes *bytes)
{
    for (size_t i = 0; bytes->mapped && i < bytes->memory->sections.count; i++) {
        const struct pt_section_entry *entry = &bytes->memory->sections.items[i];
        uint64_t skip = before_page(entry->offset);
        if (bytes->mapped[i])
            munmap((void *)(uintptr_t)(bytes->mapped[i] - skip), entry->bytes + skip);
    }
    for (size_t i = 0; i < bytes->layouts.count; i++)
        array_free(&bytes->layouts.items[i].parts);
    array_free(&bytes->layouts);
    free(bytes->mapped);
    *bytes = (struct pt_code_bytes){0};
}

// --- layouts -------------------------------------------------------------------------------------

// Puts a section over what is there; parts that it hides in their middle become two.
static int layout_add(struct pt_code_parts *parts, uint64_t low, uint64_t last, uint32_t section)
{
    size_t first = array_bound(0, parts->count, at, parts->items[at].last < low);
    size_t end = array_bound(first, parts->count, at, parts->items[at].low <= last);
    struct pt_code_part pieces[3];
    size_t count = 0;
    if (first < end && parts->items[first].low < low) {
        pieces[count] = parts->items[first];
        pieces[count++].last = low - 1;
    }
    pieces[count++] = (struct pt_code_part){low, last, section};
    if (first < end && parts->items[end - 1].last > last) {
        pieces[count] = parts->items[end - 1];
        pieces[count++].low = last + 1;
    }
    size_t behind = parts->count - end;
    if (array_reserve(parts, parts->count + 2) < 0)
        return -1;
    memmove(&parts->items[first + count], &parts->items[end], behind * sizeof *parts->items);
    memcpy(&parts->items[first], pieces, count * sizeof *pieces);
    parts->count = first + count + behind;
    return 0;
}

static int layout_add_space(struct pt_code_parts *parts, const struct pt_memory *memory,
                            uint32_t space, uint32_t state)
{
    for (size_t i = 0; i < memory->sections.count; i++) {
        const struct pt_section_entry *entry = &memory->sections.items[i];
        if (entry->space == space && state >= entry->first_state && state < entry->end_state &&
            layout_add(parts, entry->address, entry->address + entry->bytes - 1, (uint32_t)i) < 0)
            return -1;
    }
    return 0;
}

// As for images: of patched code only the latest layouts are kept.
static void forget_oldest(struct pt_code_layouts *layouts)
{
    size_t i = 0;
    while (i < layouts->count && pt_state_of(layouts->items[i].space) == 0)
        i++;
    if (layouts->count - i < PT_IMAGES_MOST)
        return;
    array_free(&layouts->items[i].parts);
    layouts->count--;
    memmove(&layouts->items[i], &layouts->items[i + 1],
            (layouts->count - i) * sizeof *layouts->items);
}

static struct pt_code_layout *layout_make(struct pt_code_bytes *bytes, uint32_t space)
{
    struct pt_code_layout made = {.space = space};
    uint32_t state = pt_state_of(space), number = pt_space_of(space);
    int result = layout_add_space(&made.parts, bytes->memory, PT_SPACE_ALL, state);
    if (result == 0 && number != PT_SPACE_ALL)
        result = layout_add_space(&made.parts, bytes->memory, number, state);
    forget_oldest(&bytes->layouts);
    if (result < 0 || array_push(&bytes->layouts, made) < 0) {
        array_free(&made.parts);
        return NULL;
    }
    bytes->current = bytes->layouts.count - 1;
    return &bytes->layouts.items[bytes->current];
}

static struct pt_code_layout *layout_find(struct pt_code_bytes *bytes, uint32_t space)
{
    struct pt_code_layouts *layouts = &bytes->layouts;
    if (bytes->current < layouts->count && layouts->items[bytes->current].space == space)
        return &layouts->items[bytes->current];
    for (size_t i = 0; i < layouts->count; i++)
        if (layouts->items[i].space == space) {
            bytes->current = i;
            return &layouts->items[i];
        }
    return layout_make(bytes, space);
}

const struct pt_code_part *pt_code_bytes_part(struct pt_code_bytes *bytes, uint32_t space,
                                              uint64_t address)
{
    const struct pt_code_layout *layout =
        layout_find(bytes, pt_code_bytes_space(bytes, space, address));
    if (!layout)
        return NULL;
    const struct pt_code_parts *parts = &layout->parts;
    size_t at = array_bound(0, parts->count, i, parts->items[i].last < address);
    return at < parts->count && parts->items[at].low <= address ? &parts->items[at] : NULL;
}

bool pt_code_bytes_lack(struct pt_code_bytes *bytes, uint32_t space, uint64_t address)
{
    return layout_find(bytes, pt_code_bytes_space(bytes, space, address)) &&
           !pt_code_bytes_part(bytes, space, address);
}

const uint8_t *pt_code_bytes_at(struct pt_code_bytes *bytes, const struct pt_code_part *part)
{
    const struct pt_section_entry *entry = &bytes->memory->sections.items[part->section];
    const uint8_t **mapped = &bytes->mapped[part->section];
    if (!*mapped)
        *mapped = map_section(entry);
    return *mapped ? *mapped + (part->low - entry->address) : NULL;
}
