// SPDX-License-Identifier: MIT
#include "profiler/host/running_servers.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/process.h"

enum { PATH_BYTES = 4200, UNIT_TIMEOUT_MS = 10000 };

struct pid_array ARRAY_OF(pid_t);
struct folder_array ARRAY_OF(char *);

// A listening socket of a network namespace.
struct listener {
    uint64_t inode;
    uint16_t port;
};

// A network namespace, with the sockets that listen in it.
struct space {
    uint64_t namespace;
    struct ARRAY_OF(struct listener) listeners; // by inode
};
struct space_array ARRAY_OF(struct space);

struct running_servers {
    struct pid_array named;
    struct folder_array folders; // of control groups
    struct listening_array known;
    uint64_t looked; // what there was to be looked at the time before, as a number
};

// --- what is named -------------------------------------------------------------------------------

static int take_pids(struct running_servers *servers, const char *list, struct error *err)
{
    for (const char *at = list; at && *at;) {
        char *end, path[64];
        long pid = strtol(at, &end, 10);
        if (end == at || pid < 1 || pid > INT_MAX || (*end && *end != ',') ||
            (*end == ',' && !end[1]))
            return error_set(err, ERROR_INPUT, "--pid: \"%s\" is not a list of process numbers",
                             list);
        snprintf(path, sizeof path, "/proc/%ld/fd", pid);
        DIR *descriptors = opendir(path); // by our capabilities, not as our user alone (access)
        if (!descriptors && errno != EACCES)
            return error_set(err, ERROR_INPUT, "--pid: there is no process %ld", pid);
        if (!descriptors)
            return error_set(
                err, ERROR_INPUT,
                "--pid: process %ld is another user's, whose sockets only root sees, or "
                "who has CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH; --port needs neither",
                pid);
        closedir(descriptors);
        if (array_push(&servers->named, (pid_t)pid) < 0)
            return error_set(err, ERROR_FAILED, "out of memory");
        at = end + (*end == ',');
    }
    return 0;
}

// Adds the folder of a control group that is named by its path, or by its path below a mount.
static int take_folder(struct running_servers *servers, const char *name, struct error *err)
{
    static const char *const mounts[] = {"", "/sys/fs/cgroup/", "/sys/fs/cgroup/unified/",
                                         "/sys/fs/cgroup/systemd/"};
    char path[PATH_BYTES], procs[PATH_BYTES + 16];
    for (size_t i = 0; i < sizeof mounts / sizeof *mounts; i++) {
        snprintf(path, sizeof path, "%s%s", mounts[i], name);
        snprintf(procs, sizeof procs, "%s/cgroup.procs", path);
        if (access(procs, R_OK) < 0)
            continue;
        char *copy = strdup(path);
        if (copy && array_push(&servers->folders, copy) == 0)
            return 0;
        free(copy);
        return error_set(err, ERROR_FAILED, "out of memory");
    }
    return error_set(err, ERROR_INPUT,
                     "--cgroup: there is no control group %s, neither as a path nor below "
                     "/sys/fs/cgroup; /proc/PID/cgroup says which a process is in",
                     name);
}

static int take_each(struct running_servers *servers, const char *list,
                     int (*take)(struct running_servers *, const char *, struct error *),
                     struct error *err)
{
    char name[PATH_BYTES];
    for (const char *at = list; at && *at;) {
        size_t bytes = strcspn(at, ",");
        if (bytes == 0 || bytes >= sizeof name)
            return error_set(err, ERROR_INPUT, "\"%.100s\" is not a list of names", list);
        memcpy(name, at, bytes);
        name[bytes] = '\0';
        int result = take(servers, name, err);
        if (result < 0)
            return result;
        at += bytes + (at[bytes] == ',');
    }
    return 0;
}

static int take_unit(struct running_servers *servers, const char *unit, struct error *err)
{
    char group[PATH_BYTES];
    const char *const words[] = {"systemctl", "show", "--property", "ControlGroup",
                                 "--value",   "--",   unit,         NULL};
    int result = process_run(words, NULL, UNIT_TIMEOUT_MS, group, sizeof group, err);
    if (result < 0)
        return error_prefix(err, "--systemd %s", unit);
    group[strcspn(group, "\n")] = '\0';
    if (!group[0])
        return error_set(err, ERROR_INPUT, "--systemd: the unit %s does not run", unit);
    return take_folder(servers, group, err);
}

int running_servers_open(const char *pids, const char *cgroups, const char *units,
                         struct running_servers **out, struct error *err)
{
    *out = calloc(1, sizeof **out);
    int result = *out ? 0 : error_set(err, ERROR_FAILED, "out of memory");
    if (result == 0)
        result = take_pids(*out, pids, err);
    if (result == 0)
        result = take_each(*out, cgroups, take_folder, err);
    if (result == 0)
        result = take_each(*out, units, take_unit, err);
    if (result < 0) {
        running_servers_free(*out);
        *out = NULL;
    }
    return result;
}

