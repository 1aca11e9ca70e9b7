// SPDX-License-Identifier: MIT
#include "analysis/calls/streams.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"

int connection_index_init(struct connection_index *index, const struct connection *table,
                          size_t count)
{
    *index = (struct connection_index){.table = table};
    for (size_t i = count; i-- > 0;) // of equal ids the last one counts
        if (connection_index_find(index, table[i].id) == NO_CONNECTION &&
            map_add(&index->positions, hash64(table[i].id), i) < 0)
            return -1;
    return 0;
}

void connection_index_fini(struct connection_index *index)
{
    map_free(&index->positions);
}

uint32_t connection_index_find(const struct connection_index *index, uint32_t id)
{
    return map_find(&index->positions, hash64(id), at, index->table[at].id == id);
}

uint32_t connection_index_of_cookie(const struct connection_index *sockets, uint64_t cookie)
{
    uint32_t found = cookie ? connection_index_find(sockets, (uint32_t)cookie) : NO_CONNECTION;
    return found != NO_CONNECTION && sockets->table[found].cookie == cookie ? found : NO_CONNECTION;
}

static int compare_passages(const void *left, const void *right)
{
    const struct passage *a = left, *b = right;
    return order_of(a->time_ns, b->time_ns) ?: order_of(a->record, b->record);
}

int piles_build(struct piles *piles, const struct passage *passages, size_t count,
                size_t pile_count)
{
    piles->pile_count = pile_count;
    piles->starts = calloc(pile_count + 2, sizeof *piles->starts);
    piles->items = malloc((count ? count : 1) * sizeof *piles->items);
    if (!piles->starts || !piles->items)
        return -1;
    // Counted one place further on, so that filling leaves every start where it belongs.
    size_t *cursor = piles->starts + 1;
    for (size_t i = 0; i < count; i++)
        if (passages[i].pile != NO_CONNECTION)
            cursor[passages[i].pile + 1]++;
    for (size_t p = 0; p < pile_count; p++)
        cursor[p + 1] += cursor[p];
    for (size_t i = 0; i < count; i++)
        if (passages[i].pile != NO_CONNECTION)
            piles->items[cursor[passages[i].pile]++] = passages[i];
    for (size_t p = 0; p < pile_count; p++) {
        struct passage *pile = piles->items + piles->starts[p];
        array_sort_raw(pile, piles->starts[p + 1] - piles->starts[p], sizeof *pile,
                       compare_passages);
    }
    return 0;
}

static int compare_numbers(const void *left, const void *right)
{
    const struct passage *a = left, *b = right;
    return order_of(a->end, b->end) ?: compare_passages(a, b);
}

void pile_order_by_number(struct piles *piles, size_t pile)
{
    size_t first = piles->starts[pile], count = piles->starts[pile + 1] - first;
    array_sort_raw(piles->items + first, count, sizeof *piles->items, compare_numbers);
}

void piles_free(struct piles *piles)
{
    free(piles->items);
    free(piles->starts);
    *piles = (struct piles){0};
}

// The same number for both ends of a connection.
static uint64_t tuple_hash(const struct connection *connection)
{
    uint64_t parts[4];
    memcpy(parts, connection->local, 16);
    memcpy(parts + 2, connection->peer, 16);
    uint64_t local = hash_pair(parts[0], parts[1] ^ connection->local_port);
    uint64_t peer = hash_pair(parts[2], parts[3] ^ connection->peer_port);
    return hash64(local ^ peer ^ connection->protocol);
}

int match_same_ends(const struct connection *connections, size_t count,
                    const struct connection *others, size_t other_count, uint32_t *same)
{
    struct map first = {0};
    bool *repeated = calloc(other_count + 1, sizeof *repeated); // the ends of a first one
    int result = repeated ? 0 : -1;
    for (size_t i = 0; result == 0 && i < other_count; i++) {
        uint64_t hash = tuple_hash(&others[i]);
        uint32_t equal = map_find(&first, hash, at, connection_same_ends(&others[at], &others[i]));
        if (equal == MAP_NONE)
            result = map_add(&first, hash, i);
        else
            repeated[equal] = true;
    }
    for (size_t i = 0; result == 0 && i < count; i++) {
        same[i] = map_find(&first, tuple_hash(&connections[i]), at,
                           connection_same_ends(&connections[i], &others[at]));
        if (same[i] != NO_CONNECTION && repeated[same[i]])
            same[i] = SEVERAL_CONNECTIONS;
    }
    map_free(&first);
    free(repeated);
    return result;
}

