// SPDX-License-Identifier: MIT
//
// The symbols of a recording: which table an address belongs to, and reading tables when they are
// first needed. See symbols.h.
#include "analysis/code/symbols.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "analysis/code/symbols_table.h"
#include "analysis/perf/perf_data_events.h"
#include "base/array.h"
#include "base/text.h"

// --- functions that the kernel made while it ran -------------------------------------------------

// A record and its index.
struct change {
    struct perf_ksymbol symbol;
    uint64_t time;
    size_t order;
};
struct changes ARRAY_OF(struct change);

static int by_address(const void *a, const void *b)
{
    const struct change *left = a, *right = b;
    return order_of(left->symbol.address, right->symbol.address)
               ?: order_of(left->order, right->order);
}

static int collect_changes(const struct perf_data *data, struct changes *changes)
{
    for (size_t i = 0; i < data->events.count; i++) {
        const struct perf_event *event = &data->events.items[i];
        struct change change = {.time = event->time, .order = i};
        if (event->type != PERF_KSYMBOL)
            continue;
        perf_event_ksymbol(event, &change.symbol);
        if (change.symbol.bytes <= UINT64_MAX - change.symbol.address &&
            array_push(changes, change) < 0)
            return -1;
    }
    return 0;
}

int made_symbols_read(const struct perf_data *data, struct name_pool *pool,
                      struct made_symbols *out)
{
    struct changes changes = {0};
    int result = collect_changes(data, &changes);
    array_sort(&changes, by_address);
    for (size_t i = 0; result == 0 && i < changes.count; i++) {
        const struct change *change = &changes.items[i], *next = change + 1;
        const struct perf_ksymbol *symbol = &change->symbol;
        if (symbol->unregistered)
            continue;
        bool ends = i + 1 < changes.count && next->symbol.address == symbol->address;
        struct made_symbol made = {
            .symbol = {symbol->address, symbol->address + symbol->bytes,
                       name_pool_add(pool, symbol->name, strlen(symbol->name)), 0},
            .from = change->time,
            .to = ends ? next->time : UINT64_MAX};
        if (made.symbol.name == UINT32_MAX || array_push(out, made) < 0)
            result = -1;
    }
    array_free(&changes);
    return result;
}

const struct symbol *made_symbols_find(const struct made_symbols *made, uint64_t address,
                                       uint64_t time)
{
    // Freed pages are reused in other sizes, so the symbol that covers the address may not be the
    // nearest one.
    enum { LOOK_BACK = 64 };
    // the first that begins after the address
    size_t low = array_bound(0, made->count, at, made->items[at].symbol.address <= address);
    const struct symbol *other = NULL;
    for (size_t i = low; i-- > 0 && low - i <= LOOK_BACK;) {
        const struct made_symbol *one = &made->items[i];
        if (address >= one->symbol.end)
            continue;
        if (time >= one->from && time < one->to)
            return &one->symbol;
        other = other ? other : &one->symbol;
    }
    return other;
}

// --- all sources ---------------------------------------------------------------------------------

static const uint64_t kernel_begins = (uint64_t)1 << 63;

struct file_symbols {
    struct symbol_table table;
    uint32_t file_name; // "[libc.so.6]"
    bool loaded;
};

struct jit_symbols {
    uint32_t pid;
    struct symbol_table table;
};
struct jit_array ARRAY_OF(struct jit_symbols);

struct symbols {
    const struct perf_data *data;
    const struct code_images *images;
    char *jit_dir, *debug_dir;
    struct name_pool *names;
    struct file_symbols *files; // one per code file
    struct symbol_table kernel;
    struct made_symbols made; // made by the kernel while it ran
    bool kernel_loaded;
    struct jit_array jit; // by pid
    bool all_loaded;      // all tables are loaded: nothing may change any more
    uint32_t unknown;
    struct symbol_complaints complaints;
};

// Without memory for its text a table that cannot be read is no more than without names.
static void __attribute__((format(printf, 2, 3)))
complain_of_symbols(struct symbols *symbols, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    if (text && array_push(&symbols->complaints, text) < 0)
        free(text);
}

static uint32_t add_name(struct symbols *symbols, const char *name)
{
    return name_pool_add(symbols->names, name, strlen(name));
}

static int name_files(struct symbols *symbols)
{
    for (size_t i = 0; i < symbols->images->files.count; i++) {
        const char *path = symbols->images->files.items[i].mapped_path;
        const char *slash = strrchr(path, '/');
        char name[300];
        if (path[0] == '[')
            snprintf(name, sizeof name, "%s", path);
        else
            snprintf(name, sizeof name, "[%s]", slash ? slash + 1 : path);
        symbols->files[i].file_name = add_name(symbols, name);
        if (symbols->files[i].file_name == UINT32_MAX)
            return -1;
    }
    symbols->unknown = add_name(symbols, "[unknown]");
    return symbols->unknown == UINT32_MAX ? -1 : 0;
}

