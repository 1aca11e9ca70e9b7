// SPDX-License-Identifier: MIT
#include "shim/ring_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "shim/ring.h"

static bool is_ours(const char *name)
{
    return strcmp(name, "control") == 0 || strcmp(name, "control.partial") == 0 ||
           strcmp(name, "hello") == 0 || strncmp(name, "pool-", 5) == 0;
}

// Whether an entry is what we make: a file or a socket of this user's, with its first name. A pool
// is given to its user, who cannot put it there.
static bool is_made_by_us(int fd, const char *name)
{
    struct stat status;
    return is_ours(name) && fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           (S_ISREG(status.st_mode) || S_ISSOCK(status.st_mode)) &&
           (status.st_uid == geteuid() || strncmp(name, "pool-", 5) == 0);
}

static DIR *directory_list(int fd)
{
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = again < 0 ? NULL : fdopendir(again);
    if (!list && again >= 0)
        close(again);
    return list;
}

// The next name but . and .., NULL at the end.
static const char *directory_next(DIR *list)
{
    struct dirent *entry;
    do
        entry = readdir(list);
    while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
    return entry ? entry->d_name : NULL;
}

int ring_directory_clear(int fd)
{
    DIR *list = directory_list(fd);
    int foreign = 0;
    if (!list)
        return -1;
    for (const char *name; (name = directory_next(list));) {
        if (!is_made_by_us(fd, name))
            foreign++;
        else
            unlinkat(fd, name, 0);
    }
    closedir(list);
    return foreign;
}

// --- made and held -------------------------------------------------------------------------------

static bool is_of_a_run(const char *name)
{
    return strncmp(name, "taillight-", 10) == 0;
}

// Whether the directory's own parent is one of a run's, which nobody can list: what is in it can
// only be found by those who are told its name.
static bool parent_find(const char *dir, char *parent, size_t bytes)
{
    snprintf(parent, bytes, "%s", dir);
    char *slash = strrchr(parent, '/');
    if (!slash || slash == parent)
        return false;
    *slash = '\0';
    const char *name = strrchr(parent, '/');
    return name && is_of_a_run(name + 1);
}

static int directory_make(const char *dir)
{
    char parent[400];
    int made = mkdir(dir, 0711);
    if (made < 0 && errno == ENOENT && parent_find(dir, parent, sizeof parent) &&
        (mkdir(parent, 0711) == 0 || errno == EEXIST))
        made = mkdir(dir, 0711);
    return made < 0 && errno != EEXIST ? -1 : 0;
}

static int directory_judge(const char *dir, const struct stat *status,
                           const struct statfs *filesystem, struct error *err)
{
    if (status->st_uid != geteuid())
        return error_set(err, ERROR_INPUT, "%s belongs to user %u: give a directory of your own",
                         dir, status->st_uid);
    if (status->st_mode & (S_IWGRP | S_IWOTH))
        return error_set(err, ERROR_INPUT,
                         "%s can be written to by others, who could plant calls in it: give a new "
                         "directory, or one that only you can write to",
                         dir);
    if (filesystem->f_type != TMPFS_MAGIC && filesystem->f_type != RAMFS_MAGIC)
        return error_set(err, ERROR_INPUT,
                         "%s is not on a tmpfs, so the server would wait for a disk: give a "
                         "directory under /dev/shm",
                         dir);
    return 0;
}

int ring_directory_open(const char *dir, int *fd, struct error *err)
{
    struct stat status = {.st_nlink = 0};
    struct statfs filesystem;
    // Between its making and its lock somebody may have found it abandoned, and removed it.
    for (int attempt = 0; attempt < 3 && status.st_nlink == 0; attempt++) {
        if (attempt > 0)
            close(*fd);
        *fd = -1;
        if (directory_make(dir) < 0)
            return error_set_errno(err, ERROR_INPUT, "cannot make %s for the shim's rings", dir);
        *fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (*fd < 0)
            return error_set_errno(err, ERROR_INPUT, "cannot open %s for the shim's rings", dir);
        if (fstat(*fd, &status) < 0 || fstatfs(*fd, &filesystem) < 0)
            return error_set_errno(err, ERROR_FAILED, "cannot stat %s", dir);
        int result = directory_judge(dir, &status, &filesystem, err);
        if (result < 0)
            return result;
        if (flock(*fd, LOCK_SH) < 0 || fstat(*fd, &status) < 0)
            return error_set_errno(err, ERROR_FAILED, "cannot hold %s", dir);
    }
    return 0;
}

