// SPDX-License-Identifier: MIT
//
// Loads trace.json, in the shapes LLDB has written over time: raw streams by CPU, with
// PERF_RECORD_SWITCH_CPU_WIDE records beside them, or by thread. All paths are relative to it.
#include "analysis/pt/pt_trace.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/input_file.h"

struct loader {
    struct pt_trace *trace;
    const char *path; // of trace.json
    json_t *root;
    struct pt_recorder recorder;
    bool spaces; // several processes: each has an address space of its own
};

// The member of any of these names, or NULL.
static json_t *json_member(json_t *object, const char *name, const char *other, const char *third)
{
    const char *const names[] = {name, other, third};
    for (size_t i = 0; i < 3; i++) {
        json_t *found = names[i] ? json_object_get(object, names[i]) : NULL;
        if (found)
            return found;
    }
    return NULL;
}

// Whole numbers are written as numbers or, when they are addresses, as "0x...". jansson would read
// values above INT64_MAX as reals and lose bits; load_text prevents that.
static bool json_number(json_t *value, uint64_t *out)
{
    if (json_is_integer(value)) {
        *out = (uint64_t)json_integer_value(value);
        return true;
    }
    if (!json_is_string(value))
        return false;
    char *end;
    const char *text = json_string_value(value);
    *out = strtoull(text, &end, 0);
    return *text && !*end;
}

static void resolve_path(const struct loader *loader, const char *relative, char *out,
                         size_t out_bytes)
{
    const char *slash = strrchr(loader->path, '/');
    if (relative[0] == '/' || !slash)
        snprintf(out, out_bytes, "%s", relative);
    else
        snprintf(out, out_bytes, "%.*s/%s", (int)(slash - loader->path), loader->path, relative);
}

static int document_error(const struct loader *loader, const char *what, const char *needs,
                          struct error *err)
{
    return error_set(err, ERROR_INPUT, "%s: %s needs %s", loader->path, what, needs);
}

// --- context switches --------------------------------------------------------------------------

enum {
    SWITCH_CPU_WIDE = 15,
    SWITCH_OUT = 1 << 13, // PERF_RECORD_MISC_SWITCH_OUT
    // Header, the other task's pid and tid, then sample_id: pid, tid, time.
    SWITCH_RECORD = 32,
};

static uint64_t clock_tsc(const struct pt_trace *trace, uint64_t ns)
{
    unsigned __int128 scaled = (unsigned __int128)(ns - trace->clock.zero) << trace->clock.shift;
    return (uint64_t)(scaled / trace->clock.multiplier);
}

static uint32_t space_of(const struct loader *loader, uint32_t pid)
{
    json_t *processes = json_object_get(loader->root, "processes"), *process;
    size_t index;
    json_array_foreach(processes, index, process)
    {
        uint64_t other;
        if (loader->spaces && json_number(json_object_get(process, "pid"), &other) && other == pid)
            return (uint32_t)index + 1;
    }
    return PT_SPACE_ALL;
}