struct symbols *symbols_alloc(const struct perf_data *data, const struct code_images *images,
                              const char *jit_dir, const char *debug_dir, struct error *err)
{
    struct symbols *symbols = calloc(1, sizeof *symbols);
    if (symbols) {
        symbols->data = data;
        symbols->images = images;
        symbols->jit_dir = strdup(jit_dir ? jit_dir : "/tmp");
        symbols->debug_dir = strdup(debug_dir ? debug_dir : "/usr/lib/debug");
        symbols->names = name_pool_alloc();
        symbols->files = calloc(images->files.count + 1, sizeof *symbols->files);
        if (symbols->jit_dir && symbols->debug_dir && symbols->names && symbols->files &&
            name_files(symbols) == 0)
            return symbols;
    }
    symbols_free(symbols);
    error_set(err, ERROR_FAILED, "out of memory for symbols");
    return NULL;
}

void symbols_free(struct symbols *symbols)
{
    if (!symbols)
        return;
    for (size_t i = 0; symbols->files && i < symbols->images->files.count; i++)
        symbol_table_free(&symbols->files[i].table);
    for (size_t i = 0; i < symbols->jit.count; i++)
        symbol_table_free(&symbols->jit.items[i].table);
    array_free(&symbols->jit);
    symbol_table_free(&symbols->kernel);
    array_free(&symbols->made);
    for (size_t i = 0; i < symbols->complaints.count; i++)
        free(symbols->complaints.items[i]);
    array_free(&symbols->complaints);
    name_pool_free(symbols->names);
    free(symbols->files);
    free(symbols->jit_dir);
    free(symbols->debug_dir);
    free(symbols);
}

struct name_pool *symbols_names(struct symbols *symbols)
{
    return symbols->names;
}

const struct symbol_complaints *symbols_complaints(const struct symbols *symbols)
{
    return &symbols->complaints;
}

// --- the kernel ----------------------------------------------------------------------------------

// Where the recording says that the kernel's text began, or 0.
static uint64_t recorded_kernel_text(const struct perf_data *data)
{
    for (size_t i = 0; data && i < data->events.count; i++) {
        const struct perf_event *event = &data->events.items[i];
        if (event->time > 0)
            break;
        if (event->type != PERF_MMAP && event->type != PERF_MMAP2)
            continue;
        struct perf_mmap mmap;
        perf_event_mmap(event, &mmap);
        if (mmap.kernel && strncmp(mmap.path, "[kernel.kallsyms]", 17) == 0)
            return mmap.address;
    }
    return 0;
}

// This host's kallsyms are the recording's when the release is the same and the text lies where it
// lay (it lies elsewhere after every boot).
static bool host_kernel_is_recorded(struct symbols *symbols, struct symbol_table *host)
{
    struct utsname name;
    uint64_t text = recorded_kernel_text(symbols->data);
    if (!text || uname(&name) < 0 || strcmp(name.release, symbols->data->os_release) != 0)
        return false;
    if (symbol_table_add_kallsyms(host, symbols->names, "/proc/kallsyms", NULL) < 0)
        return false;
    for (size_t i = 0; i < host->symbols.count; i++) {
        const struct symbol *one = &host->symbols.items[i];
        if (one->address != text)
            continue;
        const char *called = name_pool_text(symbols->names, one->name);
        if (strcmp(called, "_text") == 0 || strcmp(called, "_stext") == 0)
            return true;
    }
    return false;
}

static void load_kernel(struct symbols *symbols)
{
    symbols->kernel_loaded = true;
    const char *kallsyms = symbols->images->kallsyms;
    struct error err = {0};
    if (kallsyms) {
        if (symbol_table_add_kallsyms(&symbols->kernel, symbols->names, kallsyms, &err) < 0)
            complain_of_symbols(symbols, "the kernel's functions have no names: %s", err.text);
    } else if (!host_kernel_is_recorded(symbols, &symbols->kernel)) {
        symbol_table_free(&symbols->kernel);
    }
    if (symbols->data && made_symbols_read(symbols->data, symbols->names, &symbols->made) < 0)
        complain_of_symbols(symbols, "out of memory for functions that the kernel made");
    symbol_table_sort(&symbols->kernel);
}

// --- files and JIT maps ------------------------------------------------------------------------

static void load_file(struct symbols *symbols, uint32_t file)
{
    const struct code_file *code = &symbols->images->files.items[file];
    struct file_symbols *loaded = &symbols->files[file];
    loaded->loaded = true;
    if (code->kind != CODE_ELF)
        return;
    struct error err = {0};
    if (symbol_table_add_elf(&loaded->table, symbols->names, code->path, symbols->debug_dir, &err) <
        0)
        complain_of_symbols(symbols, "%s", err.text);
    symbol_table_sort(&loaded->table);
}