void ring_directory_remove(const char *dir)
{
    char parent[400];
    rmdir(dir);
    if (parent_find(dir, parent, sizeof parent))
        rmdir(parent); // unless there is more in it
}

// --- abandoned -----------------------------------------------------------------------------------

// Whether a directory that nobody holds is a collector's, and nothing else is in it.
static bool is_abandoned(int fd)
{
    struct stat status;
    bool found = false, ours = true;
    DIR *list;
    if (fstat(fd, &status) < 0 || status.st_uid != geteuid() ||
        (status.st_mode & (S_IWGRP | S_IWOTH)) || flock(fd, LOCK_EX | LOCK_NB) < 0 ||
        !(list = directory_list(fd)))
        return false;
    for (const char *name; ours && (name = directory_next(list));) {
        uint64_t magic = 0;
        ours = is_made_by_us(fd, name);
        int file = ours ? openat(fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;
        if (file < 0)
            continue;
        found |= read(file, &magic, sizeof magic) == sizeof magic &&
                 (magic == CONTROL_MAGIC || magic == POOL_MAGIC);
        close(file);
    }
    closedir(list);
    return ours && found;
}

static void control_close(int fd)
{
    const uint32_t closed = CONTROL_CLOSED;
    int control = openat(fd, "control", O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (control < 0)
        return;
    if (pwrite(control, &closed, sizeof closed, offsetof(struct control_page, state)) > 0)
        // A call that saw the capture still on may be writing its record.
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    close(control);
}

// Gives back what is in the chunks of all pools, though servers have them mapped: they may go on
// for long.
static void pools_discard(int fd)
{
    DIR *list = directory_list(fd);
    for (const char *name; list && (name = directory_next(list));) {
        struct pool_header header;
        struct stat status;
        int pool = strncmp(name, "pool-", 5) == 0
                       ? openat(fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
                       : -1;
        if (pool < 0)
            continue;
        if (fstat(pool, &status) == 0 && read(pool, &header, sizeof header) == sizeof header &&
            header.chunks > 0 && header.chunks <= RING_MAX_CHUNKS) {
            off_t chunks = (off_t)pool_layout_of(header.chunks).chunks;
            if (status.st_size > chunks)
                fallocate(pool, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, chunks,
                          status.st_size - chunks);
        }
        close(pool);
    }
    if (list)
        closedir(list);
}

static unsigned abandoned_remove(int below, bool is_run)
{
    DIR *list = directory_list(below);
    unsigned removed = 0;
    for (const char *name; list && (name = directory_next(list));) {
        int fd = openat(below, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct stat status;
        if (fd < 0)
            continue;
        unsigned inside = 0;
        if (is_abandoned(fd)) {
            control_close(fd);
            pools_discard(fd);
            removed += ring_directory_clear(fd) == 0 && unlinkat(below, name, AT_REMOVEDIR) == 0;
        } else if (!is_run && is_of_a_run(name) && fstat(fd, &status) == 0 &&
                   status.st_uid == geteuid()) {
            inside = abandoned_remove(fd, true);
        }
        if (inside) // unless there is more in it
            (void)unlinkat(below, name, AT_REMOVEDIR);
        removed += inside;
        close(fd);
    }
    if (list)
        closedir(list);
    return removed;
}

static unsigned abandoned_remove_below(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    unsigned removed = fd < 0 ? 0 : abandoned_remove(fd, false);
    if (fd >= 0)
        close(fd);
    return removed;
}

unsigned ring_directories_remove_abandoned(const char *dir)
{
    char beside[400];
    unsigned removed = abandoned_remove_below("/dev/shm");
    if (!dir)
        return removed;
    snprintf(beside, sizeof beside, "%s", dir);
    char *slash = strrchr(beside, '/');
    if (slash)
        slash[slash == beside] = '\0';
    return removed + abandoned_remove_below(slash ? beside : ".");
}
