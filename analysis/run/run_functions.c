// SPDX-License-Identifier: MIT
#include "analysis/run/run_functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/run/input/run_path.h"
#include "analysis/timeline/function_spans.h"
#include "analysis/timeline/span.h"
#include "base/log_file.h"
#include "base/array.h"
#include "base/input_file.h"

static int compare_names(const void *left, const void *right)
{
    const struct function_name *a = left, *b = right;
    return order_of(a->address, b->address);
}

// Skips lines that are no symbols; functions at their addresses have no name.
static int read_names(FILE *file, struct name_table *table, struct function_names *out)
{
    char line[400], name[256];
    unsigned long long address;
    uint32_t number;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%llx %255s", &address, name) != 2)
            continue;
        if (name_table_intern(table, name, strlen(name), &number) < 0 ||
            array_push(out, (struct function_name){address, number}) < 0)
            return -1;
    }
    array_sort(out, compare_names);
    return 0;
}

static int add_core(const struct log_reader *log, const struct time_source *clock,
                    const struct function_names *names, uint32_t unnamed,
                    struct core_timeline *core, struct run_functions *out, struct error *err)
{
    struct function_log_spans spans;
    if (function_log_spans_build(log->records, log->count, core->core, clock, names, unnamed,
                                 &spans) < 0) {
        function_log_spans_free(&spans);
        return error_set(err, ERROR_FAILED, "no memory for the function log");
    }
    out->unpaired += spans.unpaired;
    out->lost += spans.lost;
    out->damaged += spans.damaged;
    out->functions += spans.functions.count;
    for (size_t i = 0; i < spans.traced.count; i++)
        out->traced_ns += (double)(spans.traced.items[i].end_ns - spans.traced.items[i].begin_ns);
    int result = core_timeline_add_functions(core, &spans.functions, err);
    if (result == 0) {
        core->traced = spans.traced;
        spans.traced = (struct time_range_array){0};
    }
    function_log_spans_free(&spans);
    return result;
}

static int add_all(const struct log_reader *log, FILE *names_file, const struct time_source *clock,
                   struct host_timeline *server, struct run_functions *out, struct error *err)
{
    static const char unknown[] = "[unnamed function]";
    struct name_table table;
    struct function_names names = {0};
    uint32_t unnamed;
    if (name_table_init(&table, &server->names) < 0)
        return error_set(err, ERROR_FAILED, "no memory for names of functions");
    int result = 0;
    if (name_table_intern(&table, unknown, sizeof unknown - 1, &unnamed) < 0 ||
        read_names(names_file, &table, &names) < 0)
        result = error_set(err, ERROR_FAILED, "no memory for names of functions");
    for (size_t i = 0; i < server->cores.count && result == 0; i++)
        if (server->cores.items[i].traced.count == 0)
            result = add_core(log, clock, &names, unnamed, &server->cores.items[i], out, err);
    name_table_fini(&table);
    array_free(&names);
    return result;
}

int run_functions_add(const char *run_dir, const json_t *capture, const struct time_source *clock,
                      struct host_timeline *server, struct run_functions *out, struct error *err)
{
    char path[RUN_FILE_PATH_BYTES];
    struct log_reader log;
    struct error unusable = {0};
    *out = (struct run_functions){0};
    if (!json_object_get(capture, "functions"))
        return 0;
    run_path(path, run_dir, "server/functions.tlog");
    if (log_reader_open(&log, path, LOG_FUNCTIONS, FUNCTION_LOG_VERSION,
                        sizeof(struct function_event), &unusable) < 0) {
        snprintf(out->problem, sizeof out->problem, "%.390s", unusable.text);
        return 0;
    }
    out->present = true;
    out->records = log.count;
    run_path(path, run_dir, "server/functions.sym");
    FILE *names = input_stream(path, NULL);
    if (!names)
        snprintf(out->problem, sizeof out->problem,
                 "server/functions.sym cannot be read, so functions have no names");
    int result = add_all(&log, names, clock, server, out, err);
    if (names)
        fclose(names);
    log_reader_close(&log);
    return result;
}

json_t *run_functions_json(const struct run_functions *functions)
{
    if (!functions->present && !functions->problem[0])
        return json_null();
    return json_pack("{s:b, s:s*, s:I, s:I, s:I, s:I, s:I, s:f}", "present", functions->present,
                     "problem", functions->problem[0] ? functions->problem : NULL, "records",
                     (json_int_t)functions->records, "functions", (json_int_t)functions->functions,
                     "unpaired", (json_int_t)functions->unpaired, "lost",
                     (json_int_t)functions->lost, "damaged", (json_int_t)functions->damaged,
                     "traced_ns", functions->traced_ns);
}
