// SPDX-License-Identifier: MIT
#include "analysis/pt/image/pt_patches.h"

#include "analysis/perf/perf_data_events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// Code that appears at an address, and the bytes that were there before, where known.
struct patch {
    uint64_t address;
    const uint8_t *old_code, *new_code; // new_code NULL: it is not known
    uint32_t old_bytes, new_bytes;
    uint32_t state; // from here on the new bytes are there
    uint32_t order; // order among several in one state
};
struct patch_array ARRAY_OF(struct patch);

// Each uses a section of code; the limit protects against hostile input.
enum { PATCHES_MOST = 1 << 16 };
static const uint64_t states_bytes_most = 256
                                          << 20; // of code in all states; real ones take few KiB

static uint64_t patch_end(const struct patch *patch)
{
    return patch->address +
           (patch->new_bytes > patch->old_bytes ? patch->new_bytes : patch->old_bytes);
}

static int by_address(const void *a, const void *b)
{
    const struct patch *left = a, *right = b;
    return order_of(left->address, right->address) ?: order_of(left->order, right->order);
}

static int by_order(const void *a, const void *b)
{
    const struct patch *left = a, *right = b;
    return order_of(left->state, right->state) ?: order_of(left->order, right->order);
}

// --- events of code --------------------------------------------------------------------------

struct collection {
    const struct perf_data *data;
    struct patch_array patches;
    struct pt_patches *out;
    uint64_t made_bytes;                        // of functions that came
    const struct perf_bpf_function **functions; // by program
    size_t function_count;
};

// Begins a state at this time; events come sorted, so states ascend. Returns 1 (also when a state
// began at this very time), 0 when there are too many, or a negative error.
static int begin_state(struct collection *collection, uint64_t time)
{
    struct pt_patches *out = collection->out;
    size_t count = out->times.count;
    if (time == 0 || (count > 0 && out->times.items[count - 1] == time))
        return 1;
    if (count + 1 >= PT_STATES_MOST)
        return 0;
    return array_push(&out->times, time) < 0 ? -1 : 1;
}

static int add_patch(struct collection *collection, struct patch patch, uint64_t time)
{
    if (patch.new_bytes == 0 || patch_end(&patch) < patch.address)
        return 0; // code that is removed is not executed any more
    int begun = collection->patches.count < PATCHES_MOST ? begin_state(collection, time) : 0;
    collection->out->left_out += begun == 0;
    if (begun <= 0)
        return begun;
    patch.state = (uint32_t)collection->out->times.count;
    patch.order = (uint32_t)collection->patches.count;
    return array_push(&collection->patches, patch);
}

static int take_poke(struct collection *collection, const struct perf_event *event)
{
    struct perf_text_poke poke;
    perf_event_text_poke(event, &poke);
    return add_patch(collection,
                     (struct patch){.address = poke.address,
                                    .old_code = poke.old_code,
                                    .new_code = poke.new_code,
                                    .old_bytes = poke.old_bytes,
                                    .new_bytes = poke.new_bytes},
                     event->time);
}

// The functions that the kernel made of a program, whose code perf or we fetched.
static int take_bpf(struct collection *collection, const struct perf_event *event)
{
    struct perf_bpf bpf;
    int result = 0;
    perf_event_bpf(event, &bpf);
    size_t i = array_bound(0, collection->function_count, at,
                           collection->functions[at]->program < bpf.program);
    for (; bpf.loaded && result >= 0 && i < collection->function_count &&
           collection->functions[i]->program == bpf.program;
         i++)
        result = add_patch(collection,
                           (struct patch){.address = collection->functions[i]->address,
                                          .new_code = collection->functions[i]->code,
                                          .new_bytes = collection->functions[i]->bytes},
                           event->time);
    return result;
}

