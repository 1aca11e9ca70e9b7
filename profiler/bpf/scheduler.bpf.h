// SPDX-License-Identifier: MIT
//
// Who runs where, who was woken or moved, what a thread sleeps in. Part of events.bpf.c.
#ifndef PROFILER_BPF_SCHEDULER_BPF_H
#define PROFILER_BPF_SCHEDULER_BPF_H

#include "profiler/bpf/memory_limit.bpf.h"
#include "profiler/bpf/record.bpf.h"
#include "profiler/bpf/system_call.bpf.h"

static __always_inline uint64_t task_state(struct task_struct *task)
{
    if (bpf_core_field_exists(task->__state))
        return task->__state;
    return (uint64_t)((struct task_struct___before_5_14 *)task)->state;
}

// Whether the CPU quota of the thread's control group, or of one above it, is used up on its core.
static __always_inline bool group_throttled(struct task_struct *task)
{
    return bpf_core_field_exists(task->se.cfs_rq) &&
           bpf_core_field_exists(task->se.cfs_rq->throttle_count) &&
           task->se.cfs_rq->throttle_count > 0;
}

static __always_inline uint32_t task_core(struct task_struct *task)
{
    if (bpf_core_field_exists(task->thread_info.cpu))
        return task->thread_info.cpu;
    return ((struct task_struct___before_5_16 *)task)->cpu;
}

// Servers wait for sockets to become ready all day: a flag of the switch has to do.
enum { POLL = 7, PPOLL = 271 };
static __always_inline bool waits_for_readiness(uint64_t call)
{
    enum { SELECT = 23, EPOLL_WAIT = 232, PSELECT6 = 270 };
    enum { EPOLL_PWAIT = 281, EPOLL_PWAIT2 = 441 }; // arch/x86/entry/syscalls/syscall_64.tbl
    return call == EPOLL_WAIT || call == EPOLL_PWAIT || call == EPOLL_PWAIT2 || call == POLL ||
           call == PPOLL || call == SELECT || call == PSELECT6;
}

// Calls whose first argument is the file that they are about.
static __always_inline bool is_about_file(uint64_t call)
{
    const uint64_t first = 1ull << 0 | 1ull << 1 |   // read, write
                           0xfull << 17 |            // pread64, pwrite64, readv, writev
                           1ull << 40 | 1ull << 42 | // sendfile, connect
                           0xfull << 44;             // sendto, recvfrom, sendmsg, recvmsg
    enum { FCNTL = 72, FLOCK, FSYNC, FDATASYNC, FTRUNCATE = 77 };
    enum { SPLICE = 275, SYNC_FILE_RANGE = 277 };
    enum { FALLOCATE = 285, PREADV = 295, PWRITEV, PREADV2 = 327, PWRITEV2 };
    if (call < 64)
        return first >> call & 1;
    return call == FCNTL || call == FLOCK || call == FSYNC || call == FDATASYNC ||
           call == FTRUNCATE || call == SPLICE || call == SYNC_FILE_RANGE || call == FALLOCATE ||
           call == PREADV || call == PWRITEV || call == PREADV2 || call == PWRITEV2;
}

// Those of them that change the file.
static __always_inline bool changes_file(uint64_t call)
{
    enum { WRITE = 1, PWRITE64 = 18, WRITEV = 20, SENDFILE = 40, FTRUNCATE = 77 };
    enum { FALLOCATE = 285, PWRITEV = 296, PWRITEV2 = 328 };
    return call == WRITE || call == PWRITE64 || call == WRITEV || call == SENDFILE ||
           call == FTRUNCATE || call == FALLOCATE || call == PWRITEV || call == PWRITEV2;
}

