// SPDX-License-Identifier: MIT
#include "shim/message_collector.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "shim/message_merge.h"
#include "shim/message_stats.h"
#include "shim/ring_reader.h"

enum {
    KEPT_CALLS_LIMIT = 1 << 24, // 1 GiB in memory
    RING_BYTES_PER_PROCESS = 512 << 20,
    FILE_LIMIT = 4096, // with more entries than that the directory is not the shim's
    PROCESS_FILE_LIMIT = 4096,
};

struct process_file {
    int fd;
    uint32_t process;
    bool io_uring;
};

struct known_file {
    ino_t inode;
};

struct process_file_array ARRAY_OF(struct process_file);
struct reader_array ARRAY_OF(struct ring_reader *);
struct known_array ARRAY_OF(struct known_file);

struct message_collector {
    char dir[400];
    int dir_fd;
    struct control_page *control;
    uint16_t ports[RING_PORTS];
    uint64_t room; // calls for which there is room
    uint64_t damaged;
    struct known_array known;
    struct process_file_array processes;
    struct reader_array rings;
};

static bool is_ours(const char *name)
{
    return strcmp(name, "control") == 0 || strcmp(name, "control.partial") == 0 ||
           strncmp(name, "ring-", 5) == 0 || strncmp(name, "process-", 8) == 0;
}

// Opens the directory for listing; the collector's own descriptor keeps its position.
static DIR *directory_list(int dir_fd)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !list)
        close(fd);
    return list;
}

// Removes the shim's files. Returns how many others there are, or -1.
static int directory_clear(int dir_fd)
{
    DIR *list = directory_list(dir_fd);
    if (!list)
        return -1;
    int foreign = 0;
    for (struct dirent *entry; (entry = readdir(list));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (!is_ours(entry->d_name))
            foreign++;
        else
            unlinkat(dir_fd, entry->d_name, 0);
    }
    closedir(list);
    return foreign;
}

