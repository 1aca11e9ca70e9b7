// SPDX-License-Identifier: MIT
#include "analysis/samples/sample_names.h"

#include "analysis/code/code_build.h"
#include "analysis/perf/perf_data_events.h"
#include "base/array.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_thread_and_time(const void *left, const void *right)
{
    const struct thread_name *a = left, *b = right;
    return order_of(a->thread, b->thread) ?: order_of(a->time, b->time);
}

static int collect_threads(struct sample_names *names)
{
    for (size_t i = 0; i < names->data->events.count; i++) {
        const struct perf_event *event = &names->data->events.items[i];
        struct perf_comm comm;
        if (event->type != PERF_COMM)
            continue;
        perf_event_comm(event, &comm);
        if (array_push(&names->threads, (struct thread_name){comm.tid, event->time, comm.name}) < 0)
            return -1;
    }
    array_sort(&names->threads, by_thread_and_time);
    return 0;
}

int sample_names_init(struct sample_names *names, const struct perf_data *data, const char *path,
                      const char *symfs, struct name_array *out, struct error *err)
{
    const struct code_image_options options = {
        .recording = path, .symfs = symfs, .os_release = data->os_release};
    *names = (struct sample_names){.data = data};
    char *folder = strdup(path);
    int result = folder ? 0 : error_set(err, ERROR_FAILED, "no memory for names of functions");
    if (result == 0)
        result = perf_maps_build(data, 0, &names->maps, err);
    if (result == 0)
        result = code_images_build(&names->maps, &options, &names->images, err);
    if (result == 0) {
        names->symbols = symbols_alloc(data, &names->images, dirname(folder), NULL, err);
        result = names->symbols ? 0 : -ERROR_FAILED;
    }
    if (result == 0 && (name_table_init(&names->table, out) < 0 || collect_threads(names) < 0))
        result = error_set(err, ERROR_FAILED, "no memory for names of functions");
    free(folder);
    return result;
}

void sample_names_fini(struct sample_names *names)
{
    name_table_fini(&names->table);
    array_free(&names->numbers);
    array_free(&names->threads);
    symbols_free(names->symbols);
    code_images_free(&names->images);
    perf_maps_free(&names->maps);
}

static int number_of(struct sample_names *names, uint32_t symbol, uint32_t *number)
{
    const char *text = name_pool_text(symbols_names(names->symbols), symbol);
    while (names->numbers.count <= symbol)
        if (array_push(&names->numbers, 0u) < 0)
            return -1;
    if (names->numbers.items[symbol] == 0) {
        char *readable = symbol_demangle(text);
        const char *name = readable ? readable : text;
        int result = name_table_intern(&names->table, name, strlen(name), number);
        free(readable);
        if (result < 0)
            return -1;
        names->numbers.items[symbol] = *number + 1;
    }
    *number = names->numbers.items[symbol] - 1;
    return 0;
}

int sample_names_function(struct sample_names *names, const struct perf_sample *sample,
                          uint64_t address, uint32_t *number, bool *known)
{
    struct symbol_hit hit;
    *known = symbols_find(names->symbols, sample->pid, sample->time, address, &hit);
    return number_of(names, hit.name, number);
}

// The thread's latest name before the sample; its process's where it has none of its own.
static const char *name_of(const struct sample_names *names, uint32_t thread, uint64_t time)
{
    size_t low = 0, high = names->threads.count;
    const struct thread_name wanted = {.thread = thread, .time = time};
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (by_thread_and_time(&names->threads.items[middle], &wanted) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && names->threads.items[low - 1].thread == thread
               ? names->threads.items[low - 1].name
               : NULL;
}

int sample_names_thread(struct sample_names *names, const struct perf_sample *sample,
                        uint32_t *number)
{
    char numbered[32];
    const char *name = sample->tid == 0 ? "idle" : name_of(names, sample->tid, sample->time);
    if (!name)
        name = name_of(names, sample->pid, sample->time);
    if (!name) {
        snprintf(numbered, sizeof numbered, "thread %u", sample->tid);
        name = numbered;
    }
    return name_table_intern(&names->table, name, strlen(name), number);
}
