// SPDX-License-Identifier: MIT
#include "base/new_file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/folder.h"

// --- partial files of a program that ends --------------------------------------------------------

// A signal finds what is to be removed in a list that the whole program shares, as there is no
// other way to it. Entries are never freed, only used again, so that the list can be followed at
// any moment.
struct partial {
    const char *_Atomic path; // of the new_file; NULL: free
    pid_t writer;             // a child that was forked meanwhile has the list, but not the files
    struct partial *next;
};

static struct partial *_Atomic partials;
static pthread_mutex_t partials_lock = PTHREAD_MUTEX_INITIALIZER;

void new_file_abandon_all(void)
{
    for (const struct partial *one = partials; one; one = one->next) {
        const char *path = one->path;
        if (!path || one->writer != getpid())
            continue;
        // NOLINTBEGIN(bugprone-signal-handler): system calls and errno, which a handler may use
        if (unlink(path) < 0 && errno == EISDIR)
            folder_remove(path);
        // NOLINTEND(bugprone-signal-handler)
    }
}

static void on_end(int number)
{
    sigset_t itself;
    new_file_abandon_all();
    signal(number, SIG_DFL);
    sigemptyset(&itself);
    sigaddset(&itself, number);
    pthread_sigmask(SIG_UNBLOCK, &itself, NULL);
    raise(number);
}

// Signals that somebody handles or ignores do not end the program by themselves.
static void remove_at_end(void)
{
    static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    struct sigaction before;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (sigaction(ends[i], NULL, &before) == 0 && !(before.sa_flags & SA_SIGINFO) &&
            before.sa_handler == SIG_DFL)
            signal(ends[i], on_end);
}

void new_file_note(const char *path)
{
    pthread_mutex_lock(&partials_lock);
    struct partial *one = partials;
    while (one && one->path)
        one = one->next;
    if (!one && (one = calloc(1, sizeof *one))) {
        if (!partials)
            remove_at_end();
        one->next = partials;
        partials = one;
    }
    if (one) {
        one->writer = getpid();
        one->path = path;
    }
    pthread_mutex_unlock(&partials_lock);
}

void new_file_forget(const char *path)
{
    pthread_mutex_lock(&partials_lock);
    for (struct partial *one = partials; one; one = one->next)
        if (one->path == path)
            one->path = NULL;
    pthread_mutex_unlock(&partials_lock);
}

static void new_file_free(struct new_file *out)
{
    if (out->partial)
        new_file_forget(out->partial);
    free(out->path);
    free(out->partial);
    *out = (struct new_file){0};
}

// "<name>.<16 hexadecimal digits>.partial"; of that name, where one is given.
static bool is_partial_name(const char *entry, const char *name)
{
    static const char end[] = ".partial";
    enum { DIGITS = 16, TAIL = 1 + DIGITS + sizeof end - 1 };
    size_t length = strlen(entry);
    if (length <= TAIL || strcmp(entry + length - (sizeof end - 1), end) != 0)
        return false;
    const char *tail = entry + length - TAIL;
    for (int i = 1; i <= DIGITS; i++)
        if (!isxdigit((unsigned char)tail[i]))
            return false;
    return *tail == '.' &&
           (!name || (strlen(name) == length - TAIL && strncmp(entry, name, length - TAIL) == 0));
}

