// SPDX-License-Identifier: MIT
#include "profiler/trace/function_recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <traceevent/event-parse.h>
#include <traceevent/kbuffer.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log_file.h"
#include "base/map.h"
#include "base/new_file.h"
#include "profiler/trace/function_log.h"

// --- symbols -------------------------------------------------------------------------------------
// The set of kernel addresses that were seen, and their names (/proc/kallsyms): the file
// functions.sym beside a function log.

struct address_array ARRAY_OF(uint64_t);
struct function_symbols { // zeroed: empty
    struct address_array met;
    struct map known; // where in it
};

struct symbol {
    uint64_t address;
    char name[88];
};
struct symbol_array ARRAY_OF(struct symbol);

// -1: no memory.
static int function_symbols_note(struct function_symbols *symbols, uint64_t address)
{
    uint64_t hash = hash64(address);
    if (!address ||
        map_find(&symbols->known, hash, at, symbols->met.items[at] == address) != MAP_NONE)
        return 0;
    if (array_push(&symbols->met, address) < 0)
        return -1;
    return map_add(&symbols->known, hash, symbols->met.count - 1);
}

static void function_symbols_free(struct function_symbols *symbols)
{
    array_free(&symbols->met);
    map_free(&symbols->known);
}

static int compare_addresses(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return order_of(a, b);
}

static int compare_symbols(const void *left, const void *right)
{
    return compare_addresses(&((const struct symbol *)left)->address,
                             &((const struct symbol *)right)->address);
}

// Functions of the kernel and its modules.
static int read_kallsyms(struct symbol_array *out, struct error *err)
{
    char line[400], type;
    unsigned long long address;
    struct symbol symbol;
    int result = 0;
    FILE *file = fopen("/proc/kallsyms", "re");
    if (!file)
        return error_set_errno(err, ERROR_FAILED, "cannot read /proc/kallsyms");
    while (result == 0 && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%llx %c %87s", &address, &type, symbol.name) != 3 || !address ||
            !strchr("tTwW", type))
            continue;
        symbol.address = address;
        result = array_push(out, symbol);
    }
    fclose(file);
    array_sort(out, compare_symbols);
    return result < 0 ? error_set(err, ERROR_FAILED, "no memory for the kernel's symbols") : 0;
}

static size_t write_names(FILE *file, const struct symbol_array *all, const uint64_t *addresses,
                          size_t count)
{
    size_t next = 0, named = 0;
    for (size_t i = 0; i < count; i++) {
        while (next < all->count && all->items[next].address <= addresses[i])
            next++;
        if (!next)
            continue;
        // Of several names of one address the first in the kernel's order; sorting has lost that
        // order.
        size_t at = next - 1;
        while (at > 0 && all->items[at - 1].address == all->items[at].address)
            at--;
        fprintf(file, "%llx %s\n", (unsigned long long)addresses[i], all->items[at].name);
        named++;
    }
    return named;
}

// Writes a line "<address> <name>" for each address with a name, ascending; the function is the one
// that begins at or nearest before the address. *named: how many.
static int function_symbols_write(const struct function_symbols *symbols, const char *path,
                                  size_t *named, struct error *err)
{
    struct symbol_array all = {0};
    struct address_array addresses = {0};
    if (array_reserve(&addresses, symbols->met.count) < 0)
        return error_set(err, ERROR_FAILED, "no memory for the functions' addresses");
    for (size_t i = 0; i < symbols->met.count; i++)
        addresses.items[addresses.count++] = symbols->met.items[i];
    array_sort(&addresses, compare_addresses);
    int result = read_kallsyms(&all, err);
    struct new_file out;
    if (result == 0)
        result = new_file_open(&out, path, err);
    if (result == 0) {
        *named = write_names(out.file, &all, addresses.items, addresses.count);
        result = new_file_finish(&out, 0, err);
    }
    array_free(&all);
    array_free(&addresses);
    return result;
}

enum { BATCH = 4096, PAGES_AT_ONCE = 4096 };

// The offsets of the two events' fields on this kernel.
struct event_layout {
    int id, thread, function;
};

struct watched_core {
    uint16_t core;
    int pages; // per_cpu/cpuN/trace_pipe_raw
    uint64_t last_time;
};

