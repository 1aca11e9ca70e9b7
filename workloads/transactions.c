// SPDX-License-Identifier: MIT
#include "workloads/transactions.h"

#include "workloads/workload.h"

void transactions_free(struct recorded_transactions *transactions)
{
    array_free(&transactions->items);
    array_free(&transactions->commands);
}

const struct recorded_transaction *
transactions_find(const struct recorded_transactions *transactions, uint64_t place)
{
    if (!transactions)
        return NULL;
    size_t begin = 0, end = transactions->items.count;
    while (begin < end) {
        const size_t middle = begin + (end - begin) / 2;
        if (transactions->items.items[middle].place < place)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin < transactions->items.count && transactions->items.items[begin].place == place
               ? &transactions->items.items[begin]
               : NULL;
}

static void raise(size_t *most, size_t value)
{
    *most = *most > value ? *most : value;
}

struct transaction_most transactions_most(const struct workload *workload)
{
    const struct recorded_transactions *all = workload->transactions;
    const struct protocol *protocol = workload->protocol;
    struct transaction_most most = {0};
    char key[WORKLOAD_KEY_BYTES_MAX];
    for (size_t i = 0; all && i < all->items.count; i++) {
        const struct recorded_transaction *one = &all->items.items[i];
        // MULTI and EXEC are no longer than any request's header.
        size_t room_bytes = 0, request_bytes = protocol->request_bytes_max(0, 0);
        for (size_t k = one->first; k < one->first + one->count; k++) {
            const struct recorded_command *command = &all->commands.items[k];
            const size_t value_bytes = protocol->operations[command->operation].carries_value
                                           ? workload_value_bytes(workload, command->key)
                                           : 0;
            room_bytes += WORKLOAD_KEY_BYTES_MAX + value_bytes;
            request_bytes +=
                protocol->request_bytes_max(workload_key(workload, command->key, key), value_bytes);
        }
        raise(&most.commands, one->count);
        raise(&most.room_bytes, room_bytes);
        raise(&most.request_bytes, request_bytes);
    }
    return most;
}

void transaction_add_commands(const struct workload *workload,
                              const struct recorded_transaction *transaction, uint64_t place,
                              struct request *commands, char *room, struct request *request)
{
    const struct recorded_command *recorded =
        workload->transactions->commands.items + transaction->first;
    for (uint32_t i = 0; i < transaction->count; i++) {
        char *value = room + WORKLOAD_KEY_BYTES_MAX;
        workload_request(workload, recorded[i].operation, recorded[i].key, place, request->number,
                         room, value, &commands[i]);
        room = value + (commands[i].value ? commands[i].value_bytes : 0);
    }
    request->commands = commands;
    request->command_count = transaction->count;
}
