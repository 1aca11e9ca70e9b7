// SPDX-License-Identifier: MIT
#include "shim/message_stats.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/ring.h"

bool process_has_io_uring(uint32_t process)
{
    char path[64], target[64];
    snprintf(path, sizeof path, "/proc/%u/fd", process);
    DIR *list = opendir(path);
    if (!list)
        return false;
    bool found = false;
    for (struct dirent *entry; !found && (entry = readdir(list));) {
        ssize_t length = readlinkat(dirfd(list), entry->d_name, target, sizeof target - 1);
        if (length > 0) {
            target[length] = '\0';
            found = strcmp(target, "anon_inode:[io_uring]") == 0;
        }
    }
    closedir(list);
    return found;
}

__attribute__((format(printf, 3, 4))) static void append(char *text, size_t bytes,
                                                         const char *format, ...)
{
    size_t used = strlen(text);
    if (used > 0 && used + 2 < bytes) {
        strcpy(text + used, "; ");
        used += 2;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, bytes - used, format, arguments);
    va_end(arguments);
}

// "sh, memcached", a few at most.
static void names_list(const struct message_stats *stats, char *out, size_t bytes)
{
    out[0] = '\0';
    size_t shown = stats->process_count < 5 ? stats->process_count : 5;
    for (size_t i = 0; i < shown; i++) {
        size_t used = strlen(out);
        snprintf(out + used, bytes - used, "%s%s", i ? ", " : "", stats->processes[i].name);
    }
}

static void warn_unattached(struct message_stats *stats, const struct message_notes *notes)
{
    char *text = stats->warning;
    size_t bytes = sizeof stats->warning;
    if (stats->process_count == 0) {
        append(
            text, bytes,
            "the shim was never loaded: is the server statically linked or setuid, was it behind a "
            "seccomp filter before this capture began, or was it started without LD_PRELOAD and "
            "TAILLIGHT_SHIM_DIR=%s?",
            notes->dir);
        return;
    }
    uint64_t accepted = stats->connections; // some connections may have been open before
    for (size_t i = 0; i < stats->process_count; i++)
        accepted += stats->processes[i].connections;
    if (accepted > 0)
        return;
    char names[128], where[120] = "";
    names_list(stats, names, sizeof names);
    for (size_t i = 0; i < RING_PORTS && notes->ports[i]; i++) {
        size_t used = strlen(where);
        snprintf(where + used, sizeof where - used, "%s%u", i ? ", " : " on port ",
                 notes->ports[i]);
    }
    append(text, bytes,
           "the shim was loaded into %s, and saw no TCP connection accepted%s: is that the "
           "server, and does it use libc's calls?",
           names, where);
}

// Processes that the shim could not serve, or not whole.
static void warn_of_processes(struct message_stats *stats)
{
    char *text = stats->warning;
    size_t bytes = sizeof stats->warning;
    for (size_t i = 0; i < stats->process_count; i++)
        if (stats->processes[i].inert &&
            (i == 0 || stats->processes[i].process != stats->processes[i - 1].process))
            append(text, bytes,
                   "server %s (pid %u): inert because of seccomp, whose filter might kill it for a "
                   "call of the shim; if it would not, give it TAILLIGHT_SHIM_SECCOMP=allowed",
                   stats->processes[i].name, stats->processes[i].process);
    for (size_t i = 0; i < stats->process_count; i++)
        if (stats->processes[i].io_uring)
            append(text, bytes, "%s (pid %u) uses io_uring: what goes through it was not seen",
                   stats->processes[i].name, stats->processes[i].process);
}

