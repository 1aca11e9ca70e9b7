// SPDX-License-Identifier: MIT
#include "loadgen/recording/recording_transactions.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/hash.h"

enum transaction_word transaction_word(struct piece operation)
{
    static const char *const words[] = {[WORD_MULTI] = "multi",
                                        [WORD_EXEC] = "exec",
                                        [WORD_DISCARD] = "discard",
                                        [WORD_RESET] = "reset"};
    for (unsigned i = WORD_MULTI; i <= WORD_RESET; i++)
        if (operation.bytes == strlen(words[i]) &&
            strncasecmp(operation.at, words[i], operation.bytes) == 0)
            return (enum transaction_word)i;
    return WORD_NONE;
}

// A client without a name has one that can be compared and copied.
static struct piece name_of(struct piece client)
{
    return client.at ? client : (struct piece){.at = "", .bytes = 0};
}

static uint32_t find(const struct client_transactions *all, struct piece client)
{
    const struct client_transaction *items = all->items.items;
    return map_find(&all->map, hash_bytes(client.at, client.bytes), at,
                    items[at].client.bytes == client.bytes &&
                        memcmp(items[at].client.at, client.at, client.bytes) == 0);
}

struct client_transaction *transactions_of_client(struct client_transactions *all,
                                                  struct piece client)
{
    const uint32_t found = all->open ? find(all, name_of(client)) : MAP_NONE;
    return found != MAP_NONE && all->items.items[found].is_open ? &all->items.items[found] : NULL;
}

static int add(struct client_transactions *all, struct piece client)
{
    struct client_transaction one = {.client = client};
    if (all->copies) {
        char *copy = malloc(client.bytes + 1);
        if (!copy)
            return -1;
        one.client.at = memcpy(copy, client.at, client.bytes);
    }
    if (array_push(&all->items, one) < 0) {
        if (all->copies)
            free((void *)(uintptr_t)one.client.at);
        return -1;
    }
    return map_add(&all->map, hash_bytes(client.at, client.bytes), all->items.count - 1);
}

int transactions_begin(struct client_transactions *all, struct piece client,
                       struct lost_transactions *lost)
{
    client = name_of(client);
    uint32_t found = find(all, client);
    if (found == MAP_NONE) {
        if (add(all, client) < 0)
            return -1;
        found = (uint32_t)all->items.count - 1;
    }
    struct client_transaction *one = &all->items.items[found];
    lost->nested += one->is_open;
    all->open += !one->is_open;
    one->is_open = true;
    return 0;
}

void transactions_end(struct client_transactions *all, struct client_transaction *one,
                      uint64_t *why, struct lost_transactions *lost)
{
    if (why) {
        ++*why;
        lost->commands += one->commands.count;
    }
    array_free(&one->commands);
    one->is_open = false;
    all->open--;
}

void transactions_end_all(struct client_transactions *all, struct lost_transactions *lost)
{
    for (size_t i = 0; i < all->items.count; i++)
        if (all->items.items[i].is_open)
            transactions_end(all, &all->items.items[i], &lost->unended, lost);
}

void client_transactions_free(struct client_transactions *all)
{
    for (size_t i = 0; i < all->items.count; i++) {
        array_free(&all->items.items[i].commands);
        if (all->copies)
            free((void *)(uintptr_t)all->items.items[i].client.at);
    }
    array_free(&all->items);
    map_free(&all->map);
}
