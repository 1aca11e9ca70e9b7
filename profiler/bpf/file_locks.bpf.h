// SPDX-License-Identifier: MIT
//
// Locks on files that somebody tries to get without waiting for them (F_SETLK, LOCK_NB), and tries
// again after a while: who has them, and until when. Part of events.bpf.c.
#ifndef PROFILER_BPF_FILE_LOCKS_BPF_H
#define PROFILER_BPF_FILE_LOCKS_BPF_H

#include "profiler/bpf/record.bpf.h"

enum { FILES_CONTENDED = 256, CONTENDED_NS = 2000000000 };

// What was refused last of a file, by the low bits of the file's number.
struct contended_file {
    uint64_t inode; // its address
    uint64_t until_ns;
    int64_t begin, end; // the range of bytes
};
static struct contended_file contended_files[FILES_CONTENDED];

enum { READ_LOCK = 0, UNLOCK = 2 }; // F_RDLCK, F_UNLCK

// A field of a lock of which the verifier does not know what it is.
#define LOCK_READ(lock, field)                                                                     \
    (bpf_core_type_exists(struct file_lock_core)                                                   \
         ? WORD_READ((struct file_lock *)(lock), c.flc_##field)                                    \
         : WORD_READ((struct file_lock___before_6_9 *)(lock), fl_##field))

// The first of a list of locks; they are linked by a member.
static __always_inline uint64_t lock_of_link(uint64_t link)
{
    if (bpf_core_type_exists(struct file_lock_core))
        return link - bpf_core_field_offset(((struct file_lock *)0)->c.flc_list);
    return link - bpf_core_field_offset(((struct file_lock___before_6_9 *)0)->fl_list);
}

// The process that has a lock because of which this one was refused; 0: none is there (any more),
// or it is not among the first.
static __attribute__((noinline)) int lock_holder(struct inode *inode, struct file_lock *lock,
                                                 bool flock)
{
    enum { MOST_LOCKS = 64 };
    uint64_t context = WORD_READ(inode, i_flctx);
    if (!context)
        return 0;
    uint64_t head =
        context + (flock ? bpf_core_field_offset(((struct file_lock_context *)0)->flc_flock)
                         : bpf_core_field_offset(((struct file_lock_context *)0)->flc_posix));
    uint64_t link = word_read((const void *)head);
    bool reads = (uint8_t)LOCK_READ(lock, type) == READ_LOCK;
    uint64_t owner = LOCK_READ(lock, owner);
    int64_t begin = (int64_t)WORD_READ(lock, fl_start), end = (int64_t)WORD_READ(lock, fl_end);
    for (int i = 0; i < MOST_LOCKS && link && link != head; i++) {
        struct file_lock *other = (struct file_lock *)lock_of_link(link);
        link = word_read((const void *)link);
        if ((reads && (uint8_t)LOCK_READ(other, type) == READ_LOCK) ||
            LOCK_READ(other, owner) == owner || (int64_t)WORD_READ(other, fl_start) > end ||
            (int64_t)WORD_READ(other, fl_end) < begin)
            continue;
        return (int)LOCK_READ(other, pid);
    }
    return 0;
}

static __attribute__((noinline)) int lock_refused(struct inode *inode, struct file_lock *lock,
                                                  bool flock)
{
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = watched_ring(core);
    uint64_t number = WORD_READ(inode, i_ino), now = bpf_ktime_get_ns();
    uint64_t slot = number_bounded(number & (FILES_CONTENDED - 1));
    if (!ring || slot >= FILES_CONTENDED)
        return 0;
    struct contended_file *file = &contended_files[number_bounded(slot)];
    file->inode = (uint64_t)inode;
    file->until_ns = now + CONTENDED_NS;
    file->begin = (int64_t)WORD_READ(lock, fl_start);
    file->end = (int64_t)WORD_READ(lock, fl_end);
    struct file *opened = (struct file *)LOCK_READ(lock, file);
    struct dentry *entry = (struct dentry *)WORD_READ(opened, f_path.dentry);
    char name[24] = {};
    bpf_probe_read_kernel_str(name, 17, (const void *)WORD_READ(entry, d_name.name));
    const uint64_t *words = (const uint64_t *)name;
    uint8_t how = flock ? FILE_LOCK_FLOCK : 0;
    uint32_t thread = (uint32_t)bpf_get_current_pid_tgid();
    uint64_t holder = (uint32_t)lock_holder(inode, lock, flock);
    record_write_at(ring, core, EVENT_FILE_LOCK, FILE_LOCK_NAME | how, thread, now, words[0],
                    words[1]);
    return record_write_at(ring, core, EVENT_FILE_LOCK, FILE_LOCK_REFUSED | how, thread, now,
                           (uint32_t)number | holder << 32, 0);
}

static __always_inline int lock_tried(struct inode *inode, struct file_lock *lock, int result,
                                      bool flock)
{
    enum { AGAIN = -11 };
    if (!inode || !lock) // which is what the verifier fears
        return 0;
    if (result == AGAIN)
        return lock_refused(inode, lock, flock);
    uint64_t number = inode->i_ino, slot = number_bounded(number & (FILES_CONTENDED - 1));
    if (result != 0 || slot >= FILES_CONTENDED)
        return 0;
    const struct contended_file *file = &contended_files[number_bounded(slot)];
    if (file->inode != (uint64_t)inode || lock->fl_start > file->end || lock->fl_end < file->begin)
        return 0;
    uint64_t now = bpf_ktime_get_ns(), here = bpf_get_current_pid_tgid();
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = ring_of(core);
    if (!ring || now > file->until_ns || *(volatile uint32_t *)&resting)
        return 0;
    uint8_t what =
        (uint8_t)LOCK_READ(lock, type) == UNLOCK ? FILE_LOCK_RELEASED : FILE_LOCK_GRANTED;
    return record_write_at(ring, core, EVENT_FILE_LOCK, what | (flock ? FILE_LOCK_FLOCK : 0),
                           (uint32_t)here, now, (uint32_t)number | here >> 32 << 32, 0);
}

SEC("tp_btf/posix_lock_inode")
int BPF_PROG(posix_lock_inode, struct inode *inode, struct file_lock *lock, int result)
{
    return lock_tried(inode, lock, result, false);
}

SEC("tp_btf/flock_lock_inode")
int BPF_PROG(flock_lock_inode, struct inode *inode, struct file_lock *lock, int result)
{
    return lock_tried(inode, lock, result, true);
}

#endif
