// SPDX-License-Identifier: MIT
//
// The collector's side of the shared memory (shim/ring.h): makes the directory and what is in it,
// and reads and frees what servers took. All memory is made here, and so counted against this
// process's control group, not against a server's.
#ifndef SHIM_RING_MEMORY_H
#define SHIM_RING_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "shim/ring.h"

enum { RING_POOLS = 5 }; // one of this user, and of others when they come

struct pool_file {
    int fd; // -1: none
    uid_t user;
    uint32_t chunks;
    struct pool_layout layout;
};

struct ring_memory {
    char dir[400];
    int dir_fd;
    int hello;       // a socket; -1: none
    uint64_t budget; // bytes, of all pools
    struct control_page *control;
    struct pool_file pools[RING_POOLS];
    size_t pool_count;
};

// Makes the directory (mode 0711; its parent exists, on a tmpfs) with a pool for this user and a
// control page that says that there is no collector yet. bytes: what all pools may take, 0 for the
// default. One that is there already is taken over if nobody collects there; as it is, when it was
// made for a collector to come. On failure nothing is left open.
int ring_memory_open(struct ring_memory *memory, const char *dir, uint64_t bytes,
                     struct error *err);

// Makes pools for the users who have said hello.
void ring_memory_greet(struct ring_memory *memory);

// Reads the table of places, or of chunks' owners, of a pool into an array of the caller's. False:
// somebody has cut the file.
bool pool_read_places(const struct pool_file *pool, uint64_t *places);
bool pool_read_owners(const struct pool_file *pool, uint32_t *owners);
bool pool_read_page(const struct pool_file *pool, uint32_t place, struct process_page *page);
bool pool_read_chunk(const struct pool_file *pool, uint32_t index, struct ring_chunk *chunk);

// All of a chunk but its entries, which stay as they are.
bool pool_read_chunk_head(const struct pool_file *pool, uint32_t index, struct ring_chunk *chunk);

// Gives a chunk, or a process's place, to whoever takes it next.
void pool_free_chunk(const struct pool_file *pool, uint32_t index);
void pool_free_place(const struct pool_file *pool, uint32_t place);

// Gives the memory of a chunk back to the system; nobody takes it any more.
void pool_discard_chunk(const struct pool_file *pool, uint32_t index);

// Closes everything. The directory stays, for a collector to come.
void ring_memory_leave(struct ring_memory *memory);

// Tells the servers to detach, closes everything and removes the directory.
void ring_memory_remove(struct ring_memory *memory);

#endif