static uint64_t distance(int64_t a, int64_t b)
{
    return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

// Connections of a table by their ends, those with the same ends in a chain.
struct chains {
    struct map first;
    uint32_t *next; // plus 1; 0: none
};

static void chains_free(struct chains *chains)
{
    map_free(&chains->first);
    free(chains->next);
}

static int chains_build(struct chains *chains, const struct connection *table, size_t count)
{
    *chains = (struct chains){.next = calloc(count + 1, sizeof *chains->next)};
    int result = chains->next ? 0 : -1;
    for (size_t i = 0; result == 0 && i < count; i++) {
        uint64_t hash = tuple_hash(&table[i]);
        uint32_t equal =
            map_find(&chains->first, hash, at, connection_same_ends(&table[at], &table[i]));
        if (equal == MAP_NONE) {
            result = map_add(&chains->first, hash, i);
        } else {
            chains->next[i] = chains->next[equal];
            chains->next[equal] = (uint32_t)i + 1;
        }
    }
    return result;
}

// The first of those whose other end this is, plus 1; 0: none.
static uint32_t chains_find(const struct chains *chains, const struct connection *table,
                            const struct connection *other)
{
    uint32_t found =
        map_find(&chains->first, tuple_hash(other), at, connection_mirrors(other, &table[at]));
    return found == MAP_NONE ? 0 : found + 1;
}

// Whether what the client sent first then may be what the server had first then.
static bool is_before(int64_t client_ns, int64_t server_ns)
{
    enum { CLOCKS_APART_NS = 100000 }; // what conversions of times may be wrong by, and more
    return client_ns <= server_ns || client_ns - CLOCKS_APART_NS <= server_ns;
}

// Whether a connection of the server is rather that of the client's connection a than of b: of the
// latest before it, else of the nearest.
static bool is_rather_of(int64_t a_ns, int64_t b_ns, int64_t server_ns)
{
    const bool before = is_before(a_ns, server_ns);
    return before != is_before(b_ns, server_ns)
               ? before
               : distance(a_ns, server_ns) < distance(b_ns, server_ns);
}

// Whether of two of the server's that are of the same one of the client's it is rather a: the first
// one after it, else the nearest.
static bool is_rather(int64_t client_ns, int64_t a_ns, int64_t b_ns)
{
    const bool after = is_before(client_ns, a_ns);
    return after != is_before(client_ns, b_ns)
               ? after
               : distance(a_ns, client_ns) < distance(b_ns, client_ns);
}

int match_connections(const struct connection *client, size_t client_count,
                      const int64_t *client_first_ns, const struct connection *server,
                      size_t server_count, const int64_t *server_first_ns, uint32_t *other_end)
{
    struct chains chains;
    int result = chains_build(&chains, client, client_count);
    for (size_t c = 0; c < client_count; c++)
        other_end[c] = NO_CONNECTION;
    for (size_t s = 0; result == 0 && s < server_count; s++) {
        const int64_t first_ns = server_first_ns[s];
        uint32_t next = chains_find(&chains, client, &server[s]), own = NO_CONNECTION;
        for (; next; next = chains.next[next - 1])
            if (own == NO_CONNECTION ||
                is_rather_of(client_first_ns[next - 1], client_first_ns[own], first_ns))
                own = next - 1;
        if (own != NO_CONNECTION &&
            (other_end[own] == NO_CONNECTION ||
             is_rather(client_first_ns[own], first_ns, server_first_ns[other_end[own]])))
            other_end[own] = (uint32_t)s;
    }
    chains_free(&chains);
    return result;
}

int match_nearest_connections(const struct connection *client, size_t client_count,
                              const int64_t *client_first_ns, const struct connection *server,
                              size_t server_count, const int64_t *server_first_ns,
                              uint32_t *other_end)
{
    struct chains chains;
    int result = chains_build(&chains, server, server_count);
    for (size_t c = 0; result == 0 && c < client_count; c++) {
        uint64_t nearest = UINT64_MAX;
        uint32_t next = chains_find(&chains, server, &client[c]);
        other_end[c] = next ? next - 1 : NO_CONNECTION;
        for (; next; next = chains.next[next - 1]) {
            uint64_t away = distance(client_first_ns[c], server_first_ns[next - 1]);
            if (away < nearest || (away == nearest && next - 1 > other_end[c])) {
                other_end[c] = next - 1;
                nearest = away;
            }
        }
    }
    chains_free(&chains);
    return result;
}

static int compare_times(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return order_of(a, b);
}

// Not INT64_MAX, and such that neither sums nor differences overflow.
static bool is_time(int64_t time_ns)
{
    return time_ns > -(INT64_C(1) << 61) && time_ns < INT64_C(1) << 61;
}

int match_unrelated_connections(const struct connection *client, size_t client_count,
                                const int64_t *client_first_ns, const struct connection *server,
                                size_t server_count, const int64_t *server_first_ns,
                                uint32_t *other_end)
{
    int64_t *times = malloc((client_count ? client_count : 1) * sizeof *times);
    int result = times ? match_nearest_connections(client, client_count, client_first_ns, server,
                                                   server_count, server_first_ns, other_end)
                       : -1;
    size_t count = 0;
    for (size_t c = 0; c < client_count && result == 0; c++)
        if (other_end[c] != NO_CONNECTION && is_time(client_first_ns[c]) &&
            is_time(server_first_ns[other_end[c]]))
            times[count++] = server_first_ns[other_end[c]] - client_first_ns[c];
    if (count > 0) {
        qsort(times, count, sizeof *times, compare_times);
        int64_t ahead = times[count / 2];
        for (size_t c = 0; c < client_count; c++)
            times[c] = is_time(client_first_ns[c]) ? client_first_ns[c] + ahead : INT64_MAX;
        result = match_nearest_connections(client, client_count, times, server, server_count,
                                           server_first_ns, other_end);
    }
    free(times);
    return result;
}
