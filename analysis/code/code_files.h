// SPDX-License-Identifier: MIT
//
// Which file on this machine holds the code that was mapped.
//
// User code is looked for, in this order, in: --symfs; ~/.debug (perf's build-id cache); the mapped
// path itself; the vdso of this machine. The kernel's: a kcore copy of the recording (its
// kcore_dir, or perf's cache: the only source that has modules and the text as it was patched);
// then a vmlinux under --symfs, ~/.debug, /usr/lib/debug and /lib/modules. If the recording has no
// build-id, a file on this host must at least have the recorded inode. Containers have different
// files of one path: under --symfs, PATH.inode-N is PATH of those processes that mapped inode N.
#ifndef ANALYSIS_CODE_CODE_FILES_H
#define ANALYSIS_CODE_CODE_FILES_H

#include <inttypes.h>

#include "analysis/code/code_elf.h"
#include "analysis/code/code_image.h"
#include "analysis/perf/perf_data_maps.h"
#include "base/error.h"
#include "base/name_pool.h"

enum { CODE_NONE = 0xffffffff };

#define CODE_BY_INODE ".inode-%" PRIu64
#define CODE_RUN_TIME "perf-%" PRIu32 ".core" // beside a recording: what a process made itself

static const uint64_t code_kernel_begins = (uint64_t)1 << 63;

struct code_given; // code_build.h

struct code_image_options {
    const char *symfs;      // NULL: none
    const char *os_release; // release of the recorded kernel, to find its vmlinux; NULL: unknown
    const char *kcore_dir;  // NULL: <perf.data directory>/kcore_dir where there is one
    const char *recording;  // path of the perf.data, to find its kcore_dir; NULL: none
    const char *build_id_cache; // NULL: ~/.debug
    const char *debug_dir;      // NULL: /usr/lib/debug
    bool no_host_files;         // do not look at mapped paths outside symfs
    const struct code_given *given;
    size_t given_count;
};

// The result of a search for a file, kept so that each file is searched for once.
struct code_answer {
    uint32_t file;      // index into code_images.files, or CODE_NONE
    uint32_t complaint; // then: index into code_images.complaints
};
struct code_answer_array ARRAY_OF(struct code_answer);
struct elf_facts_array ARRAY_OF(struct elf_facts);

// The state of the search for files while images are built.
struct code_finder {
    struct code_images *images;
    const struct code_image_options *options;
    struct elf_facts_array facts; // of each of images->files
    struct name_pool *questions;  // path, build-id and inode as text to the answer's number
    struct code_answer_array answers;
    bool out_of_memory;
};

// images and options must outlive it. code_finder_free in any case.
int code_finder_init(struct code_finder *finder, struct code_images *images,
                     const struct code_image_options *options, struct error *err);
void code_finder_free(struct code_finder *finder);

// The file of a mapping, as an index into images->files, or CODE_NONE after counting a complaint.
uint32_t code_find_file(struct code_finder *finder, const struct perf_mapping *mapping,
                        bool kernel);

// Adds a file that is known to be the right one. Takes ownership of the facts. CODE_NONE: out of
// memory.
uint32_t code_add_file(struct code_finder *finder, const char *path, const char *mapped_path,
                       enum code_file_kind kind, bool kernel, bool verified,
                       struct elf_facts *facts);

// Adds the executable segments of a file. elf_addresses: its symbols are in its own terms, not in
// run-time addresses. -1: out of memory.
int code_add_loads(const struct code_finder *finder, struct code_section_array *sections,
                   uint32_t file, uint64_t moved_by, bool elf_addresses);

// Whether what is mapped, as its process shows it, is memory that no file on a disk has.
bool code_in_no_file(const char *path);

void code_hex(const uint8_t *bytes, size_t count, char *out); // out: 2 * count + 1 bytes
// The folder of perf's build-id cache; false when it is unknown.
bool code_cache_folder(const struct code_image_options *options, char *out, size_t out_bytes);

#endif
