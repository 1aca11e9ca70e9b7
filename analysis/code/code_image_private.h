// SPDX-License-Identifier: MIT
//
// What finding files (code_image_files.c) and laying out their sections (code_image.c) share.
#ifndef ANALYSIS_CODE_IMAGE_PRIVATE_H
#define ANALYSIS_CODE_IMAGE_PRIVATE_H

#include "analysis/code/code_image.h"
#include "analysis/code/code_image_elf.h"
#include "base/name_pool.h"

enum { CODE_NONE = 0xffffffff };

static const uint64_t code_kernel_begins = (uint64_t)1 << 63;

// The answer to "where is this file?", so that it is asked once.
struct code_answer {
    uint32_t file;      // index into code_images.files, or CODE_NONE
    uint32_t complaint; // then: index into code_images.complaints
};
struct code_answer_array ARRAY_OF(struct code_answer);
struct elf_facts_array ARRAY_OF(struct elf_facts);
struct descriptor_array ARRAY_OF(int);

struct code_images_private {
    struct elf_facts_array facts; // of each of code_images.files
    struct name_pool *questions;  // path, build-id and inode as text: the answer's number
    struct code_answer_array answers;
    struct descriptor_array descriptors; // of files in memory, which live as long as the images
    struct code_space fallback; // for processes that nothing is known of: what was given by hand
};

struct code_finder {
    struct code_images *images;
    const struct code_image_options *options;
    bool out_of_memory;
};

// code_image.c
// Adds what of the section is not covered yet: what comes first wins. -1: out of memory.
int code_add_section(struct code_section_array *sections, struct code_section section);
// Adds the executable segments of a file. elf_addresses: its symbols are in its own terms, not in
// run-time addresses.
int code_add_loads(struct code_section_array *sections, const struct elf_facts *facts,
                   uint32_t file, uint64_t moved_by, bool elf_addresses);

// code_image_given.c
int code_add_page(struct code_finder *finder, struct code_section_array *sections,
                  const struct code_given *given, struct error *err);
int code_add_elf(struct code_finder *finder, struct code_section_array *sections,
                 const struct code_given *given, struct error *err);

// code_image_kcore.c
int code_add_kcore(struct code_finder *finder, const struct perf_maps *maps,
                   struct code_section_array *kernel, struct error *err);

// code_image_files.c
void code_hex(const uint8_t *bytes, size_t count, char *out); // out: 2 * count + 1 bytes
// Where perf's build-id cache is; false where there is none to know of.
bool code_cache_folder(const struct code_image_options *options, char *out, size_t out_bytes);
// The file of a mapping, as an index into images->files, or CODE_NONE after counting a complaint.
uint32_t code_find_file(struct code_finder *finder, const struct perf_mapping *mapping,
                        bool kernel);

// Adds a file that is known to be the right one. Takes the facts over. CODE_NONE: out of memory.
uint32_t code_add_file(struct code_finder *finder, const char *path, const char *mapped_path,
                       enum code_file_kind kind, bool kernel, bool verified,
                       struct elf_facts *facts);

#endif
