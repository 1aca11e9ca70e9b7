// SPDX-License-Identifier: MIT
//
// Where the bytes of the code are that the processes (and the kernel) of a recording ran: mappings
// become sections of files on this machine. A file is used only when it is the one that ran: its
// build-id is compared where the recording knows one. What is missing or does not match is left
// out, counted and said.
//
// User code is looked for, in this order, in: --symfs; ~/.debug (perf's build-id cache); the mapped
// path itself; the vdso of this machine. The kernel's: a kcore copy of the recording (its
// kcore_dir, or perf's cache: the only way that has modules and the text as it was patched when it
// ran); then a vmlinux under --symfs, ~/.debug, /usr/lib/debug and /lib/modules. A file on this
// host whose build-id the recording does not tell must at least have the recorded inode.
#ifndef ANALYSIS_CODE_IMAGE_H
#define ANALYSIS_CODE_IMAGE_H

#include "analysis/perf/perf_data_maps.h"
#include "base/array.h"
#include "base/error.h"

enum code_file_kind {
    CODE_ELF,   // executable, library, kernel module, vmlinux, vdso
    CODE_KCORE, // a copy of /proc/kcore: sections are at run-time addresses
    CODE_CORE,  // a process's core dump: the same
    CODE_RAW,   // bare bytes at an address
};

// A file on this machine that code is read from.
struct code_file {
    char *path;        // readable here
    char *mapped_path; // what the recording called it
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
const char *code_problem_name(enum code_problem problem);

struct code_complaint {
    enum code_problem problem;
    uint64_t mappings; // that wanted it, in all address spaces
    uint64_t bytes;    // of the first of them
    char *text;        // path and what to do about it
};
struct code_complaint_array ARRAY_OF(struct code_complaint);

struct code_images {
    struct code_file_array files;
    struct code_space_array spaces;         // by pid, then time, as in perf_maps
    uint64_t problems[CODE_PROBLEMS];       // files (not mappings) by reason
    uint64_t unverified;                    // files used though no build-id was known to compare
    struct code_complaint_array complaints; // one per file
    char *kallsyms;                         // path of the recording's kallsyms, or NULL
    char *modules;                          // of its /proc/modules copy, or NULL
    struct code_images_private *private;
};

// Raw code given by hand: bytes of `path` at `address` (--page 0xADDRESS=FILE), or an ELF file at
// its own addresses or moved so that its lowest loaded byte is at `base` (--elf FILE[@0xBASE]).
struct code_given {
    const char *path;
    uint64_t address; // page: where; ELF: base, when has_address
    bool has_address;
    bool raw; // a page
};

struct code_image_options {
    const char *symfs;          // NULL: none
    const char *os_release;     // of the recorded kernel, to find its vmlinux; NULL: not told
    const char *kcore_dir;      // NULL: <perf.data directory>/kcore_dir where there is one
    const char *recording;      // path of the perf.data, to find its kcore_dir; NULL: none
    const char *build_id_cache; // NULL: ~/.debug
    const char *debug_dir;      // NULL: /usr/lib/debug
    bool no_host_files;         // do not look at mapped paths outside symfs
    const struct code_given *given;
    size_t given_count;
};

// Parses the values of --page and --elf.
int code_given_parse_page(const char *text, struct code_given *out, struct error *err);
int code_given_parse_elf(const char *text, struct code_given *out, struct error *err);
void code_given_free(struct code_given *given);

// Resolves every mapping. maps NULL: only what was given by hand, in one space with pid
// PERF_NO_PID; otherwise that is added to every process's space: pages and ELF files win over what
// was mapped, core dumps fill what it leaves (the vdso, JIT code). Files given by hand that cannot
// be read are ERROR_INPUT; everything else is a complaint.
int code_images_build(const struct perf_maps *maps, const struct code_image_options *options,
                      struct code_images *out, struct error *err);
void code_images_free(struct code_images *images);

// The code of a process at a time; NULL where nothing is known. The kernel's: pid PERF_NO_PID.
const struct code_space *code_images_at(const struct code_images *images, uint32_t pid,
                                        uint64_t time);

// The section that covers the address, or NULL.
const struct code_section *code_space_find(const struct code_space *space, uint64_t address);

#endif
