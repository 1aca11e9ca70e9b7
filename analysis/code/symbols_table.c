// SPDX-License-Identifier: MIT
//
// One table of symbols: filled from text (kallsyms, JIT maps) and ELF files, sorted, searched.
#include "analysis/code/symbols_table.h"

#include "base/array.h"
#include "base/input_file.h"

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int table_add(struct symbol_table *table, struct name_pool *pool, uint64_t address,
                     uint64_t end, const char *name, uint32_t rank)
{
    struct symbol symbol = {address, end, name_pool_add(pool, name, strlen(name)), rank};
    return symbol.name == UINT32_MAX ? -1 : array_push(&table->symbols, symbol);
}

static bool is_function(char type)
{
    return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

int symbol_table_add_kallsyms(struct symbol_table *table, struct name_pool *pool, const char *path,
                              struct error *err)
{
    FILE *file = input_stream(path, err);
    if (!file)
        return -(int)ERROR_INPUT;
    char *line = NULL;
    size_t line_bytes = 0, functions = 0, zero = 0;
    int result = 0;
    while (result == 0 && getline(&line, &line_bytes, file) > 0) {
        char *rest;
        uint64_t address = strtoull(line, &rest, 16);
        if (rest == line || *rest != ' ' || !rest[1] || rest[2] != ' ' || !is_function(rest[1]))
            continue;
        char *name = rest + 3;
        name[strcspn(name, "\t\n")] = '\0'; // the module follows a tab
        functions++;
        zero += address == 0;
        uint32_t rank = rest[1] == 'T' ? 3 : rest[1] == 't' ? 2 : 1;
        if (address && *name && table_add(table, pool, address, 0, name, rank) < 0)
            result = error_set(err, ERROR_FAILED, "out of memory for the symbols of %s", path);
    }
    free(line);
    fclose(file);
    if (result == 0 && functions == zero)
        result = error_set(err, ERROR_INPUT,
                           functions ? "%s: all addresses are 0; copy it as root, or set "
                                       "kernel.kptr_restrict to 0"
                                     : "%s: holds no functions",
                           path);
    return result;
}

int symbol_table_add_jit_map(struct symbol_table *table, struct name_pool *pool, const char *path,
                             uint64_t *malformed, struct error *err)
{
    FILE *file = input_stream(path, err);
    if (!file)
        return -(int)ERROR_INPUT;
    char *line = NULL;
    size_t line_bytes = 0;
    uint32_t number = 0;
    int result = 0;
    while (result == 0 && getline(&line, &line_bytes, file) > 0) {
        char *after_address, *after_size;
        uint64_t address = strtoull(line, &after_address, 16);
        uint64_t bytes = strtoull(after_address, &after_size, 16);
        size_t spaces = strspn(after_size, " \t");
        char *name = after_size + spaces;
        name[strcspn(name, "\n")] = '\0';
        if (after_address == line || after_size == after_address || !spaces || !*name ||
            bytes > UINT64_MAX - address || bytes == 0) {
            (*malformed)++;
            continue;
        }
        number += number < UINT32_MAX; // recompiled code is listed again: the last entry counts
        if (table_add(table, pool, address, address + bytes, name, number) < 0)
            result = error_set(err, ERROR_FAILED, "out of memory for the symbols of %s", path);
    }
    free(line);
    fclose(file);
    return result;
}

static int by_address_and_rank(const void *a, const void *b)
{
    const struct symbol *left = a, *right = b;
    return order_of(left->address, right->address) ?:
           order_of(right->rank, left->rank) ?:
           order_of(left->name, right->name);
}

void symbol_table_sort(struct symbol_table *table)
{
    enum { LAST_BYTES = 4096 }; // for a last symbol without a size
    struct symbol_array *symbols = &table->symbols;
    if (!symbols->count)
        return;
    array_sort(symbols, by_address_and_rank);
    size_t kept = 0;
    for (size_t i = 0; i < symbols->count; i++) {
        struct symbol *last = kept ? &symbols->items[kept - 1] : NULL;
        const struct symbol *one = &symbols->items[i];
        if (one->address ==
            UINT64_MAX) // the value of a number that was too large; such a symbol would have no end
            continue;
        if (!last || last->address != one->address)
            symbols->items[kept++] = *one;
        else if (last->end < one->end)
            last->end = one->end; // an alias that has a size
    }
    symbols->count = kept;
    for (size_t i = 0; i < kept; i++) {
        struct symbol *one = &symbols->items[i];
        if (one->end > one->address)
            continue;
        if (i + 1 < kept)
            one->end = symbols->items[i + 1].address;
        else
            one->end =
                one->address > UINT64_MAX - LAST_BYTES ? UINT64_MAX : one->address + LAST_BYTES;
    }
}

const struct symbol *symbol_table_find(const struct symbol_table *table, uint64_t address)
{
    enum { NESTING = 16 }; // a label may stand within a function
    // the first one after the address
    size_t low =
        array_bound(0, table->symbols.count, at, table->symbols.items[at].address <= address);
    for (size_t i = low; i > 0 && low - i < NESTING; i--)
        if (address < table->symbols.items[i - 1].end)
            return &table->symbols.items[i - 1];
    return NULL;
}

void symbol_table_free(struct symbol_table *table)
{
    array_free(&table->symbols);
}

// --- the functions of an ELF file ----------------------------------------------------------------
// Functions of an ELF file through elfutils: its symbol table with what a separate debug file and
// .gnu_debugdata add to it, the stubs of the procedure linkage table ("read@plt"), and DWARF where
// there is nothing else. Nothing is fetched from the network.

struct filling {
    struct symbol_table *table;
    struct name_pool *pool;
    const char *debug_dir;
    bool out_of_memory;
};

static void filling_add(struct filling *filling, uint64_t address, uint64_t bytes, const char *name,
                        uint32_t rank)
{
    uint64_t end = bytes > UINT64_MAX - address ? UINT64_MAX : address + bytes;
    struct symbol symbol = {address, bytes ? end : 0,
                            name_pool_add(filling->pool, name, strlen(name)), rank};
    if (symbol.name == UINT32_MAX || array_push(&filling->table->symbols, symbol) < 0)
        filling->out_of_memory = true;
}

// --- the separate debug file ---------------------------------------------------------------------

// A file with that build-id, opened, or -1.
static int open_if_same(const char *path, const unsigned char *id, int id_bytes)
{
    int file = input_open(path, NULL);
    if (file < 0)
        return -1;
    Elf *elf = elf_begin(file, ELF_C_READ_MMAP, NULL);
    const void *found = NULL;
    ssize_t found_bytes = elf ? dwelf_elf_gnu_build_id(elf, &found) : -1;
    bool same = id_bytes > 0 && found_bytes == id_bytes && memcmp(found, id, (size_t)id_bytes) == 0;
    elf_end(elf);
    if (same)
        return file;
    close(file);
    return -1;
}

// dwfl's callback: <debug_dir>/.build-id/ab/cdef….debug, then what .gnu_debuglink names beside the
// file, in .debug beside it, and under debug_dir. Only the same build will do.
static int find_debug_file(Dwfl_Module *module, void **userdata, const char *module_name,
                           Dwarf_Addr base, const char *file_name, const char *link, GElf_Word crc,
                           char **found)
{
    (void)module_name, (void)base, (void)crc;
    const struct filling *filling = *userdata;
    const unsigned char *id;
    GElf_Addr where;
    int id_bytes = dwfl_module_build_id(module, &id, &where);
    if (!filling || id_bytes < 2 || id_bytes > 64)
        return -1;
    char hex[129], path[4096];
    for (int i = 0; i < id_bytes; i++)
        snprintf(hex + 2 * i, 3, "%02x", id[i]);
    const char *slash = file_name ? strrchr(file_name, '/') : NULL;
    int folder = slash ? (int)(slash - file_name) : 0;
    for (int attempt = 0; attempt < 4; attempt++) {
        int length = -1;
        if (attempt == 0)
            length = snprintf(path, sizeof path, "%s/.build-id/%.2s/%s.debug", filling->debug_dir,
                              hex, hex + 2);
        else if (link && attempt == 1)
            length = snprintf(path, sizeof path, "%.*s/%s", folder, file_name, link);
        else if (link && attempt == 2)
            length = snprintf(path, sizeof path, "%.*s/.debug/%s", folder, file_name, link);
        else if (link)
            length = snprintf(path, sizeof path, "%s%.*s/%s", filling->debug_dir, folder, file_name,
                              link);
        int file =
            length > 0 && (size_t)length < sizeof path ? open_if_same(path, id, id_bytes) : -1;
        if (file < 0)
            continue;
        *found = strdup(path);
        return file;
    }
    return -1;
}

// --- symbol tables -----------------------------------------------------------------------------

static bool in_code(Elf *elf, GElf_Word section)
{
    GElf_Shdr header;
    Elf_Scn *at = elf ? elf_getscn(elf, section) : NULL;
    return at && gelf_getshdr(at, &header) && (header.sh_flags & SHF_EXECINSTR);
}

static size_t add_symbol_table(struct filling *filling, Dwfl_Module *module, GElf_Addr bias)
{
    size_t before = filling->table->symbols.count;
    int count = dwfl_module_getsymtab(module);
    for (int i = 1; i < count && !filling->out_of_memory; i++) {
        GElf_Sym symbol;
        GElf_Addr address;
        GElf_Word section;
        Elf *elf;
        const char *name =
            dwfl_module_getsym_info(module, i, &symbol, &address, &section, &elf, NULL);
        if (!name || !*name || section == SHN_UNDEF || section == SHN_ABS)
            continue;
        unsigned type = GELF_ST_TYPE(symbol.st_info), binding = GELF_ST_BIND(symbol.st_info);
        bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
        if (!function && !(type == STT_NOTYPE && binding != STB_LOCAL && in_code(elf, section)))
            continue;
        // Prefers a global name to a weak or local alias, and "read" to "__read".
        uint32_t rank = (function ? 8u : 0) + (binding == STB_GLOBAL ? 4u : 0) +
                        (binding == STB_WEAK ? 2u : 0) + (name[0] != '_' ? 1u : 0);
        filling_add(filling, address - bias, symbol.st_size, name, rank);
    }
    return filling->table->symbols.count - before;
}

// --- stubs -------------------------------------------------------------------------------------

struct plt {
    uint64_t stubs; // address of the first stub
    uint64_t stub_bytes;
    Elf_Scn *relocations; // .rela.plt
};

static bool find_plt(Elf *elf, struct plt *out)
{
    enum { STUB_BYTES = 16 };
    size_t names;
    uint64_t plt = 0, secure_plt = 0;
    if (elf_getshdrstrndx(elf, &names) < 0)
        return false;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        const char *name =
            gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (!name)
            continue;
        if (strcmp(name, ".plt") == 0)
            plt = header.sh_addr;
        else if (strcmp(name, ".plt.sec") == 0)
            secure_plt = header.sh_addr;
        else if (strcmp(name, ".rela.plt") == 0 && header.sh_type == SHT_RELA &&
                 header.sh_entsize == sizeof(Elf64_Rela))
            out->relocations = section;
    }
    // With control-flow protection the called stubs are in .plt.sec; otherwise they are in .plt,
    // after a first stub that is never called.
    out->stubs = secure_plt ? secure_plt : plt + STUB_BYTES;
    out->stub_bytes = STUB_BYTES;
    return (plt || secure_plt) && out->relocations;
}

