// SPDX-License-Identifier: MIT
#include "experiments/common/failed_run.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// What a run has in its folder by then, as docs/formats.md says; the ones with a slash are folders.
static const char *const names[] = {"commands.log",   "experiment.yaml", "experiment.json",
                                    "categories.csv", "facts.json",      "facts-*.json",
                                    "client/",        "client-*/",       "server/",
                                    "logs/",          "workload/",       "nginx-*/"};

// How deep folders lie in one another: a study's steps, their configurations, repetitions.
enum { DEEPEST = 6 };

// Opens a folder without following a link: whoever may write there cannot lead elsewhere.
static DIR *open_inside(DIR *parent, const char *name)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    int fd = parent ? openat(dirfd(parent), name, flags | O_NOFOLLOW) : open(name, flags);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !folder)
        close(fd);
    return folder;
}

static const struct dirent *next_entry(DIR *folder)
{
    const struct dirent *entry;
    while ((entry = readdir(folder)) &&
           (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)) {
    }
    return entry;
}

static bool is_folder(DIR *folder, const char *name)
{
    struct stat status;
    return fstatat(dirfd(folder), name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(status.st_mode);
}

static bool says_so(DIR *folder)
{
    char line[4096];
    bool found = false;
    int fd = openat(dirfd(folder), "commands.log", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    FILE *log = fd < 0 ? NULL : fdopen(fd, "r");
    while (log && !found && fgets(line, sizeof line, log))
        found = strstr(line, " run: " FAILED_BEFORE_LOAD);
    if (log)
        fclose(log);
    else if (fd >= 0)
        close(fd);
    return found;
}

static bool is_of_run(DIR *folder, const char *name)
{
    char kind[300];
    snprintf(kind, sizeof kind, "%s%s", name, is_folder(folder, name) ? "/" : "");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (fnmatch(names[i], kind, 0) == 0)
            return true;
    return false;
}

// Closes the folder.
static bool is_failed_run(DIR *folder, int depth)
{
    const bool one = folder && says_so(folder);
    const struct dirent *entry;
    bool fits = folder && depth < DEEPEST, any = false;
    while (fits && (entry = next_entry(folder))) {
        any = true;
        fits = one ? is_of_run(folder, entry->d_name)
                   : is_failed_run(open_inside(folder, entry->d_name), depth + 1);
    }
    if (folder)
        closedir(folder);
    return fits && any;
}

// Closes the folder.
static void empty(DIR *folder, int depth)
{
    const struct dirent *entry;
    while (folder && depth < DEEPEST + 2 && (entry = next_entry(folder))) {
        if (!is_folder(folder, entry->d_name)) {
            unlinkat(dirfd(folder), entry->d_name, 0);
            continue;
        }
        empty(open_inside(folder, entry->d_name), depth + 1);
        unlinkat(dirfd(folder), entry->d_name, AT_REMOVEDIR);
    }
    if (folder)
        closedir(folder);
}

bool failed_run_clear(const char *path)
{
    if (!is_failed_run(open_inside(NULL, path), 0))
        return false;
    empty(open_inside(NULL, path), 0);
    return true;
}
