// SPDX-License-Identifier: MIT
#include "analysis/code/code_image.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

// The page at *place has other bytes than the section that it lies over up to `end`, not other
// functions: that part of it becomes a section of its own, at *place.
static int name_page(struct code_section_array *sections, size_t *place,
                     const struct code_section *under, uint64_t end)
{
    const struct code_section page = sections->items[*place];
    uint64_t page_end = page.address + page.bytes;
    uint64_t begin = page.address > under->address ? page.address : under->address;
    end = page_end < end ? page_end : end;
    struct code_section part = part_of(&page, begin, end);
    part.named_by = under->file + 1;
    part.elf_address = under->elf_address + (begin - under->address);
    sections->items[*place] = part;
    if (end < page_end && insert_section(sections, *place + 1, part_of(&page, end, page_end)) < 0)
        return -1;
    if (begin == page.address)
        return 0;
    return insert_section(sections, (*place)++, part_of(&page, page.address, begin));
}

int code_add_section(struct code_section_array *sections, struct code_section section)
{
    if (section.bytes > UINT64_MAX - section.address)
        section.bytes = UINT64_MAX - section.address;
    uint64_t at = section.address, end = section.address + section.bytes;
    for (size_t place = first_ending_after(sections, at); at < end; place++) {
        uint64_t free_until = end, go_on = end;
        bool meets = place < sections->count && sections->items[place].address < end;
        if (meets) {
            free_until = sections->items[place].address;
            go_on = sections->items[place].address + sections->items[place].bytes;
        }
        if (free_until > at) {
            if (insert_section(sections, place, part_of(&section, at, free_until)) < 0)
                return -1;
            place++;
        }
        bool names = meets && !section.page && sections->items[place].page &&
                     !sections->items[place].named_by;
        if (names && name_page(sections, &place, &section, end) < 0)
            return -1;
        at = go_on;
    }
    return 0;
}

// --- asking ------------------------------------------------------------------------------------

const struct code_space *code_images_at(const struct code_images *images, uint32_t pid,
                                        uint64_t time)
{
    // the first one after (pid, time)
    size_t low =
        array_bound(0, images->spaces.count, at,
                    images->spaces.items[at].pid < pid || (images->spaces.items[at].pid == pid &&
                                                           images->spaces.items[at].from <= time));
    const struct code_space *space = low ? &images->spaces.items[low - 1] : NULL;
    if (space && space->pid == pid && time < space->to)
        return space;
    return images->fallback.sections.count ? &images->fallback : NULL;
}

const struct code_section *code_space_find(const struct code_space *space, uint64_t address)
{
    size_t place = first_ending_after(&space->sections, address);
    if (place < space->sections.count && space->sections.items[place].address <= address)
        return &space->sections.items[place];
    return NULL;
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
    for (size_t i = 0; i < images->descriptors.count; i++)
        close(images->descriptors.items[i]);
    array_free(&images->descriptors);
    array_free(&images->fallback.sections);
    memset(images, 0, sizeof *images);
}