static int take_switch(struct loader *loader, struct pt_trace_stream *stream,
                       const uint8_t record[SWITCH_RECORD], struct error *err)
{
    uint16_t misc;
    uint32_t pid, tid;
    uint64_t time;
    memcpy(&misc, record + 4, sizeof misc);
    memcpy(&pid, record + 16, sizeof pid);
    memcpy(&tid, record + 20, sizeof tid);
    memcpy(&time, record + 24, sizeof time);
    if (misc & SWITCH_OUT) // the matching "in" says when the next one really runs
        return 0;
    struct pt_switch to = {clock_tsc(loader->trace, time), tid};
    struct pt_space_change change = {to.tsc, space_of(loader, pid)};
    if (array_push(&stream->switches, to) < 0 || array_push(&stream->changes, change) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for context switches");
    return 0;
}

static int load_switches(struct loader *loader, struct pt_trace_stream *stream, const char *path,
                         struct error *err)
{
    FILE *file = input_stream(path, err);
    if (!file)
        return -(int)ERROR_INPUT;
    uint8_t record[SWITCH_RECORD];
    size_t got, count = 0;
    int result = 0;
    while (result == 0 && (got = fread(record, 1, sizeof record, file)) > 0) {
        uint32_t type;
        uint16_t bytes;
        memcpy(&type, record, sizeof type);
        memcpy(&bytes, record + 6, sizeof bytes);
        if (got < sizeof record || type != SWITCH_CPU_WIDE || bytes != sizeof record)
            result = error_set(err, ERROR_INPUT,
                               "%s: record %zu is no context switch of %d bytes "
                               "(PERF_RECORD_SWITCH_CPU_WIDE)",
                               path, count, SWITCH_RECORD);
        else
            result = take_switch(loader, stream, record, err);
        count++;
    }
    fclose(file);
    for (size_t i = 1; result == 0 && i < stream->switches.count; i++)
        if (stream->switches.items[i].tsc < stream->switches.items[i - 1].tsc)
            result = error_set(err, ERROR_INPUT, "%s: the context switches are not in order", path);
    stream->stream.changes = loader->spaces ? &stream->changes : NULL;
    return result;
}

// --- the parts of the document -----------------------------------------------------------------

static int load_stream(struct loader *loader, json_t *entry, const char *what, uint32_t cpu,
                       struct error *err)
{
    char path[4096];
    json_t *file = json_member(entry, "iptTrace", "traceBuffer", "traceFile");
    if (!json_is_string(file))
        return document_error(loader, what, "\"iptTrace\": the file with its trace", err);
    resolve_path(loader, json_string_value(file), path, sizeof path);
    int result = pt_trace_add_file(loader->trace, path, cpu, &loader->recorder, err);
    if (result < 0)
        return result;
    struct pt_trace_stream *stream = loader->trace->streams.items[loader->trace->streams.count - 1];
    if (cpu != PT_NO_CPU)
        snprintf(stream->name, sizeof stream->name, "cpu %" PRIu32, cpu);
    json_t *switches = json_object_get(entry, "contextSwitchTrace");
    if (!json_is_string(switches))
        return 0;
    if (!loader->trace->clock.valid)
        return document_error(loader, "\"contextSwitchTrace\"",
                              "\"tscPerfZeroConversion\", or its times mean nothing", err);
    resolve_path(loader, json_string_value(switches), path, sizeof path);
    return load_switches(loader, stream, path, err);
}

static int load_modules(struct loader *loader, json_t *modules, uint32_t space, struct error *err)
{
    struct path {
        char path[4096];
    } *files = calloc(json_array_size(modules) + 1, sizeof *files);
    struct code_given *given = calloc(json_array_size(modules) + 1, sizeof *given);
    json_t *module;
    size_t index;
    int result = files && given ? 0 : error_set(err, ERROR_FAILED, "out of memory for modules");
    if (result == 0)
        json_array_foreach(modules, index, module)
        {
            json_t *file = json_member(module, "file", "systemPath", NULL);
            if (!json_is_string(file) ||
                !json_number(json_object_get(module, "loadAddress"), &given[index].address)) {
                result = document_error(loader, "a module", "\"file\" and \"loadAddress\"", err);
                break;
            }
            resolve_path(loader, json_string_value(file), files[index].path,
                         sizeof files[index].path);
            given[index].path = files[index].path;
            given[index].has_address = true;
        }
    if (result == 0 && json_array_size(modules)) {
        loader->trace->symbols = &loader->trace->code.symbols;
        result = pt_code_add_given(&loader->trace->code, &loader->trace->memory, given,
                                   json_array_size(modules), space, err);
    }
    free(given);
    free(files);
    return result;
}

static int load_process(struct loader *loader, json_t *process, uint32_t space, struct error *err)
{
    json_t *entry;
    size_t index;
    int result = load_modules(loader, json_object_get(process, "modules"), space, err);
    if (result < 0)
        return result;
    json_array_foreach(json_object_get(process, "threads"), index, entry)
    {
        uint64_t thread = 0;
        if (!json_member(entry, "iptTrace", "traceBuffer", "traceFile"))
            continue; // its trace is in the streams of the CPUs
        result = load_stream(loader, entry, "a thread", PT_NO_CPU, err);
        if (result < 0)
            return result;
        struct pt_trace_stream *stream =
            loader->trace->streams.items[loader->trace->streams.count - 1];
        struct pt_space_change all = {0, space};
        if (json_number(json_object_get(entry, "tid"), &thread))
            snprintf(stream->name, sizeof stream->name, "thread %" PRIu64, thread);
        if (array_push(&stream->changes, all) < 0)
            return error_set(err, ERROR_FAILED, "out of memory for address spaces");
        stream->stream.changes = &stream->changes;
    }
    return 0;
}

static void load_processor(struct loader *loader, json_t *trace)
{
    json_t *info = json_object_get(trace, "cpuInfo");
    const char *vendor = json_string_value(json_object_get(info, "vendor"));
    uint64_t family = 0, model = 0, stepping = 0;
    if (!vendor || !(strcmp(vendor, "GenuineIntel") == 0 || strcmp(vendor, "intel") == 0) ||
        !json_number(json_object_get(info, "family"), &family) ||
        !json_number(json_object_get(info, "model"), &model) ||
        !json_number(json_object_get(info, "stepping"), &stepping))
        return;
    loader->recorder.cpu = (struct pt_cpu){.vendor = pcv_intel,
                                           .family = (uint16_t)family,
                                           .model = (uint8_t)model,
                                           .stepping = (uint8_t)stepping};
}

static int load_clock(struct loader *loader, struct error *err)
{
    uint64_t multiplier, shift, zero;
    json_t *conversion = json_object_get(loader->root, "tscPerfZeroConversion");
    if (!conversion)
        return 0;
    if (!json_number(json_object_get(conversion, "timeMult"), &multiplier) ||
        !json_number(json_object_get(conversion, "timeShift"), &shift) ||
        !json_number(json_object_get(conversion, "timeZero"), &zero) || multiplier == 0 ||
        shift > 63)
        return document_error(loader, "\"tscPerfZeroConversion\"",
                              "whole numbers \"timeMult\" (not 0), \"timeShift\" (at most 63) and "
                              "\"timeZero\"",
                              err);
    loader->trace->clock.valid = true;
    loader->trace->clock.multiplier = multiplier;
    loader->trace->clock.shift = (uint16_t)shift;
    loader->trace->clock.zero = zero;
    return 0;
}

static int load_document(struct loader *loader, struct error *err)
{
    json_t *trace = json_object_get(loader->root, "trace"), *entry;
    json_t *processes = json_object_get(loader->root, "processes");
    json_t *kernel = json_object_get(loader->root, "kernel");
    json_t *type = json_object_get(trace ? trace : loader->root, "type");
    if (!json_is_string(type) || strcmp(json_string_value(type), "intel-pt") != 0)
        return error_set(err, ERROR_INPUT,
                         "%s: is no Intel PT recording: \"type\" is not \"intel-pt\"",
                         loader->path);
    load_processor(loader, trace ? trace : loader->root);
    loader->spaces = json_array_size(processes) > 1;
    int result = load_clock(loader, err);
    if (result == 0 && kernel) {
        json_t *one = json_pack("[O]", kernel);
        result = load_modules(loader, one, PT_SPACE_ALL, err);
        json_decref(one);
    }
    for (size_t i = 0; result == 0 && i < json_array_size(processes); i++)
        result = load_process(loader, json_array_get(processes, i),
                              loader->spaces ? (uint32_t)i + 1 : PT_SPACE_ALL, err);
    json_t *cpus = json_member(loader->root, "cpus", "cores", NULL);
    for (size_t i = 0; result == 0 && (entry = json_array_get(cpus, i)); i++) {
        uint64_t cpu;
        if (!json_number(json_member(entry, "id", "coreId", NULL), &cpu) || cpu >= PT_NO_CPU)
            result = document_error(loader, "a CPU", "\"id\": its number", err);
        else
            result = load_stream(loader, entry, "a CPU", (uint32_t)cpu, err);
    }
    if (result == 0 && loader->trace->streams.count == 0)
        result = document_error(loader, "a recording",
                                "\"cpus\" with traces, or threads with traces", err);
    return result < 0 ? result : pt_trace_scan(loader->trace, err);
}

struct text ARRAY_OF(char);

static int read_text(const char *path, struct text *out, struct error *err)
{
    enum { MOST_BYTES = 64 << 20, CHUNK = 64 << 10 };
    FILE *file = input_stream(path, err);
    if (!file)
        return -(int)ERROR_INPUT;
    int result = 0;
    size_t got = 1;
    while (result == 0 && got > 0) {
        if (out->count > MOST_BYTES)
            result = error_set(err, ERROR_INPUT, "%s: too long for a trace.json", path);
        else if (array_reserve(out, out->count + CHUNK) < 0)
            result = error_set(err, ERROR_FAILED, "%s: out of memory", path);
        else
            out->count += got = fread(out->items + out->count, 1, CHUNK, file);
    }
    if (result == 0 && ferror(file))
        result = error_set(err, ERROR_INPUT, "%s: cannot read it", path);
    fclose(file);
    return result;
}

// jansson refuses whole numbers above INT64_MAX, and "timeZero" is one: load_text puts such numbers
// into quotes.
static int quote_long_numbers(const struct text *in, struct text *out)
{
    bool in_string = false;
    for (size_t i = 0; i < in->count;) {
        size_t digits = 0;
        while (!in_string && i + digits < in->count && in->items[i + digits] >= '0' &&
               in->items[i + digits] <= '9')
            digits++;
        bool quote =
            digits > 19 || (digits == 19 && memcmp(in->items + i, "9223372036854775807", 19) > 0);
        quote = quote && i > 0 && strchr(" :,[\n\t\r", in->items[i - 1]);
        size_t take = digits ? digits : 1;
        if (array_reserve(out, out->count + take + 2) < 0)
            return -1;
        if (!digits && in->items[i] == '"' && !(in_string && in->items[i - 1] == '\\'))
            in_string = !in_string;
        if (quote)
            out->items[out->count++] = '"';
        memcpy(out->items + out->count, in->items + i, take);
        out->count += take;
        if (quote)
            out->items[out->count++] = '"';
        i += take;
    }
    return 0;
}

static int load_text(const char *path, json_t **out, struct error *err)
{
    struct text raw = {0}, text = {0};
    json_error_t problem;
    int result = read_text(path, &raw, err);
    if (result == 0 && quote_long_numbers(&raw, &text) < 0)
        result = error_set(err, ERROR_FAILED, "%s: out of memory", path);
    if (result == 0 &&
        !(*out = json_loadb(text.items, text.count, JSON_REJECT_DUPLICATES, &problem)))
        result = error_set(err, ERROR_INPUT, "%s:%d:%d: %s", path, problem.line, problem.column,
                           problem.text);
    array_free(&raw);
    array_free(&text);
    return result;
}

int pt_trace_load_json(struct pt_trace *trace, const char *path, struct error *err)
{
    struct loader loader = {.trace = trace, .path = path};
    int result = load_text(path, &loader.root, err);
    if (result == 0)
        result = load_document(&loader, err);
    json_decref(loader.root);
    return result;
}