static void add_stubs(struct filling *filling, Elf *elf)
{
    struct plt plt = {0};
    GElf_Shdr relocations, symbols;
    if (!elf || !find_plt(elf, &plt) || !gelf_getshdr(plt.relocations, &relocations))
        return;
    Elf_Scn *symbol_section = elf_getscn(elf, relocations.sh_link);
    Elf_Data *entries = elf_getdata(plt.relocations, NULL);
    Elf_Data *table = symbol_section ? elf_getdata(symbol_section, NULL) : NULL;
    if (!entries || !table || !gelf_getshdr(symbol_section, &symbols))
        return;
    uint64_t count = relocations.sh_size / relocations.sh_entsize;
    for (uint64_t i = 0; i < count && !filling->out_of_memory; i++) {
        GElf_Rela entry;
        GElf_Sym symbol;
        if (!gelf_getrela(entries, (int)i, &entry))
            break;
        if (!gelf_getsym(table, (int)GELF_R_SYM(entry.r_info), &symbol))
            continue;
        const char *name = elf_strptr(elf, symbols.sh_link, symbol.st_name);
        char stub[512];
        if (!name || !*name || snprintf(stub, sizeof stub, "%s@plt", name) >= (int)sizeof stub)
            continue;
        filling_add(filling, plt.stubs + i * plt.stub_bytes, plt.stub_bytes, stub, 0);
    }
}

