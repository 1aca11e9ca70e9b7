// SPDX-License-Identifier: MIT
#include "base/passing_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/new_file.h"
#include "base/process.h"

static const char place[] = "/tmp";

// By its name a folder of this kind, whose process has ended, as far as this one can see.
static bool is_left(const char *name)
{
    int pid, end = 0;
    return sscanf(name, "taillight-%*[a-z]-%d-%n", &pid, &end) == 1 && end && pid > 0 &&
           process_has_ended(pid);
}

static int take(const char *path)
{
    int lock = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
        return lock;
    if (lock >= 0)
        close(lock);
    return -1;
}

// The lock says of a process in another PID namespace whether it is there.
static void remove_left(void)
{
    DIR *entries = opendir(place);
    const struct dirent *entry;
    while (entries && (entry = readdir(entries))) {
        char path[sizeof place + sizeof entry->d_name];
        struct stat status;
        int lock;
        if (!is_left(entry->d_name))
            continue;
        snprintf(path, sizeof path, "%s/%s", place, entry->d_name);
        if (lstat(path, &status) < 0 || status.st_uid != geteuid() || (lock = take(path)) < 0)
            continue;
        folder_remove(path);
        close(lock);
    }
    if (entries)
        closedir(entries);
}

int passing_folder_make(struct passing_folder *folder, const char *what, struct error *err)
{
    remove_left();
    snprintf(folder->path, sizeof folder->path, "%s/taillight-%s-%d-XXXXXX", place, what,
             (int)getpid());
    if (!mkdtemp(folder->path)) {
        folder->path[0] = '\0';
        return error_set_errno(err, ERROR_FAILED, "cannot make a folder in %s", place);
    }
    new_file_note(folder->path);
    folder->lock = take(folder->path); // where there are no locks the name has to do
    return 0;
}

void passing_folder_end(struct passing_folder *folder)
{
    if (!folder->path[0])
        return;
    folder_remove(folder->path);
    new_file_forget(folder->path);
    if (folder->lock >= 0)
        close(folder->lock);
    folder->path[0] = '\0';
}
