// SPDX-License-Identifier: MIT
#include "analysis/timeline/call_files.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum { CALLS = 512, MOST_FILES = 4 };

void call_file_name(const struct event *event, char out[CALL_FILE_BYTES])
{
    const struct in_addr address = {.s_addr = (in_addr_t)event->payload.a};
    unsigned port = (unsigned)event->payload.b;
    char text[INET_ADDRSTRLEN] = "";
    if (event->flags == FILE_PIPE)
        snprintf(out, CALL_FILE_BYTES, "a pipe");
    else if (event->flags == FILE_NAMED)
        snprintf(out, CALL_FILE_BYTES, "%.16s", event->payload.text);
    else if (address.s_addr && inet_ntop(AF_INET, &address, text, sizeof text))
        snprintf(out, CALL_FILE_BYTES, "%s:%u", text, port);
    else
        snprintf(out, CALL_FILE_BYTES, "port %u", port);
}

// The call that a file was recorded for: the pause of that thread at the same time. A wait for
// sockets is none.
enum { WAIT_FOR_SOCKETS = CALLS - 1 };
static uint32_t call_of(const struct host_timeline *host, const struct thread_moment *file)
{
    size_t count = 0;
    const struct thread_moment *pauses = thread_moments_of(&host->pauses, file->thread, &count);
    size_t at = pauses ? thread_moments_before(pauses, count, file->time_ns) : 0;
    return at < count && pauses[at].time_ns == file->time_ns && pauses[at].value < CALLS
               ? pauses[at].value
               : WAIT_FOR_SOCKETS;
}

// The files of one call, as long as they are few.
struct call_files {
    uint32_t names[MOST_FILES];
    unsigned count; // MOST_FILES + 1: too many
};

static void note_file(struct call_files *files, uint32_t name)
{
    for (unsigned i = 0; i < files->count && i < MOST_FILES; i++)
        if (files->names[i] == name)
            return;
    if (files->count < MOST_FILES)
        files->names[files->count] = name;
    if (files->count <= MOST_FILES)
        files->count++;
}

int call_files_settle(struct host_timeline *host, struct name_table *names)
{
    static const char several[] = "several files", peers[] = "several others";
    struct call_files calls[CALLS] = {0};
    uint32_t together, others;
    if (host->files.count == 0)
        return 0;
    if (name_table_intern(names, several, sizeof several - 1, &together) < 0 ||
        name_table_intern(names, peers, sizeof peers - 1, &others) < 0)
        return -1;
    for (size_t i = 0; i < host->files.count; i++)
        note_file(&calls[call_of(host, &host->files.items[i])], host->files.items[i].value);
    for (size_t i = 0; i < host->files.count; i++) {
        uint32_t call = call_of(host, &host->files.items[i]);
        if (calls[call].count > MOST_FILES)
            host->files.items[i].value = call == WAIT_FOR_SOCKETS ? others : together;
    }
    return 0;
}

// How a call is about its file: read, pread64, readv, recvfrom, recvmsg, preadv, preadv2 and splice
// take from it; write, pwrite64, writev, sendfile, connect, sendto, sendmsg, pwritev and pwritev2
// give to it.
static const char *preposition_of(uint32_t call)
{
    static const uint32_t from[] = {0, 17, 19, 45, 47, 295, 327, 275};
    static const uint32_t to[] = {1, 18, 20, 40, 42, 44, 46, 296, 328};
    for (size_t i = 0; i < sizeof from / sizeof *from; i++)
        if (from[i] == call)
            return "from";
    for (size_t i = 0; i < sizeof to / sizeof *to; i++)
        if (to[i] == call)
            return "to";
    return "of";
}

// What was recorded as a stint ended; NULL: nothing.
static const char *file_after(const struct host_timeline *host, const struct thread_stint *stint)
{
    size_t count = 0;
    const struct thread_moment *files = thread_moments_of(&host->files, stint->thread, &count);
    size_t after = files ? thread_moments_before(files, count, stint->end_ns + 1) : 0;
    return after > 0 && files[after - 1].time_ns > stint->begin_ns
               ? host->names.items[files[after - 1].value]
               : NULL;
}

void call_file_append(const struct host_timeline *host, const struct thread_stint *stint,
                      uint32_t pause, char *out, size_t out_bytes)
{
    const char *name = file_after(host, stint);
    if (name && pause < CALLS)
        text_append(out, out_bytes, " %s %s", preposition_of(pause), name);
}

const char *call_polled_peer(const struct host_timeline *host, const struct thread_stint *stint)
{
    return stint->left == STINT_WAITS ? file_after(host, stint) : NULL;
}
