// SPDX-License-Identifier: MIT
#include "analysis/pt/pt_functions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/pt/pt_label.h"
#include "base/array.h"

static int by_identity(const void *a, const void *b)
{
    const struct pt_function_total *x = a, *y = b;
    return order_of(x->task, y->task) ?:
           order_of(x->kind, y->kind) ?:
           order_of(x->known, y->known) ?:
           order_of(x->function, y->function);
}

static int by_self(const void *a, const void *b)
{
    const struct pt_function_total *x = a, *y = b;
    if (x->self != y->self)
        return x->self < y->self ? 1 : -1;
    return by_identity(a, b);
}

static struct pt_function_list collect_functions(const struct pt_result *result, bool by_process)
{
    struct pt_function_list all = {0};
    for (size_t s = 0; s < result->trace->streams.count; s++) {
        const struct pt_function_list *list = &result->streams[s].functions.list;
        for (size_t i = 0; i < list->count; i++) {
            struct pt_function_total item = list->items[i];
            item.task = by_process ? pt_label_process(result->trace, item.task) : 0;
            if (array_push(&all, item) < 0)
                return all;
        }
    }
    return all;
}

// Adds up entries of the same function and process.
static void merge_same_functions(struct pt_function_list *all)
{
    size_t kept = 0;
    if (all->count == 0)
        return;
    array_sort(all, by_identity);
    for (size_t i = 1; i < all->count; i++) {
        struct pt_function_total *to = &all->items[kept], *from = &all->items[i];
        if (by_identity(to, from) == 0) {
            to->calls += from->calls;
            to->total += from->total;
            to->self += from->self;
        } else {
            all->items[++kept] = *from;
        }
    }
    all->count = kept + 1;
}

struct pt_function_list pt_functions_all(const struct pt_result *result)
{
    struct pt_function_list all = collect_functions(result, false);
    merge_same_functions(&all);
    array_sort(&all, by_self);
    return all;
}

// --- by process --------------------------------------------------------------------------------

size_t pt_functions_of_process(const struct pt_function_list *list, size_t first)
{
    size_t end = first;
    while (end < list->count && list->items[end].task == list->items[first].task)
        end++;
    return end - first;
}

uint64_t pt_functions_time(const struct pt_function_list *list, size_t first, size_t count)
{
    uint64_t time = 0;
    for (size_t i = first; i < first + count; i++)
        time += list->items[i].self;
    return time;
}

struct group {
    size_t first, count;
    uint64_t time;
};

static int by_time(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? 1 : -1;
    return order_of(x->first, y->first);
}

struct pt_function_list pt_functions_by_process(const struct pt_result *result)
{
    struct pt_function_list all = collect_functions(result, true), sorted = {0};
    struct groups ARRAY_OF(struct group) groups = {0};
    merge_same_functions(&all);
    for (size_t at = 0; at < all.count;) {
        struct group group = {.first = at, .count = pt_functions_of_process(&all, at)};
        group.time = pt_functions_time(&all, group.first, group.count);
        qsort(all.items + at, group.count, sizeof *all.items, by_self);
        at += group.count;
        if (array_push(&groups, group) < 0)
            break;
    }
    array_sort(&groups, by_time);
    for (size_t g = 0; g < groups.count; g++)
        for (size_t i = 0; i < groups.items[g].count; i++)
            if (array_push(&sorted, all.items[groups.items[g].first + i]) < 0)
                g = groups.count - 1; // short of memory: the list is incomplete
    array_free(&groups);
    array_free(&all);
    return sorted;
}

// --- CSV ---------------------------------------------------------------------------------------

// Quoted where need be (RFC 4180).
static void write_field(const char *text, FILE *out)
{
    if (!strpbrk(text, "\",\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void write_row(const struct pt_trace *trace, const struct pt_function_total *item, FILE *out)
{
    char name[PT_LABEL_BYTES];
    if (item->task != PT_NO_TASK)
        fprintf(out, "%" PRIu32, item->task);
    fputc(',', out);
    write_field(pt_label_task(trace, item->task), out);
    fputc(',', out);
    write_field(pt_label(trace, (enum pt_span_kind)item->kind, item->function, item->known, name),
                out);
    fprintf(out, ",%s,%" PRIu64 ",%.0f,%.0f\n",
            item->kind == PT_SPAN_UNTRACED       ? ""
            : pt_label_is_kernel(item->function) ? "kernel"
                                                 : "user",
            item->calls, pt_trace_duration_ns(trace, item->total),
            pt_trace_duration_ns(trace, item->self));
}

int pt_functions_write_csv(const struct pt_result *result, const char *path, struct error *err)
{
    FILE *out = fopen(path, "we");
    if (!out)
        return error_set_errno(err, ERROR_FAILED, "cannot create %s", path);
    struct pt_function_list list = pt_functions_by_process(result);
    fputs("process,command,function,space,calls,total,self\n", out);
    for (size_t i = 0; i < list.count; i++)
        write_row(result->trace, &list.items[i], out);
    array_free(&list);
    bool bad = ferror(out) != 0;
    if (fclose(out) == 0 && !bad)
        return 0;
    return error_set_errno(err, ERROR_FAILED, "cannot write %s", path);
}
