// SPDX-License-Identifier: MIT
#include "profiler/events/runtime_probes.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler/bpf/event_rings.h"

// A process more costs its server no time, but each place in it is a descriptor of ours.
enum { MOST_PROCESSES = 256, MOST_PLACES = 16 };

// A place in a file, as the kernel takes it.
struct place {
    uint64_t offset;
    uint64_t semaphore; // offset of the word that turns a static probe on; 0: there is none
    enum runtime_work work;
    bool returns;   // a beginning: it ends where that function returns
    bool at_return; // of the function there
};

struct places {
    struct place begin[MOST_PLACES], end[MOST_PLACES];
    unsigned begins, ends;
    struct runtime_waits waits; // by the file's own addresses; empty: none are known
    uint64_t code;              // its code's address there, less its offset in the file
};

// --- in a file -----------------------------------------------------------------------------------

// 0: no part of the file is loaded there.
static uint64_t offset_of(Elf *elf, uint64_t address)
{
    size_t count = 0;
    elf_getphdrnum(elf, &count);
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr part;
        if (gelf_getphdr(elf, (int)i, &part) && part.p_type == PT_LOAD && address >= part.p_vaddr &&
            address - part.p_vaddr < part.p_memsz)
            return address - part.p_vaddr + part.p_offset;
    }
    return 0;
}

static uint64_t code_of(Elf *elf)
{
    size_t count = 0;
    elf_getphdrnum(elf, &count);
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr part;
        if (gelf_getphdr(elf, (int)i, &part) && part.p_type == PT_LOAD && part.p_flags & PF_X)
            return part.p_vaddr - part.p_offset;
    }
    return 0;
}

static Elf_Scn *section_named(Elf *elf, const char *name, GElf_Shdr *header)
{
    size_t names;
    if (elf_getshdrstrndx(elf, &names) < 0)
        return NULL;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        const char *found =
            gelf_getshdr(section, header) ? elf_strptr(elf, names, header->sh_name) : NULL;
        if (found && strcmp(found, name) == 0)
            return section;
    }
    return NULL;
}

static void place_add(struct place *list, unsigned *count, struct place place)
{
    if (place.offset && *count < MOST_PLACES)
        list[(*count)++] = place;
}

// A note of a static probe: where it is, where .stapsdt.base was as that was written, where its
// semaphore is; then its provider and name (systemtap's sys/sdt.h).
static void take_note(Elf *elf, const char *note, size_t bytes, uint64_t base,
                      struct places *places)
{
    uint64_t words[3];
    const char *provider = note + sizeof words, *end = note + bytes;
    if (bytes <= sizeof words || end[-1] != '\0')
        return;
    const char *name = provider + strlen(provider) + 1;
    memcpy(words, note, sizeof words);
    if (name >= end || strcmp(provider, "python") != 0)
        return;
    const uint64_t moved = base - words[1];
    const struct place place = {.offset = offset_of(elf, words[0] + moved),
                                .semaphore = words[2] ? offset_of(elf, words[2] + moved) : 0};
    if (strcmp(name, "gc__start") == 0)
        place_add(places->begin, &places->begins, place);
    if (strcmp(name, "gc__done") == 0)
        place_add(places->end, &places->ends, place);
}

static void find_static_probes(Elf *elf, struct places *places)
{
    GElf_Shdr header, based;
    GElf_Nhdr note;
    size_t name, content;
    if (!section_named(elf, ".stapsdt.base", &based))
        return;
    Elf_Scn *section = section_named(elf, ".note.stapsdt", &header);
    Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
    for (size_t at = 0; data && (at = gelf_getnote(data, at, &note, &name, &content)) > 0;)
        take_note(elf, (const char *)data->d_buf + content, note.n_descsz, based.sh_addr, places);
}

typedef void symbol_visitor(Elf *elf, const char *name, const GElf_Sym *symbol,
                            struct places *places);

// What a table of symbols (".dynsym": what is exported) has by names that begin so.
static void find_symbols(Elf *elf, const char *table, const char *begin, symbol_visitor *each,
                         struct places *places)
{
    GElf_Shdr header;
    Elf_Scn *section = section_named(elf, table, &header);
    Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
    const size_t count = data && header.sh_entsize ? header.sh_size / header.sh_entsize : 0;
    for (size_t i = 0; i < count && i < INT32_MAX; i++) {
        GElf_Sym symbol;
        const char *name = gelf_getsym(data, (int)i, &symbol)
                               ? elf_strptr(elf, header.sh_link, symbol.st_name)
                               : NULL;
        if (name && symbol.st_value && strncmp(name, begin, strlen(begin)) == 0)
            each(elf, name, &symbol, places);
    }
}

