// SPDX-License-Identifier: MIT
#include "experiments/capture/run_time_code.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "analysis/code/code_files.h"
#include "base/array.h"
#include "base/new_file.h"
#include "base/text.h"

enum { PAGE_BYTES = 4096 };

struct segments ARRAY_OF(Elf64_Phdr);

struct copying {
    int memory; // /proc/PID/mem
    struct segments segments;
    uint64_t bytes;
};

static bool read_page(const struct copying *copying, uint64_t address, char page[PAGE_BYTES])
{
    static const char zeros[PAGE_BYTES];
    return pread(copying->memory, page, PAGE_BYTES, (off_t)address) == PAGE_BYTES &&
           memcmp(page, zeros, PAGE_BYTES) != 0;
}

// Pages with something in them, those in a row as one segment.
static int add_pages(struct copying *copying, uint64_t begin, uint64_t end)
{
    char page[PAGE_BYTES];
    for (uint64_t at = begin; at < end; at += PAGE_BYTES) {
        if (!read_page(copying, at, page))
            continue;
        struct segments *segments = &copying->segments;
        Elf64_Phdr *last = segments->count ? &segments->items[segments->count - 1] : NULL;
        copying->bytes += PAGE_BYTES;
        if (last && last->p_vaddr + last->p_memsz == at)
            last->p_memsz += PAGE_BYTES;
        else if (array_push(segments, ((Elf64_Phdr){.p_type = PT_LOAD,
                                                    .p_flags = PF_R | PF_X,
                                                    .p_vaddr = at,
                                                    .p_memsz = PAGE_BYTES,
                                                    .p_align = PAGE_BYTES})) < 0)
            return -1;
    }
    return 0;
}

static int find_segments(struct copying *copying, FILE *maps)
{
    char line[5000], permissions[8];
    uint64_t begin, end;
    int result = 0, path = 0;
    while (result == 0 && fgets(line, sizeof line, maps)) {
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %*s %n", &begin, &end, permissions,
                   &path) == 3 &&
            permissions[2] == 'x' && code_in_no_file(line + path))
            result = add_pages(copying, begin, end);
    }
    return result;
}

static void write_header(const struct copying *copying, FILE *out)
{
    const Elf64_Ehdr header = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_CORE,
        .e_machine = EM_X86_64,
        .e_version = EV_CURRENT,
        .e_phoff = sizeof header,
        .e_ehsize = sizeof header,
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = (uint16_t)copying->segments.count};
    fwrite(&header, sizeof header, 1, out);
    uint64_t offset = sizeof header + copying->segments.count * sizeof(Elf64_Phdr);
    for (size_t i = 0; i < copying->segments.count; i++) {
        Elf64_Phdr segment = copying->segments.items[i];
        segment.p_offset = offset = (offset + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
        segment.p_filesz = segment.p_memsz;
        offset += segment.p_filesz;
        fwrite(&segment, sizeof segment, 1, out);
    }
}

// Zeros where a page is gone meanwhile.
static void write_pages(const struct copying *copying, FILE *out)
{
    fseek(out, (-ftell(out)) & (PAGE_BYTES - 1), SEEK_CUR);
    for (size_t i = 0; i < copying->segments.count; i++) {
        const Elf64_Phdr *segment = &copying->segments.items[i];
        for (uint64_t at = 0; at < segment->p_memsz; at += PAGE_BYTES) {
            char page[PAGE_BYTES] = {0};
            read_page(copying, segment->p_vaddr + at, page);
            fwrite(page, PAGE_BYTES, 1, out);
        }
    }
}

static int write_core(const struct copying *copying, const char *path, struct error *err)
{
    struct new_file file;
    int result = new_file_open(&file, path, err);
    if (result < 0)
        return result;
    write_header(copying, file.file);
    write_pages(copying, file.file);
    return new_file_finish(&file, 0, err);
}

int run_time_code_copy(uint32_t pid, const char *path, uint64_t most_bytes, uint64_t *bytes,
                       struct error *err)
{
    char name[64];
    struct copying copying = {.memory = -1};
    int result = 0;
    *bytes = 0;
    snprintf(name, sizeof name, "/proc/%" PRIu32 "/maps", pid);
    FILE *maps = fopen(name, "re");
    snprintf(name, sizeof name, "/proc/%" PRIu32 "/mem", pid);
    if (maps)
        copying.memory = open(name, O_RDONLY | O_CLOEXEC);
    if (copying.memory < 0)
        result =
            error_set_errno(err, ERROR_INPUT, "cannot read the memory of process %" PRIu32, pid);
    else if (find_segments(&copying, maps) < 0 || copying.segments.count >= PN_XNUM)
        result = error_set(err, ERROR_FAILED, "process %" PRIu32 " has code in %s places", pid,
                           TEXT_COUNT(copying.segments.count));
    else if (copying.bytes > most_bytes)
        result = error_set(err, ERROR_FAILED,
                           "process %" PRIu32 " made %s bytes of code, and there is room for %s",
                           pid, TEXT_COUNT(copying.bytes), TEXT_COUNT(most_bytes));
    else if (copying.bytes)
        result = write_core(&copying, path, err);
    if (result == 0)
        *bytes = copying.bytes;
    array_free(&copying.segments);
    if (maps)
        fclose(maps);
    if (copying.memory >= 0)
        close(copying.memory);
    return result;
}