// From now on a function is there, until another is registered at its address: also when it was
// unregistered, since the kernel lets whoever is in it leave it. Of those that were there when the
// recording began the code is in the copy of the kernel's.
static int take_symbol(struct collection *collection, const struct perf_event *event)
{
    struct perf_ksymbol symbol;
    perf_event_ksymbol(event, &symbol);
    if (symbol.unregistered || event->time == 0)
        return 0;
    if (symbol.bytes > states_bytes_most - collection->made_bytes) {
        collection->out->left_out++;
        return 0;
    }
    collection->made_bytes += symbol.bytes;
    return add_patch(collection,
                     (struct patch){.address = symbol.address, .new_bytes = symbol.bytes},
                     event->time);
}

static int by_program(const void *a, const void *b)
{
    const struct perf_bpf_function *left = *(const struct perf_bpf_function *const *)a;
    const struct perf_bpf_function *right = *(const struct perf_bpf_function *const *)b;
    return order_of(left->program, right->program);
}

static int collect_functions(struct collection *collection)
{
    const struct perf_bpf_function_array *all = &collection->data->bpf_functions;
    collection->function_count = all->count;
    collection->functions = calloc(all->count + 1, sizeof *collection->functions);
    if (!collection->functions)
        return -1;
    for (size_t i = 0; i < all->count; i++)
        collection->functions[i] = &all->items[i];
    qsort(collection->functions, all->count, sizeof *collection->functions, by_program);
    return 0;
}

static int collect_patches(struct collection *collection)
{
    const struct perf_event_array *events = &collection->data->events;
    int result = collect_functions(collection);
    for (size_t i = 0; result >= 0 && i < events->count; i++) {
        const struct perf_event *event = &events->items[i];
        if (event->type == PERF_TEXT_POKE)
            result = take_poke(collection, event);
        else if (event->type == PERF_BPF_EVENT)
            result = take_bpf(collection, event);
        else if (event->type == PERF_KSYMBOL)
            result = take_symbol(collection, event);
    }
    return result;
}

// --- one place in the code -----------------------------------------------------------------------

// What is known of a byte of a place.
enum knowledge {
    NOT_PATCHED, // there is what the memory has there
    NO_CODE,     // of a function whose code nobody knows
    NO_CODE_BEGINS,
    CODE,
};

// A place is the union of overlapping patches.
struct place {
    uint64_t address;
    size_t bytes;
    uint8_t *code, *known; // its present bytes, and enum knowledge of each
    uint64_t unknown;      // functions that went without that any of their code was known
};

// patches: in order.
static int place_begin(struct place *place, const struct patch *patches, size_t count)
{
    uint64_t begin = UINT64_MAX, end = 0;
    for (size_t i = 0; i < count; i++) {
        begin = patches[i].address < begin ? patches[i].address : begin;
        end = patch_end(&patches[i]) > end ? patch_end(&patches[i]) : end;
    }
    *place = (struct place){.address = begin, .bytes = (size_t)(end - begin)};
    place->code = calloc(2, place->bytes);
    if (!place->code)
        return -1;
    place->known = place->code + place->bytes;
    // The original bytes are those that the first patch of each byte found.
    for (size_t i = count; i-- > 0;) {
        const struct patch *patch = &patches[i];
        size_t at = (size_t)(patch->address - place->address);
        size_t found = patch->old_bytes < patch->new_bytes ? patch->old_bytes : patch->new_bytes;
        memset(place->known + at, NOT_PATCHED, patch->new_bytes);
        memset(place->known + at, CODE, found);
        if (found)
            memcpy(place->code + at, patch->old_code, found);
    }
    return 0;
}

// Counts the functions that begin there and of which nothing became known.
static void count_unknown(struct place *place, size_t at, size_t bytes)
{
    for (size_t i = at; i < at + bytes; i++)
        place->unknown += place->known[i] == NO_CODE_BEGINS;
}

static void place_patch(struct place *place, const struct patch *patch)
{
    size_t at = (size_t)(patch->address - place->address);
    if (!patch->new_code) {
        count_unknown(place, at, patch->new_bytes);
        memset(place->known + at, NO_CODE, patch->new_bytes);
        place->known[at] = NO_CODE_BEGINS;
        return;
    }
    memcpy(place->code + at, patch->new_code, patch->new_bytes);
    memset(place->known + at, CODE, patch->new_bytes);
}