// From its entry to its return.
static void take_function(Elf *elf, const GElf_Sym *symbol, enum runtime_work work,
                          struct places *places)
{
    const uint64_t offset = offset_of(elf, symbol->st_value);
    place_add(places->begin, &places->begins,
              (struct place){.offset = offset, .work = work, .returns = true});
    place_add(places->end, &places->ends,
              (struct place){.offset = offset, .work = work, .at_return = true});
}

static void take_collector(Elf *elf, const char *name, const GElf_Sym *symbol,
                           struct places *places)
{
    (void)name;
    take_function(elf, symbol, RUNTIME_COLLECTS, places);
}

static void take_own_work(Elf *elf, const char *name, const GElf_Sym *symbol, struct places *places)
{
    (void)name;
    take_function(elf, symbol, SERVER_WORKS, places);
}

// All that CPython keeps of itself (struct _PyRuntimeState), and in it, as the only thing there
// that threads sleep for, the lock of its main interpreter. It is exported for extensions.
static void take_runtime_state(Elf *elf, const char *name, const GElf_Sym *symbol,
                               struct places *places)
{
    (void)elf;
    (void)name;
    if (GELF_ST_TYPE(symbol->st_info) == STT_OBJECT)
        places->waits = (struct runtime_waits){.begin = symbol->st_value,
                                               .end = symbol->st_value + symbol->st_size,
                                               .flag = BLOCKED_INTERPRETER};
}

static void find_python(Elf *elf, struct places *places)
{
    find_static_probes(elf, places);
    find_symbols(elf, ".dynsym", "_PyRuntime", take_runtime_state, places);
}

static void find_node(Elf *elf, struct places *places)
{
    find_symbols(elf, ".dynsym", "_ZN2v88internal4Heap14CollectGarbageE", take_collector, places);
}

static void find_redis(Elf *elf, struct places *places)
{
    find_symbols(elf, ".dynsym", "serverCron", take_own_work, places);
}

// Go moves its goroutines' stacks, and a return address on one must not be changed: of what runs
// there only the beginning can be seen, and the end where something else begins right after. All of
// these stay with their thread. gcDrainN, what a goroutine does to be allowed to allocate, runs on
// the thread's own stack, as its directive go:systemstack has the compiler check, and that one
// stays where it is.
static void take_of_go(Elf *elf, const char *name, const GElf_Sym *symbol, struct places *places)
{
    enum part { BEGINS, ENDS, WHOLE };
    static const struct {
        const char *name;
        enum runtime_work work;
        enum part part;
    } functions[] = {{"runtime.gcDrain", RUNTIME_COLLECTS, BEGINS},
                     {"runtime.(*gcControllerState).markWorkerStop", RUNTIME_COLLECTS, ENDS},
                     {"runtime.gcDrainN", RUNTIME_COLLECTS, WHOLE},
                     {"runtime.stopTheWorldWithSema", RUNTIME_STOPS, BEGINS},
                     {"runtime.startTheWorldWithSema", RUNTIME_STOPS, ENDS}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const struct place place = {.offset = offset_of(elf, symbol->st_value),
                                    .work = functions[i].work};
        if (strcmp(name, functions[i].name) != 0)
            continue;
        if (functions[i].part == WHOLE)
            take_function(elf, symbol, functions[i].work, places);
        else if (functions[i].part == ENDS)
            place_add(places->end, &places->ends, place);
        else
            place_add(places->begin, &places->begins, place);
    }
}

// The table of functions that a Go program has for its own use, and keeps when its symbols are
// stripped (cmd/internal/obj/pcln.go, runtime/symtab.go): since Go 1.18 a head, and in offsets from
// that names, and pairs of a function's address, from the text's, and of a record, from the pairs'
// beginning, which repeats that and has the name. Nothing in it is taken for true.
struct go_functions {
    const uint8_t *bytes;
    size_t size;
    uint64_t count, text, names, pairs;
};

// The little-endian number there, if that is within the table.
static bool read_number(const struct go_functions *functions, uint64_t at, size_t bytes,
                        uint64_t *number)
{
    *number = 0;
    if (at > functions->size || functions->size - at < bytes)
        return false;
    memcpy(number, functions->bytes + at, bytes);
    return true;
}

