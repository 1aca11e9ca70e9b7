// SPDX-License-Identifier: MIT
#include "analysis/pt/pt_patches.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct patch {
    struct perf_text_poke poke;
    uint32_t state; // from here on the new bytes are there
};
struct patch_array ARRAY_OF(struct patch);

// Each holds a section of code open; bounds what hostile input can ask for.
enum { PATCHES_MOST = 1 << 16 };
static const uint64_t states_bytes_most = 256
                                          << 20; // of code in all states; real ones take few KiB

static uint64_t patch_end(const struct perf_text_poke *poke)
{
    return poke->address + (poke->new_bytes > poke->old_bytes ? poke->new_bytes : poke->old_bytes);
}

static int by_address(const void *a, const void *b)
{
    const struct patch *left = a, *right = b;
    if (left->poke.address != right->poke.address)
        return left->poke.address < right->poke.address ? -1 : 1;
    return (left->state > right->state) - (left->state < right->state);
}

static int by_state(const void *a, const void *b)
{
    const struct patch *left = a, *right = b;
    return (left->state > right->state) - (left->state < right->state);
}

// The events are sorted by time, so states ascend.
static int collect(const struct perf_data *data, struct patch_array *patches,
                   struct pt_patches *out)
{
    for (size_t i = 0; i < data->events.count; i++) {
        const struct perf_event *event = &data->events.items[i];
        struct patch patch;
        if (event->type != PERF_TEXT_POKE)
            continue;
        perf_event_text_poke(event, &patch.poke);
        if (patch.poke.new_bytes == 0 || patch_end(&patch.poke) < patch.poke.address)
            continue; // code that goes away is not executed any more
        bool another =
            out->times.count == 0 || out->times.items[out->times.count - 1] != event->time;
        if ((another && out->times.count + 1 >= PT_STATES_MOST) || patches->count >= PATCHES_MOST) {
            out->left_out++;
            continue;
        }
        if (another && array_push(&out->times, event->time) < 0)
            return -1;
        patch.state = (uint32_t)out->times.count;
        if (array_push(patches, patch) < 0)
            return -1;
    }
    return 0;
}

// --- one place -----------------------------------------------------------------------------------

// A place is the union of patches that overlap: every byte of it is in one of them.
struct place {
    uint64_t address;
    size_t bytes;
    uint8_t *code, *known; // as it is now; known: 0 where no code was yet
};

// patches: by state.
static int place_begin(struct place *place, const struct patch *patches, size_t count)
{
    uint64_t begin = UINT64_MAX, end = 0;
    for (size_t i = 0; i < count; i++) {
        begin = patches[i].poke.address < begin ? patches[i].poke.address : begin;
        end = patch_end(&patches[i].poke) > end ? patch_end(&patches[i].poke) : end;
    }
    place->address = begin;
    place->bytes = (size_t)(end - begin);
    place->code = calloc(2, place->bytes);
    if (!place->code)
        return -1;
    place->known = place->code + place->bytes;
    // What was there first is what the first patch of each byte found.
    for (size_t i = count; i-- > 0;) {
        const struct perf_text_poke *poke = &patches[i].poke;
        size_t at = (size_t)(poke->address - place->address);
        memcpy(place->code + at, poke->old_code, poke->old_bytes);
        memset(place->known + at, poke->old_bytes > 0, poke->new_bytes);
    }
    return 0;
}

static void place_patch(struct place *place, const struct perf_text_poke *poke)
{
    size_t at = (size_t)(poke->address - place->address);
    memcpy(place->code + at, poke->new_code, poke->new_bytes);
    memset(place->known + at, 1, poke->new_bytes);
}

// Adds the place as it is now to the memory, for the states [from, to).
static int place_add(const struct place *place, struct pt_memory *memory, uint32_t from,
                     uint32_t to, struct error *err)
{
    int result = 0;
    for (size_t begin = 0; result == 0 && begin < place->bytes && from < to;) {
        size_t end = begin + 1;
        while (end < place->bytes && place->known[end] == place->known[begin])
            end++;
        if (place->known[begin])
            result = pt_memory_add_state(memory, place->code + begin, end - begin,
                                         place->address + begin, from, to, err);
        begin = end;
    }
    return result;
}

// patches: those of one place.
static int add_place(struct patch *patches, size_t count, struct pt_memory *memory,
                     struct error *err)
{
    struct place place;
    uint32_t from = 0;
    int result = 0;
    qsort(patches, count, sizeof *patches, by_state);
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
        place_patch(&place, &patches[i].poke);
    }
    if (result == 0)
        result = place_add(&place, memory, from, PT_STATES_MOST, err);
    free(place.code);
    return result;
}

int pt_patches_add(const struct perf_data *data, struct pt_memory *memory, struct pt_patches *out,
                   struct error *err)
{
    struct patch_array patches = {0};
    *out = (struct pt_patches){0};
    int result = 0;
    if (collect(data, &patches, out) < 0)
        result = error_set(err, ERROR_FAILED, "out of memory for patches of code");
    if (patches.count)
        qsort(patches.items, patches.count, sizeof *patches.items, by_address);
    for (size_t first = 0; result == 0 && first < patches.count;) {
        uint64_t end = patch_end(&patches.items[first].poke);
        size_t next = first + 1;
        for (; next < patches.count && patches.items[next].poke.address < end; next++)
            if (patch_end(&patches.items[next].poke) > end)
                end = patch_end(&patches.items[next].poke);
        result = add_place(&patches.items[first], next - first, memory, err);
        first = next;
    }
    array_free(&patches);
    return result;
}

void pt_patches_free(struct pt_patches *patches)
{
    array_free(&patches->times);
}

uint32_t pt_patches_state(const struct pt_patches *patches, uint64_t time, uint64_t *until)
{
    size_t low = 0, high = patches->times.count; // the first later than the time
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (patches->times.items[middle] <= time)
            low = middle + 1;
        else
            high = middle;
    }
    *until = low < patches->times.count ? patches->times.items[low] : UINT64_MAX;
    return (uint32_t)low;
}
