// SPDX-License-Identifier: MIT
#include "experiments/keeper/keeper_change.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "experiments/keeper/keeper_cpuset.h"

enum { MOST_QUEUES = 4096 };

// --- settings ------------------------------------------------------------------------------------

static int read_first_line(const char *path, char text[KEEPER_TEXT_BYTES])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    ssize_t got = read(fd, text, KEEPER_TEXT_BYTES - 1);
    int number = got < 0 ? errno : 0;
    text[got > 0 ? got : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    close(fd);
    return number;
}

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    ssize_t put = write(fd, text, strlen(text));
    int number = put < 0 ? errno : 0;
    close(fd);
    return number;
}

int keeper_change_read(struct keeper_change *change, const char *text)
{
    int number;
    switch (change->knob) {
    case KEEPER_FILE:
        return read_first_line(change->path, change->old);
    case KEEPER_COALESCING:
        return nic_coalescing_get(change->path, text, change->old, sizeof change->old);
    case KEEPER_RSS:
        number = nic_rss_get(change->path, &change->rss);
        snprintf(change->old, sizeof change->old, "a table of %u", change->rss.count);
        return number;
    case KEEPER_LATENCY:
        change->fd = open(change->path, O_WRONLY | O_CLOEXEC);
        return change->fd < 0 ? errno : 0;
    case KEEPER_CPUSET:
        return keeper_cpuset_read(change->path, change->old, sizeof change->old);
    }
    return EINVAL;
}

static int spread_flows(const struct keeper_change *change, const char *text)
{
    uint32_t queues, wanted = (uint32_t)strtoul(text, NULL, 10);
    struct nic_rss table;
    int number = nic_queues(change->path, &queues);
    if (number || wanted == 0 || wanted > queues)
        return number ? number : EINVAL;
    number = nic_rss_get(change->path, &table);
    if (number)
        return number;
    nic_rss_spread(&table, wanted);
    number = nic_rss_set(change->path, &table);
    free(table.queues);
    return number;
}

int keeper_change_do(const struct keeper_change *change, const char *text)
{
    int32_t us;
    switch (change->knob) {
    case KEEPER_FILE:
        return write_text(change->path, text);
    case KEEPER_COALESCING:
        return nic_coalescing_set(change->path, text);
    case KEEPER_RSS:
        return spread_flows(change, text);
    case KEEPER_LATENCY: // a binary value, in force while the file is open (kernel: power/qos.c)
        us = (int32_t)strtol(text, NULL, 10);
        return write(change->fd, &us, sizeof us) == sizeof us ? 0 : errno;
    case KEEPER_CPUSET:
        return keeper_cpuset_make(change->path, text, change->old);
    }
    return EINVAL;
}

// --- directories ---------------------------------------------------------------------------------

// Removes everything in a directory and below; symbolic links are removed, not followed. Closes fd.
static void remove_contents(int fd)
{
    DIR *directory = fdopendir(fd);
    if (!directory) {
        close(fd);
        return;
    }
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            unlinkat(fd, entry->d_name, 0) == 0)
            continue;
        int inside = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inside >= 0)
            remove_contents(inside);
        unlinkat(fd, entry->d_name, AT_REMOVEDIR);
    }
    closedir(directory);
}

static int remove_files(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno;
    remove_contents(fd);
    return rmdir(path) < 0 ? errno : 0;
}

// Tries again for 3 s: processes that write into it may be dying just now and still add a file.
static int remove_directory(const char *path)
{
    int number = 0;
    for (int attempt = 0; attempt < 300; attempt++) {
        number = remove_files(path);
        if (number == 0 || number == ENOENT)
            return 0;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return number;
}

// --- undoing -------------------------------------------------------------------------------------

int keeper_change_undo(const struct keeper_change *change)
{
    if (change->is_directory)
        return remove_directory(change->path);
    if (change->knob == KEEPER_COALESCING)
        return nic_coalescing_set(change->path, change->old);
    if (change->knob == KEEPER_RSS)
        return nic_rss_set(change->path, &change->rss);
    if (change->knob == KEEPER_CPUSET)
        return keeper_cpuset_remove(change->path, change->old);
    return change->knob == KEEPER_FILE ? write_text(change->path, change->old) : 0;
}

void keeper_change_forget(struct keeper_change *change)
{
    if (change->knob == KEEPER_LATENCY && change->fd >= 0)
        close(change->fd);
    free(change->rss.queues);
}

// --- as a line of a journal ----------------------------------------------------------------------

json_t *keeper_change_to_json(const struct keeper_change *change)
{
    if (change->is_directory)
        return json_pack("{s:s}", "directory", change->path);
    json_t *json = json_pack("{s:i, s:s, s:s}", "knob", (int)change->knob, "path", change->path,
                             "old", change->old);
    if (!json || change->knob != KEEPER_RSS)
        return json;
    json_t *table = json_array();
    for (uint32_t i = 0; i < change->rss.count; i++)
        json_array_append_new(table, json_integer(change->rss.queues[i]));
    json_object_set_new(json, "table", table);
    return json;
}

static int take_table(const json_t *table, struct nic_rss *rss)
{
    size_t count = json_array_size(table);
    if (count > MOST_QUEUES || !(rss->queues = calloc(count + 1, sizeof *rss->queues)))
        return -1;
    rss->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        rss->queues[i] = (uint32_t)json_integer_value(json_array_get(table, i));
    return 0;
}

int keeper_change_from_json(const json_t *json, struct keeper_change *change, struct error *err)
{
    const char *directory = json_string_value(json_object_get(json, "directory"));
    const char *path = json_string_value(json_object_get(json, "path"));
    const char *old = json_string_value(json_object_get(json, "old"));
    json_int_t knob = json_integer_value(json_object_get(json, "knob"));
    const char *name = directory ? directory : path;
    *change = (struct keeper_change){.is_directory = directory != NULL, .fd = -1};
    // Only directories that bear a name of ours, or are inside of one, are ever removed.
    bool removed = directory || knob == KEEPER_CPUSET;
    bool ours = name && name[0] == '/' && strstr(name, "/taillight-") && !strstr(name, "..");
    if (!name || strlen(name) >= KEEPER_TEXT_BYTES || (removed && !ours) ||
        (!directory &&
         (!old || strlen(old) >= KEEPER_TEXT_BYTES || knob < KEEPER_FILE || knob > KEEPER_CPUSET)))
        return error_set(err, ERROR_INPUT, "a change that cannot be");
    snprintf(change->path, sizeof change->path, "%s", name);
    if (directory)
        return 0;
    change->knob = (enum keeper_knob)knob;
    snprintf(change->old, sizeof change->old, "%s", old);
    return change->knob == KEEPER_RSS &&
                   take_table(json_object_get(json, "table"), &change->rss) < 0
               ? error_set(err, ERROR_INPUT, "a table of queues that cannot be")
               : 0;
}