static const struct symbol_table *jit_table(struct symbols *symbols, uint32_t pid)
{
    size_t low = array_bound(0, symbols->jit.count, at, symbols->jit.items[at].pid < pid);
    if (low < symbols->jit.count && symbols->jit.items[low].pid == pid)
        return &symbols->jit.items[low].table;
    if (symbols->all_loaded || pid == PERF_NO_PID)
        return NULL;
    struct jit_symbols fresh = {.pid = pid};
    char path[4096];
    uint64_t malformed = 0; // such lines are skipped
    struct error err = {0};
    snprintf(path, sizeof path, "%s/perf-%" PRIu32 ".map", symbols->jit_dir, pid);
    if (access(path, F_OK) < 0)
        snprintf(path, sizeof path, "/tmp/perf-%" PRIu32 ".map", pid);
    if (access(path, F_OK) == 0 &&
        symbol_table_add_jit_map(&fresh.table, symbols->names, path, &malformed, &err) < 0)
        complain_of_symbols(symbols, "compiled functions have no names: %s", err.text);
    if (malformed)
        complain_of_symbols(symbols, "%s: %s malformed line%s left out", path,
                            TEXT_COUNT(malformed), malformed == 1 ? "" : "s");
    symbol_table_sort(&fresh.table);
    if (array_push(&symbols->jit, fresh) < 0) {
        symbol_table_free(&fresh.table);
        return NULL;
    }
    struct jit_symbols *at = &symbols->jit.items[low];
    memmove(at + 1, at, (symbols->jit.count - 1 - low) * sizeof *at);
    *at = fresh;
    return &at->table;
}

int symbols_load_all(struct symbols *symbols, struct error *err)
{
    if (!symbols->kernel_loaded)
        load_kernel(symbols);
    for (uint32_t i = 0; i < symbols->images->files.count; i++)
        if (!symbols->files[i].loaded)
            load_file(symbols, i);
    for (size_t i = 0; i < symbols->images->spaces.count; i++) {
        uint32_t pid = symbols->images->spaces.items[i].pid;
        if (pid != PERF_NO_PID && !jit_table(symbols, pid))
            return error_set(err, ERROR_FAILED, "out of memory for symbols");
    }
    symbols->all_loaded = true;
    return 0;
}

// --- asking ------------------------------------------------------------------------------------

// moved_by: run-time address minus the table's.
static bool take_symbol(const struct symbol *symbol, uint64_t moved_by, struct symbol_hit *hit)
{
    if (!symbol)
        return false;
    hit->name = symbol->name;
    hit->begin = symbol->address + moved_by;
    hit->end = symbol->end + moved_by;
    hit->known = true;
    return true;
}

static bool find_in_file(struct symbols *symbols, uint32_t pid, uint64_t time, uint64_t address,
                         struct symbol_hit *hit)
{
    const struct code_space *space = code_images_at(symbols->images, pid, time);
    const struct code_section *section = space ? code_space_find(space, address) : NULL;
    if (!section)
        return false;
    uint32_t named_by = section->named_by ? section->named_by - 1 : section->file;
    struct file_symbols *file = &symbols->files[named_by];
    if (!file->loaded && !symbols->all_loaded)
        load_file(symbols, named_by);
    hit->file = named_by;
    hit->name = file->file_name;
    uint64_t moved_by = section->address - section->elf_address;
    if (take_symbol(symbol_table_find(&file->table, address - moved_by), moved_by, hit))
        return true;
    const struct symbol_table *jit = hit->kernel ? NULL : jit_table(symbols, pid);
    if (file->table.symbols.count == 0 && !hit->kernel && !(jit && jit->symbols.count)) {
        hit->begin = section->address; // nor has any other address there a name
        hit->end = section->address + section->bytes;
    }
    return false;
}

bool symbols_find(struct symbols *symbols, uint32_t pid, uint64_t time, uint64_t address,
                  struct symbol_hit *hit)
{
    *hit = (struct symbol_hit){.name = symbols->unknown,
                               .begin = address,
                               .end = address,
                               .file = UINT32_MAX,
                               .kernel = address >= kernel_begins};
    if (hit->kernel && !symbols->kernel_loaded && !symbols->all_loaded)
        load_kernel(symbols);
    if (find_in_file(symbols, hit->kernel ? PERF_NO_PID : pid, time, address, hit))
        return true;
    if (hit->kernel)
        return take_symbol(made_symbols_find(&symbols->made, address, time), 0, hit) ||
               take_symbol(symbol_table_find(&symbols->kernel, address), 0, hit);
    const struct symbol_table *jit = jit_table(symbols, pid);
    return jit && take_symbol(symbol_table_find(jit, address), 0, hit);
}

// Of the C++ run-time library (Itanium C++ ABI §3.4).
char *__cxa_demangle(const char *mangled, char *buffer, size_t *length, int *status);

char *symbol_demangle(const char *name)
{
    enum { LONGEST = 4096 }; // longer names take too long to demangle for what they are worth
    if (strncmp(name, "_Z", 2) == 0 && strnlen(name, LONGEST) < LONGEST) {
        int status = 0;
        char *readable = __cxa_demangle(name, NULL, NULL, &status);
        if (readable && status == 0)
            return readable;
        free(readable);
    }
    return strdup(name);
}
