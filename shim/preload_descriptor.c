// SPDX-License-Identifier: MIT
//
// The calls that make and unmake connections and descriptors: accept, connect, close, dup and their
// kin, and what preload_syscall.c shares of them.
#include "shim/preload_local.h"

#include <stdarg.h>
#include <sys/syscall.h>

struct observation shim_connection_begin(void)
{
    struct observation observation = {0};
    observation.entry_tsc = tsc_now_on_core(&observation.entry_core);
    return observation;
}

// The peer's address as the application got it; NULL if it did not ask for it or it was truncated.
void shim_accept_end(struct observation *observation, int fd, const struct sockaddr *address,
                     socklen_t room, const socklen_t *bytes)
{
    bool whole = address && bytes && *bytes <= room;
    shim_connection_accepted(fd, whole ? address : NULL, whole ? *bytes : 0, observation);
}

SHIM_EXPORT int accept(int fd, __SOCKADDR_ARG address, socklen_t *restrict bytes)
{
    if (!shim.descriptor_limit)
        return real.accept(fd, address, bytes);
    struct observation observation = shim_connection_begin();
    socklen_t room = address.__sockaddr__ && bytes ? *bytes : 0;
    int accepted = real.accept(fd, address, bytes);
    if (accepted >= 0)
        shim_accept_end(&observation, accepted, address.__sockaddr__, room, bytes);
    return accepted;
}

SHIM_EXPORT int accept4(int fd, __SOCKADDR_ARG address, socklen_t *restrict bytes, int flags)
{
    if (!shim.descriptor_limit)
        return real.accept4(fd, address, bytes, flags);
    struct observation observation = shim_connection_begin();
    socklen_t room = address.__sockaddr__ && bytes ? *bytes : 0;
    int accepted = real.accept4(fd, address, bytes, flags);
    if (accepted >= 0)
        shim_accept_end(&observation, accepted, address.__sockaddr__, room, bytes);
    return accepted;
}

// A connection that is not blocked on goes on in the background.
SHIM_EXPORT int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t bytes)
{
    if (!shim.descriptor_limit)
        return real.connect(fd, address, bytes);
    struct observation observation = shim_connection_begin();
    int result = real.connect(fd, address, bytes);
    if (result == 0 || errno == EINPROGRESS || errno == EINTR)
        shim_connection_made(fd, address.__sockaddr__, bytes, &observation);
    return result;
}
SHIM_EXPORT int __connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t bytes)
    __attribute__((alias("connect")));

// An end is worth a record only if the collector was told of the connection: a fork child that
// closes what it inherited shall not make a ring for it.
static struct observation end_begin(int fd, uint32_t watched)
{
    struct observation observation = {.slot = &shim.slots[watched & 0xffff]};
    uint64_t epoch = atomic_load(&shim.session->epoch);
    if (epoch != 0 && atomic_load(&observation.slot->announced) == epoch) {
        observation = observe_begin(fd, watched);
        if (atomic_load(&observation.slot->references) == 1 && !shim_borrowed_memory())
            shim_check_end(&observation);
    }
    return observation;
}

// The descriptor must leave the table before the kernel can give its number to another thread.
void shim_close_begin(int fd, struct ending *ending)
{
    *ending = (struct ending){.watched = shim_known(fd)};
    if (likely(!ending->watched)) {
        shim_descriptor_forget(fd);
        return;
    }
    int saved = errno;
    ending->observation = end_begin(fd, ending->watched);
    ending->watched = shim_descriptor_take(fd);
    errno = saved;
}

void shim_close_end(struct ending *ending)
{
    if (likely(!ending->watched))
        return;
    int saved = errno;
    shim_connection_release(ending->watched, &ending->observation);
    errno = saved;
}

SHIM_EXPORT int close(int fd)
{
    struct ending ending;
    shim_close_begin(fd, &ending);
    int result = real.close(fd);
    shim_close_end(&ending);
    return result;
}
SHIM_EXPORT int __close(int fd) __attribute__((alias("close")));

