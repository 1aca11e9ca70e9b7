// SPDX-License-Identifier: MIT
#include "analysis/pt/pt_strip.h"

#include <inttypes.h>
#include <stdlib.h>

#include "analysis/pt/pt_trace.h"
#include "base/units.h"
#include "base/array.h"

enum { LETTERS = 26 };

static int add_task(struct pt_strip *strip, uint32_t column, uint32_t task, uint64_t time)
{
    uint32_t *number =
        pt_map_at(&strip->numbers,
                  (struct pt_map_key){.function = task, .parent = column, .kind = PT_SPAN_TASK});
    if (!number)
        return -1;
    if (*number == 0) {
        if (array_push(&strip->times, 0) < 0)
            return -1;
        *number = (uint32_t)strip->times.count;
    }
    strip->times.items[*number - 1] += time;
    return 0;
}

static uint64_t column_begin(const struct pt_strip *strip, uint32_t column)
{
    return strip->begin +
           (uint64_t)((double)(strip->end - strip->begin) * column / PT_STRIP_COLUMNS);
}

static uint32_t column_at(const struct pt_strip *strip, uint64_t time)
{
    double at =
        (double)(time - strip->begin) * PT_STRIP_COLUMNS / (double)(strip->end - strip->begin);
    return at < PT_STRIP_COLUMNS ? (uint32_t)at : PT_STRIP_COLUMNS - 1;
}

int pt_strip_take(struct pt_strip *strip, const struct pt_span *span)
{
    bool task = span->kind == PT_SPAN_TASK;
    uint64_t begin = span->begin > strip->begin ? span->begin : strip->begin,
             end = span->end < strip->end ? span->end : strip->end;
    int result = 0;
    if ((!task && span->kind != PT_SPAN_LOST) || end <= begin)
        return 0;
    for (uint32_t column = column_at(strip, begin);
         result == 0 && column < PT_STRIP_COLUMNS && column_begin(strip, column) < end; column++) {
        uint64_t from = column_begin(strip, column), to = column_begin(strip, column + 1);
        from = from > begin ? from : begin;
        to = to < end ? to : end;
        if (to > from && task)
            result = add_task(strip, column, span->task, to - from);
        else if (to > from)
            strip->lost[column] += to - from;
    }
    return result;
}

// --- drawing -----------------------------------------------------------------------------------

static int longest_first(const void *left, const void *right)
{
    const struct pt_task_total *a = left, *b = right;
    return order_of(b->time, a->time) ?: order_of(a->task, b->task);
}

// The tasks of all streams except idle ones, those that ran longest first.
static struct pt_task_totals tasks_of(const struct pt_result *result)
{
    struct pt_task_totals all = {0};
    for (size_t s = 0; s < result->trace->streams.count; s++)
        for (size_t i = 0; i < result->streams[s].tasks.count; i++) {
            struct pt_task_total task = result->streams[s].tasks.items[i];
            size_t k = 0;
            while (k < all.count && all.items[k].task != task.task)
                k++;
            if (k < all.count)
                all.items[k].time += task.time;
            else if (task.task != 0 && array_push(&all, task) < 0)
                return all;
        }
    array_sort(&all, longest_first);
    return all;
}

static uint64_t time_of(struct pt_strip *strip, uint32_t column, uint32_t task)
{
    uint32_t *number =
        pt_map_at(&strip->numbers,
                  (struct pt_map_key){.function = task, .parent = column, .kind = PT_SPAN_TASK});
    return number && *number ? strip->times.items[*number - 1] : 0;
}

static char letter_of(struct pt_strip *strip, uint32_t column, const struct pt_task_totals *tasks)
{
    uint64_t idle = time_of(strip, column, 0), most = 0, others = 0;
    char letter = ' ';
    for (size_t i = 0; i < tasks->count; i++) {
        uint64_t time = time_of(strip, column, tasks->items[i].task);
        if (i >= LETTERS)
            others += time;
        else if (time > most) {
            most = time;
            letter = (char)('A' + i);
        }
    }
    if (others > most) {
        most = others;
        letter = '+';
    }
    if (idle > most)
        letter = '.';
    return strip->lost[column] > (column_begin(strip, 1) - strip->begin) / 2 ? '~' : letter;
}

void pt_strip_print(struct pt_strip *strips, const struct pt_result *result, FILE *out)
{
    const struct pt_trace *trace = result->trace;
    struct pt_task_totals tasks = tasks_of(result);
    char length[32], name[PT_LABEL_BYTES];
    size_t shown = tasks.count < LETTERS ? tasks.count : LETTERS;
    if (tasks.count && trace->streams.count && strips->end > strips->begin) {
        double ns = pt_trace_duration_ns(trace, strips->end - strips->begin) / PT_STRIP_COLUMNS;
        for (size_t s = 0; s < trace->streams.count; s++) {
            fprintf(out, "%-8.8s |", trace->streams.items[s]->name);
            for (uint32_t column = 0; column < PT_STRIP_COLUMNS; column++)
                fputc(letter_of(&strips[s], column, &tasks), out);
            fprintf(out, "|\n");
        }
        fprintf(out, "a column is %s; . idle, ~ lost or not decoded",
                trace->clock.valid ? units_format_ns(ns, length, sizeof length) : "a part");
        for (size_t i = 0; i < shown; i++)
            fprintf(out, ", %c %s (%" PRIu32 ")", (char)('A' + i),
                    pt_label(trace, PT_SPAN_TASK, tasks.items[i].task, false, name),
                    tasks.items[i].task);
        fprintf(out, "%s\n\n", tasks.count > LETTERS ? ", + others" : "");
    }
    array_free(&tasks);
}

void pt_strip_free(struct pt_strip *strip)
{
    pt_map_free(&strip->numbers);
    array_free(&strip->times);
}
