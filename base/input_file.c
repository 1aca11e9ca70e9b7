// SPDX-License-Identifier: MIT
#include "base/input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/new_file.h"

int input_open_any(const char *path, struct error *err)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, ERROR_INPUT, "cannot read %s", path);
    if (fstat(fd, &status) == 0 && !S_ISDIR(status.st_mode)) {
        int flags = fcntl(fd, F_GETFL); // a pipe whose writer is slow is waited for
        fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
        return fd;
    }
    close(fd);
    error_set(err, ERROR_INPUT, "cannot read %s: it is a folder, not a file", path);
    errno = EISDIR; // for callers who can say more
    return -(int)ERROR_INPUT;
}

int input_open(const char *path, struct error *err)
{
    struct stat status;
    int fd = input_open_any(path, err);
    if (fd < 0 || (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)))
        return fd;
    close(fd);
    return error_set(err, ERROR_INPUT, "cannot read %s: it is not a regular file", path);
}

static FILE *stream_of(int fd, const char *path, struct error *err)
{
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (fd >= 0 && !file) {
        error_set_errno(err, ERROR_FAILED, "cannot open %s", path);
        close(fd);
    }
    return file;
}

FILE *input_stream(const char *path, struct error *err)
{
    return stream_of(input_open(path, err), path, err);
}

FILE *input_stream_any(const char *path, struct error *err)
{
    return stream_of(input_open_any(path, err), path, err);
}

json_t *input_json(const char *path, json_error_t *problem)
{
    struct error err;
    FILE *file = input_stream(path, &err);
    if (file) {
        json_t *document = json_loadf(file, 0, problem);
        fclose(file);
        return document;
    }
    if (problem) {
        *problem = (json_error_t){.line = -1};
        snprintf(problem->text, sizeof problem->text, "%.150s", err.text);
    }
    return NULL;
}

// --- mapped files --------------------------------------------------------------------------------

// The kernel says by SIGBUS that a page of a mapped file is no longer there. A signal has no other
// way to whom it concerns than a list that the whole program shares. Entries are never freed, only
// used again, so that the handler may follow the list at any moment.
struct mapping {
    const char *_Atomic base; // NULL: free
    size_t bytes;
    char *path;
    struct mapping *next;
};

static struct mapping *_Atomic mappings;
static pthread_mutex_t mappings_lock = PTHREAD_MUTEX_INITIALIZER;

static void write_all(const char *text)
{
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    const char *at = info->si_addr;
    (void)context;
    for (const struct mapping *one = mappings; one; one = one->next) {
        const char *base = one->base;
        if (!base || at < base || at >= base + one->bytes)
            continue;
        write_all("taillight: ");
        write_all(one->path);
        write_all(": it was truncated while it was read\n");
        new_file_abandon_all();
        _exit(ERROR_INPUT);
    }
    signal(number, SIG_DFL); // none of ours: let it happen again
}

// Called with the lock held. NULL: out of memory.
static struct mapping *mapping_take(void)
{
    for (struct mapping *one = mappings; one; one = one->next)
        if (!one->base)
            return one;
    struct mapping *fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return NULL;
    if (!mappings) {
        struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
        sigaction(SIGBUS, &action, NULL);
    }
    fresh->next = mappings;
    mappings = fresh;
    return fresh;
}

static int mapping_note(void *base, size_t bytes, const char *path)
{
    char *name = strdup(path);
    pthread_mutex_lock(&mappings_lock);
    struct mapping *mapping = name ? mapping_take() : NULL;
    if (mapping) {
        mapping->bytes = bytes;
        mapping->path = name;
        mapping->base = base;
    }
    pthread_mutex_unlock(&mappings_lock);
    if (!mapping)
        free(name);
    return mapping ? 0 : -1;
}

int input_map(int fd, const char *path, const void **bytes, size_t *count, struct error *err)
{
    struct stat status;
    *bytes = NULL;
    *count = 0;
    if (fstat(fd, &status) < 0)
        return error_set_errno(err, ERROR_INPUT, "%s", path);
    if (status.st_size == 0)
        return 0;
    void *base = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (base == MAP_FAILED)
        return error_set_errno(err, ERROR_FAILED, "cannot map %s", path);
    if (mapping_note(base, (size_t)status.st_size, path) < 0) {
        munmap(base, (size_t)status.st_size);
        return error_set(err, ERROR_FAILED, "out of memory for %s", path);
    }
    *bytes = base;
    *count = (size_t)status.st_size;
    return 0;
}

void input_unmap(const void *bytes)
{
    if (!bytes)
        return;
    pthread_mutex_lock(&mappings_lock);
    for (struct mapping *one = mappings; one; one = one->next) {
        if (one->base != bytes)
            continue;
        munmap((void *)(uintptr_t)bytes, one->bytes);
        one->base = NULL;
        free(one->path);
        break;
    }
    pthread_mutex_unlock(&mappings_lock);
}

size_t input_mark_bytes(const char *text, size_t bytes)
{
    static const char mark[] = "\xef\xbb\xbf";
    return bytes >= sizeof mark - 1 && memcmp(text, mark, sizeof mark - 1) == 0 ? sizeof mark - 1
                                                                                : 0;
}
