// SPDX-License-Identifier: MIT
//
// The first bytes of what socket calls move, from the caller's own buffers, for who is to tell
// messages apart by them (workloads/framing/framing.h). Only where that is asked for. Part of
// events.bpf.c.
#ifndef PROFILER_BPF_PAYLOAD_BPF_H
#define PROFILER_BPF_PAYLOAD_BPF_H

#include "profiler/bpf/record.bpf.h"

// Where a call's bytes are.
struct payload_place {
    uint64_t address; // of the bytes; of the vector, where there are pieces
    uint64_t pieces;
};

struct payload_piece { // struct iovec
    uint64_t address, bytes;
};

// By the system call that runs here, of x86-64. False: what it moves is elsewhere (io_uring,
// sendfile).
static __always_inline bool payload_find(struct payload_place *place)
{
    enum { READ = 0, WRITE = 1, READV = 19, WRITEV = 20 };
    enum { SENDTO = 44, RECVFROM = 45, SENDMSG = 46, RECVMSG = 47 };
    enum { VECTOR_IN_MESSAGE = 16 }; // struct msghdr: a name, its length, then the vector
    struct pt_regs *regs = NULL;
    if (!bpf_core_field_exists(regs->orig_ax) ||
        !bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
        return false;
    regs = (struct pt_regs *)bpf_task_pt_regs((void *)bpf_get_current_task_btf());
    uint64_t call = regs->orig_ax;
    place->address = regs->si;
    place->pieces = 0;
    if (call == READ || call == WRITE || call == SENDTO || call == RECVFROM)
        return true;
    place->pieces = regs->dx;
    if (call == READV || call == WRITEV)
        return true;
    return (call == SENDMSG || call == RECVMSG) &&
           bpf_probe_read_user(place, sizeof *place,
                               (const void *)(place->address + VECTOR_IN_MESSAGE)) == 0;
}

// Copies the first bytes of a buffer, as many as there is room for.
static __always_inline uint64_t payload_copy(char *out, uint64_t address, uint64_t bytes,
                                             uint64_t room)
{
    bytes = number_bounded(bytes);
    if (bytes > room)
        bytes = room;
    return bpf_probe_read_user(out, (uint32_t)bytes, (const void *)address) < 0 ? 0 : bytes;
}

struct payload_long {
    struct payload_head head;
    char bytes[2 * PAYLOAD_LONG]; // the last piece begins before the end of the first half
};

// Of a vector, piece by piece.
struct payload_copying {
    struct payload_long *record;
    struct payload_place place;
    uint64_t bytes, filled;
};

static long payload_copy_piece(uint32_t i, struct payload_copying *copying)
{
    struct payload_piece piece;
    uint64_t to = number_bounded(copying->filled), left = copying->bytes - to;
    if (i >= copying->place.pieces || to >= PAYLOAD_LONG || to >= copying->bytes ||
        bpf_probe_read_user(&piece, sizeof piece,
                            (const void *)(copying->place.address + i * sizeof piece)) < 0)
        return 1;
    uint64_t wanted = piece.bytes < left ? piece.bytes : left;
    uint64_t copied =
        payload_copy(copying->record->bytes + to, piece.address, wanted, PAYLOAD_LONG);
    copying->filled = to + copied;
    return copied < wanted;
}

static __always_inline int payload_lose(void)
{
    __sync_fetch_and_add(&payload_lost, 1);
    return 0;
}

static __always_inline int payload_note_short(const struct payload_head *head,
                                              const struct payload_place *place)
{
    struct {
        struct payload_head head;
        char bytes[PAYLOAD_SHORT];
    } *record = bpf_ringbuf_reserve(&payload, sizeof *record, 0);
    if (!record)
        return payload_lose();
    record->head = *head;
    record->head.seen =
        (uint16_t)payload_copy(record->bytes, place->address, head->bytes, PAYLOAD_SHORT);
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    return 0;
}

static __always_inline int payload_note_long(const struct payload_head *head,
                                             const struct payload_place *place)
{
    struct payload_long *record = bpf_ringbuf_reserve(&payload, sizeof *record, 0);
    struct payload_copying copying = {record, *place, head->bytes, 0};
    if (!record)
        return payload_lose();
    record->head = *head;
    if (place->pieces)
        bpf_loop(PAYLOAD_PIECES, payload_copy_piece, &copying, 0);
    else
        copying.filled = payload_copy(record->bytes, place->address, head->bytes, PAYLOAD_LONG);
    record->head.seen = (uint16_t)(copying.filled < PAYLOAD_LONG ? copying.filled : PAYLOAD_LONG);
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
    return 0;
}

// Before the record of the call, so that who has that has these, too.
static __attribute__((noinline)) int payload_note(uint32_t id, uint64_t end, uint32_t bytes,
                                                  bool is_reply)
{
    struct payload_place place = {0, 0};
    const struct payload_head head = {.time = bpf_ktime_get_ns(),
                                      .offset = end - bytes,
                                      .id = id,
                                      .bytes = bytes,
                                      .core = (uint16_t)bpf_get_smp_processor_id(),
                                      .is_reply = is_reply};
    if (!payload_find(&place)) {
        __sync_fetch_and_add(&payload_unseen, 1);
        return 0;
    }
    return !place.pieces && bytes <= PAYLOAD_SHORT ? payload_note_short(&head, &place)
                                                   : payload_note_long(&head, &place);
}

#endif