SHIM_EXPORT int __close_nocancel(int fd)
{
    struct ending ending;
    shim_close_begin(fd, &ending);
    int result = (int)shim_kernel(SYS_close, fd);
    shim_close_end(&ending);
    return result;
}

static void forget_range(unsigned first, unsigned last)
{
    struct ending ending;
    unsigned highest = atomic_load(&shim.highest_descriptor);
    if (last > highest)
        last = highest;
    for (unsigned fd = first; fd <= last; fd++) {
        shim_close_begin((int)fd, &ending);
        shim_close_end(&ending);
    }
}

void shim_close_range(unsigned first, unsigned last, int flags)
{
    if (!shim.descriptor_limit || first > last || (flags & (int)CLOSE_RANGE_CLOEXEC))
        return;
    int saved = errno;
    forget_range(first, last);
    errno = saved;
}

SHIM_EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    shim_close_range(first, last, flags);
    return real.close_range(first, last, flags);
}

SHIM_EXPORT void closefrom(int first)
{
    if (shim.descriptor_limit)
        forget_range(first > 0 ? (unsigned)first : 0, ~0U);
    real.closefrom(first);
}

int shim_descriptor_copied(int fd, int copy)
{
    if (copy >= 0) {
        int saved = errno;
        shim_descriptor_alias(fd, copy);
        errno = saved;
    }
    return copy;
}

SHIM_EXPORT int dup(int fd)
{
    return shim_descriptor_copied(fd, real.dup(fd));
}

// dup2 and dup3 close what `to` was before, unless they fail.
void shim_replace_begin(int fd, int to, struct ending *ending)
{
    *ending = (struct ending){.watched = fd == to ? 0 : shim_known(to)};
    if (likely(!ending->watched))
        return;
    int saved = errno;
    ending->observation = end_begin(to, ending->watched);
    ending->watched = shim_descriptor_take(to);
    errno = saved;
}

int shim_replace_end(int fd, int to, struct ending *ending, int result)
{
    int saved = errno;
    if (result < 0)
        shim_descriptor_put_back(to, ending->watched);
    else if (ending->watched)
        shim_connection_release(ending->watched, &ending->observation);
    if (result >= 0 && fd != to)
        shim_descriptor_alias(fd, result);
    errno = saved;
    return result;
}

SHIM_EXPORT int dup2(int fd, int to)
{
    struct ending ending;
    shim_replace_begin(fd, to, &ending);
    return shim_replace_end(fd, to, &ending, real.dup2(fd, to));
}
SHIM_EXPORT int __dup2(int fd, int to) __attribute__((alias("dup2"), leaf, nothrow));

SHIM_EXPORT int dup3(int fd, int to, int flags)
{
    struct ending ending;
    shim_replace_begin(fd, to, &ending);
    return shim_replace_end(fd, to, &ending, real.dup3(fd, to, flags));
}

SHIM_EXPORT int fcntl(int fd, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    int result = real.fcntl(fd, command, argument);
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? shim_descriptor_copied(fd, result)
                                                            : result;
}
SHIM_EXPORT int fcntl64(int fd, int command, ...) __attribute__((alias("fcntl")));
SHIM_EXPORT int __fcntl(int fd, int command, ...) __attribute__((alias("fcntl")));

// Another process's descriptor: whatever had the number here before is gone.
SHIM_EXPORT int pidfd_getfd(int pidfd, int fd, unsigned flags)
{
    int result = (int)shim_kernel(SYS_pidfd_getfd, pidfd, fd, flags);
    if (result >= 0)
        shim_descriptor_forget(result);
    return result;
}

// stdio reads and writes inside libc, where nothing can be seen: better not watched than wrong.
SHIM_EXPORT FILE *fdopen(int fd, const char *mode)
{
    FILE *file = real.fdopen(fd, mode);
    if (file && shim_watched(fd)) {
        int saved = errno;
        struct ending ending;
        shim_close_begin(fd, &ending);
        if (ending.watched) {
            atomic_fetch_add(&shim.page->stdio, 1);
            shim_close_end(&ending);
            shim_descriptor_is_other(fd);
        }
        errno = saved;
    }
    return file;
}