void message_warning_write(struct message_stats *stats, const struct message_notes *notes)
{
    const struct {
        uint64_t count;
        const char *words;
    } losses[] = {
        {stats->dropped_full,
         "calls lost because the memory for records was full: give more (--shim-memory)"},
        {stats->dropped_without_ring, "calls lost in signal handlers, or by threads at their end"},
        {stats->dropped_unnamed,
         "datagrams not recorded: the server took them without asking whose they are"},
        {stats->dropped_memory, "calls beyond what is kept in memory: capture for a shorter time"},
        {stats->unidentified, "calls of connections whose identity was lost"},
        {stats->doubtful_connections,
         "connections whose bytes are not those that the kernel counted (moved by calls that the "
         "shim does not see, or not theirs)"},
        {stats->doubtful, "calls of such connections left out or not seen"},
        {stats->incomplete_connections, "connections of which calls are missing"},
        {stats->behind, "descriptors were closed in a way that the shim does not see, the last "
                        "bytes of their connections were not checked"},
        {stats->rejected, "records of the shared memory made no sense"},
        {stats->damaged, "parts of the shared memory made no sense"},
        {stats->foreign, "processes in the shim's memory are not of the user who says so: somebody "
                         "forges calls"},
        {stats->untold,
         "calls of threads in another PID namespace, whose numbers here are not known: what these "
         "threads waited for cannot be told; capture from outside of it"},
        {stats->unseen_connections,
         "connections not watched: too many at once, or read through stdio"},
    };
    stats->warning[0] = '\0';
    warn_unattached(stats, notes);
    warn_of_processes(stats);
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
        if (losses[i].count)
            append(stats->warning, sizeof stats->warning, "%llu %s",
                   (unsigned long long)losses[i].count, losses[i].words);
}

void message_stats_free(struct message_stats *stats)
{
    free(stats->processes);
    free(stats->threads);
    array_free(&stats->peers);
    memset(stats, 0, sizeof *stats);
}

static json_t *processes_json(const struct message_stats *stats)
{
    json_t *list = json_array();
    for (size_t i = 0; i < stats->process_count; i++) {
        const struct message_process *process = &stats->processes[i];
        json_array_append_new(list, json_pack("{s:I, s:s, s:I, s:I, s:b, s:b}", "process",
                                              (json_int_t)process->process, "name", process->name,
                                              "connections", (json_int_t)process->connections,
                                              "dropped", (json_int_t)process->dropped, "inert",
                                              process->inert, "io_uring", process->io_uring));
    }
    return list;
}

static json_t *threads_json(const struct message_stats *stats)
{
    json_t *list = json_array();
    for (size_t i = 0; i < stats->thread_count; i++) {
        const struct message_thread *thread = &stats->threads[i];
        json_array_append_new(
            list, json_pack("{s:I, s:I, s:I}", "process", (json_int_t)thread->process, "thread",
                            (json_int_t)thread->thread, "calls", (json_int_t)thread->calls));
    }
    return list;
}

static json_t *peers_json(const struct message_stats *stats)
{
    json_t *list = json_array();
    for (size_t i = 0; i < stats->peers.count; i++) {
        const struct peer_program *peer = &stats->peers.items[i];
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:I}", "address", peer->address, "program",
                                        peer->program, "process", (json_int_t)peer->process));
    }
    return list;
}

json_t *message_stats_json(const struct message_stats *stats)
{
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
        "s:I, "
        "s:I, s:I, s:I, s:o, s:o, s:o, s:s}",
        "calls", (json_int_t)stats->calls, "connections", (json_int_t)stats->connections,
        "outgoing", (json_int_t)stats->outgoing, "dropped", (json_int_t)stats->dropped,
        "dropped_full", (json_int_t)stats->dropped_full, "dropped_without_ring",
        (json_int_t)stats->dropped_without_ring, "dropped_unnamed",
        (json_int_t)stats->dropped_unnamed, "dropped_memory", (json_int_t)stats->dropped_memory,
        "rejected", (json_int_t)stats->rejected, "unidentified", (json_int_t)stats->unidentified,
        "doubtful", (json_int_t)stats->doubtful, "doubtful_connections",
        (json_int_t)stats->doubtful_connections, "incomplete_connections",
        (json_int_t)stats->incomplete_connections, "checks", (json_int_t)stats->checks,
        "checks_agreed", (json_int_t)stats->checks_agreed, "closed_unseen",
        (json_int_t)stats->behind, "late", (json_int_t)stats->late, "unseen_connections",
        (json_int_t)stats->unseen_connections, "damaged", (json_int_t)stats->damaged, "untold",
        (json_int_t)stats->untold, "foreign", (json_int_t)stats->foreign, "peers",
        peers_json(stats), "processes", processes_json(stats), "threads", threads_json(stats),
        "warning", stats->warning);
}
