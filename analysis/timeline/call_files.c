// SPDX-License-Identifier: MIT
#include "analysis/timeline/call_files.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "analysis/timeline/thread_states.h"
#include "base/array.h"
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
    else if (event->flags == (FILE_NAMED | FILE_ON_FROZEN))
        snprintf(out, CALL_FILE_BYTES, "%.16s (file system frozen)", event->payload.text);
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

// One file of a call of one program.
struct file_use {
    size_t at; // in the host's list
    uint32_t program, call, name;
};
struct file_use_array ARRAY_OF(struct file_use);

static int compare_uses(const void *left, const void *right)
{
    const struct file_use *a = left, *b = right;
    return order_of(a->program, b->program) ?: order_of(a->call, b->call) ?: order_of(a->at, b->at);
}

// The number of the name of the thread's program, of all its processes: "java" of "java:worker-2".
// NO_PROGRAM: its name is not known.
enum { NO_PROGRAM = SPAN_NAMES };
static int program_of(const struct host_timeline *host, struct name_table *names,
                      const struct thread_moment *file, uint32_t *program)
{
    const struct span *task = thread_span_before(host, file->thread, file->time_ns);
    *program = NO_PROGRAM;
    if (!task)
        return 0;
    char name[64];
    snprintf(name, sizeof name, "%s", host->names.items[task->name]);
    return name_table_intern(names, name, strcspn(name, ":"), program);
}

// Whether a call of a program, uses [begin, end), is about more than MOST_FILES files.
static bool are_many(const struct file_use *uses, size_t begin, size_t end)
{
    uint32_t known[MOST_FILES];
    unsigned count = 0;
    for (size_t i = begin; i < end; i++) {
        unsigned at = 0;
        while (at < count && known[at] != uses[i].name)
            at++;
        if (at == MOST_FILES)
            return true;
        if (at == count)
            known[count++] = uses[i].name;
    }
    return false;
}

int call_files_settle(struct host_timeline *host, struct name_table *names)
{
    static const char several[] = "several files", peers[] = "several others";
    struct file_use_array uses = {0};
    uint32_t together, others;
    int result = -1;
    if (host->files.count == 0)
        return 0;
    if (name_table_intern(names, several, sizeof several - 1, &together) < 0 ||
        name_table_intern(names, peers, sizeof peers - 1, &others) < 0)
        return -1;
    for (size_t i = 0; i < host->files.count; i++) {
        const struct thread_moment *file = &host->files.items[i];
        struct file_use use = {.at = i, .call = call_of(host, file), .name = file->value};
        if (program_of(host, names, file, &use.program) < 0 || array_push(&uses, use) < 0)
            goto done;
    }
    array_sort(&uses, compare_uses);
    for (size_t begin = 0, end; begin < uses.count; begin = end) {
        const struct file_use *first = &uses.items[begin];
        for (end = begin + 1; end < uses.count && uses.items[end].program == first->program &&
                              uses.items[end].call == first->call;)
            end++;
        bool many = are_many(uses.items, begin, end);
        for (size_t i = begin; many && i < end; i++)
            host->files.items[uses.items[i].at].value =
                first->call == WAIT_FOR_SOCKETS ? others : together;
    }
    result = 0;
done:
    array_free(&uses);
    return result;
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
