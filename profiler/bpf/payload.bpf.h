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

// payload_note_NAME: of a call the first bytes, ROOM at most; payload_step_NAME: of its vector, a
// step's. The verifier needs each record's size as a constant. How far the steps are stands in the
// record, of whose content the verifier knows nothing: else it would follow them one by one. The
// last step begins before ROOM.
#define PAYLOAD_NOTE(NAME, ROOM)                                                                   \
    struct payload_##NAME {                                                                        \
        struct payload_head head;                                                                  \
        char bytes[(ROOM) + PAYLOAD_STEP];                                                         \
        uint64_t filled, piece, taken; /* of bytes; of the vector; of that piece */                \
    };                                                                                             \
    struct payload_copying_##NAME {                                                                \
        struct payload_##NAME *record;                                                             \
        struct payload_place place;                                                                \
        uint64_t bytes;                                                                            \
    };                                                                                             \
    static long payload_step_##NAME(uint32_t i, struct payload_copying_##NAME *copying)            \
    {                                                                                              \
        struct payload_piece piece;                                                                \
        uint64_t to = number_bounded(copying->record->filled), left = copying->bytes - to;         \
        uint64_t at = copying->place.address + copying->record->piece * sizeof piece;              \
        if (copying->record->piece >= copying->place.pieces || to >= (ROOM) ||                     \
            to >= copying->bytes ||                                                                \
            bpf_probe_read_user(&piece, sizeof piece, (const void *)at) < 0)                       \
            return 1;                                                                              \
        uint64_t wanted = piece.bytes - copying->record->taken;                                    \
        if (wanted > left)                                                                         \
            wanted = left;                                                                         \
        if (wanted > PAYLOAD_STEP)                                                                 \
            wanted = PAYLOAD_STEP;                                                                 \
        uint64_t copied =                                                                          \
            payload_copy(copying->record->bytes + to, piece.address + copying->record->taken,      \
                         wanted, PAYLOAD_STEP);                                                    \
        copying->record->filled = to + copied;                                                     \
        copying->record->taken += copied;                                                          \
        if (copying->record->taken >= piece.bytes) {                                               \
            copying->record->piece++;                                                              \
            copying->record->taken = 0;                                                            \
        }                                                                                          \
        return copied < wanted;                                                                    \
    }                                                                                              \
    static __always_inline int payload_note_##NAME(const struct payload_head *head,                \
                                                   const struct payload_place *place)              \
    {                                                                                              \
        struct payload_##NAME *record = bpf_ringbuf_reserve(&payload, sizeof *record, 0);          \
        struct payload_copying_##NAME copying = {record, *place, head->bytes};                     \
        if (!record)                                                                               \
            return payload_lose();                                                                 \
        record->head = *head;                                                                      \
        record->filled = record->piece = record->taken = 0;                                        \
        if (place->pieces)                                                                         \
            bpf_loop(PAYLOAD_STEPS, payload_step_##NAME, &copying, 0);                             \
        else                                                                                       \
            record->filled = payload_copy(record->bytes, place->address, head->bytes, ROOM);       \
        record->head.seen = (uint16_t)(record->filled < (ROOM) ? record->filled : (ROOM));         \
        bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);                                              \
        return 0;                                                                                  \
    }

PAYLOAD_NOTE(beginning, PAYLOAD_BEGINNING)
PAYLOAD_NOTE(whole, PAYLOAD_WHOLE)

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
    if (!place.pieces && bytes <= PAYLOAD_SHORT)
        return payload_note_short(&head, &place);
    bool whole = bytes > PAYLOAD_BEGINNING && bytes <= PAYLOAD_WHOLE &&
                 bpf_ringbuf_query(&payload, BPF_RB_AVAIL_DATA) <= PAYLOAD_UNREAD_MOST;
    return whole ? payload_note_whole(&head, &place) : payload_note_beginning(&head, &place);
}

#endif