// The other end of a socket, unless that is a client of a watched port, which the message log has.
static __always_inline int record_peer(struct core_ring *ring, uint32_t core, uint32_t thread,
                                       struct file *file, uint64_t now)
{
    struct socket *socket = (struct socket *)WORD_READ(file, private_data);
    struct sock *sk = (struct sock *)WORD_READ(socket, sk);
    uint16_t family = (uint16_t)WORD_READ(sk, __sk_common.skc_family);
    uint16_t local = (uint16_t)WORD_READ(sk, __sk_common.skc_num);
    uint16_t port = (uint16_t)WORD_READ(sk, __sk_common.skc_dport);
    if ((family != FAMILY_INET && family != FAMILY_INET6) || !port || port_in_set(local))
        return 0;
    uint32_t address = 0;
    if (family == FAMILY_INET)
        address = (uint32_t)WORD_READ(sk, __sk_common.skc_daddr);
    return record_write_at(ring, core, EVENT_FILE, FILE_PEER, thread, now, address,
                           bpf_ntohs(port));
}

enum { FILE_TYPE = 0170000, SOCKET = 0140000, PIPE = 0010000 }; // S_IFMT, S_IFSOCK, S_IFIFO

static __always_inline struct file *file_of(struct task_struct *task, uint64_t descriptor)
{
    if (!bpf_core_field_exists(task->files))
        return NULL;
    struct fdtable *table = task->files->fdt;
    return descriptor < table->max_fds ? (struct file *)word_read(&table->fd[descriptor]) : NULL;
}

static __always_inline uint16_t type_of(struct file *file)
{
    struct inode *inode = (struct inode *)WORD_READ(file, f_inode);
    return (uint16_t)WORD_READ(inode, i_mode) & FILE_TYPE;
}

// Whether nobody may change what is on that file's file system (fsfreeze, a snapshot).
static __always_inline bool is_on_frozen(struct file *file)
{
    struct inode *inode = (struct inode *)WORD_READ(file, f_inode);
    struct super_block *system = (struct super_block *)WORD_READ(inode, i_sb);
    return (uint16_t)WORD_READ(system, s_writers.frozen);
}

// Reads the file's own name; that of a terminal is known by its folder: "pts/0". false: it has
// none.
static __always_inline bool read_name(struct file *file, uint16_t type, char name[24])
{
    enum { NAME_BYTES = 17, FOLDER_BYTES = 4, DEVICE = 0020000, MINOR_BITS = 20 }; // S_IFCHR
    enum { FIRST_TERMINAL = 136, TERMINALS = 8 };                                  // devices.txt
    struct dentry *entry = (struct dentry *)WORD_READ(file, f_path.dentry);
    struct inode *inode = (struct inode *)WORD_READ(file, f_inode);
    const void *text = (const void *)WORD_READ(entry, d_name.name);
    uint32_t major = (uint32_t)WORD_READ(inode, i_rdev) >> MINOR_BITS;
    if (type != DEVICE || major - FIRST_TERMINAL >= TERMINALS)
        return bpf_probe_read_kernel_str(name, NAME_BYTES, text) > 1;
    __builtin_memcpy(name, "pts/", FOLDER_BYTES);
    return bpf_probe_read_kernel_str(name + FOLDER_BYTES, NAME_BYTES - FOLDER_BYTES, text) > 1;
}

// Records what the call is about in which a thread is going to sleep, its first argument. Not part
// of the programs' straight way.
static __attribute__((noinline)) int record_file(struct core_ring *ring, struct task_struct *task,
                                                 uint64_t call, uint64_t descriptor, uint64_t now)
{
    uint32_t core = bpf_get_smp_processor_id();
    struct file *file = file_of(task, descriptor);
    if (!file)
        return 0;
    uint16_t type = type_of(file);
    if (type == SOCKET)
        return record_peer(ring, core, (uint32_t)task->pid, file, now);
    char name[24] = {};
    if (!read_name(file, type, name) && type != PIPE)
        return 0;
    const uint64_t *words = (const uint64_t *)name;
    uint8_t what = !name[0]                                   ? FILE_PIPE
                   : changes_file(call) && is_on_frozen(file) ? FILE_NAMED | FILE_ON_FROZEN
                                                              : FILE_NAMED;
    return record_write_at(ring, core, EVENT_FILE, what, (uint32_t)task->pid, now, words[0],
                           words[1]);
}

