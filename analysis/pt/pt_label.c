// SPDX-License-Identifier: MIT
#include "analysis/pt/pt_label.h"

#include <inttypes.h>
#include <stdio.h>

static const struct pt_task_name *task_of(const struct pt_trace *trace, uint32_t task)
{
    for (size_t i = 0; i < trace->tasks.count; i++)
        if (trace->tasks.items[i].task == task)
            return &trace->tasks.items[i];
    return NULL;
}

const char *pt_label_task(const struct pt_trace *trace, uint32_t task)
{
    const struct pt_task_name *known = task_of(trace, task);
    return known ? known->name : task == 0 ? "idle" : "";
}

uint32_t pt_label_process(const struct pt_trace *trace, uint32_t task)
{
    const struct pt_task_name *known = task_of(trace, task);
    return known && known->process ? known->process : task;
}

const char *pt_label(const struct pt_trace *trace, enum pt_span_kind kind, uint64_t function,
                     bool known, char out[PT_LABEL_BYTES])
{
    static const char *const untraced[] = {"[not traced]", "[kernel: syscall]",
                                           "[kernel: interrupt or fault]", "[not traced]"};
    const struct pt_symbols *symbols = trace->symbols;
    if (kind == PT_SPAN_UNTRACED)
        return untraced[function <= PT_UNTRACED_OTHER ? function : 0];
    if (kind == PT_SPAN_LOST)
        return "[lost]";
    if (kind == PT_SPAN_TASK) {
        const char *name = pt_label_task(trace, (uint32_t)function);
        if (name[0])
            return name;
        snprintf(out, PT_LABEL_BYTES, "thread %" PRIu64, function);
    } else if (!known && function) {
        snprintf(out, PT_LABEL_BYTES, "0x%" PRIx64, function);
    } else if (known && symbols) {
        symbols->name(symbols->context, function, out, PT_LABEL_BYTES);
    } else {
        snprintf(out, PT_LABEL_BYTES, "[unknown]");
    }
    return out;
}
