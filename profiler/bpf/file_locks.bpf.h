// SPDX-License-Identifier: MIT
//
// Locks on files that somebody tries to get without waiting for them (F_SETLK, LOCK_NB), and tries
// again after a while: who has them, and until when. And files that are locks themselves, as only
// one can make them: by open with O_EXCL, mkdir, link or symlink, until they are removed or
// renamed. Part of events.bpf.c.
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

// --- files that are locks ------------------------------------------------------------------------

enum { LOCK_FILES = 1024, PATH_BYTES = 128 };

// One that somebody made, or was refused.
struct lock_file {
    uint64_t until_ns;        // those that get it, or remove it, are recorded until then
    uint32_t process, thread; // who made it; 0: not known
};

// By a digest of the path as it was told, and of the folder from where that is. The same file by
// another name is not known again.
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, LOCK_FILES);
    __type(key, uint64_t);
    __type(value, struct lock_file);
} lock_files SEC(".maps");

// A path's digest, and where its last part begins. No path: 0.
struct path_digest {
    uint64_t digest;
    const char *last;
};

static __always_inline struct path_digest path_digest(int folder, const struct filename *filename)
{
    enum { HERE = -100 }; // AT_FDCWD
    char path[PATH_BYTES] = {};
    struct path_digest known = {.digest = 0xcbf29ce484222325u}; // FNV-1a
    const char *name = (const char *)WORD_READ(filename, name);
    if (!name || bpf_probe_read_kernel_str(path, sizeof path, name) < 0)
        return (struct path_digest){0};
    if (path[0] != '/') {
        const struct task_struct *task = (void *)bpf_get_current_task();
        const struct fs_struct *fs = (const struct fs_struct *)WORD_READ(task, fs);
        known.digest ^= folder == HERE ? WORD_READ(fs, pwd.dentry) : (uint64_t)folder;
    }
    known.last = name;
    for (int i = 0; i < PATH_BYTES && path[i]; i++) {
        known.digest = (known.digest ^ (uint8_t)path[i]) * 0x100000001b3u;
        if (path[i] == '/')
            known.last = name + i + 1;
    }
    return known;
}

static __always_inline int lock_file_record(const struct path_digest *path, uint8_t how,
                                            uint32_t process, uint64_t made_by, uint64_t now)
{
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = how == FILE_LOCK_REFUSED ? watched_ring(core) : ring_of(core);
    uint32_t thread = (uint32_t)bpf_get_current_pid_tgid();
    if (!ring || *(volatile uint32_t *)&resting)
        return 0;
    if (how == FILE_LOCK_REFUSED) {
        char name[24] = {};
        bpf_probe_read_kernel_str(name, 17, path->last);
        const uint64_t *words = (const uint64_t *)name;
        record_write_at(ring, core, EVENT_FILE_LOCK, FILE_LOCK_NAME | FILE_LOCK_FILE, thread, now,
                        words[0], words[1]);
    }
    return record_write_at(ring, core, EVENT_FILE_LOCK, how | FILE_LOCK_FILE, thread, now,
                           (uint32_t)path->digest | (uint64_t)process << 32, made_by);
}

// Somebody made it, or it was there.
static __attribute__((noinline)) int lock_file_tried(int folder, const struct filename *filename,
                                                     bool refused)
{
    const struct path_digest path = path_digest(folder, filename);
    uint64_t now = bpf_ktime_get_ns(), here = bpf_get_current_pid_tgid();
    const struct lock_file *before = bpf_map_lookup_elem(&lock_files, &path.digest);
    struct lock_file file = before ? *before : (struct lock_file){0};
    if (!path.last)
        return 0;
    if (refused) {
        file.until_ns = now + CONTENDED_NS;
        lock_file_record(&path, FILE_LOCK_REFUSED, file.process, file.thread, now);
    } else {
        file.process = (uint32_t)(here >> 32);
        file.thread = (uint32_t)here;
        if (now < file.until_ns)
            lock_file_record(&path, FILE_LOCK_GRANTED, file.process, 0, now);
    }
    bpf_map_update_elem(&lock_files, &path.digest, &file, BPF_ANY);
    return 0;
}

static __attribute__((noinline)) int lock_file_removed(int folder, const struct filename *filename)
{
    const struct path_digest path = path_digest(folder, filename);
    uint64_t now = bpf_ktime_get_ns(), here = bpf_get_current_pid_tgid();
    struct lock_file *file = path.last ? bpf_map_lookup_elem(&lock_files, &path.digest) : NULL;
    if (!file)
        return 0;
    file->process = file->thread = 0;
    return now < file->until_ns
               ? lock_file_record(&path, FILE_LOCK_RELEASED, (uint32_t)(here >> 32), 0, now)
               : 0;
}

// What these functions return where it is an error: the number of it below zero.
static __always_inline bool is_pointer(uint64_t result)
{
    return result < (uint64_t)-4095;
}

SEC("fexit/do_filp_open")
int BPF_PROG(do_filp_open_exit, int folder, const struct filename *filename,
             const struct open_flags *how, uint64_t result)
{
    enum { EXCLUSIVE = 0200 | 0100, EXISTS = -17 }; // O_EXCL | O_CREAT
    if (((uint32_t)WORD_READ(how, open_flag) & EXCLUSIVE) != EXCLUSIVE)
        return 0;
    if (is_pointer(result) || result == (uint64_t)EXISTS)
        lock_file_tried(folder, filename, !is_pointer(result));
    return 0;
}

SEC("fexit/filename_create")
int BPF_PROG(filename_create_exit, int folder, const struct filename *filename, void *path,
             unsigned int flags, uint64_t result)
{
    enum { EXISTS = -17 };
    if (is_pointer(result) || result == (uint64_t)EXISTS)
        lock_file_tried(folder, filename, !is_pointer(result));
    return 0;
}

SEC("fentry/do_unlinkat")
int BPF_PROG(do_unlinkat_entry, int folder, const struct filename *filename)
{
    return lock_file_removed(folder, filename);
}

SEC("fentry/do_rmdir")
int BPF_PROG(do_rmdir_entry, int folder, const struct filename *filename)
{
    return lock_file_removed(folder, filename);
}

SEC("fentry/do_renameat2")
int BPF_PROG(do_renameat2_entry, int folder, const struct filename *filename)
{
    return lock_file_removed(folder, filename);
}

#endif
