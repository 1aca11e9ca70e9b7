// SPDX-License-Identifier: MIT
#include "experiments/common/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/input_file.h"
#include "base/json_numbers.h"
#include "base/new_file.h"
#include "experiments/common/failed_run.h"

char *run_folder_path(const struct run_folder *folder, const char *name,
                      char path[RUN_PATH_BYTES + 128])
{
    snprintf(path, RUN_PATH_BYTES + 128, "%s/%.120s", folder->path, name);
    return path;
}

int run_folder_inside(const struct run_folder *folder, const char *name, struct run_folder *inside,
                      struct error *err)
{
    char path[RUN_PATH_BYTES + 128];
    if (strlen(run_folder_path(folder, name, path)) >= sizeof inside->path)
        return error_set(err, ERROR_INPUT, "%s: the path is too long", path);
    strcpy(inside->path, path);
    return 0;
}

json_t *run_folder_read_json(const struct run_folder *folder, const char *name, struct error *err)
{
    char path[RUN_PATH_BYTES + 128];
    json_error_t where;
    json_t *document = input_json(run_folder_path(folder, name, path), &where);
    if (!document)
        error_set(err, ERROR_FAILED, "%s cannot be read: %s", path, where.text);
    return document;
}

int run_folder_write(const struct run_folder *folder, const char *name, const char *text,
                     size_t bytes, struct error *err)
{
    char path[RUN_PATH_BYTES + 128];
    return new_file_write(run_folder_path(folder, name, path), text, bytes, err);
}

int run_folder_write_json(const struct run_folder *folder, const char *name, const json_t *document,
                          struct error *err)
{
    char path[RUN_PATH_BYTES + 128];
    return json_write(document, JSON_FOR_PEOPLE, run_folder_path(folder, name, path), err);
}

// What is captured shows what a server did, and for whom: it is its owner's.
enum { RUN_FOLDER_MODE = 0700 };

static int give(const char *path, const struct person *owner, struct error *err)
{
    return owner && lchown(path, owner->user, owner->group) < 0
               ? error_set_errno(err, ERROR_FAILED, "cannot give the folder %s to %s", path,
                                 owner->name)
               : 0;
}

// Makes a directory that is its owner's. One that is there already stays whose it is.
static int make_directory(const char *path, mode_t mode, const struct person *owner,
                          struct error *err)
{
    if (mkdir(path, mode) == 0)
        return give(path, owner, err);
    return errno == EEXIST ? 0
                           : error_set_errno(err, ERROR_FAILED, "cannot make the folder %s", path);
}

// Makes a directory and those above it; these are for others, too.
static int make_directories(const char *path, mode_t mode, const struct person *owner,
                            struct error *err)
{
    char above[RUN_PATH_BYTES];
    snprintf(above, sizeof above, "%s", path);
    for (char *slash = above + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        if (make_directory(above, 0755, owner, err) < 0)
            return -ERROR_FAILED;
        *slash = '/';
    }
    return make_directory(path, mode, owner, err);
}

// How many names the folder has; -1: it cannot be read.
static int count_entries(const char *path)
{
    DIR *directory = opendir(path);
    int entries = -2; // . and ..
    if (!directory)
        return -1;
    while (readdir(directory))
        entries++;
    closedir(directory);
    return entries;
}

static bool has_file(const char *folder, const char *name)
{
    char path[RUN_PATH_BYTES + 128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

// Says what is in the way and how to go on: it may be hours of somebody's measuring.
static int refuse_full(const char *path, struct error *err)
{
    static const char *const results[] = {"summary.json", "repetitions.json", "matrix.json",
                                          "study.json"};
    const char *ask = has_file(path, "commands.log") ? "analyze" : NULL;
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (has_file(path, results[i]))
            ask = "report";
    if (!ask)
        return error_set(err, ERROR_INPUT,
                         "the folder %s has something in it already; name a new one", path);
    return error_set(err, ERROR_INPUT,
                     "the folder %s has a run in it already (`taillight %s %s` says what it "
                     "found); name a new one, or remove that: rm -r %s",
                     path, ask, path, path);
}

static int make_room(const char *path, struct error *err)
{
    int entries = count_entries(path);
    if (entries < 0)
        return error_set_errno(err, ERROR_INPUT, "cannot read the folder %s", path);
    return entries == 0 || failed_run_clear(path) ? 0 : refuse_full(path, err);
}

// runs/<name>-<UTC time>, with a number when two runs begin in the same second.
static int make_fresh(struct run_folder *folder, const char *name, const struct person *owner,
                      struct error *err)
{
    char when[40];
    struct tm utc;
    time_t now = time(NULL);
    gmtime_r(&now, &utc);
    strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", &utc);
    int result = make_directories("runs", 0755, owner, err);
    for (int number = 1; result == 0 && number < 100; number++) {
        char more[8] = "";
        if (number > 1)
            snprintf(more, sizeof more, "-%d", number);
        snprintf(folder->path, sizeof folder->path, "runs/%s-%s%s", name, when, more);
        if (mkdir(folder->path, RUN_FOLDER_MODE) == 0)
            return give(folder->path, owner, err);
        if (errno != EEXIST)
            break;
    }
    return result < 0
               ? result
               : error_set_errno(err, ERROR_FAILED, "cannot make the folder %s", folder->path);
}

int run_folder_make(struct run_folder *folder, const char *wanted, const char *name,
                    const struct person *owner, struct error *err)
{
    if (wanted && (strlen(wanted) == 0 || strlen(wanted) > 3000))
        return error_set(err, ERROR_INPUT, "\"%.60s\" is not a folder's name", wanted);
    if (!wanted)
        return make_fresh(folder, name, owner, err);
    snprintf(folder->path, sizeof folder->path, "%s", wanted);
    int result = make_directories(wanted, RUN_FOLDER_MODE, owner, err);
    return result < 0 ? result : make_room(wanted, err);
}

uint64_t free_disk_bytes(const char *folder)
{
    struct statvfs about;
    return statvfs(folder, &about) == 0 ? (uint64_t)about.f_bavail * about.f_frsize : UINT64_MAX;
}