// --- DWARF -------------------------------------------------------------------------------------

struct dwarf_filling {
    struct filling *filling;
    GElf_Addr bias; // added to DWARF's addresses it gives the file's own
};

static int add_dwarf_function(Dwarf_Die *function, void *context)
{
    struct dwarf_filling *dwarf = context;
    Dwarf_Addr low, high;
    if (dwarf_lowpc(function, &low) < 0 || dwarf_highpc(function, &high) < 0 || high <= low)
        return DWARF_CB_OK; // a declaration, or inlined everywhere
    Dwarf_Attribute attribute;
    const char *name = NULL;
    if (dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute))
        name = dwarf_formstring(&attribute);
    if (!name)
        name = dwarf_diename(function);
    if (name)
        filling_add(dwarf->filling, low + dwarf->bias, high - low, name, 1);
    return dwarf->filling->out_of_memory ? DWARF_CB_ABORT : DWARF_CB_OK;
}

static void add_dwarf(struct filling *filling, Dwfl_Module *module, GElf_Addr bias)
{
    Dwarf_Addr dwarf_bias = 0;
    Dwarf_Die *unit = NULL;
    while ((unit = dwfl_module_nextcu(module, unit, &dwarf_bias)) && !filling->out_of_memory) {
        struct dwarf_filling dwarf = {filling, dwarf_bias - bias};
        dwarf_getfuncs(unit, add_dwarf_function, &dwarf, 0);
    }
}

