// SPDX-License-Identifier: MIT
#include "experiments/common/hand_over.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_DEPTH = 64 };

static int hand_over_below(int directory, const struct person *owner, unsigned depth);

// fd: of the entry itself, opened without following a link.
static int hand_over_one(int fd, const struct person *owner, unsigned depth)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return -1;
    bool folder = S_ISDIR(status.st_mode), file = S_ISREG(status.st_mode);
    if (status.st_uid == 0 && (folder || (file && status.st_nlink == 1)) &&
        fchownat(fd, "", owner->user, owner->group, AT_EMPTY_PATH) < 0)
        return -1;
    if (!folder || depth >= MOST_DEPTH)
        return 0;
    int directory = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return directory < 0 ? -1 : hand_over_below(directory, owner, depth);
}

// Closes the directory.
static int hand_over_below(int directory, const struct person *owner, unsigned depth)
{
    int result = 0;
    DIR *entries = fdopendir(directory);
    if (!entries) {
        close(directory);
        return -1;
    }
    for (struct dirent *entry; result == 0 && (entry = readdir(entries));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        int fd = openat(dirfd(entries), entry->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT) // gone meanwhile
            continue;
        result = fd < 0 ? -1 : hand_over_one(fd, owner, depth + 1);
        if (fd >= 0)
            close(fd);
    }
    int number = errno;
    closedir(entries);
    errno = number;
    return result;
}

int run_folder_hand_over(const struct run_folder *folder, const struct person *owner,
                         struct error *err)
{
    int fd = open(folder->path, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
    int result = fd < 0 ? -1 : hand_over_one(fd, owner, 0);
    if (result < 0)
        error_set_errno(err, ERROR_FAILED, "cannot give all of %s to %s", folder->path,
                        owner->name);
    if (fd >= 0)
        close(fd);
    return result < 0 ? -ERROR_FAILED : 0;
}
