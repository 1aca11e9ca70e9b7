// SPDX-License-Identifier: MIT
//
// A damaged ELF file: the input says which bytes of a sound one to write over, and with what. It
// has all that code and names are read from: segments, a build-id, a symbol table, stubs, DWARF. It
// is read or refused with a reason; what is read lies within the file.
#include <dwarf.h>
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/code/code_build.h"
#include "analysis/code/code_elf.h"
#include "analysis/code/symbols.h"
#include "analysis/code/symbols_table.h"
#include "tests/analysis/code/fuzz_file.h"

enum section {
    NONE,
    TEXT,
    PLT,
    NOTE,
    SYMBOLS,
    STRINGS,
    RELOCATIONS,
    ABBREVIATIONS,
    INFO,
    SECTIONS
};
enum { STUBS = 2, CODE = 0x400000, FUNCTION_BYTES = 16, BASE = 0x10000000 };

static const char *const section_names[SECTIONS] = {
    "",        ".text",     ".plt",          ".note.gnu.build-id", ".symtab",
    ".strtab", ".rela.plt", ".debug_abbrev", ".debug_info"};
static const char strings[] =
    "\0.text\0.plt\0.note.gnu.build-id\0.symtab\0.strtab\0.rela.plt\0.debug_abbrev\0.debug_info\0"
    "read\0_main";

static uint32_t name_at(const char *name)
{
    const char *found = memmem(strings, sizeof strings, name, strlen(name) + 1);
    return (uint32_t)(found - strings);
}

struct elf_file {
    Elf64_Ehdr header;
    Elf64_Phdr segments[2];
    struct {
        Elf64_Nhdr header;
        char name[4];
        uint8_t id[20];
    } note;
    uint8_t text[2 * FUNCTION_BYTES];
    uint8_t plt[(STUBS + 1) * 16];
    Elf64_Sym symbols[3];
    Elf64_Rela relocations[STUBS];
    uint8_t abbreviations[19];
    uint8_t info[64];
    char strings[sizeof strings];
    Elf64_Shdr sections[SECTIONS];
};

static void add_section(struct elf_file *file, enum section section, uint32_t type, size_t offset,
                        size_t bytes, size_t entry)
{
    file->sections[section] = (Elf64_Shdr){.sh_name = name_at(section_names[section]),
                                           .sh_type = type,
                                           .sh_offset = offset,
                                           .sh_size = bytes,
                                           .sh_entsize = entry,
                                           .sh_addralign = 1};
}

// A unit with one function, DWARF 4.
static void add_dwarf(struct elf_file *file)
{
    static const uint8_t abbreviations[] = {1,
                                            DW_TAG_compile_unit,
                                            DW_CHILDREN_yes,
                                            DW_AT_name,
                                            DW_FORM_string,
                                            0,
                                            0, // the unit
                                            2,
                                            DW_TAG_subprogram,
                                            DW_CHILDREN_no,
                                            DW_AT_name,
                                            DW_FORM_string,
                                            DW_AT_low_pc,
                                            DW_FORM_addr,
                                            DW_AT_high_pc,
                                            DW_FORM_data4,
                                            0,
                                            0,
                                            0};
    static const uint8_t entries[] = {1,  'c', 0,                   // the unit's name
                                      2,  'f', 0,                   // the function's
                                      0,  0,   0x40, 0, 0, 0, 0, 0, // its address
                                      16, 0,   0,    0, 0};         // its bytes; end of the unit
    uint32_t length = sizeof file->info - 4;
    memcpy(file->abbreviations, abbreviations, sizeof file->abbreviations - 1);
    memcpy(file->info, &length, sizeof length);
    file->info[4] = 4;  // version
    file->info[10] = 8; // bytes of an address
    memcpy(file->info + 11, entries, sizeof entries);
}

static void make_sound(struct elf_file *file)
{
    memset(file, 0, sizeof *file);
    file->header = (Elf64_Ehdr){.e_type = ET_EXEC,
                                .e_machine = EM_X86_64,
                                .e_version = EV_CURRENT,
                                .e_phoff = offsetof(struct elf_file, segments),
                                .e_shoff = offsetof(struct elf_file, sections),
                                .e_ehsize = sizeof file->header,
                                .e_phentsize = sizeof *file->segments,
                                .e_phnum = 2,
                                .e_shentsize = sizeof *file->sections,
                                .e_shnum = SECTIONS,
                                .e_shstrndx = STRINGS};
    memcpy(file->header.e_ident, ELFMAG, SELFMAG);
    file->header.e_ident[EI_CLASS] = ELFCLASS64;
    file->header.e_ident[EI_DATA] = ELFDATA2LSB;
    file->header.e_ident[EI_VERSION] = EV_CURRENT;
    file->segments[0] = (Elf64_Phdr){.p_type = PT_LOAD,
                                     .p_flags = PF_R | PF_X,
                                     .p_vaddr = CODE,
                                     .p_filesz = sizeof *file,
                                     .p_memsz = sizeof *file,
                                     .p_align = 4096};
    file->segments[1] = (Elf64_Phdr){.p_type = PT_NOTE,
                                     .p_offset = offsetof(struct elf_file, note),
                                     .p_filesz = sizeof file->note,
                                     .p_align = 4};
    file->note.header = (Elf64_Nhdr){4, sizeof file->note.id, NT_GNU_BUILD_ID};
    memcpy(file->note.name, "GNU", 4);
    for (unsigned i = 0; i < STUBS + 1; i++) {
        uint64_t text = CODE + offsetof(struct elf_file, text);
        file->symbols[i] = (Elf64_Sym){.st_name = name_at(i == 1 ? "read"
                                                          : i    ? "_main"
                                                                 : ""),
                                       .st_info = ELF64_ST_INFO(STB_GLOBAL, i ? STT_FUNC : 0),
                                       .st_shndx = i ? TEXT : SHN_UNDEF,
                                       .st_value = i ? text + (i - 1) * FUNCTION_BYTES : 0,
                                       .st_size = i ? FUNCTION_BYTES : 0};
        if (i)
            file->relocations[i - 1].r_info = ELF64_R_INFO((uint64_t)i, R_X86_64_JUMP_SLOT);
    }
    memcpy(file->strings, strings, sizeof strings);
    add_dwarf(file);
#define SECTION(which, type, member, entry)                                                        \
    add_section(file, which, type, offsetof(struct elf_file, member), sizeof file->member, entry)
    SECTION(TEXT, SHT_PROGBITS, text, 0);
    SECTION(PLT, SHT_PROGBITS, plt, 16);
    SECTION(NOTE, SHT_NOTE, note, 0);
    SECTION(SYMBOLS, SHT_SYMTAB, symbols, sizeof *file->symbols);
    SECTION(STRINGS, SHT_STRTAB, strings, 0);
    SECTION(RELOCATIONS, SHT_RELA, relocations, sizeof *file->relocations);
    SECTION(ABBREVIATIONS, SHT_PROGBITS, abbreviations, 0);
    SECTION(INFO, SHT_PROGBITS, info, 0);
    for (unsigned i = TEXT; i <= PLT; i++) {
        file->sections[i].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
        file->sections[i].sh_addr = CODE + file->sections[i].sh_offset;
    }
    file->sections[SYMBOLS].sh_link = STRINGS;
    file->sections[RELOCATIONS].sh_link = SYMBOLS;
}

