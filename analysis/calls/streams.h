// SPDX-License-Identifier: MIT
//
// Records in piles, one pile a connection, each in order of time: what the join merges. And the
// tables that say which of the server's connections is the other end of a client's.
#ifndef ANALYSIS_CALLS_STREAMS_H
#define ANALYSIS_CALLS_STREAMS_H

#include <stddef.h>
#include <stdint.h>

#include "base/connection.h"
#include "base/map.h"

// Finds a connection of a table by its id, without a search per record.
struct connection_index {
    const struct connection *table;
    struct map positions;
};

#define NO_CONNECTION MAP_NONE

// -1 when memory runs out. Of two entries with the same id, the later one counts.
int connection_index_init(struct connection_index *index, const struct connection *table,
                          size_t count);
void connection_index_fini(struct connection_index *index);

// The position of the connection with that id in the table, or NO_CONNECTION.
uint32_t connection_index_find(const struct connection_index *index, uint32_t id);

// The same in the kernel's table, whose ids are the low halves of the sockets' cookies. 0: unknown,
// which none has.
uint32_t connection_index_of_cookie(const struct connection_index *sockets, uint64_t cookie);

// One moment at which the stream of a connection had reached an offset.
struct passage {
    int64_t time_ns;
    uint64_t end;    // offset after the last byte
    uint32_t record; // index of the record it came from
    uint32_t pile;   // position of its connection in the table, or NO_CONNECTION: ignored
};

// Passages grouped by connection: pile p is items[starts[p]] up to items[starts[p + 1]].
struct piles {
    struct passage *items;
    size_t *starts; // pile_count + 1 of them
    size_t pile_count;
};

// Sorts passages into piles, each by time (in the order given where times are equal). The caller
// keeps `passages`. -1 when memory runs out.
int piles_build(struct piles *piles, const struct passage *passages, size_t count,
                size_t pile_count);
// Sorts the pile of a connection over UDP, whose offsets are the numbers of its datagrams: by
// number, then by time.
void pile_order_by_number(struct piles *piles, size_t pile);
void piles_free(struct piles *piles);

// For every connection of a table, the position of the one in another table that is the same side's
// view of it, SEVERAL_CONNECTIONS where there are more than one, or NO_CONNECTION. -1: no memory.
#define SEVERAL_CONNECTIONS (NO_CONNECTION - 1)
int match_same_ends(const struct connection *connections, size_t count,
                    const struct connection *others, size_t other_count, uint32_t *same);

// For every client connection, the position of its other end in the server's table, or
// NO_CONNECTION. Where a port was used more than once, each of the server's is the other end of the
// client's that had its first passage latest before it (but for what clocks are apart), the nearest
// one where none had; of several that one of the client's has so, the first after it counts. Both
// time arrays hold INT64_MAX where there was no passage. -1 when memory runs out.
typedef int match_function(const struct connection *client, size_t client_count,
                           const int64_t *client_first_ns, const struct connection *server,
                           size_t server_count, const int64_t *server_first_ns,
                           uint32_t *other_end);
match_function match_connections;

// The same of the kernel's, which is prompt: the other end whose first passage is nearest in time.
// Two network namespaces may have connections of the same ends at once.
match_function match_nearest_connections;

// The same where nothing relates the clocks of the two sides yet: how far one is ahead of the other
// is what most connections say that have an other end at all, and the other end whose first passage
// is nearest in time by that counts.
match_function match_unrelated_connections;

#endif