static bool read_go_head(struct go_functions *functions)
{
    enum { SINCE_1_18 = 0xf0, SINCE_1_20 = 0xf1 };
    static const uint8_t rest[] = {0xff, 0xff, 0xff, 0, 0, 1, 8}; // of x86-64
    return functions->size > 72 &&
           (functions->bytes[0] == SINCE_1_18 || functions->bytes[0] == SINCE_1_20) &&
           memcmp(functions->bytes + 1, rest, sizeof rest) == 0 &&
           read_number(functions, 8, 8, &functions->count) &&
           read_number(functions, 24, 8, &functions->text) && functions->text != 0 &&
           read_number(functions, 32, 8, &functions->names) &&
           read_number(functions, 64, 8, &functions->pairs) && functions->names < functions->size &&
           functions->pairs < functions->size && functions->count <= functions->size / 8;
}

static void find_go_functions(Elf *elf, const char *table, struct places *places)
{
    GElf_Shdr header;
    Elf_Scn *section = section_named(elf, table, &header);
    Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
    if (!data || !data->d_buf)
        return;
    struct go_functions functions = {.bytes = data->d_buf, .size = data->d_size};
    const uint64_t count = read_go_head(&functions) ? functions.count : 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t entry, record, again, name, at = functions.pairs + 8 * i;
        if (!read_number(&functions, at, 4, &entry) ||
            !read_number(&functions, at + 4, 4, &record) ||
            !read_number(&functions, functions.pairs + record, 4, &again) ||
            !read_number(&functions, functions.pairs + record + 4, 4, &name) || again != entry)
            return;
        at = functions.names + name;
        if (at < functions.size && memchr(functions.bytes + at, '\0', functions.size - at))
            take_of_go(elf, (const char *)functions.bytes + at,
                       &(GElf_Sym){.st_value = functions.text + entry}, places);
    }
}

static void find_go(Elf *elf, struct places *places)
{
    GElf_Shdr header;
    if (!section_named(elf, ".go.buildinfo", &header))
        return;
    places->waits = (struct runtime_waits){.end = UINT64_MAX, .flag = BLOCKED_PARKED};
    find_go_functions(elf, ".gopclntab", places);
    if (places->begins == 0)
        find_go_functions(elf, ".data.rel.ro.gopclntab", places); // it may lie anywhere in memory
    if (places->begins == 0)
        find_symbols(elf, ".symtab", "runtime.", take_of_go, places);
}

// Erlang's machine lets its processes run on a thread for each core as Go does; all of its threads
// sleep in futex for each other's word.
static void find_erlang(Elf *elf, struct places *places)
{
    (void)elf;
    places->waits = (struct runtime_waits){.end = UINT64_MAX, .flag = BLOCKED_PARKED};
}

// The runtimes, by how the files begin that they are in. One file is all of Redis's programs; what
// is written in Go is one file of any name.
static const struct runtime {
    const char *file;
    void (*find)(Elf *elf, struct places *places);
} runtimes[] = {{"python3", find_python}, {"libpython3", find_python}, {"node", find_node},
                {"libnode", find_node},   {"redis-", find_redis},      {"valkey-", find_redis},
                {"beam.smp", find_erlang}},
  any_program = {"", find_go};

// The file is its owner's, who may be anybody: it is read, not mapped, so that it may shrink
// meanwhile, and nothing that is no file or larger than such programs are is looked at.
static int find_places(const char *path, const struct runtime *runtime, struct places *places,
                       struct error *err)
{
    const off_t most_bytes = 512 << 20;
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0 && errno == ENOENT)
        return 0; // the process has ended
    if (file < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot read %s", path);
    elf_version(EV_CURRENT);
    bool plain = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    Elf *elf = plain && status.st_size <= most_bytes ? elf_begin(file, ELF_C_READ, NULL) : NULL;
    if (elf && elf_kind(elf) == ELF_K_ELF && gelf_getclass(elf) == ELFCLASS64) {
        runtime->find(elf, places);
        places->code = code_of(elf);
    }
    elf_end(elf);
    close(file);
    return 0;
}

// --- in a process --------------------------------------------------------------------------------

static int attach(struct runtime_probes *probes, const struct bpf_program *program,
                  uint32_t process, const char *path, const struct place *place)
{
    LIBBPF_OPTS(bpf_uprobe_opts, options, .ref_ctr_offset = place->semaphore,
                .retprobe = place->at_return);
    libbpf_print_fn_t printer = libbpf_set_print(NULL); // what matters is in the counts
    struct bpf_link *link =
        bpf_program__attach_uprobe_opts(program, (pid_t)process, path, place->offset, &options);
    libbpf_set_print(printer);
    if (!link)
        return error_set_errno(&probes->why, ERROR_FAILED, "no probe in process %u", process);
    if (array_push(&probes->links, link) == 0)
        return 0;
    bpf_link__destroy(link);
    return error_set(&probes->why, ERROR_FAILED, "no memory for a probe");
}

