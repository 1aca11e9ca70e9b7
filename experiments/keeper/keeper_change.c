// SPDX-License-Identifier: MIT
#include "experiments/keeper/keeper_change.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BYTES = 700, MOST_QUEUES = 4096 };

// --- files ---------------------------------------------------------------------------------------

static int read_text(const char *path, char *text, size_t text_bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    ssize_t got = read(fd, text, text_bytes - 1);
    int number = got < 0 ? errno : 0;
    text[got > 0 ? got : 0] = '\0';
    close(fd);
    return number;
}

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int number = write(fd, text, strlen(text)) < 0 ? errno : 0;
    close(fd);
    return number;
}

// --- a cpuset ------------------------------------------------------------------------------------
// A control group (cgroup v2) whose processes run on some cores only, and, where it is exclusive,
// which leaves these cores to nobody else (a partition root; Linux,
// Documentation/admin-guide/cgroup-v2.rst, "Cpuset"). Interrupts and the kernel's own threads of a
// core are no part of it. All return 0 or an errno.

static void path_of(const char *folder, const char *file, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%.600s/%s", folder, file);
}

static void parent_of(const char *group, char parent[PATH_BYTES])
{
    snprintf(parent, PATH_BYTES, "%.600s", group);
    char *slash = strrchr(parent, '/');
    if (slash)
        *slash = '\0';
}

static int read_file(const char *folder, const char *file, char *text, size_t text_bytes)
{
    char path[PATH_BYTES];
    path_of(folder, file, path);
    return read_text(path, text, text_bytes);
}

static int write_file(const char *folder, const char *file, const char *text)
{
    char path[PATH_BYTES];
    path_of(folder, file, path);
    return write_text(path, text);
}

// Controllers stand in one line, with blanks between.
static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += length)
        if ((at == text || at[-1] == ' ') && strchr(" \n", at[length]))
            return true;
    return false;
}

// Whether the folder in which the group is to be made has the cpuset controller switched on for its
// groups: "on", "off". EOPNOTSUPP: it has no such controller.
static int cpuset_read(const char *group, char *old, size_t old_bytes)
{
    char parent[PATH_BYTES], text[400];
    parent_of(group, parent);
    int number = read_file(parent, "cgroup.controllers", text, sizeof text);
    if (number == 0 && !has_word(text, "cpuset"))
        number = EOPNOTSUPP;
    if (number == 0)
        number = read_file(parent, "cgroup.subtree_control", text, sizeof text);
    snprintf(old, old_bytes, "%s", number == 0 && has_word(text, "cpuset") ? "on" : "off");
    return number;
}

static int cpuset_set_cores(const char *group, const char *text)
{
    char cores[400], state[200];
    snprintf(cores, sizeof cores, "%.399s", text);
    cores[strcspn(cores, " ")] = '\0';
    bool exclusive = strlen(cores) < strlen(text);
    int number = write_file(group, "cpuset.cpus", cores);
    if (number == 0 && exclusive)
        number = write_file(group, "cpuset.cpus.partition", "root");
    // Writing succeeds in any case. Whether the group became a partition shows when the file is
    // read back: "root invalid (...)".
    if (number == 0 && exclusive)
        number = read_file(group, "cpuset.cpus.partition", state, sizeof state);
    if (number == 0 && exclusive && strcmp(state, "root\n") != 0)
        number = EBUSY;
    return number == EINVAL ? EBUSY : number; // kernels before 5.19 refuse it with EINVAL
}

// Moves the processes that are in the group now.
static void cpuset_empty(const char *group, const char *parent)
{
    char path[PATH_BYTES], line[32];
    path_of(group, "cgroup.procs", path);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        write_file(parent, "cgroup.procs", line);
    if (file)
        fclose(file);
}