// --- the whole file ------------------------------------------------------------------------------

int symbol_table_add_elf(struct symbol_table *table, struct name_pool *pool, const char *path,
                         const char *debug_dir, struct error *err)
{
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                             .find_debuginfo = find_debug_file,
                                             .section_address = dwfl_offline_section_address};
    struct filling filling = {
        .table = table, .pool = pool, .debug_dir = debug_dir ? debug_dir : "/usr/lib/debug"};
    Dwfl *dwfl = dwfl_begin(&callbacks);
    if (!dwfl)
        return error_set(err, ERROR_FAILED, "%s: %s", path, dwfl_errmsg(-1));
    int result = 0;
    dwfl_report_begin(dwfl);
    Dwfl_Module *module = dwfl_report_offline(dwfl, path, path, -1);
    dwfl_report_end(dwfl, NULL, NULL);
    GElf_Addr bias = 0;
    Elf *elf = module ? dwfl_module_getelf(module, &bias) : NULL;
    if (!elf) {
        const char *why = dwfl_errmsg(-1);
        result = error_set(err, ERROR_INPUT, "%s: no symbols can be read: %s", path,
                           why ? why : "not an ELF file");
        goto done;
    }
    void **userdata;
    dwfl_module_info(module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
    *userdata = &filling;
    size_t found = add_symbol_table(&filling, module, bias);
    if (!found)
        add_dwarf(&filling, module, bias);
    add_stubs(&filling, elf);
    if (filling.out_of_memory)
        result = error_set(err, ERROR_FAILED, "out of memory for the symbols of %s", path);
done:
    dwfl_end(dwfl);
    return result;
}
