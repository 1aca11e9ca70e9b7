// SPDX-License-Identifier: MIT
//
// Where the bytes of the code are that the processes (and the kernel) of a recording ran: mappings
// become sections of files on this machine. A file is used only when it is the one that ran: its
// build-id is compared where the recording knows one. Files that are missing or do not match are
// left out, counted and reported (code_files.h). code_build.h fills these images.
#ifndef ANALYSIS_CODE_CODE_IMAGE_H
#define ANALYSIS_CODE_CODE_IMAGE_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"

enum code_file_kind {
    CODE_ELF,   // executable, library, kernel module, vmlinux, vdso
    CODE_KCORE, // a copy of /proc/kcore: sections are at run-time addresses
    CODE_CORE,  // a process's core dump: the same
    CODE_RAW,   // bare bytes at an address
};

// A file on this machine that code is read from.
struct code_file {
    char *path;        // path on this machine
    char *mapped_path; // path in the recording
    enum code_file_kind kind;
    bool kernel;
    bool verified; // its build-id is the recording's
    uint8_t build_id[20];
    uint8_t build_id_size;
};
struct code_file_array ARRAY_OF(struct code_file);

// A contiguous piece of code. libipt: pt_iscache_add_file(file.path, file_offset, bytes, address).
struct code_section {
    uint64_t address; // virtual, at run time
    uint64_t bytes;
    uint64_t file_offset; // of its first byte in the file
    uint64_t elf_address; // what the ELF file calls `address` (symbols are in these terms)
    uint32_t file;        // index into code_images.files
    uint32_t named_by; // of a page: 1 + the file that it lies over, whose symbols are its names; 0
    bool page;         // bare bytes
};
struct code_section_array ARRAY_OF(struct code_section);

// The code of one address space (analysis/perf/perf_data_maps.h).
struct code_space {
    uint32_t pid;      // PERF_NO_PID: the kernel, or everything where no process is known
    uint64_t from, to; // perf clock, [from, to)
    struct code_section_array sections; // by address, disjoint
};
struct code_space_array ARRAY_OF(struct code_space);

// Why code of a mapping is not there.
enum code_problem {
    CODE_NOT_FOUND,   // no such file on this machine
    CODE_MISMATCH,    // found, but with another build-id
    CODE_UNREADABLE,  // not an ELF file, or damaged, or too short
    CODE_NEEDS_KCORE, // a kernel module: as a file it is not linked to where it ran
    CODE_NO_FILE,     // anonymous memory (JIT), a deleted or special file
    CODE_PROBLEMS
};

struct code_complaint {
    enum code_problem problem;
    uint64_t mappings; // mappings that need it, in all address spaces
    uint64_t bytes;    // of the first of them
    char *text;        // path and what to do about it
};
struct code_complaint_array ARRAY_OF(struct code_complaint);

struct code_images {
    struct code_file_array files;
    struct code_space_array spaces;         // by pid, then time, as in perf_maps
    uint64_t problems[CODE_PROBLEMS];       // files (not mappings) by reason
    uint64_t unverified;                    // files used without a build-id to compare
    struct code_complaint_array complaints; // one per file
    char *kallsyms;                         // path of the recording's kallsyms, or NULL
    char *modules;                          // of its /proc/modules copy, or NULL
    struct code_space fallback; // for processes without any mapping: the files named by the user
    struct code_descriptors ARRAY_OF(int) descriptors; // of files in memory; closed at the end
};

// What to say of `unverified`.
#define CODE_UNVERIFIED_NOTE                                                                       \
    "files without a recorded build-id, which may have changed since they ran: %" PRIu64

void code_images_free(struct code_images *images);

// The code of a process at a time; NULL: unknown. The kernel's: pid PERF_NO_PID.
const struct code_space *code_images_at(const struct code_images *images, uint32_t pid,
                                        uint64_t time);

// Adds the parts of the section that are not covered yet; a page that covers another part is named
// by it. -1: out of memory.
int code_add_section(struct code_section_array *sections, struct code_section section);

// The section that covers the address, or NULL.
const struct code_section *code_space_find(const struct code_space *space, uint64_t address);

#endif