// The other end of the only socket that poll waits for, as a resolver's does.
static __attribute__((noinline)) int record_polled(struct core_ring *ring, uint32_t core,
                                                   struct task_struct *task, uint64_t at,
                                                   uint64_t now)
{
    uint32_t polled[2] = {}; // struct pollfd
    if (bpf_probe_read_user(polled, sizeof polled, (const void *)at) < 0)
        return 0;
    struct file *file = file_of(task, polled[0]);
    return file && type_of(file) == SOCKET ? record_peer(ring, core, (uint32_t)task->pid, file, now)
                                           : 0;
}

enum { FUTEX = 202 };

// What a futex call is of in the runtime of the process's language.
static __always_inline uint8_t runtime_flag(uint64_t call, uint64_t address, uint32_t process)
{
    if (call != FUTEX)
        return 0;
    struct runtime_waits *waits = bpf_map_lookup_elem(&runtimes, &process);
    return waits && address >= waits->begin && address < waits->end ? (uint8_t)waits->flag : 0;
}

// Whether a futex call waits for something else than a mutex, as far as its operation says it:
// glibc's mutexes wait plainly or with priority inheritance, all else with a set of bits.
static __always_inline bool is_condition(uint64_t call, uint64_t operation)
{
    enum { WAIT_BITSET = 9, WAIT_REQUEUE_PI = 11, COMMAND = 0x7f }; // futex(2)
    return call == FUTEX &&
           ((operation & COMMAND) == WAIT_BITSET || (operation & COMMAND) == WAIT_REQUEUE_PI);
}

// What the upper halves of a BLOCKED in futex say: which of a process's words it waits at (those of
// eight bytes are one: a condition variable of glibc has two), and in a, for how long at most, us.
// 0: for ever; FUTEX_LIMIT_UNKNOWN: until a time by a clock that may be set.
struct futex_wait {
    uint64_t limit, word;
};

static __attribute__((noinline)) int read_limit(uint64_t operation, uint64_t at, uint64_t now)
{
    enum { WAIT = 0, WAIT_BITSET = 9, PRIVATE = 128 }; // futex(2)
    int64_t limit[2] = {};
    uint64_t command = operation & ~(uint64_t)PRIVATE;
    if (!at)
        return 0;
    if ((command != WAIT && command != WAIT_BITSET) ||
        bpf_probe_read_user(limit, sizeof limit, (const void *)at) < 0)
        return (int)FUTEX_LIMIT_UNKNOWN;
    uint64_t ns = (uint64_t)limit[0] * 1000000000 + (uint64_t)limit[1];
    if (command == WAIT_BITSET)
        ns = ns > now ? ns - now : 0;
    uint64_t us = (ns + 500) / 1000;
    return us < 0x7fffffff ? (int)us : (int)FUTEX_LIMIT_UNKNOWN;
}

static __always_inline struct futex_wait futex_wait_of(uint64_t call, struct pt_regs *regs,
                                                       uint64_t now)
{
    struct futex_wait wait = {};
    if (call == FUTEX) {
        wait.limit = (uint64_t)(uint32_t)read_limit(regs->si, regs->r10, now) << 32;
        wait.word = regs->di >> 3 << 32;
    }
    return wait;
}