struct function_recorder {
    struct function_tracer tracer;
    struct event_layout enter, exit;
    struct cores ARRAY_OF(struct watched_core) cores;
    struct kbuffer *buffer;
    char *page;
    size_t page_bytes;
    struct function_event batch[BATCH];
    size_t batched;
    struct log_writer log;
    bool log_open;
    char symbols_path[4200];
    struct function_symbols symbols;
    uint64_t records, lost;
    uint64_t disabled_time; // host time; 0: not yet
};

// --- layouts -------------------------------------------------------------------------------------

static int field_offset(struct tep_event *event, bool common, const char *name)
{
    struct tep_format_field *field =
        common ? tep_find_common_field(event, name) : tep_find_field(event, name);
    return field ? field->offset : -1;
}

static int read_layout(struct tep_handle *tep, const char *folder, const char *name,
                       struct event_layout *layout, struct error *err)
{
    char path[128], text[4096];
    struct tep_event *event = NULL;
    snprintf(path, sizeof path, "%s/events/ftrace/%s/format", folder, name);
    FILE *file = fopen(path, "re");
    size_t bytes = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[bytes] = '\0';
    if (file)
        fclose(file);
    if (bytes && tep_parse_event(tep, text, bytes, "ftrace") == 0)
        event = tep_find_event_by_name(tep, "ftrace", name);
    if (!event)
        return error_set(err, ERROR_FAILED, "%s: not a description of an event that is understood",
                         path);
    *layout = (struct event_layout){event->id, field_offset(event, true, "common_pid"),
                                    field_offset(event, false, "func")};
    return layout->thread < 0 || layout->function < 0
               ? error_set(err, ERROR_FAILED, "%s: common_pid or func is missing", path)
               : 0;
}

static int read_layouts(struct function_recorder *recorder, struct error *err)
{
    struct tep_handle *tep = tep_alloc();
    if (!tep)
        return error_set(err, ERROR_FAILED, "no memory to read the kernel's event formats");
    tep_set_long_size(tep, sizeof(long));
    int result =
        read_layout(tep, recorder->tracer.folder, "funcgraph_entry", &recorder->enter, err);
    if (result == 0)
        result = read_layout(tep, recorder->tracer.folder, "funcgraph_exit", &recorder->exit, err);
    tep_free(tep);
    return result;
}

// --- records -------------------------------------------------------------------------------------

static int records_flush(struct function_recorder *recorder, struct error *err)
{
    int result = log_writer_append(&recorder->log, recorder->batch, recorder->batched, err);
    recorder->records += recorder->batched;
    recorder->batched = 0;
    return result;
}

static int record_append(struct function_recorder *recorder, struct function_event event,
                         struct error *err)
{
    recorder->batch[recorder->batched++] = event;
    return recorder->batched == BATCH ? records_flush(recorder, err) : 0;
}

static int put_mark(struct function_recorder *recorder, const struct watched_core *core,
                    enum function_event_kind kind, uint64_t time, struct error *err)
{
    return record_append(
        recorder, (struct function_event){.time = time, .core = core->core, .kind = (uint8_t)kind},
        err);
}

static int put_event(struct function_recorder *recorder, struct watched_core *core,
                     const char *data, int bytes, uint64_t time, struct error *err)
{
    uint16_t id;
    uint32_t thread;
    uint64_t address;
    memcpy(&id, data, sizeof id);
    const struct event_layout *layout = id == recorder->enter.id  ? &recorder->enter
                                        : id == recorder->exit.id ? &recorder->exit
                                                                  : NULL;
    if (!layout || layout->function + (int)sizeof address > bytes)
        return 0; // other programs may write into the same buffer
    memcpy(&thread, data + layout->thread, sizeof thread);
    memcpy(&address, data + layout->function, sizeof address);
    core->last_time = time;
    if (function_symbols_note(&recorder->symbols, address) < 0)
        return error_set(err, ERROR_FAILED, "no memory for the functions' addresses");
    return record_append(recorder,
                         (struct function_event){
                             .time = time,
                             .address = address,
                             .thread = thread,
                             .core = core->core,
                             .kind = layout == &recorder->enter ? FUNCTION_ENTER : FUNCTION_EXIT},
                         err);
}

