// SPDX-License-Identifier: MIT
//
// Any bytes as a ring file: half of them behind a header that is made plausible, so that the
// entries are reached. Drained, settled and merged into logs, which must come out well-formed.
#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/connection.h"
#include "base/log_file.h"
#include "shim/message_merge.h"
#include "shim/ring_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Where the rings and logs of this fuzzer lie, made on the first call.
static const char *place(void)
{
    static char dir[64];
    if (!dir[0]) {
        snprintf(dir, sizeof dir, "/dev/shm/shim-fuzz-XXXXXX");
        if (!mkdtemp(dir))
            abort();
    }
    return dir;
}

static void ring_write(int dir_fd, const uint8_t *data, size_t size)
{
    static uint8_t file[RING_PAGE_BYTES + RING_MIN_ENTRIES * RING_ENTRY_BYTES];
    memset(file, 0, sizeof file);
    bool dressed = size > 0 && (data[0] & 1);
    size_t at = dressed ? RING_PAGE_BYTES : 0;
    size_t used = size < sizeof file - at ? size : sizeof file - at;
    if (used)
        memcpy(file + at, data, used);
    if (dressed) {
        struct ring_header *header = (struct ring_header *)file;
        header->version = RING_VERSION;
        header->entries = RING_MIN_ENTRIES;
        header->process = data[0] >> 4;
        header->head = size / RING_ENTRY_BYTES;
        header->magic = RING_MAGIC;
        union ring_entry *entries = (union ring_entry *)(file + RING_PAGE_BYTES);
        if (data[0] & 2)
            for (uint32_t i = 0; i < RING_MIN_ENTRIES; i++)
                entries[i].call.padding = ring_sequence(i);
        if (data[0] & 4)
            for (uint32_t i = 0; i < RING_MIN_ENTRIES; i++)
                entries[i].call.process = header->process;
    }
    int fd = openat(dir_fd, "ring", O_RDWR | O_CREAT | O_TRUNC, 0600);
    size_t whole = dressed || (size > 1 && (data[1] & 1)) ? sizeof file : used;
    if (fd < 0 || write(fd, file, whole) != (ssize_t)whole)
        abort();
    close(fd);
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
    assert(calls.count == merge->calls && connections.count == merge->connections);
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
    const char *dir = place();
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY);
    ring_write(dir_fd, data, size);
    struct ring_reader reader;
    if (ring_reader_open(&reader, dir_fd, "ring") == RING_OPEN_READY) {
        uint64_t room = 50;
        ring_reader_drain(&reader, false, &room);
        ring_reader_drain(&reader, true, &room);
        ring_reader_settle(&reader);
        assert(reader.calls.count <= 50);
        struct ring_reader *rings[] = {&reader};
        struct message_merge merge;
        struct error err;
        if (message_merge_write(rings, 1, (const uint16_t[RING_PORTS]){0}, reader.rejected, dir,
                                &merge, &err) < 0)
            abort();
        logs_verify(dir, &merge);
        ring_reader_close(&reader);
    }
    close(dir_fd);
    return 0;
}