// Adds the place's present bytes to the memory, for the states [from, to).
static int place_add(const struct place *place, struct pt_memory *memory, uint32_t from,
                     uint32_t to, struct error *err)
{
    int result = 0;
    for (size_t begin = 0; result == 0 && begin < place->bytes && from < to;) {
        size_t end = begin + 1;
        while (end < place->bytes && place->known[end] == place->known[begin])
            end++;
        if (place->known[begin] == CODE)
            result = pt_memory_add_state(memory, place->code + begin, end - begin,
                                         place->address + begin, from, to, err);
        begin = end;
    }
    return result;
}

// patches: those of one place.
static int add_place(struct patch *patches, size_t count, struct pt_memory *memory,
                     struct pt_patches *out, struct error *err)
{
    struct place place;
    uint32_t from = 0;
    int result = 0;
    qsort(patches, count, sizeof *patches, by_order);
    if (place_begin(&place, patches, count) < 0)
        return error_set(err, ERROR_FAILED, "out of memory for patched code");
    for (size_t i = 0; result == 0 && i < count; i++) {
        result = place_add(&place, memory, from, patches[i].state, err);
        if (result == 0 && memory->states_bytes > states_bytes_most)
            result = error_set(err, ERROR_INPUT,
                               "the TEXT_POKE records patch code over and over in pieces too large "
                               "to follow (at 0x%" PRIx64 ")",
                               place.address);
        from = patches[i].state;
        place_patch(&place, &patches[i]);
    }
    if (result == 0)
        result = place_add(&place, memory, from, PT_STATES_MOST, err);
    count_unknown(&place, 0, place.bytes);
    out->unknown += place.unknown;
    free(place.code);
    return result;
}

// What the memory has where functions came of which no code is known is another's, from before.
static int end_old_code(const struct patch_array *patches, struct pt_memory *memory,
                        struct error *err)
{
    int result = 0;
    for (size_t i = 0; result == 0 && i < patches->count; i++) {
        const struct patch *patch = &patches->items[i];
        if (!patch->new_code)
            result = pt_memory_end(memory, patch->address, patch->new_bytes, patch->state, err);
    }
    return result;
}

int pt_patches_add(const struct perf_data *data, struct pt_memory *memory, struct pt_patches *out,
                   struct error *err)
{
    *out = (struct pt_patches){0};
    struct collection collection = {.data = data, .out = out};
    struct patch_array *patches = &collection.patches;
    int result = collect_patches(&collection);
    if (result < 0)
        result = error_set(err, ERROR_FAILED, "out of memory for patches of code");
    if (result == 0)
        result = end_old_code(patches, memory, err);
    array_sort(patches, by_address);
    for (size_t first = 0; result == 0 && first < patches->count;) {
        uint64_t end = patch_end(&patches->items[first]);
        size_t next = first + 1;
        for (; next < patches->count && patches->items[next].address < end; next++)
            if (patch_end(&patches->items[next]) > end)
                end = patch_end(&patches->items[next]);
        result = add_place(&patches->items[first], next - first, memory, out, err);
        first = next;
    }
    array_free(patches);
    free(collection.functions);
    return result;
}

void pt_patches_free(struct pt_patches *patches)
{
    array_free(&patches->times);
}

uint64_t pt_patches_begin(const struct pt_patches *patches, uint32_t state)
{
    return state && state <= patches->times.count ? patches->times.items[state - 1] : 0;
}

uint32_t pt_patches_state(const struct pt_patches *patches, uint64_t time, uint64_t *until)
{
    // the first later than the time
    size_t low = array_bound(0, patches->times.count, at, patches->times.items[at] <= time);
    *until = low < patches->times.count ? patches->times.items[low] : UINT64_MAX;
    return (uint32_t)low;
}
