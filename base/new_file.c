// SPDX-License-Identifier: MIT
#include "base/new_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void new_file_free(struct new_file *out)
{
    free(out->path);
    free(out->partial);
    *out = (struct new_file){0};
}

int new_file_open(struct new_file *out, const char *path, struct error *err)
{
    int result = 0;
    *out = (struct new_file){.path = strdup(path)};
    if (asprintf(&out->partial, "%s.partial", path) < 0)
        out->partial = NULL;
    if (!out->path || !out->partial)
        result = error_set(err, ERROR_FAILED, "out of memory for %s", path);
    else if (!(out->file = fopen(out->partial, "wbe")))
        result = error_set_errno(err, ERROR_FAILED, "cannot create %s", out->partial);
    if (result < 0)
        new_file_free(out);
    return result;
}

int new_file_finish(struct new_file *out, int result, struct error *err)
{
    if (!out->file)
        return result;
    bool failed = ferror(out->file) != 0 || fflush(out->file) != 0;
    int number = errno;
    if (fclose(out->file) != 0 && !failed) {
        failed = true;
        number = errno;
    }
    if (result == 0 && failed) {
        errno = number;
        result = error_set_errno(err, ERROR_FAILED, "cannot write %s", out->path);
    }
    if (result == 0 && rename(out->partial, out->path) < 0)
        result =
            error_set_errno(err, ERROR_FAILED, "cannot rename %s to %s", out->partial, out->path);
    if (result < 0)
        unlink(out->partial);
    new_file_free(out);
    return result;
}

int new_file_write(const char *path, const char *text, size_t bytes, struct error *err)
{
    struct new_file out;
    int result = new_file_open(&out, path, err);
    if (result < 0)
        return result;
    if (fwrite(text, 1, bytes, out.file) != bytes)
        result = error_set_errno(err, ERROR_FAILED, "cannot write %s", path);
    return new_file_finish(&out, result, err);
}
