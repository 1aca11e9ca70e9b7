// SPDX-License-Identifier: MIT
//
// The calls that make and unmake connections and descriptors: accept, connect, close, dup and their
// kin.
#include "shim/preload.h"

#include <stdarg.h>

static struct observation connection_begin(void)
{
    struct observation observation = {0};
    observation.entry_tsc = tsc_now_on_core(&observation.entry_core);
    return observation;
}

// The peer's address as the application got it; NULL if it did not ask for it or it was truncated.
static void accept_end(struct observation *observation, int fd, const struct sockaddr *address,
                       socklen_t room, const socklen_t *bytes)
{
    bool whole = address && bytes && *bytes <= room;
    shim_connection_accepted(fd, whole ? address : NULL, whole ? *bytes : 0, observation);
}

SHIM_EXPORT int accept(int fd, __SOCKADDR_ARG address, socklen_t *restrict bytes)
{
    if (!shim.descriptor_limit)
        return real.accept(fd, address, bytes);
    struct observation observation = connection_begin();
    socklen_t room = address.__sockaddr__ && bytes ? *bytes : 0;
    int accepted = real.accept(fd, address, bytes);
    if (accepted >= 0)
        accept_end(&observation, accepted, address.__sockaddr__, room, bytes);
    return accepted;
}

SHIM_EXPORT int accept4(int fd, __SOCKADDR_ARG address, socklen_t *restrict bytes, int flags)
{
    if (!shim.descriptor_limit)
        return real.accept4(fd, address, bytes, flags);
    struct observation observation = connection_begin();
    socklen_t room = address.__sockaddr__ && bytes ? *bytes : 0;
    int accepted = real.accept4(fd, address, bytes, flags);
    if (accepted >= 0)
        accept_end(&observation, accepted, address.__sockaddr__, room, bytes);
    return accepted;
}

// A connection that is not blocked on goes on in the background.
SHIM_EXPORT int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t bytes)
{
    if (!shim.descriptor_limit)
        return real.connect(fd, address, bytes);
    struct observation observation = connection_begin();
    int result = real.connect(fd, address, bytes);
    if (result == 0 || errno == EINPROGRESS || errno == EINTR)
        shim_connection_made(fd, address.__sockaddr__, bytes, &observation);
    return result;
}
SHIM_EXPORT int __connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t bytes)
    __attribute__((alias("connect")));

// An end is worth a record only if the collector was told of the connection: a fork child that
// closes what it inherited shall not make a ring for it.
static struct observation close_begin(uint32_t watched)
{
    struct observation observation = {.slot = &shim.slots[watched & 0xffff]};
    uint64_t epoch = atomic_load(&shim.session->epoch);
    if (epoch != 0 && atomic_load(&observation.slot->announced) == epoch)
        observation = observe_begin(watched);
    return observation;
}

// The descriptor must leave the table before the kernel can give its number to another thread.
SHIM_EXPORT int close(int fd)
{
    uint32_t watched = shim_watched(fd);
    if (likely(!watched))
        return real.close(fd);
    struct observation observation = close_begin(watched);
    watched = shim_descriptor_take(fd);
    int result = real.close(fd);
    if (watched) {
        int saved = errno;
        shim_connection_release(watched, &observation);
        errno = saved;
    }
    return result;
}
SHIM_EXPORT int __close(int fd) __attribute__((alias("close")));

static void forget_range(unsigned first, unsigned last)
{
    unsigned highest = atomic_load(&shim.highest_descriptor);
    if (last > highest)
        last = highest;
    for (unsigned fd = first; fd <= last; fd++) {
        uint32_t watched = shim_watched((int)fd);
        if (!watched)
            continue;
        struct observation observation = close_begin(watched);
        watched = shim_descriptor_take((int)fd);
        if (watched)
            shim_connection_release(watched, &observation);
    }
}

SHIM_EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    if (shim.descriptor_limit && first <= last && !(flags & (int)CLOSE_RANGE_CLOEXEC)) {
        int saved = errno;
        forget_range(first, last);
        errno = saved;
    }
    return real.close_range(first, last, flags);
}

SHIM_EXPORT void closefrom(int first)
{
    if (shim.descriptor_limit)
        forget_range(first > 0 ? (unsigned)first : 0, ~0U);
    real.closefrom(first);
}

static int descriptor_aliased(int fd, int copy)
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
    return descriptor_aliased(fd, real.dup(fd));
}

// dup2 and dup3 close what `to` was before, unless they fail.
static uint32_t replace_begin(int fd, int to, struct observation *observation)
{
    uint32_t watched = fd == to ? 0 : shim_watched(to);
    if (likely(!watched))
        return 0;
    *observation = close_begin(watched);
    return shim_descriptor_take(to);
}

static int replace_end(int fd, int to, uint32_t replaced, struct observation *observation,
                       int result)
{
    int saved = errno;
    if (result < 0)
        shim_descriptor_put_back(to, replaced);
    else if (replaced)
        shim_connection_release(replaced, observation);
    if (result >= 0 && fd != to)
        shim_descriptor_alias(fd, result);
    errno = saved;
    return result;
}

SHIM_EXPORT int dup2(int fd, int to)
{
    struct observation observation;
    uint32_t replaced = replace_begin(fd, to, &observation);
    return replace_end(fd, to, replaced, &observation, real.dup2(fd, to));
}
SHIM_EXPORT int __dup2(int fd, int to) __attribute__((alias("dup2"), leaf, nothrow));

SHIM_EXPORT int dup3(int fd, int to, int flags)
{
    struct observation observation;
    uint32_t replaced = replace_begin(fd, to, &observation);
    return replace_end(fd, to, replaced, &observation, real.dup3(fd, to, flags));
}

SHIM_EXPORT int fcntl(int fd, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    int result = real.fcntl(fd, command, argument);
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? descriptor_aliased(fd, result)
                                                            : result;
}
SHIM_EXPORT int fcntl64(int fd, int command, ...) __attribute__((alias("fcntl")));
SHIM_EXPORT int __fcntl(int fd, int command, ...) __attribute__((alias("fcntl")));

// stdio reads and writes inside libc, where nothing can be seen: better not watched than wrong.
SHIM_EXPORT FILE *fdopen(int fd, const char *mode)
{
    FILE *file = real.fdopen(fd, mode);
    if (file && shim_watched(fd)) {
        int saved = errno;
        struct observation observation = close_begin(shim_watched(fd));
        uint32_t watched = shim_descriptor_take(fd);
        if (watched) {
            atomic_fetch_add(&shim.page->stdio, 1);
            shim_connection_release(watched, &observation);
        }
        errno = saved;
    }
    return file;
}