// Whether its control group is frozen: since 6.1 that is a state of its own in groups of version 1,
// before a flag; in those of version 2 the thread sleeps like any other. There one that is stopped,
// or waits in vfork, counts as frozen in any group: it is if the group wants it to be.
static __always_inline bool is_frozen(struct task_struct *task, uint64_t state)
{
    enum { TASK_FROZEN = 0x8000, PF_FROZEN = 0x10000 }; // include/linux/sched.h
    enum { JOBCTL_TRAP_FREEZE = 1 << 23 };              // include/linux/sched/jobctl.h
    if (bpf_core_field_exists(task->frozen) && BPF_CORE_READ_BITFIELD(task, frozen) &&
        task->jobctl & JOBCTL_TRAP_FREEZE)
        return true;
    return state & TASK_FROZEN || task->flags & PF_FROZEN;
}

// Records the system call in which a user thread goes to sleep. Returns the flag of the switch that
// says it as well.
static __always_inline uint8_t record_blocked(struct core_ring *ring, uint32_t core,
                                              struct task_struct *task, uint64_t state,
                                              uint64_t now)
{
    struct pt_regs *regs = NULL;
    enum { TASK_KILLABLE = 0x102 }; // include/linux/sched.h
    if (!bpf_core_field_exists(regs->orig_ax) ||
        !bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs))
        return 0;
    regs = (struct pt_regs *)bpf_task_pt_regs(task);
    uint64_t call = regs->orig_ax;
    uint8_t flags = is_frozen(task, state) ? BLOCKED_FROZEN : 0;
    bool stopped = state & BLOCKED_STOPPED || flags;
    if (!stopped && waits_for_readiness(call)) {
        if ((call == POLL || call == PPOLL) && regs->si == 1)
            record_polled(ring, core, task, regs->di, now);
        return SWITCH_WAITS;
    }
    if (!stopped && is_about_file(call))
        record_file(ring, task, call, regs->di, now);
    if (state == TASK_KILLABLE)
        record_held_back(ring, core, task, now);
    if (is_condition(call, regs->si))
        flags |= BLOCKED_CONDITION;
    flags |= runtime_flag(call, regs->di, (uint32_t)task->tgid);
    const struct futex_wait wait = futex_wait_of(call, regs, now);
    record_write_at(ring, core, EVENT_BLOCKED, flags, (uint32_t)task->pid, now,
                    call == FUTEX ? call | wait.limit : call | call_of_registers(regs),
                    state | wait.word);
    return 0;
}

// Whether a runnable thread may not run because its control group's quota is used up. Since 6.18
// the thread itself knows: a group that is throttled still runs what is inside the kernel.
static __always_inline bool is_throttled(struct task_struct *task)
{
    if (bpf_core_field_exists(task->throttled))
        return task->throttled;
    return group_throttled(task);
}

// Records by its name which control group's quota holds the thread back: the uppermost one that is
// throttled. Not part of the programs' straight way.
static __attribute__((noinline)) int record_quota(struct core_ring *ring, uint32_t core,
                                                  struct task_struct *task)
{
    enum { MOST_LEVELS = 8 };
    if (!bpf_core_field_exists(task->se.parent) || !bpf_core_field_exists(task->se.cfs_rq->tg) ||
        !bpf_core_field_exists(task->se.cfs_rq->throttle_count))
        return 0;
    struct cfs_rq *queue = task->se.cfs_rq;
    struct sched_entity *group = task->se.parent;
#pragma unroll
    for (int level = 0; level < MOST_LEVELS; level++) {
        if (!group || group->cfs_rq->throttle_count <= 0)
            break;
        queue = group->cfs_rq;
        group = group->parent;
    }
    char name[24] = {};
    bpf_probe_read_kernel_str(name, 17, queue->tg->css.cgroup->kn->name);
    const uint64_t *words = (const uint64_t *)name;
    return record_write(ring, core, EVENT_QUOTA, 0, (uint32_t)task->pid, words[0], words[1]);
}

