// SPDX-License-Identifier: MIT
//
// Any bytes as a chunk: half of them behind a header that is made plausible, so that the entries
// are reached. Taken, twice, and merged into logs, which must come out well-formed.
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/connection.h"
#include "base/log_file.h"
#include "shim/message_merge.h"
#include "shim/ring_reader.h"
#include "tests/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void chunk_make(struct ring_chunk *chunk, const uint8_t *data, size_t size)
{
    memset(chunk, 0, sizeof *chunk);
    bool dressed = size > 0 && (data[0] & 1);
    size_t at = dressed ? offsetof(struct ring_chunk, entries) : 0;
    size_t used = size < sizeof *chunk - at ? size : sizeof *chunk - at;
    if (used)
        memcpy((char *)chunk + at, data, used);
    if (!dressed)
        return;
    chunk->process = 1 + (data[0] >> 4);
    chunk->instance = 1;
    chunk->used = (uint32_t)(used / RING_ENTRY_BYTES);
    for (uint32_t i = 0; i < RING_CHUNK_ENTRIES; i++) {
        if (data[0] & 2)
            chunk->entries[i].call.padding = ring_sequence(i);
        if (data[0] & 4)
            chunk->entries[i].call.process = chunk->process;
    }
}

static void logs_verify(const char *dir, const struct message_merge *merge)
{
    char path[128];
    struct log_reader calls, connections;
    struct error err;
    snprintf(path, sizeof path, "%s/calls.tlog", dir);
    if (log_reader_open(&calls, path, LOG_CALLS, MESSAGE_LOG_VERSION, sizeof(struct call), &err))
        abort();
    snprintf(path, sizeof path, "%s/connections.tlog", dir);
    if (log_reader_open(&connections, path, LOG_CONNECTIONS, 1, sizeof(struct connection), &err))
        abort();
    assert(calls.count == merge->calls &&
           connections.count == merge->connections + merge->outgoing);
    const struct call *all = calls.records;
    for (size_t i = 0; i < calls.count; i++) {
        assert(i == 0 || all[i - 1].entry_tsc <= all[i].entry_tsc);
        assert(all[i].connection <= connections.count);
        assert((all[i].connection == 0) == (all[i].kind == CALL_WAIT));
    }
    log_reader_close(&calls);
    log_reader_close(&connections);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *dir = scratch_directory();
    struct ring_chunk chunk;
    chunk_make(&chunk, data, size);
    if (!ring_chunk_plausible(&chunk))
        return 0;
    struct ring_reader reader = {
        .process = chunk.process, .thread = chunk.thread, .instance = chunk.instance};
    uint64_t room = 50;
    if (chunk.used % 2) {
        ring_reader_take_live(&reader, &chunk, &room);
        ring_reader_take_live(&reader, &chunk, &room);
    }
    ring_reader_take(&reader, &chunk, &room);
    ring_reader_take(&reader, &chunk, &room);
    assert(reader.calls.count <= 50);
    struct ring_reader *rings[] = {&reader};
    struct identities identities = {.last_id = 0};
    struct message_merge merge = {.rings = rings,
                                  .ring_count = 1,
                                  .identities = &identities,
                                  .ports = (const uint16_t[RING_PORTS]){0},
                                  .wants_peers = true,
                                  .last = true,
                                  .lost = reader.rejected,
                                  .out_dir = dir,
                                  .calls_log = "calls.tlog"};
    struct error err;
    if (message_merge_write(&merge, &err) < 0)
        abort();
    logs_verify(dir, &merge);
    array_free(&identities.all);
    ring_reader_free(&reader);
    return 0;
}
