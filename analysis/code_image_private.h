// SPDX-License-Identifier: MIT
//
// What finding files (code_image_files.c) and laying out their sections (code_image.c) share.
#ifndef ANALYSIS_CODE_IMAGE_PRIVATE_H
#define ANALYSIS_CODE_IMAGE_PRIVATE_H

#include "analysis/code_image.h"
#include "analysis/code_image_elf.h"

enum { CODE_NONE = 0xffffffff };

// The answer to "where is this file?", so that it is asked once.
struct code_answer {
    char *mapped_path;
    uint8_t build_id[20];
    uint64_t inode;
    uint32_t file;      // index into code_images.files, or CODE_NONE
    uint32_t complaint; // then: index into code_images.complaints
};
struct code_answer_array ARRAY_OF(struct code_answer);
struct elf_facts_array ARRAY_OF(struct elf_facts);
struct descriptor_array ARRAY_OF(int);

struct code_images_private {
    struct elf_facts_array facts;        // of each of code_images.files
    struct code_answer_array answers;    // by path, build-id, inode
    struct descriptor_array descriptors; // of files in memory, which live as long as the images
    struct code_space fallback; // for processes that nothing is known of: what was given by hand
};

struct code_finder {
    struct code_images *images;
    const struct code_image_options *options;
    bool out_of_memory;
};

// The file of a mapping, as an index into images->files, or CODE_NONE after counting a complaint.
uint32_t code_find_file(struct code_finder *finder, const struct perf_mapping *mapping,
                        bool kernel);

// Adds a file that is known to be the right one. Takes the facts over. CODE_NONE: out of memory.
uint32_t code_add_file(struct code_finder *finder, const char *path, const char *mapped_path,
                       enum code_file_kind kind, bool kernel, bool verified,
                       struct elf_facts *facts);

#endif
