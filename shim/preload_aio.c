// SPDX-License-Identifier: MIT
//
// POSIX asynchronous I/O: threads of libc move the bytes, past everything that is replaced. A
// connection's are counted when the program takes the outcome, once for each operation. A reply was
// given when the operation was begun: that time waits in the part of the control block that is
// libc's own and unused.
#include "shim/preload_local.h"

#include <string.h>

struct aio_begun {
    uint64_t tsc;
    uint64_t core;
};
_Static_assert(sizeof(struct aio_begun) <= sizeof(((struct aiocb *)0)->__glibc_reserved), "room");

static void begun_note(struct aiocb *control)
{
    struct aio_begun begun = {0};
    uint16_t core;
    if (!control || !shim_watched(control->aio_fildes))
        return;
    begun.tsc = tsc_now_on_core(&core);
    begun.core = core;
    memcpy(control->__glibc_reserved, &begun, sizeof begun);
}

SHIM_EXPORT int aio_write(struct aiocb *control)
{
    begun_note(control);
    return real.aio_write(control);
}
SHIM_EXPORT int aio_write64(struct aiocb64 *control)
    __attribute__((alias("aio_write"), leaf, nothrow));

SHIM_EXPORT int lio_listio(int mode, struct aiocb *const *restrict list, int count,
                           struct sigevent *restrict event)
{
    for (int i = 0; i < count; i++)
        begun_note(list[i]);
    return real.lio_listio(mode, list, count, event);
}

SHIM_EXPORT ssize_t aio_return(struct aiocb *control)
{
    const int fd = control->aio_fildes, operation = control->aio_lio_opcode & 127;
    const uint32_t watched = operation == LIO_READ || operation == LIO_WRITE ? shim_watched(fd) : 0;
    ssize_t moved = real.aio_return(control);
    if (!watched || moved <= 0)
        return moved;
    struct observation observation = observe_begin(fd, watched);
    struct aio_begun begun;
    memcpy(&begun, control->__glibc_reserved, sizeof begun);
    if (operation == LIO_WRITE && begun.tsc && begun.tsc < observation.entry_tsc) {
        observation.entry_tsc = begun.tsc;
        observation.entry_core = (uint16_t)begun.core;
    }
    observe_end(&observation, operation == LIO_READ ? CALL_RECEIVE : CALL_SEND, moved);
    return moved;
}