// An earlier collector may have died, or still be at work. If it died, servers that are attached to
// it are told to detach.
static int predecessor_dismiss(int dir_fd, const char *dir, struct error *err)
{
    int fd = openat(dir_fd, "control", O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return 0;
    struct control_page control;
    int result = 0;
    if (pread(fd, &control, sizeof control, 0) == sizeof control &&
        control.magic == CONTROL_MAGIC) {
        bool alive = control.owner != 0 && control.owner <= INT32_MAX &&
                     (kill((pid_t)control.owner, 0) == 0 || errno == EPERM);
        uint32_t closed = CONTROL_CLOSED;
        if (alive && control.owner != (uint32_t)getpid() && control.state != CONTROL_CLOSED)
            result = error_set(err, ERROR_INPUT,
                               "%s is in use by the capture with pid %u: give another directory, "
                               "or end that one",
                               dir, control.owner);
        else if (pwrite(fd, &closed, sizeof closed, offsetof(struct control_page, state)) < 0)
            result = error_set_errno(err, ERROR_FAILED, "cannot write %s/control", dir);
    }
    close(fd);
    return result;
}

static int directory_make(struct message_collector *collector, struct error *err)
{
    const char *dir = collector->dir;
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return error_set_errno(err, ERROR_INPUT, "cannot make %s for the shim's rings", dir);
    collector->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (collector->dir_fd < 0)
        return error_set_errno(err, ERROR_INPUT, "cannot open %s for the shim's rings", dir);
    struct stat status;
    struct statfs filesystem;
    if (fstat(collector->dir_fd, &status) < 0 || fstatfs(collector->dir_fd, &filesystem) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot stat %s", dir);
    if (status.st_uid != geteuid())
        return error_set(err, ERROR_INPUT, "%s belongs to user %u: give a directory of your own",
                         dir, status.st_uid);
    if (filesystem.f_type != TMPFS_MAGIC && filesystem.f_type != RAMFS_MAGIC)
        return error_set(err, ERROR_INPUT,
                         "%s is not on a tmpfs, so the server would wait for a disk: give a "
                         "directory under /dev/shm",
                         dir);
    int result = predecessor_dismiss(collector->dir_fd, dir, err);
    if (result < 0)
        return result;
    int foreign = directory_clear(collector->dir_fd);
    if (foreign != 0)
        return error_set(err, ERROR_INPUT,
                         "%s holds other files, and is removed at the end: give an empty or a new "
                         "directory",
                         dir);
    // A server that gives up root before its first request must still be able to create its rings.
    if (geteuid() == 0 && fchmod(collector->dir_fd, 01777) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot open up %s to the server's user", dir);
    return 0;
}

static uint64_t entries_for(size_t ring_bytes)
{
    uint64_t wanted = (ring_bytes ? ring_bytes : RING_DEFAULT_BYTES) / RING_ENTRY_BYTES;
    uint64_t entries = RING_MIN_ENTRIES;
    while (entries < wanted && entries < RING_MAX_ENTRIES)
        entries *= 2;
    return entries;
}

static uint32_t ring_limit_for(uint64_t entries)
{
    uint64_t limit = RING_BYTES_PER_PROCESS / ring_file_bytes(entries);
    return limit < 16 ? 16 : limit > 1024 ? 1024 : (uint32_t)limit;
}

// The file gets its name only when it is complete: a server may read it at any time.
static int control_make(struct message_collector *collector, size_t ring_bytes, struct error *err)
{
    int fd = openat(collector->dir_fd, "control.partial",
                    O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot make %s/control", collector->dir);
    void *page = MAP_FAILED;
    // The server may run as another user whatever our umask is.
    if (fchmod(fd, 0644) == 0 && fallocate(fd, 0, 0, RING_PAGE_BYTES) == 0)
        page = mmap(NULL, RING_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int saved = errno;
    close(fd);
    errno = saved;
    if (page == MAP_FAILED)
        return error_set_errno(err, ERROR_FAILED, "cannot make %s/control", collector->dir);
    struct control_page *control = collector->control = page;
    control->version = RING_VERSION;
    control->ring_entries = entries_for(ring_bytes);
    control->ring_limit = ring_limit_for(control->ring_entries);
    control->owner = (uint32_t)getpid();
    memcpy(control->ports, collector->ports, sizeof control->ports);
    control->magic = CONTROL_MAGIC;
    atomic_store(&control->state, CONTROL_ARMED);
    if (renameat(collector->dir_fd, "control.partial", collector->dir_fd, "control") < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot name %s/control", collector->dir);
    return 0;
}

int message_collector_create(const char *dir, size_t ring_bytes, const uint16_t *ports,
                             size_t port_count, struct message_collector **out, struct error *err)
{
    *out = NULL;
    if (port_count > RING_PORTS)
        return error_set(err, ERROR_INPUT, "%zu ports: the shim watches %d at most", port_count,
                         RING_PORTS);
    if (dir[0] == '\0' || strlen(dir) >= sizeof((struct message_collector *)0)->dir)
        return error_set(err, ERROR_INPUT, "the shim's directory '%.80s': 1 to 399 characters",
                         dir);
    struct message_collector *collector = calloc(1, sizeof *collector);
    if (!collector)
        return error_set(err, ERROR_FAILED, "out of memory for the message collector");
    strcpy(collector->dir, dir);
    collector->dir_fd = -1;
    if (port_count)
        memcpy(collector->ports, ports, port_count * sizeof *ports);
    collector->room = KEPT_CALLS_LIMIT;
    int result = directory_make(collector, err);
    if (result == 0)
        result = control_make(collector, ring_bytes, err);
    if (result < 0) {
        // Files that are not ours, or in use by another collector, stay as they are.
        if (collector->control)
            directory_clear(collector->dir_fd);
        if (collector->dir_fd >= 0)
            close(collector->dir_fd);
        collector->dir_fd = -1;
        message_collector_free(collector);
        return result;
    }
    *out = collector;
    return 0;
}

void message_collector_watch_peers(struct message_collector *collector)
{
    collector->control->peers = 1;
}

void message_collector_enable(struct message_collector *collector)
{
    atomic_store(&collector->control->state, CONTROL_ENABLED);
    for (size_t i = 0; i < collector->processes.count; i++)
        collector->processes.items[i].io_uring |=
            process_has_io_uring(collector->processes.items[i].process);
}

static bool is_known(const struct message_collector *collector, ino_t inode)
{
    for (size_t i = 0; i < collector->known.count; i++)
        if (collector->known.items[i].inode == inode)
            return true;
    return false;
}

// A process's page is kept open and read at the end. An incomplete one is looked at again later.
static enum ring_open process_file_open(struct message_collector *collector, const char *name)
{
    struct process_file file = {0};
    file.fd =
        openat(collector->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    struct stat status;
    struct process_page page;
    enum ring_open result = RING_OPEN_DAMAGED;
    if (file.fd < 0 || fstat(file.fd, &status) < 0 || !S_ISREG(status.st_mode))
        goto refused;
    if (pread(file.fd, &page, sizeof page, 0) != sizeof page || page.magic == 0) {
        result = RING_OPEN_NOT_YET;
        goto refused;
    }
    if (page.magic != PROCESS_MAGIC || page.version != RING_VERSION ||
        collector->processes.count >= PROCESS_FILE_LIMIT)
        goto refused;
    file.process = page.process;
    file.io_uring = process_has_io_uring(file.process);
    if (array_push(&collector->processes, file) == 0)
        return RING_OPEN_READY;
refused:
    if (file.fd >= 0)
        close(file.fd);
    return result;
}

static enum ring_open ring_file_open(struct message_collector *collector, const char *name)
{
    struct ring_reader *reader = malloc(sizeof *reader);
    if (!reader)
        return RING_OPEN_DAMAGED;
    enum ring_open result = ring_reader_open(reader, collector->dir_fd, name);
    if (result == RING_OPEN_READY && array_push(&collector->rings, reader) == 0)
        return result;
    if (result == RING_OPEN_READY)
        ring_reader_close(reader);
    free(reader);
    return result == RING_OPEN_READY ? RING_OPEN_DAMAGED : result;
}

static int directory_scan(struct message_collector *collector, struct error *err)
{
    DIR *list = directory_list(collector->dir_fd);
    if (!list)
        return error_set_errno(err, ERROR_FAILED, "cannot list %s", collector->dir);
    for (struct dirent *entry; (entry = readdir(list));) {
        bool process = strncmp(entry->d_name, "process-", 8) == 0;
        if ((!process && strncmp(entry->d_name, "ring-", 5) != 0) ||
            collector->known.count >= FILE_LIMIT || is_known(collector, entry->d_ino))
            continue;
        enum ring_open result = process ? process_file_open(collector, entry->d_name)
                                        : ring_file_open(collector, entry->d_name);
        if (result == RING_OPEN_NOT_YET)
            continue;
        if (result == RING_OPEN_DAMAGED)
            collector->damaged++;
        struct known_file known = {.inode = entry->d_ino};
        if (array_push(&collector->known, known) < 0)
            break; // only without any memory is it found again and counted twice
    }
    closedir(list);
    return 0;
}

static int rings_drain(struct message_collector *collector, bool everything, struct error *err)
{
    int result = directory_scan(collector, err);
    for (size_t i = 0; i < collector->rings.count; i++)
        ring_reader_drain(collector->rings.items[i], everything, &collector->room);
    return result;
}

int message_collector_poll(struct message_collector *collector, struct error *err)
{
    return rings_drain(collector, false, err);
}

size_t message_collector_attached(const struct message_collector *collector)
{
    return collector->processes.count;
}

// The final counters in one process's page.
static int process_report(const struct process_file *file, struct message_stats *stats,
                          struct message_notes *notes)
{
    struct process_page page;
    if (pread(file->fd, &page, sizeof page, 0) != sizeof page)
        return 0;
    page.name[sizeof page.name - 1] = '\0';
    struct message_process *process = &stats->processes[stats->process_count++];
    process->process = file->process;
    process->connections = page.accepted;
    process->io_uring = file->io_uring || process_has_io_uring(file->process);
    for (size_t i = 0; page.name[i]; i++)
        process->name[i] = page.name[i] >= ' ' && page.name[i] < 127 ? page.name[i] : '?';
    stats->dropped_without_ring += page.without_ring;
    stats->late += page.late;
    stats->unseen_connections += page.unwatched + page.stdio;
    if (page.rings_failed)
        notes->ring_errno = (int)page.ring_last_errno;
    return 0;
}

static int stats_gather(struct message_collector *collector, struct message_stats *stats,
                        struct message_notes *notes, struct error *err)
{
    stats->processes = calloc(collector->processes.count + 1, sizeof *stats->processes);
    stats->threads = calloc(collector->rings.count + 1, sizeof *stats->threads);
    if (!stats->processes || !stats->threads)
        return error_set(err, ERROR_FAILED, "out of memory for the shim's statistics");
    for (size_t i = 0; i < collector->processes.count; i++)
        process_report(&collector->processes.items[i], stats, notes);
    for (size_t i = 0; i < collector->rings.count; i++) {
        struct ring_reader *ring = collector->rings.items[i];
        ring_reader_settle(ring);
        stats->threads[stats->thread_count++] = (struct message_thread){.process = ring->process,
                                                                        .thread = ring->thread,
                                                                        .calls = ring->calls.count,
                                                                        .dropped = ring->dropped};
        stats->dropped_full += ring->dropped;
        stats->dropped_memory += ring->unkept;
        stats->rejected += ring->rejected;
        collector->damaged += ring->broken;
    }
    stats->damaged_files = collector->damaged;
    stats->dropped =
        stats->dropped_full + stats->dropped_without_ring + stats->dropped_memory + stats->rejected;
    return 0;
}

static void directory_remove(struct message_collector *collector)
{
    if (collector->dir_fd < 0)
        return;
    directory_clear(collector->dir_fd);
    close(collector->dir_fd);
    collector->dir_fd = -1;
    rmdir(collector->dir);
}

int message_collector_finish(struct message_collector *collector, const char *out_dir,
                             struct message_stats *stats, struct error *err)
{
    memset(stats, 0, sizeof *stats);
    struct message_notes notes = {.dir = collector->dir, .ports = collector->ports};
    atomic_store(&collector->control->state, CONTROL_CLOSED);
    int result = rings_drain(collector, true, err);
    // A call that saw the capture still on may be writing its record: that takes nanoseconds,
    // unless its thread is preempted.
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    if (result == 0)
        result = rings_drain(collector, true, err);
    if (result == 0)
        result = stats_gather(collector, stats, &notes, err);
    struct message_merge merge = {.peers = &stats->peers};
    if (result == 0)
        result =
            message_merge_write(collector->rings.items, collector->rings.count, collector->ports,
                                collector->control->peers, stats->dropped, out_dir, &merge, err);
    stats->calls = merge.calls;
    stats->connections = merge.connections;
    stats->outgoing = merge.outgoing;
    stats->unidentified = merge.unidentified;
    stats->dropped += merge.unidentified;
    peer_programs_find(&stats->peers);
    if (result == 0)
        message_warning_write(stats, &notes);
    directory_remove(collector);
    return result;
}

void message_collector_free(struct message_collector *collector)
{
    if (!collector)
        return;
    if (collector->control) {
        atomic_store(&collector->control->state, CONTROL_CLOSED);
        munmap(collector->control, RING_PAGE_BYTES);
    }
    directory_remove(collector);
    for (size_t i = 0; i < collector->rings.count; i++) {
        ring_reader_close(collector->rings.items[i]);
        free(collector->rings.items[i]);
    }
    for (size_t i = 0; i < collector->processes.count; i++)
        close(collector->processes.items[i].fd);
    array_free(&collector->rings);
    array_free(&collector->processes);
    array_free(&collector->known);
    free(collector);
}