// Notes by which number a thread of another PID namespace is known there.
static __always_inline void note_namesake(struct task_struct *task)
{
    enum { MOST_LEVELS = 32 }; // the kernel's limit
    struct pid *pid = task->thread_pid;
    if (!pid || pid->level == 0 || pid->level > MOST_LEVELS)
        return;
    struct pid_namespace *namespace = NULL;
    int inside = 0;
    uint32_t inode = 0, here = (uint32_t)task->pid;
    // A number, not a pointer of the verifier's: up to 6.1 it takes no index into those.
    uint64_t at = 0;
    bpf_core_read(&at, sizeof at, &task->thread_pid);
    at += bpf_core_field_offset(pid->numbers) + pid->level * bpf_core_type_size(struct upid);
    bpf_core_read(&inside, sizeof inside, &((const struct upid *)at)->nr);
    bpf_core_read(&namespace, sizeof namespace, &((const struct upid *)at)->ns);
    bpf_core_read(&inode, sizeof inode, &namespace->ns.inum);
    uint64_t key = (uint64_t)inode << 32 | (uint32_t)inside;
    bpf_map_update_elem(&namesakes, &key, &here, BPF_ANY);
}

static __attribute__((noinline)) int note_namesakes(struct task_struct *task)
{
    if (!bpf_core_field_exists(task->thread_pid) || task->thread_pid->level == 0)
        return 0;
    note_namesake(task);
    if (task->pid != task->tgid)
        note_namesake(task->group_leader);
    return 0;
}

// Records whose a thread is once (rarely twice): its own name may not show it.
static __always_inline void record_process(struct core_ring *ring, uint32_t core,
                                           struct task_struct *task)
{
    uint32_t thread = (uint32_t)task->pid;
    uint64_t slot = number_bounded(thread & (EVENTS_THREADS - 1));
    if (slot >= EVENTS_THREADS || threads_recorded[number_bounded(slot)] == thread)
        return;
    threads_recorded[number_bounded(slot)] = thread;
    note_namesakes(task);
    record_write(ring, core, EVENT_MEMBER, 0, thread, (uint32_t)task->tgid,
                 (uint32_t)task->real_parent->tgid);
    if (task->pid == task->tgid)
        return;
    const uint64_t *name = (const uint64_t *)task->group_leader->comm;
    record_write(ring, core, EVENT_PROCESS, 0, thread, name[0], name[1]);
}

// A thread's number may be reused.
static __always_inline void forget_process(struct task_struct *task)
{
    uint64_t slot = number_bounded((uint32_t)task->pid & (EVENTS_THREADS - 1));
    if (slot < EVENTS_THREADS)
        threads_recorded[number_bounded(slot)] = 0;
    slot = number_bounded((uint32_t)task->pid & (EVENTS_SERVERS - 1));
    if (slot < EVENTS_SERVERS && left_processes[number_bounded(slot)] == (uint32_t)task->pid)
        left_processes[number_bounded(slot)] = 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *previous, struct task_struct *next)
{
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = watched_ring(core);
    if (!ring)
        return 0;
    find_steal_time(ring, next);
    uint64_t now = bpf_ktime_get_ns(); // one look for all of its records: nothing comes between
    uint64_t state = task_state(previous);
    uint8_t flags =
        (preempt || state == 0 ? SWITCH_PREEMPTED : 0) | (state & TASK_DEAD ? SWITCH_EXITED : 0);
    if (ring->current != (uint32_t)previous->pid && ring->current != EVENTS_NO_THREAD)
        flags |= SWITCH_UNSEEN;
    if (flags & SWITCH_UNSEEN) {
        const uint64_t *unseen = (const uint64_t *)previous->comm;
        record_write_at(ring, core, EVENT_UNSEEN, 0, (uint32_t)previous->pid, now, unseen[0],
                        unseen[1]);
    }
    if (state != 0 && !preempt && !(state & TASK_DEAD) && !(previous->flags & KERNEL_THREAD))
        flags |= record_blocked(ring, core, previous, state, now);
    if ((flags & SWITCH_PREEMPTED) && is_throttled(previous)) {
        flags |= SWITCH_THROTTLED;
        record_quota(ring, core, previous);
    }
    if (state & TASK_DEAD)
        forget_process(previous);
    if (next->pid != 0 && !(next->flags & KERNEL_THREAD))
        record_process(ring, core, next);
    uint64_t dropped = ring->dropped;
    const uint64_t *name = (const uint64_t *)next->comm;
    record_write_at(ring, core, EVENT_SWITCH, flags, (uint32_t)next->pid, now, name[0], name[1]);
    if (ring->dropped == dropped) // else the next switch shows that this one is missing
        ring->current = (uint32_t)next->pid;
    return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *task)
{
    // A wake-up matters to the core that runs the waker and to the core that the woken thread waits
    // for.
    uint32_t core = bpf_get_smp_processor_id();
    uint32_t target = task_core(task);
    if (!watched_ring(core) && !watched_ring(target))
        return 0;
    struct core_ring *ring = ring_of(core);
    if (!ring)
        return 0;
    uint32_t waker = (uint32_t)bpf_get_current_pid_tgid();
    bool throttled = group_throttled(task);
    if (throttled)
        record_quota(ring, core, task);
    return record_write(ring, core, EVENT_WAKING, throttled ? WAKING_THROTTLED : 0,
                        (uint32_t)task->pid, target, waker);
}

