// SPDX-License-Identifier: MIT
#include "base/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

void folder_remove(const char *path)
{
    _Alignas(struct dirent64) char entries[4096];
    ssize_t got;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    while (folder >= 0 && (got = getdents64(folder, entries, sizeof entries)) > 0)
        for (ssize_t at = 0; at < got;) {
            const struct dirent64 *entry = (const void *)(entries + at);
            unlinkat(folder, entry->d_name, 0);
            at += entry->d_reclen;
        }
    if (folder >= 0)
        close(folder);
    rmdir(path);
}
