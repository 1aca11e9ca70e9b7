// SPDX-License-Identifier: MIT
#include "analysis/code/code_elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input_file.h"

static void take_build_id(Elf_Data *notes, struct elf_facts *out)
{
    size_t at = 0, name, description;
    GElf_Nhdr note;
    while ((at = gelf_getnote(notes, at, &note, &name, &description)) > 0) {
        if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 ||
            memcmp((char *)notes->d_buf + name, "GNU", 4) != 0)
            continue;
        size_t bytes = note.n_descsz < sizeof out->build_id ? note.n_descsz : sizeof out->build_id;
        memcpy(out->build_id, (char *)notes->d_buf + description, bytes);
        out->build_id_size = (uint8_t)bytes;
        return;
    }
}

static int read_segments(Elf *elf, struct elf_facts *out)
{
    size_t count;
    if (elf_getphdrnum(elf, &count) < 0)
        return 0; // none
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        if (!gelf_getphdr(elf, (int)i, &header))
            break;
        if (header.p_type == PT_NOTE && !out->build_id_size) {
            Elf_Data *notes =
                elf_getdata_rawchunk(elf, (int64_t)header.p_offset, header.p_filesz, ELF_T_NHDR);
            if (notes)
                take_build_id(notes, out);
        }
        if (header.p_type != PT_LOAD || !header.p_filesz || header.p_offset >= out->file_bytes)
            continue;
        struct elf_load load = {.address = header.p_vaddr,
                                .file_offset = header.p_offset,
                                .bytes = header.p_filesz,
                                .executable = (header.p_flags & PF_X) != 0};
        if (load.bytes > out->file_bytes - load.file_offset)
            load.bytes = out->file_bytes - load.file_offset;
        if (array_push(&out->loads, load) < 0)
            return -1;
    }
    return 0;
}

static void read_sections(Elf *elf, struct elf_facts *out)
{
    bool any = false;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header))
            continue;
        any = true;
        if (header.sh_type == SHT_PROGBITS && header.sh_flags & SHF_EXECINSTR)
            out->has_code = true;
        if (header.sh_type == SHT_NOTE && !out->build_id_size) {
            Elf_Data *notes = elf_getdata(section, NULL);
            if (notes)
                take_build_id(notes, out);
        }
    }
    if (!any) // it has no section table: the segments are used instead
        out->has_code = out->loads.count > 0;
}

static int read_elf(Elf *elf, struct elf_facts *out, const char **why)
{
    GElf_Ehdr header;
    if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header)) {
        *why = "is not an ELF file";
        return -1;
    }
    if (header.e_machine != EM_X86_64 && header.e_machine != EM_386) {
        *why = "is not for x86";
        return -1;
    }
    out->type = header.e_type;
    if (read_segments(elf, out) < 0) {
        *why = "needs more memory than there is";
        return -1;
    }
    read_sections(elf, out);
    return 0;
}

int elf_facts_read(const char *path, struct elf_facts *out, const char **why, bool *missing)
{
    memset(out, 0, sizeof *out);
    *missing = false;
    elf_version(EV_CURRENT);
    int file = input_open_any(path, NULL);
    if (file < 0) {
        *missing = errno == ENOENT || errno == ENOTDIR;
        *why = strerror(errno);
        return -1;
    }
    struct stat status;
    int result = -1;
    if (fstat(file, &status) < 0 || !S_ISREG(status.st_mode)) {
        *why = "is not a regular file";
        goto done;
    }
    out->file_bytes = (uint64_t)status.st_size;
    out->inode = status.st_ino;
    Elf *elf = elf_begin(file, ELF_C_READ_MMAP, NULL);
    result = read_elf(elf, out, why);
    elf_end(elf);
done:
    close(file);
    if (result < 0)
        elf_facts_free(out);
    return result;
}

int elf_facts_of_memory(const void *image, size_t bytes, struct elf_facts *out, const char **why)
{
    memset(out, 0, sizeof *out);
    elf_version(EV_CURRENT);
    out->file_bytes = bytes;
    Elf *elf = elf_memory((char *)(uintptr_t)image, bytes);
    int result = read_elf(elf, out, why);
    elf_end(elf);
    if (result < 0)
        elf_facts_free(out);
    return result;
}

void elf_facts_free(struct elf_facts *facts)
{
    array_free(&facts->loads);
}

uint64_t elf_address_of_offset(const struct elf_facts *facts, uint64_t file_offset)
{
    // Segments are mapped in whole pages, so a mapping may begin a little before its segment.
    enum { PAGE_MASK = 4095 };
    for (size_t i = 0; i < facts->loads.count; i++) {
        const struct elf_load *load = &facts->loads.items[i];
        uint64_t begin = load->file_offset & ~(uint64_t)PAGE_MASK;
        if (load->executable && file_offset >= begin &&
            file_offset < load->file_offset + load->bytes)
            return load->address + (file_offset - load->file_offset);
    }
    return file_offset;
}

bool elf_symbol_value(const char *path, const char *name, uint64_t *out)
{
    elf_version(EV_CURRENT);
    int file = input_open(path, NULL);
    if (file < 0)
        return false;
    bool found = false;
    Elf *elf = elf_begin(file, ELF_C_READ_MMAP, NULL);
    for (Elf_Scn *section = NULL; elf && !found && (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_SYMTAB || !header.sh_entsize)
            continue;
        Elf_Data *data = elf_getdata(section, NULL);
        uint64_t count = data ? data->d_size / header.sh_entsize : 0;
        for (uint64_t i = 0; i < count && !found; i++) {
            GElf_Sym symbol;
            if (!gelf_getsym(data, (int)i, &symbol))
                break;
            const char *text = elf_strptr(elf, header.sh_link, symbol.st_name);
            if (text && strcmp(text, name) == 0) {
                *out = symbol.st_value;
                found = true;
            }
        }
    }
    elf_end(elf);
    close(file);
    return found;
}