// Moves the processes that are still in it to where they came from, waiting up to 3 s for dying
// ones, removes it, and switches the controller off again if it was off before.
static int cpuset_remove(const char *group, const char *old)
{
    char parent[PATH_BYTES];
    int number = 0;
    parent_of(group, parent);
    for (int attempt = 0; attempt < 300; attempt++) {
        number = rmdir(group) < 0 && errno != ENOENT ? errno : 0;
        if (number != EBUSY)
            break;
        cpuset_empty(group, parent);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    if (number == 0 && strcmp(old, "on") != 0)
        write_file(parent, "cgroup.subtree_control",
                   "-cpuset"); // other groups may be using it by now
    return number;
}

// Makes the group. text: its cores, and how: "0-1", "0-1 exclusive". EBUSY: it cannot have them
// alone (another partition has them, or no core would be left for anybody else). On failure nothing
// is left.
static int cpuset_make(const char *group, const char *text, const char *old)
{
    char parent[PATH_BYTES];
    parent_of(group, parent);
    int number =
        strcmp(old, "on") == 0 ? 0 : write_file(parent, "cgroup.subtree_control", "+cpuset");
    if (number == 0 && mkdir(group, 0755) < 0)
        number = errno;
    else if (number == 0)
        number = cpuset_set_cores(group, text);
    if (number)
        cpuset_remove(group, old);
    return number;
}

// --- settings ------------------------------------------------------------------------------------

int keeper_change_read(struct keeper_change *change, const char *text)
{
    int number;
    switch (change->knob) {
    case KEEPER_FILE:
        number = read_text(change->path, change->old, sizeof change->old);
        if (number == 0)
            change->old[strcspn(change->old, "\n")] = '\0';
        return number;
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
        return cpuset_read(change->path, change->old, sizeof change->old);
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

// Writes, and notes what became of it.
static int file_set(struct keeper_change *change, const char *text)
{
    int number = write_text(change->path, text);
    if (number == 0 && read_text(change->path, change->set, sizeof change->set) == 0)
        change->set[strcspn(change->set, "\n")] = '\0';
    return number;
}

// Whoever changed it since wants it so, or will put back what he found.
static int file_put_back(const struct keeper_change *change)
{
    char now[KEEPER_TEXT_BYTES] = "";
    if (change->set[0] && read_text(change->path, now, sizeof now) == 0) {
        now[strcspn(now, "\n")] = '\0';
        if (strcmp(now, change->old) == 0)
            return 0;
        if (strcmp(now, change->set) != 0)
            return EEXIST;
    }
    return write_text(change->path, change->old);
}

int keeper_change_do(struct keeper_change *change, const char *text)
{
    int32_t us;
    switch (change->knob) {
    case KEEPER_FILE:
        return file_set(change, text);
    case KEEPER_COALESCING:
        return nic_coalescing_set(change->path, text);
    case KEEPER_RSS:
        return spread_flows(change, text);
    case KEEPER_LATENCY: // a binary value, in force while the file is open (kernel: power/qos.c)
        us = (int32_t)strtol(text, NULL, 10);
        return write(change->fd, &us, sizeof us) == sizeof us ? 0 : errno;
    case KEEPER_CPUSET:
        return cpuset_make(change->path, text, change->old);
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

// --- results -------------------------------------------------------------------------------------

// Whether a load or a capture has written something into it.
static bool has_logs(const char *path)
{
    static const char *const names[] = {"*.tlog*", "perf.data*"};
    bool found = false;
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && !found && (entry = readdir(directory));)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            found |= fnmatch(names[i], entry->d_name, 0) == 0;
    if (directory)
        closedir(directory);
    return found;
}

int keeper_change_set_aside(const struct keeper_change *change)
{
    static const char ours[] = "/taillight-";
    char above[PATH_BYTES], to[2 * PATH_BYTES];
    if (!change->has_results || !has_logs(change->path))
        return 0;
    parent_of(change->path, above);
    const char *name = change->path + strlen(above) + 1;
    char *own = strrchr(above, '/');
    if (!own || strncmp(own, ours, sizeof ours - 1) != 0)
        return EINVAL;
    *own = '\0';
    snprintf(to, sizeof to, "%s/" KEEPER_LEFT "%s-%s", above, own + sizeof ours - 1, name);
    return rename(change->path, to) < 0 ? errno : 0;
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
        return cpuset_remove(change->path, change->old);
    return change->knob == KEEPER_FILE ? file_put_back(change) : 0;
}

void keeper_change_forget(struct keeper_change *change)
{
    if (change->knob == KEEPER_LATENCY && change->fd >= 0)
        close(change->fd);
    if (change->lock >= 0)
        close(change->lock);
    free(change->rss.queues);
}

// --- as a line of a journal ----------------------------------------------------------------------

json_t *keeper_change_to_json(const struct keeper_change *change)
{
    if (change->is_directory && change->has_results)
        return json_pack("{s:s, s:b}", "directory", change->path, "results", 1);
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
    *change = (struct keeper_change){.is_directory = directory != NULL,
                                     .has_results = json_is_true(json_object_get(json, "results")),
                                     .fd = -1,
                                     .lock = -1};
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
