// SPDX-License-Identifier: MIT
#include "base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

static void new_file_free(struct new_file *out)
{
    free(out->path);
    free(out->partial);
    *out = (struct new_file){0};
}

// The flags with which nothing that is there already is opened, and nothing is waited for.
enum { FRESH = O_CREAT | O_EXCL | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC };

int new_file_create(const char *path, struct error *err)
{
    int fd = open(path, O_WRONLY | FRESH, 0644);
    return fd < 0 ? error_set_errno(err, ERROR_FAILED, "cannot create %s", path) : fd;
}

int new_file_continue(const char *path)
{
    int fd = open(
        path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);
    if (fd >= 0)
        fcntl(fd, F_SETFL, O_APPEND); // a pipe that is full is waited for
    return fd;
}

// Whether the name is a device or a pipe: /dev/stdout, /dev/null, a FIFO.
static bool is_no_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

static int open_as_it_is(const char *path)
{
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0)
        fcntl(fd, F_SETFL, 0); // a reader who is slow is waited for
    return fd;
}

// "<path>.<random>.partial", created.
static int open_partial(struct new_file *out)
{
    enum { ATTEMPTS = 16 };
    for (int i = 0; i < ATTEMPTS; i++) {
        uint64_t number;
        if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
            number = (uint64_t)clock_now_ns(CLOCK_MONOTONIC_RAW);
        free(out->partial);
        if (asprintf(&out->partial, "%s.%016" PRIx64 ".partial", out->path, number) < 0) {
            out->partial = NULL;
            errno = ENOMEM;
            return -1;
        }
        int fd = open(out->partial, O_RDWR | FRESH, 0644);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

int new_file_open(struct new_file *out, const char *path, struct error *err)
{
    *out = (struct new_file){.path = strdup(path)};
    int fd = !out->path ? -1 : is_no_file(path) ? open_as_it_is(path) : open_partial(out);
    if (fd >= 0 && (out->file = fdopen(fd, "wb")))
        return 0;
    error_set_errno(err, ERROR_FAILED, "cannot create %s", path);
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && out->partial)
        unlink(out->partial);
    new_file_free(out);
    return -ERROR_FAILED;
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
    if (result == 0 && out->partial && rename(out->partial, out->path) < 0)
        result = errno == EISDIR
                     ? error_set(err, ERROR_INPUT,
                                 "%s is a folder where a file is to be: move it away", out->path)
                     : error_set_errno(err, ERROR_FAILED, "cannot rename %s to %s", out->partial,
                                       out->path);
    if (result < 0 && out->partial)
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
