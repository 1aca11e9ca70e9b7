// SPDX-License-Identifier: MIT
#include "workloads/multiget.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "workloads/protocols/reply_parser.h"
#include "workloads/transactions.h"
#include "workloads/workload.h"

static bool is_in_mix(const struct workload *workload)
{
    const struct protocol *protocol = workload->protocol;
    for (unsigned i = 0; i < protocol->operation_count; i++)
        if (protocol->operations[i].many_keys && workload->mix[i] > 0)
            return true;
    return false;
}

int multiget_check(const struct workload *workload, bool cluster, bool over_udp, struct error *err)
{
    const bool drawn = is_in_mix(workload);
    if (!drawn && !workload->multigets)
        return 0;
    if (drawn && workload->multiget_keys > workload->key_count)
        return error_set(err, ERROR_INPUT,
                         "a multiget of %s keys, and the workload has only %s (keys: {count})",
                         TEXT_COUNT(workload->multiget_keys), TEXT_COUNT(workload->key_count));
    if (cluster)
        return error_set(err, ERROR_INPUT,
                         "a cluster refuses a multiget of keys in several slots; leave it out of "
                         "the %s, or load one node",
                         drawn ? "mix" : "recording");
    if (over_udp)
        return error_set(err, ERROR_INPUT,
                         "over UDP memcached answers each key of a multiget in a message of its "
                         "own, each numbered as the only one; take TCP");
    return 0;
}

void multiget_init(struct multiget *multiget, const struct workload *workload)
{
    *multiget = (struct multiget){.workload = workload,
                                  .count = is_in_mix(workload) ? workload->multiget_keys : 0};
    for (size_t i = 0; workload->multigets && i < workload->multigets->items.count; i++)
        if (workload->multigets->items.items[i].count > multiget->count)
            multiget->count = workload->multigets->items.items[i].count;
    rank_sampler_init(&multiget->ranks, &workload->popularity, workload->key_count);
}

uint64_t multiget_key(const struct multiget *multiget, uint64_t first, uint64_t number,
                      unsigned place)
{
    if (place == 0)
        return first;
    uint64_t state = hash_pair(hash_pair(first, number), place);
    return rank_sample(&multiget->ranks, &state);
}

unsigned multiget_count(const struct multiget *multiget, uint64_t place)
{
    const struct recorded_transaction *recorded =
        transactions_find(multiget->workload->multigets, place);
    return recorded ? recorded->count : multiget->count;
}

// One of the keys of a request; recorded: what it asks for, NULL: the others are drawn.
static uint64_t key_of(const struct multiget *multiget, const struct recorded_transaction *recorded,
                       uint64_t first, uint64_t number, unsigned which)
{
    return recorded ? multiget->workload->multigets->commands.items[recorded->first + which].key
                    : multiget_key(multiget, first, number, which);
}

void multiget_add_keys(const struct multiget *multiget, uint64_t first, uint64_t place,
                       struct request *request, char *room)
{
    const struct recorded_transaction *recorded =
        transactions_find(multiget->workload->multigets, place);
    const unsigned count = recorded ? recorded->count : multiget->count;
    request->more_keys = room;
    request->more_key_count = count - 1;
    for (unsigned which = 1; which < count; which++) {
        uint64_t key = key_of(multiget, recorded, first, request->number, which);
        size_t bytes = workload_key(multiget->workload, key, room + 1);
        *room = (char)bytes;
        room += 1 + bytes;
    }
}
_Static_assert(WORKLOAD_KEY_BYTES_MAX <= UINT8_MAX, "a key's length fits in a byte");

size_t multiget_room(const struct multiget *multiget)
{
    return multiget->count * (size_t)(1 + WORKLOAD_KEY_BYTES_MAX);
}

size_t multiget_key_bytes_max(const struct multiget *multiget)
{
    size_t key_bytes = workload_key_bytes_max(multiget->workload);
    return multiget->count ? multiget->count * (key_bytes + REQUEST_MORE_KEY_BYTES) : key_bytes;
}

struct reply_list *multiget_list_new(const struct multiget *multiget)
{
    struct reply_list *list = NULL;
    list = calloc(1, sizeof *list + multiget->count * sizeof *list->values);
    if (list)
        list->due = (uint16_t)multiget->count;
    return list;
}

static bool is_value_of(const struct workload *workload, const struct listed_value *value,
                        uint64_t key, unsigned place)
{
    char name[WORKLOAD_KEY_BYTES_MAX];
    return value->key_hash ? value->key_hash == hash_bytes(name, workload_key(workload, key, name))
                           : value->place == place;
}

bool multiget_is_right(const struct multiget *multiget, uint64_t first,
                       const struct reply_list *list, unsigned *missing)
{
    const struct workload *workload = multiget->workload;
    const struct recorded_transaction *recorded =
        transactions_find(workload->multigets, list->place);
    unsigned taken = 0;
    if (list->told != list->due)
        return false;
    for (unsigned place = 0; place < list->due && taken < list->count; place++) {
        uint64_t key = key_of(multiget, recorded, first, list->number, place);
        const struct listed_value *value = &list->values[taken];
        if (!is_value_of(workload, value, key, place))
            continue;
        if (value->bytes != workload_value_bytes(workload, key))
            return false;
        taken++;
    }
    *missing = list->due - list->count;
    return taken == list->count;
}