static int take_page(struct function_recorder *recorder, struct watched_core *core,
                     struct error *err)
{
    unsigned long long time;
    int result = 0;
    if (kbuffer_load_subbuffer(recorder->buffer, recorder->page) < 0)
        return error_set(err, ERROR_FAILED, "a page of the kernel's trace cannot be read");
    void *data = kbuffer_read_event(recorder->buffer, &time);
    if (kbuffer_missed_events(recorder->buffer)) {
        recorder->lost++;
        result = put_mark(recorder, core, FUNCTION_LOST, data ? time : core->last_time, err);
    }
    for (; data && result == 0; data = kbuffer_next_event(recorder->buffer, &time))
        result = put_event(recorder, core, data, kbuffer_event_size(recorder->buffer), time, err);
    return result;
}

static int pages_drain(struct function_recorder *recorder, unsigned pages, struct error *err)
{
    int result = 0;
    for (size_t i = 0; i < recorder->cores.count && result == 0; i++) {
        struct watched_core *core = &recorder->cores.items[i];
        for (unsigned taken = 0; taken < pages && result == 0; taken++) {
            ssize_t got = read(core->pages, recorder->page, recorder->page_bytes);
            if (got <= 0)
                break; // EAGAIN: empty
            result = take_page(recorder, core, err);
        }
    }
    return result;
}

int function_recorder_poll(struct function_recorder *recorder, struct error *err)
{
    return pages_drain(recorder, PAGES_AT_ONCE, err);
}

// --- begin and end -------------------------------------------------------------------------------

static int open_core(struct function_recorder *recorder, unsigned core, struct error *err)
{
    char path[128];
    snprintf(path, sizeof path, "%s/per_cpu/cpu%u/trace_pipe_raw", recorder->tracer.folder, core);
    struct watched_core one = {.core = (uint16_t)core,
                               .pages = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
    if (one.pages < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot open %s", path);
    if (array_push(&recorder->cores, one) == 0)
        return 0;
    close(one.pages);
    return error_set(err, ERROR_FAILED, "no memory for core %u", core);
}

static int open_cores(struct function_recorder *recorder, const cpu_set_t *wanted,
                      struct error *err)
{
    int result = 0;
    cpu_set_t all;
    if (CPU_COUNT(wanted) == 0) {
        CPU_ZERO(&all);
        for (unsigned core = 0; core < (unsigned)sysconf(_SC_NPROCESSORS_ONLN); core++)
            CPU_SET(core, &all);
        wanted = &all;
    }
    for (unsigned core = 0; core < CPU_SETSIZE && result == 0; core++)
        if (CPU_ISSET(core, wanted))
            result = open_core(recorder, core, err);
    return result;
}

static void close_cores(struct function_recorder *recorder)
{
    for (size_t i = 0; i < recorder->cores.count; i++)
        close(recorder->cores.items[i].pages);
    array_free(&recorder->cores);
}

static int mark_all(struct function_recorder *recorder, enum function_event_kind kind, uint64_t now,
                    struct error *err)
{
    int result = 0;
    for (size_t i = 0; i < recorder->cores.count && result == 0; i++)
        result = put_mark(recorder, &recorder->cores.items[i], kind, now, err);
    return result;
}

static int recorder_start(struct function_recorder *recorder,
                          const struct function_tracer_settings *settings, const char *out_dir,
                          struct error *err)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/functions.tlog", out_dir);
    snprintf(recorder->symbols_path, sizeof recorder->symbols_path, "%s/functions.sym", out_dir);
    recorder->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    recorder->page = malloc(recorder->page_bytes);
    recorder->buffer = kbuffer_alloc(KBUFFER_LSIZE_8, KBUFFER_ENDIAN_LITTLE);
    if (!recorder->page || !recorder->buffer)
        return error_set(err, ERROR_FAILED, "no memory to record functions");
    int result = function_tracer_begin(&recorder->tracer, settings, err);
    if (result == 0)
        result = read_layouts(recorder, err);
    if (result == 0)
        result = open_cores(recorder, &settings->cores, err);
    if (result == 0)
        result = log_writer_open(&recorder->log, path, LOG_FUNCTIONS, FUNCTION_LOG_VERSION,
                                 sizeof(struct function_event), err);
    recorder->log_open = result == 0;
    if (result == 0)
        result = function_tracer_switch(&recorder->tracer, true, err);
    return result < 0 ? result
                      : mark_all(recorder, FUNCTION_WATCHED,
                                 (uint64_t)clock_now_ns(CLOCK_MONOTONIC_RAW), err);
}

int function_recorder_start(const struct function_tracer_settings *settings, const char *out_dir,
                            struct function_recorder **out, struct error *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return error_set(err, ERROR_FAILED, "no memory to record functions");
    int result = recorder_start(*out, settings, out_dir, err);
    if (result < 0) {
        function_recorder_free(*out);
        *out = NULL;
    }
    return result;
}

int function_recorder_follow(struct function_recorder *recorder, const cpu_set_t *cores,
                             struct error *err)
{
    cpu_set_t all, added = *cores;
    size_t before = recorder->cores.count;
    CPU_ZERO(&all);
    for (size_t i = 0; i < before; i++) {
        CPU_SET(recorder->cores.items[i].core, &all);
        CPU_CLR(recorder->cores.items[i].core, &added);
    }
    if (CPU_COUNT(&added) == 0)
        return 0;
    CPU_OR(&all, &all, &added);
    int result = open_cores(recorder, &added, err);
    if (result == 0)
        result = function_tracer_set_cores(&recorder->tracer, &all, err);
    uint64_t now = (uint64_t)clock_now_ns(CLOCK_MONOTONIC_RAW);
    for (size_t i = before; i < recorder->cores.count && result == 0; i++)
        result = put_mark(recorder, &recorder->cores.items[i], FUNCTION_WATCHED, now, err);
    return result;
}

int function_recorder_disable(struct function_recorder *recorder, struct error *err)
{
    if (!recorder->disabled_time)
        recorder->disabled_time = (uint64_t)clock_now_ns(CLOCK_MONOTONIC_RAW);
    return function_tracer_switch(&recorder->tracer, false, err);
}

// The kernel's own counts of what a core lost: "overrun: N" and "dropped events: N".
static uint64_t lost_of(const struct function_recorder *recorder, uint16_t core)
{
    char path[128], line[128];
    unsigned long long number, sum = 0;
    snprintf(path, sizeof path, "%s/per_cpu/cpu%u/stats", recorder->tracer.folder, core);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "overrun: %llu", &number) == 1 ||
            sscanf(line, "dropped events: %llu", &number) == 1)
            sum += number;
    if (file)
        fclose(file);
    return sum;
}

