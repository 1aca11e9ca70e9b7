// SPDX-License-Identifier: MIT
//
// Maps what the parser reads: a file, a directory's files, or a pipe's output, which is saved to an
// unnamed temporary file.
#include "analysis/perf/perf_data.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input_file.h"

struct input_array ARRAY_OF(struct perf_input);

static int map_descriptor(struct input_array *inputs, int descriptor, const char *path,
                          struct error *err)
{
    struct perf_input input = {.name = strdup(path)};
    const void *mapped = NULL;
    if (!input.name)
        return error_set(err, ERROR_FAILED, "out of memory");
    int result = input_map(descriptor, path, &mapped, &input.bytes, err);
    if (result < 0) {
        free((void *)(uintptr_t)input.name);
        return result;
    }
    input.data = mapped;
    if (array_push(inputs, input) < 0) {
        perf_input_unmap(&input);
        return error_set(err, ERROR_FAILED, "out of memory");
    }
    return 0;
}

static int copy_all(int from, int to)
{
    char buffer[65536];
    ssize_t got;
    while ((got = read(from, buffer, sizeof buffer)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        for (ssize_t put = 0; put < got;) {
            ssize_t now = write(to, buffer + put, (size_t)(got - put));
            if (now < 0 && errno != EINTR)
                return -1;
            put += now > 0 ? now : 0;
        }
    }
    return 0;
}

// Input that can be read only once is copied to a file that can be mapped.
static int map_pipe(struct input_array *inputs, int descriptor, const char *path, struct error *err)
{
    const char *folder = getenv("TMPDIR");
    char temporary[4096];
    snprintf(temporary, sizeof temporary, "%s/taillight-XXXXXX",
             folder && *folder ? folder : "/var/tmp");
    int copy = mkstemp(temporary);
    if (copy < 0)
        return error_set_errno(err, ERROR_FAILED, "%s: no room for a copy of %s", temporary, path);
    unlink(temporary);
    int result = copy_all(descriptor, copy);
    if (result < 0)
        error_set_errno(err, ERROR_FAILED, "copying %s to a temporary file in %s", path, temporary);
    else
        result = map_descriptor(inputs, copy, path, err);
    close(copy);
    return result < 0 ? -(int)err->kind : 0;
}

static int map_path(struct input_array *inputs, const char *path, struct error *err)
{
    int descriptor = input_open_any(path, NULL);
    if (descriptor < 0)
        return error_set_errno(err, ERROR_INPUT, "%s: cannot be opened", path);
    struct stat status;
    int result;
    if (fstat(descriptor, &status) < 0)
        result = error_set_errno(err, ERROR_INPUT, "%s", path);
    else if (S_ISREG(status.st_mode))
        result = map_descriptor(inputs, descriptor, path, err);
    else if (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode))
        result = map_pipe(inputs, descriptor, path, err);
    else
        result = error_set(err, ERROR_INPUT, "%s: neither a file, a directory nor a pipe", path);
    close(descriptor);
    return result;
}

static bool is_data_file(const char *name)
{
    if (strncmp(name, "data.", 5) != 0 || !isdigit((unsigned char)name[5]))
        return false;
    for (const char *at = name + 5; *at; at++)
        if (!isdigit((unsigned char)*at))
            return false;
    return true;
}

static int by_number(const struct dirent **a, const struct dirent **b)
{
    unsigned long long left = strtoull((*a)->d_name + 5, NULL, 10);
    unsigned long long right = strtoull((*b)->d_name + 5, NULL, 10);
    return order_of(left, right);
}

static int only_data_files(const struct dirent *entry)
{
    return is_data_file(entry->d_name);
}

static int map_directory(struct input_array *inputs, const char *folder, struct error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/data", folder);
    if (map_path(inputs, path, err) < 0)
        return error_prefix(err, "%s is a directory, but not one of perf record", folder);
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, only_data_files, by_number);
    if (count < 0)
        return error_set_errno(err, ERROR_INPUT, "%s: cannot be listed", folder);
    int result = 0;
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (result == 0)
            result = map_path(inputs, path, err);
        free(entries[i]);
    }
    free(entries);
    return result;
}

int perf_data_open(const char *path, const struct perf_limits *limits, struct perf_data *out,
                   struct error *err)
{
    memset(out, 0, sizeof *out);
    struct input_array inputs = {0};
    struct stat status;
    bool pipe = strcmp(path, "-") == 0;
    bool directory = !pipe && stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    struct perf_limits mapped = limits ? *limits : perf_default_limits;
    mapped.mapped = true;
    int result;
    if (pipe)
        result = map_pipe(&inputs, STDIN_FILENO, "standard input", err);
    else if (directory)
        result = map_directory(&inputs, path, err);
    else
        result = map_path(&inputs, path, err);
    if (result == 0)
        result = perf_data_parse(inputs.items, inputs.count, &mapped, out, err);
    for (size_t i = 0; result < 0 && i < inputs.count; i++)
        perf_input_unmap(&inputs.items[i]);
    array_free(&inputs);
    if (result < 0)
        return result;
    out->inputs_mapped = true;
    if (directory)
        out->layout = PERF_LAYOUT_DIRECTORY;
    return 0;
}