void running_servers_free(struct running_servers *servers)
{
    if (!servers)
        return;
    for (size_t i = 0; i < servers->folders.count; i++)
        free(servers->folders.items[i]);
    array_free(&servers->folders);
    array_free(&servers->named);
    array_free(&servers->known);
    free(servers);
}

// --- the processes there are now -----------------------------------------------------------------

// Appends the numbers in a file of /proc or of a control group. A file that is not there has none.
static int read_pids(const char *path, struct pid_array *out)
{
    FILE *file = fopen(path, "re");
    int pid, result = 0;
    while (file && result == 0 && fscanf(file, "%d", &pid) == 1)
        if (pid > 0) // 0: of a namespace that we do not see into
            result = array_push(out, pid);
    if (file)
        fclose(file);
    return result;
}

// Calls one for each name in a folder, until one returns below 0. What is not there has no names.
static int for_each(const char *folder, int (*one)(const char *folder, const char *name, void *),
                    void *context)
{
    DIR *open = opendir(folder);
    int result = 0;
    for (struct dirent *entry; open && result == 0 && (entry = readdir(open));)
        if (entry->d_name[0] != '.')
            result = one(folder, entry->d_name, context);
    if (open)
        closedir(open);
    return result;
}

static int add_children(const char *folder, const char *name, void *context)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s/children", folder, name);
    return read_pids(path, context);
}

static int add_group(const char *folder, const char *name, void *context)
{
    char path[PATH_BYTES], procs[PATH_BYTES + 16];
    struct stat status;
    snprintf(path, sizeof path, "%s%s%s", folder, name[0] ? "/" : "", name);
    if (lstat(path, &status) < 0 || !S_ISDIR(status.st_mode))
        return 0;
    snprintf(procs, sizeof procs, "%s/cgroup.procs", path);
    int result = read_pids(procs, context);
    return result == 0 ? for_each(path, add_group, context) : result;
}

static int compare_pids(const void *left, const void *right)
{
    return order_of(*(const pid_t *)left, *(const pid_t *)right);
}

// The processes named, with those that descend from them, and those of the control groups; once
// each, in order.
static int list_processes(const struct running_servers *servers, struct pid_array *out)
{
    enum { MOST = 100000 }; // however /proc changes while it is read
    int result = 0;
    for (size_t i = 0; i < servers->named.count && result == 0; i++)
        result = array_push(out, servers->named.items[i]);
    for (size_t i = 0; i < out->count && out->count < MOST && result == 0; i++) {
        char tasks[64];
        snprintf(tasks, sizeof tasks, "/proc/%d/task", out->items[i]);
        result = for_each(tasks, add_children, out);
    }
    for (size_t i = 0; i < servers->folders.count && result == 0; i++)
        result = add_group(servers->folders.items[i], "", out);
    array_sort(out, compare_pids);
    size_t kept = 0;
    for (size_t i = 0; i < out->count; i++)
        if (i == 0 || out->items[i] != out->items[kept - 1])
            out->items[kept++] = out->items[i];
    out->count = kept;
    return result;
}

// --- the sockets that listen ---------------------------------------------------------------------

static int compare_listeners(const void *left, const void *right)
{
    const struct listener *a = left, *b = right;
    return order_of(a->inode, b->inode);
}

// Reads /proc/PID/net/tcp or tcp6, whose listening sockets come before all others.
static int read_listeners(pid_t process, const char *name, struct space *space)
{
    enum { LISTEN = 0x0a };
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/net/%s", process, name);
    FILE *file = fopen(path, "re");
    int result = 0;
    for (bool first = true; file && result == 0 && fgets(line, sizeof line, file); first = false) {
        unsigned port, state;
        unsigned long long inode;
        if (first)
            continue;
        if (sscanf(line,
                   " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %*d %*d %llu",
                   &port, &state, &inode) != 3 ||
            state != LISTEN)
            break;
        struct listener one = {inode, (uint16_t)port};
        result = array_push(&space->listeners, one);
    }
    if (file)
        fclose(file);
    return result;
}

// The network namespace that a process is in, read when it is met first. NULL: the process has
// gone, or there is no memory (*failed).
static struct space *space_of(struct space_array *spaces, pid_t process, bool *failed)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d/ns/net", process);
    if (stat(path, &status) < 0)
        return NULL;
    for (size_t i = 0; i < spaces->count; i++)
        if (spaces->items[i].namespace == status.st_ino)
            return &spaces->items[i];
    struct space space = {.namespace = status.st_ino};
    if (read_listeners(process, "tcp", &space) < 0 || read_listeners(process, "tcp6", &space) < 0 ||
        array_push(spaces, space) < 0) {
        array_free(&space.listeners);
        *failed = true;
        return NULL;
    }
    struct space *last = &spaces->items[spaces->count - 1];
    array_sort(&last->listeners, compare_listeners);
    return last;
}

struct looking {
    struct running_servers *servers; // NULL: every process that listens there is wanted
    struct listening_array *fresh;
    const struct space *space;
    pid_t process;
};

static bool has_listening(const struct listening_array *all, const struct listening *one)
{
    for (size_t i = all->count; i-- > 0 && all->items[i].process == one->process;)
        if (all->items[i].port == one->port)
            return true;
    return false;
}