int function_recorder_stop(struct function_recorder *recorder, json_t **document, struct error *err)
{
    uint64_t dropped = 0;
    int result = function_recorder_disable(recorder, err);
    if (result == 0)
        result = pages_drain(recorder, ~0U, err);
    if (result == 0)
        result = mark_all(recorder, FUNCTION_UNWATCHED, recorder->disabled_time, err);
    for (size_t i = 0; i < recorder->cores.count; i++)
        dropped += lost_of(recorder, recorder->cores.items[i].core);
    if (dropped < recorder->lost)
        dropped = recorder->lost; // at least so many
    close_cores(recorder);
    function_tracer_end(&recorder->tracer);
    if (result == 0)
        result = records_flush(recorder, err);
    if (result == 0) {
        recorder->log_open = false;
        result = log_writer_close(&recorder->log, dropped, err);
    }
    size_t named = 0;
    if (result == 0)
        result = function_symbols_write(&recorder->symbols, recorder->symbols_path, &named, err);
    if (result < 0)
        return result;
    *document =
        json_pack("{s:s, s:I, s:I, s:I, s:I}", "log", "functions.tlog", "records",
                  (json_int_t)recorder->records, "dropped", (json_int_t)dropped, "symbols",
                  (json_int_t)named, "unnamed", (json_int_t)(recorder->symbols.met.count - named));
    return 0;
}

void function_recorder_free(struct function_recorder *recorder)
{
    if (!recorder)
        return;
    close_cores(recorder);
    function_tracer_end(&recorder->tracer);
    if (recorder->log_open)
        log_writer_discard(&recorder->log);
    function_symbols_free(&recorder->symbols);
    if (recorder->buffer)
        kbuffer_free(recorder->buffer);
    free(recorder->page);
    free(recorder);
}