// Who writes a partial file has it locked, which ends with the process. Returns -1 where somebody
// does.
static int open_unless_written(int folder, const char *entry, int mode)
{
    struct stat status;
    int fd = openat(folder, entry, mode | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static void remove_unless_written(int folder, const char *entry)
{
    int fd = open_unless_written(folder, entry, O_RDONLY);
    if (fd < 0)
        return;
    unlinkat(folder, entry, 0);
    close(fd);
}

static void remove_abandoned(const char *folder, const char *name)
{
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    while (entries && (entry = readdir(entries)))
        if (is_partial_name(entry->d_name, name))
            remove_unless_written(dirfd(entries), entry->d_name);
    if (entries)
        closedir(entries);
}

void new_file_sweep(const char *folder)
{
    remove_abandoned(folder, NULL);
}

// The folder of that path, which the caller frees, and what is its name there; NULL: out of memory.
static char *folder_of(const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    return slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("./");
}

// Of a folder that need not be ours, only what had that path.
static void sweep_before(const char *path)
{
    const char *name;
    char *folder = folder_of(path, &name);
    if (folder)
        remove_abandoned(folder, name);
    free(folder);
}

int new_file_open_abandoned(const char *path, char *partial, size_t partial_bytes)
{
    const char *name;
    const struct dirent *entry;
    char *folder = folder_of(path, &name);
    DIR *entries = folder ? opendir(folder) : NULL;
    int fd = -1;
    while (fd < 0 && entries && (entry = readdir(entries)))
        if (is_partial_name(entry->d_name, name) &&
            (size_t)snprintf(partial, partial_bytes, "%s%s", folder, entry->d_name) < partial_bytes)
            fd = open_unless_written(dirfd(entries), entry->d_name, O_RDWR);
    if (entries)
        closedir(entries);
    free(folder);
    return fd;
}

// --- writing one ---------------------------------------------------------------------------------

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

// "<path>.<random>.partial", created and locked.
static int open_partial(struct new_file *out)
{
    enum { ATTEMPTS = 16 };
    for (int i = 0; i < ATTEMPTS; i++) {
        uint64_t number;
        if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
            number = (uint64_t)clock_now_ns(CLOCK_MONOTONIC_RAW);
        if (out->partial)
            new_file_forget(out->partial);
        free(out->partial);
        if (asprintf(&out->partial, "%s.%016" PRIx64 ".partial", out->path, number) < 0) {
            out->partial = NULL;
            errno = ENOMEM;
            return -1;
        }
        new_file_note(out->partial);
        int fd = open(out->partial, O_RDWR | FRESH, 0644);
        if (fd < 0 && errno != EEXIST)
            return fd;
        // Somebody who sweeps may have come before the lock. Some file systems have no locks.
        struct stat status;
        if (fd >= 0 && (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) &&
            fstat(fd, &status) == 0 && status.st_nlink > 0)
            return fd;
        if (fd >= 0)
            close(fd);
    }
    return -1;
}

int new_file_open(struct new_file *out, const char *path, struct error *err)
{
    struct stat there;
    *out = (struct new_file){0};
    // Not only when it gets its name: that may be after a long load.
    if (stat(path, &there) == 0 && S_ISDIR(there.st_mode))
        return error_set(err, ERROR_INPUT, "%s is a folder where a file is to be: move it away",
                         path);
    out->path = strdup(path);
    sweep_before(path);
    int fd = !out->path ? -1 : is_no_file(path) ? open_as_it_is(path) : open_partial(out);
    if (fd >= 0 && (out->file = fdopen(fd, "wb")))
        return 0;
    int result = fd < 0 && out->path && errno == ENXIO
                     ? error_set(err, ERROR_INPUT,
                                 "%s is a pipe that nobody reads: read it, or remove it", path)
                     : error_set_errno(err, ERROR_FAILED, "cannot create %s", path);
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && out->partial)
        unlink(out->partial);
    new_file_free(out);
    return result;
}

int new_file_finish(struct new_file *out, int result, struct error *err)
{
    if (!out->file)
        return result;
    bool failed = ferror(out->file) != 0 || fflush(out->file) != 0;
    int number = errno;
    int held = fcntl(fileno(out->file), F_DUPFD_CLOEXEC, 0); // keeps the lock until it has its name
    if (fclose(out->file) != 0 && !failed) {
        failed = true;
        number = errno;
    }
    if (result == 0 && failed) {
        errno = number;
        result = error_set_errno(err, ERROR_FAILED, "cannot write %s", out->path);
    }
    if (result == 0 && out->partial && rename(out->partial, out->path) < 0)
        result =
            error_set_errno(err, ERROR_FAILED, "cannot rename %s to %s", out->partial, out->path);
    if (result < 0 && out->partial)
        unlink(out->partial);
    if (held >= 0)
        close(held);
    new_file_free(out);
    return result;
}

int new_file_try(const char *path, struct error *err)
{
    struct new_file file;
    struct error ignored;
    if (is_no_file(path))
        return 0;
    int result = new_file_open(&file, path, err);
    if (result == 0)
        new_file_finish(&file, -ERROR_FAILED, &ignored); // which takes it away
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