static int take_listener(struct looking *looking, uint16_t port)
{
    struct listening one = {looking->space->namespace, looking->process, port};
    if (!looking->servers)
        return has_listening(looking->fresh, &one) ? 0 : array_push(looking->fresh, one);
    const struct listening_array *known = &looking->servers->known;
    for (size_t i = 0; i < known->count; i++)
        if (known->items[i].port == port && known->items[i].namespace == one.namespace)
            return 0;
    return array_push(&looking->servers->known, one) < 0 ? -1 : array_push(looking->fresh, one);
}

// A descriptor of the process that is a listening socket.
static int look_at_descriptor(const char *folder, const char *name, void *context)
{
    struct looking *looking = context;
    const struct listener *all = looking->space->listeners.items;
    size_t count = looking->space->listeners.count;
    char path[PATH_BYTES], target[64];
    unsigned long long inode;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    ssize_t bytes = readlink(path, target, sizeof target - 1);
    target[bytes > 0 ? bytes : 0] = '\0';
    if (sscanf(target, "socket:[%llu]", &inode) != 1)
        return 0;
    size_t found = array_bound(0, count, at, all[at].inode < inode);
    return found < count && all[found].inode == inode ? take_listener(looking, all[found].port) : 0;
}

// What there is to be looked at, as a number: descriptors, of which there may be many, are only
// looked at when it has changed.
static uint64_t number_of(const struct pid_array *processes, const struct space_array *spaces)
{
    uint64_t number = 1;
    for (size_t i = 0; i < processes->count; i++)
        number = hash_pair(number, (uint64_t)processes->items[i]);
    for (size_t i = 0; i < spaces->count; i++)
        for (size_t k = 0; k < spaces->items[i].listeners.count; k++)
            number = hash_pair(number, spaces->items[i].listeners.items[k].inode);
    return number;
}

int running_servers_look(struct running_servers *servers, struct listening_array *fresh,
                         struct error *err)
{
    struct pid_array processes = {0};
    struct space_array spaces = {0};
    bool failed = list_processes(servers, &processes) < 0;
    for (size_t i = 0; i < processes.count && !failed; i++)
        space_of(&spaces, processes.items[i], &failed);
    uint64_t number = number_of(&processes, &spaces);
    for (size_t i = 0; i < processes.count && !failed && number != servers->looked; i++) {
        char folder[64];
        struct looking looking = {servers, fresh, space_of(&spaces, processes.items[i], &failed),
                                  processes.items[i]};
        snprintf(folder, sizeof folder, "/proc/%d/fd", processes.items[i]);
        if (looking.space)
            failed |= for_each(folder, look_at_descriptor, &looking) < 0;
    }
    servers->looked = number;
    for (size_t i = 0; i < spaces.count; i++)
        array_free(&spaces.items[i].listeners);
    array_free(&spaces);
    array_free(&processes);
    return failed ? error_set(err, ERROR_FAILED, "no memory to look for the servers") : 0;
}

// --- all that listen on a port -------------------------------------------------------------------

struct sharing {
    uint64_t namespace;
    struct space space; // only with sockets on the wanted ports
    bool known;
    const uint16_t *ports;
    size_t port_count;
    struct listening_array *out;
};

static void keep_wanted(struct sharing *sharing)
{
    size_t kept = 0;
    for (size_t i = 0; i < sharing->space.listeners.count; i++) {
        const struct listener one = sharing->space.listeners.items[i];
        for (size_t k = 0; k < sharing->port_count; k++)
            if (one.port == sharing->ports[k]) {
                sharing->space.listeners.items[kept++] = one;
                break;
            }
    }
    sharing->space.listeners.count = kept;
}

static int look_at_process(const char *folder, const char *name, void *context)
{
    struct sharing *sharing = context;
    char path[PATH_BYTES];
    struct stat status;
    pid_t process = (pid_t)strtol(name, NULL, 10);
    snprintf(path, sizeof path, "%s/%s/ns/net", folder, name);
    if (process <= 0 || stat(path, &status) < 0 || status.st_ino != sharing->namespace)
        return 0;
    if (!sharing->known) {
        sharing->space.namespace = status.st_ino;
        if (read_listeners(process, "tcp", &sharing->space) < 0 ||
            read_listeners(process, "tcp6", &sharing->space) < 0)
            return -1;
        sharing->known = true;
        array_sort(&sharing->space.listeners, compare_listeners);
        keep_wanted(sharing);
    }
    struct looking looking = {.fresh = sharing->out, .space = &sharing->space, .process = process};
    snprintf(path, sizeof path, "%s/%s/fd", folder, name);
    return sharing->space.listeners.count ? for_each(path, look_at_descriptor, &looking) : 0;
}

int running_servers_on(uint64_t namespace, const uint16_t *ports, size_t count,
                       struct listening_array *out)
{
    struct sharing sharing = {
        .namespace = namespace, .ports = ports, .port_count = count, .out = out};
    int result = count ? for_each("/proc", look_at_process, &sharing) : 0;
    array_free(&sharing.space.listeners);
    return result;
}
