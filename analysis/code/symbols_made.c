// SPDX-License-Identifier: MIT
#include "analysis/code/symbols_made.h"

#include "analysis/perf/perf_data_events.h"
#include "base/array.h"

#include <stdlib.h>
#include <string.h>

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