// Whether there is an end for a beginning: older versions may lack the place.
static bool has_end(const struct places *places, const struct place *begin)
{
    bool found = begin->returns;
    for (unsigned i = 0; i < places->ends; i++)
        found |= places->end[i].work == begin->work && !places->end[i].at_return;
    return found;
}

// An end without its begin would be none, and a begin without its end a collection that lasts.
static void attach_all(struct runtime_probes *probes, uint32_t process, const char *path,
                       const struct places *places)
{
    const size_t before = probes->links.count;
    int result = 0;
    if (places->begins == 0 || places->ends == 0)
        return;
    for (unsigned i = 0; i < places->ends && result == 0; i++)
        result = attach(probes, probes->end[places->end[i].work], process, path, &places->end[i]);
    for (unsigned i = 0; i < places->begins && result == 0; i++)
        if (has_end(places, &places->begin[i]))
            result = attach(probes, probes->begin[places->begin[i].work], process, path,
                            &places->begin[i]);
    while (result < 0 && probes->links.count > before)
        bpf_link__destroy(probes->links.items[--probes->links.count]);
    probes->probed += result == 0;
    probes->refused += result < 0 && kill((pid_t)process, 0) == 0; // it is still there
}

// Tells the programs what waits of the process are. Where there is no room for it they are like
// others'.
static void tell_waits(struct runtime_probes *probes, uint32_t process, const struct places *places,
                       uint64_t mapped, uint64_t offset)
{
    struct runtime_waits waits = places->waits;
    if (waits.end <= waits.begin)
        return;
    if (waits.end < UINT64_MAX) { // else it is all addresses
        waits.begin += mapped - offset - places->code;
        waits.end += mapped - offset - places->code;
    }
    bpf_map_update_elem(probes->waits, &process, &waits, BPF_ANY);
}

// What to look for in a file of that name, NULL: nothing. is_program: not a library.
static const struct runtime *runtime_in(const char *name, bool is_program)
{
    for (size_t i = 0; i < sizeof runtimes / sizeof *runtimes; i++)
        if (strncmp(name, runtimes[i].file, strlen(runtimes[i].file)) == 0)
            return &runtimes[i];
    return is_program ? &any_program : NULL;
}

// Takes a line of /proc/PID/maps: "begin-end r-xp offset device inode  /path", of which the first
// is the program's. True: it has a runtime.
static bool take_mapping(struct runtime_probes *probes, uint32_t process, char *line, bool *first)
{
    struct places places = {.begins = 0};
    char path[4400];
    char *file = strchr(line, '/');
    line[strcspn(line, "\n")] = '\0';
    uint64_t mapped, offset;
    if (!file || sscanf(line, "%" SCNx64 "-%*x r-xp %" SCNx64, &mapped, &offset) != 2)
        return false;
    const struct runtime *runtime = runtime_in(strrchr(file, '/') + 1, *first);
    *first = false;
    if (!runtime)
        return false;
    snprintf(path, sizeof path, "/proc/%u/root%s", process, file);
    if (find_places(path, runtime, &places, &probes->why) == 0)
        attach_all(probes, process, path, &places);
    else
        probes->refused += runtime != &any_program;
    tell_waits(probes, process, &places, mapped, offset);
    return places.begins > 0 || places.waits.end > 0;
}

void runtime_probes_add(struct runtime_probes *probes, uint32_t process)
{
    char path[64], line[4400];
    for (size_t i = 0; i < probes->processes.count; i++)
        if (probes->processes.items[i] == process)
            return;
    if (!probes->begin[RUNTIME_COLLECTS] || probes->processes.count >= MOST_PROCESSES ||
        array_push(&probes->processes, process) < 0)
        return;
    snprintf(path, sizeof path, "/proc/%u/maps", process);
    FILE *maps = fopen(path, "re");
    bool first = true;
    while (maps && fgets(line, sizeof line, maps) && !take_mapping(probes, process, line, &first))
        ;
    if (maps)
        fclose(maps);
}

void runtime_probes_end(struct runtime_probes *probes)
{
    for (size_t i = 0; i < probes->links.count; i++)
        bpf_link__destroy(probes->links.items[i]);
    array_free(&probes->links);
    array_free(&probes->processes);
    memset(probes->begin, 0, sizeof probes->begin);
    memset(probes->end, 0, sizeof probes->end);
}
