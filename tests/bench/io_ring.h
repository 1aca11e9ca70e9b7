// SPDX-License-Identifier: MIT
//
// An io_uring as small as bench_io_uring.c needs it, by the system calls alone: submissions, their
// completions, registered files, and a ring of buffers that receives pick from.
#ifndef BENCH_IO_RING_H
#define BENCH_IO_RING_H

#include <errno.h>
#include <linux/io_uring.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    RING_ENTRIES = 2048,
    RING_COMPLETIONS = 8192,
    RING_BUFFERS = 1024, // a power of two
    RING_BUFFER_BYTES = 8192,
};

struct io_ring {
    int fd;
    unsigned *sq_tail, *sq_flags, sq_mask;
    unsigned *cq_head, *cq_tail, cq_mask;
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;
    unsigned filled, submitted;
    struct io_uring_buf_ring *free_buffers;
    char *buffers;
    uint16_t freed;
};

static inline void *ring_map(int fd, size_t bytes, off_t offset)
{
    const int shared = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, shared | MAP_POPULATE, fd, offset);
}

static inline char *ring_buffer(const struct io_ring *ring, unsigned id)
{
    return ring->buffers + (size_t)id * RING_BUFFER_BYTES;
}

// Gives a buffer back to the kernel; ring_publish() says so.
static inline void ring_give(struct io_ring *ring, unsigned id)
{
    ring->free_buffers->bufs[ring->freed++ & (RING_BUFFERS - 1)] =
        (struct io_uring_buf){.addr = (uint64_t)(uintptr_t)ring_buffer(ring, id),
                              .len = RING_BUFFER_BYTES,
                              .bid = (uint16_t)id};
}

static inline void ring_publish(struct io_ring *ring)
{
    __atomic_store_n(&ring->free_buffers->tail, ring->freed, __ATOMIC_RELEASE);
}

static inline int ring_register(const struct io_ring *ring, unsigned what, const void *argument,
                                unsigned count)
{
    return (int)syscall(SYS_io_uring_register, ring->fd, what, argument, count);
}

// Returns 0, or -1 with errno: EPERM or ENOSYS where io_uring is denied, EINVAL where the kernel
// does not know these flags or buffer rings. It lasts as long as the process.
static inline int ring_make(struct io_ring *ring, unsigned flags, const int *files, unsigned count)
{
    struct io_uring_params made = {.flags = flags | IORING_SETUP_CQSIZE,
                                   .cq_entries = RING_COMPLETIONS};
    ring->fd = (int)syscall(SYS_io_uring_setup, RING_ENTRIES, &made);
    if (ring->fd < 0)
        return -1;
    if (!(made.features & IORING_FEAT_SINGLE_MMAP)) {
        errno = EINVAL;
        return -1;
    }
    const size_t submissions = made.sq_off.array + made.sq_entries * sizeof(unsigned),
                 completions = made.cq_off.cqes + made.cq_entries * sizeof(struct io_uring_cqe);
    char *both = ring_map(ring->fd, submissions > completions ? submissions : completions,
                          IORING_OFF_SQ_RING);
    ring->sqes = ring_map(ring->fd, made.sq_entries * sizeof *ring->sqes, IORING_OFF_SQES);
    ring->free_buffers = ring_map(-1, RING_BUFFERS * sizeof(struct io_uring_buf), 0);
    ring->buffers = ring_map(-1, (size_t)RING_BUFFERS * RING_BUFFER_BYTES, 0);
    if (both == MAP_FAILED || ring->sqes == MAP_FAILED || ring->free_buffers == MAP_FAILED ||
        ring->buffers == MAP_FAILED)
        return -1;
    ring->sq_tail = (unsigned *)(both + made.sq_off.tail);
    ring->sq_flags = (unsigned *)(both + made.sq_off.flags);
    ring->sq_mask = made.sq_entries - 1;
    ring->cq_head = (unsigned *)(both + made.cq_off.head);
    ring->cq_tail = (unsigned *)(both + made.cq_off.tail);
    ring->cq_mask = made.cq_entries - 1;
    ring->cqes = (struct io_uring_cqe *)(both + made.cq_off.cqes);
    for (unsigned i = 0; i < made.sq_entries; i++)
        ((unsigned *)(both + made.sq_off.array))[i] = i;
    for (unsigned i = 0; i < RING_BUFFERS; i++)
        ring_give(ring, i);
    const struct io_uring_buf_reg group = {.ring_addr = (uint64_t)(uintptr_t)ring->free_buffers,
                                           .ring_entries = RING_BUFFERS};
    if (ring_register(ring, IORING_REGISTER_PBUF_RING, &group, 1) < 0 ||
        ring_register(ring, IORING_REGISTER_FILES, files, count) < 0)
        return -1;
    ring_publish(ring);
    return 0;
}

// The next submission, for that registered file. No more than RING_ENTRIES between two
// ring_enter().
static inline struct io_uring_sqe *ring_fill(struct io_ring *ring, uint8_t operation, unsigned file)
{
    struct io_uring_sqe *sqe = &ring->sqes[ring->filled++ & ring->sq_mask];
    memset(sqe, 0, sizeof *sqe);
    sqe->opcode = operation;
    sqe->fd = (int)file;
    sqe->flags = IOSQE_FIXED_FILE;
    return sqe;
}

// Submits what was filled and lets the kernel complete what it can, in one call, or in none where
// nothing waits for one. wait: for a completion, unless there is one.
static inline int ring_enter(struct io_ring *ring, bool wait)
{
    const unsigned submit = ring->filled - ring->submitted;
    const bool any = *ring->cq_head != __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE);
    const unsigned work = IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW;
    if (!submit && !(__atomic_load_n(ring->sq_flags, __ATOMIC_RELAXED) & work) && (any || !wait))
        return 0;
    __atomic_store_n(ring->sq_tail, ring->filled, __ATOMIC_RELEASE);
    const long taken = syscall(SYS_io_uring_enter, ring->fd, submit, wait && !any,
                               IORING_ENTER_GETEVENTS, NULL, 0);
    if (taken < 0)
        return errno == EINTR || errno == EAGAIN || errno == EBUSY ? 0 : -1;
    ring->submitted += (unsigned)taken;
    return 0;
}

// The next completion, or NULL. It is valid until the one after it is asked for.
static inline const struct io_uring_cqe *ring_next(const struct io_ring *ring, unsigned *head)
{
    return *head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE)
               ? NULL
               : &ring->cqes[(*head)++ & ring->cq_mask];
}

static inline void ring_seen(struct io_ring *ring, unsigned head)
{
    __atomic_store_n(ring->cq_head, head, __ATOMIC_RELEASE);
}

#endif