static void check_facts(const struct elf_facts *facts, size_t file_bytes)
{
    for (size_t i = 0; i < facts->loads.count; i++) {
        const struct elf_load *load = &facts->loads.items[i];
        if (load->file_offset >= file_bytes || load->bytes > file_bytes - load->file_offset)
            abort();
        elf_address_of_offset(facts, load->file_offset);
    }
    if (facts->build_id_size > sizeof facts->build_id)
        abort();
}

static void read_code(const char *path, bool moved, size_t file_bytes)
{
    struct code_given given = {.path = path, .address = BASE, .has_address = moved};
    struct code_image_options options = {
        .given = &given, .given_count = 1, .no_host_files = true, .build_id_cache = "/nowhere"};
    struct code_images images;
    struct error err = {0};
    if (code_images_build(NULL, &options, &images, &err) < 0) {
        if (!err.text[0])
            abort(); // refused without a word
        return;
    }
    for (size_t i = 0; i < images.spaces.count; i++) {
        const struct code_section_array *sections = &images.spaces.items[i].sections;
        for (size_t k = 0; k < sections->count; k++) {
            const struct code_section *one = &sections->items[k];
            if (one->bytes == 0 || one->file_offset >= file_bytes ||
                one->bytes > file_bytes - one->file_offset ||
                (k && one[-1].bytes > one->address - one[-1].address) ||
                code_space_find(&images.spaces.items[i], one->address) != one)
                abort();
        }
    }
    code_images_free(&images);
}

static void read_symbols(const char *path, bool sound)
{
    struct symbol_table table = {0};
    struct error err = {0};
    struct name_pool *pool = name_pool_alloc();
    if (symbol_table_add_elf(&table, pool, path, "/nowhere", &err) < 0 && !err.text[0])
        abort();
    symbol_table_sort(&table);
    for (size_t i = 0; i < table.symbols.count; i++) {
        const struct symbol *one = &table.symbols.items[i];
        if (one->end <= one->address || (i && one[-1].address >= one->address))
            abort();
    }
    if (sound &&
        (table.symbols.count != 2 + STUBS || name_pool_find(pool, "read@plt", 8) == UINT32_MAX))
        abort(); // the file is not what it was made for
    symbol_table_free(&table);
    name_pool_free(pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct elf_file elf;
    struct fuzz_file file;
    struct elf_facts facts;
    const char *why = NULL;
    bool missing;
    uint64_t value;
    make_sound(&elf);
    if (count && bytes[0] & 1) // names from DWARF
        elf.sections[SYMBOLS].sh_type = elf.sections[RELOCATIONS].sh_type = SHT_PROGBITS;
    for (size_t i = 1; i + 3 <= count; i += 3) // where, where, what
        ((uint8_t *)&elf)[(size_t)(bytes[i] | bytes[i + 1] << 8) % sizeof elf] = bytes[i + 2];
    size_t length = count && bytes[0] & 2 ? sizeof elf - (bytes[0] >> 2) * 16u : sizeof elf;
    if (fuzz_file_make(&file, &elf, length) < 0)
        return 0;
    if (elf_facts_read(file.path, &facts, &why, &missing) == 0) {
        check_facts(&facts, length);
        elf_facts_free(&facts);
    } else if (!why) {
        abort();
    }
    uint8_t *exact = malloc(length); // so that a sanitizer sees any step beyond it
    memcpy(exact, &elf, length);
    if (elf_facts_of_memory(exact, length, &facts, &why) == 0) {
        check_facts(&facts, length);
        elf_facts_free(&facts);
    }
    free(exact);
    elf_symbol_value(file.path, "_main", &value);
    read_code(file.path, count && bytes[0] & 4, length);
    read_symbols(file.path, count == 0);
    fuzz_file_remove(&file);
    return 0;
}