SEC("tp_btf/task_rename")
int BPF_PROG(task_rename, struct task_struct *task, const char *comm)
{
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = watched_ring(core);
    if (!ring || ring->current != (uint32_t)task->pid)
        return 0;
    uint64_t name[2] = {};
    bpf_probe_read_kernel_str(name, sizeof name, comm);
    return record_write(ring, core, EVENT_RENAMED, 0, (uint32_t)task->pid, name[0], name[1]);
}

SEC("tp_btf/signal_generate")
int BPF_PROG(signal_generate, int signal, const void *info, struct task_struct *task)
{
    enum { SIGSTOP = 19, SIGTTOU = 22 }; // SIGTSTP and SIGTTIN between them
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = ring_of(core);
    if (signal < SIGSTOP || signal > SIGTTOU || !ring || *(volatile uint32_t *)&resting)
        return 0;
    uint64_t name[2] = {};
    bpf_get_current_comm(name, sizeof name);
    return record_write(ring, core, EVENT_STOP_SENT, 0, (uint32_t)task->tgid, name[0], name[1]);
}

// Whether a thread reads from watched sockets, as far as is known.
static __always_inline bool serves(uint32_t thread)
{
    uint64_t slot = number_bounded(thread & (EVENTS_SERVERS - 1));
    return slot < EVENTS_SERVERS && servers[number_bounded(slot)] == thread;
}

// Whether somebody has taken that core from the task (sched_setaffinity, cpusets).
static __always_inline bool may_run_on(const struct task_struct *task, uint32_t core)
{
    uint64_t mask = 0, word = ~0ull;
    if (!bpf_core_field_exists(task->cpus_ptr))
        return true;
    bpf_core_read(&mask, sizeof mask, &task->cpus_ptr);
    bpf_probe_read_kernel(&word, sizeof word, (const void *)(mask + core / 64 * sizeof word));
    return word >> (core % 64) & 1;
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(sched_migrate_task, struct task_struct *task, int target)
{
    uint32_t from = task_core(task), to = (uint32_t)target;
    barrier_var(to); // keeps the bound in the register that the verifier checks
    if (serves((uint32_t)task->pid))
        core_follow(to);
    if (!watched_ring(from) && !watched_ring(to))
        return 0;
    uint32_t core = bpf_get_smp_processor_id();
    struct core_ring *ring = ring_of(core);
    return ring ? record_write(ring, core, EVENT_MIGRATE,
                               may_run_on(task, from) ? 0 : MIGRATE_FORCED, (uint32_t)task->pid,
                               from, to)
                : 0;
}

#endif
