// SPDX-License-Identifier: MIT
//
// The few kernel types the programs look into, with just the fields they use. libbpf finds each
// field's place in the running kernel's BTF when it loads them (CO-RE), so nothing of the build
// machine's kernel is baked in. A name with ___ is another shape of the struct before it.
#ifndef PROFILER_BPF_KERNEL_H
#define PROFILER_BPF_KERNEL_H

#include <linux/types.h>

typedef __u8 uint8_t;
typedef __u16 uint16_t;
typedef __u32 uint32_t;
typedef __u64 uint64_t;
typedef __s32 int32_t;
typedef __s64 int64_t;
typedef _Bool bool;

enum { false, true };

#define KERNEL_TYPE __attribute__((preserve_access_index))

struct thread_info {
    uint32_t cpu;
} KERNEL_TYPE;

struct rq;

struct kernfs_node {
    const char *name;
} KERNEL_TYPE;

struct cgroup {
    struct kernfs_node *kn;
} KERNEL_TYPE;

struct cgroup_subsys_state {
    struct cgroup *cgroup;
} KERNEL_TYPE;

struct task_group {
    struct cgroup_subsys_state css;
} KERNEL_TYPE;

struct page_counter {
    struct {
        long counter;
    } usage;
    unsigned long max;  // since 4.18
    unsigned long high; // since 5.8
    struct page_counter *parent;
} KERNEL_TYPE;

struct mem_cgroup {
    struct cgroup_subsys_state css;
    struct page_counter memory;
} KERNEL_TYPE;

enum cgroup_subsys_id { memory_cgrp_id };

struct css_set {
    struct cgroup_subsys_state *subsys[1]; // by enum cgroup_subsys_id, as many as the kernel has
} KERNEL_TYPE;

struct cfs_rq {
    struct rq *rq;
    struct task_group *tg; // with CONFIG_FAIR_GROUP_SCHED
    int throttle_count;    // with CONFIG_CFS_BANDWIDTH: groups at or above it that are throttled
} KERNEL_TYPE;

struct sched_entity {
    struct cfs_rq *cfs_rq;
    struct sched_entity *parent; // with CONFIG_FAIR_GROUP_SCHED
} KERNEL_TYPE;

struct mm_struct;
struct fs_struct;

struct ns_common {
    unsigned int inum; // the inode of the namespace's file
} KERNEL_TYPE;

struct net {
    struct ns_common ns;
} KERNEL_TYPE;

typedef struct {
    struct net *net; // with CONFIG_NET_NS
} KERNEL_TYPE possible_net_t;

struct pid_namespace {
    struct ns_common ns;
} KERNEL_TYPE;

struct upid {
    int nr;
    struct pid_namespace *ns;
} KERNEL_TYPE;

struct pid {
    unsigned int level; // 0: of the machine's first PID namespace only
    struct upid numbers[];
} KERNEL_TYPE;

struct cpumask {
    unsigned long bits[1]; // one bit a core; as many as there may be
} KERNEL_TYPE;

struct task_struct {
    struct mm_struct *mm;
    struct files_struct *files;
    struct fs_struct *fs;
    struct thread_info thread_info;
    struct sched_entity se;
    struct css_set *cgroups; // with CONFIG_CGROUPS
    unsigned int __state;
    unsigned int flags;
    const struct cpumask *cpus_ptr; // since 5.3
    int pid;
    int tgid;
    struct task_struct *real_parent;
    struct task_struct *group_leader;
    struct pid *thread_pid; // since 4.19
    char comm[16];
    bool throttled; // since 6.18
    unsigned long jobctl;
    unsigned int frozen : 1; // since 5.2: what its control group (v2) wants to be still is still
} KERNEL_TYPE;

struct task_struct___before_5_14 {
    long state;
} KERNEL_TYPE;

struct task_struct___before_5_16 {
    unsigned int cpu;
} KERNEL_TYPE;

enum { TASK_DEAD = 0x80 }; // include/linux/sched.h, the same since 4.14

enum { KERNEL_THREAD = 0x00200000 }; // PF_KTHREAD, include/linux/sched.h
enum { KERNEL_WORKER = 0x00004010 }; // PF_IO_WORKER, PF_USER_WORKER: of a process, but never in it

struct gendisk {
    int major, first_minor;
    char disk_name[32];
} KERNEL_TYPE;

struct request_queue {
    struct gendisk *disk; // since 5.15
} KERNEL_TYPE;

struct request {
    struct request_queue *q;
    unsigned int cmd_flags;
    uint64_t start_time_ns; // CLOCK_MONOTONIC; 0: the device keeps no account
} KERNEL_TYPE;

struct irqaction {
    const char *name;
} KERNEL_TYPE;

struct pt_regs {
    unsigned long orig_ax;
    unsigned long ip, sp;
    unsigned long di, si, dx, r10, r8, r9; // a system call's arguments
    unsigned long bx, bp, r12, r13, r14, r15;
} KERNEL_TYPE;

struct qstr {
    const unsigned char *name;
} KERNEL_TYPE;

struct dentry {
    struct qstr d_name;
} KERNEL_TYPE;

struct path {
    struct dentry *dentry;
} KERNEL_TYPE;

struct filename {
    const char *name;
} KERNEL_TYPE;

struct open_flags {
    int open_flag;
} KERNEL_TYPE;

struct fs_struct {
    struct path pwd;
} KERNEL_TYPE;

struct list_head {
    struct list_head *next;
} KERNEL_TYPE;

struct file_lock_context {
    struct list_head flc_flock, flc_posix;
} KERNEL_TYPE;

struct sb_writers {
    unsigned short frozen;
} KERNEL_TYPE;

struct super_block {
    struct sb_writers s_writers;
} KERNEL_TYPE;

struct inode {
    unsigned short i_mode;
    struct super_block *i_sb;
    unsigned int i_rdev;
    unsigned long i_ino;
    struct file_lock_context *i_flctx;
} KERNEL_TYPE;

struct file {
    struct path f_path;
    struct inode *f_inode;
    void *private_data;
} KERNEL_TYPE;

struct file_lock_core { // since 6.9
    struct list_head flc_list;
    void *flc_owner;
    unsigned char flc_type;
    int flc_pid; // the process
    struct file *flc_file;
} KERNEL_TYPE;

struct file_lock {
    struct file_lock_core c;
    int64_t fl_start, fl_end;
} KERNEL_TYPE;

struct file_lock___before_6_9 {
    struct list_head fl_list;
    void *fl_owner;
    unsigned char fl_type;
    unsigned int fl_pid;
    struct file *fl_file;
} KERNEL_TYPE;

struct fdtable {
    unsigned int max_fds;
    struct file **fd;
} KERNEL_TYPE;

struct files_struct {
    struct fdtable *fdt;
} KERNEL_TYPE;

struct in6_addr {
    union {
        uint8_t u6_addr8[16];
    } in6_u;
} KERNEL_TYPE;

typedef struct {
    int64_t counter;
} atomic64_t;

struct kvm_steal_time {
    uint64_t steal; // ns
} KERNEL_TYPE;

struct sock_common {
    uint32_t skc_daddr;     // network byte order
    uint32_t skc_rcv_saddr; // network byte order
    uint16_t skc_dport;     // network byte order
    uint16_t skc_num;       // host byte order
    unsigned short skc_family;
    possible_net_t skc_net;
    volatile unsigned char skc_state;
    struct in6_addr skc_v6_daddr;
    struct in6_addr skc_v6_rcv_saddr;
    atomic64_t skc_cookie;
    unsigned long skc_flags;
} KERNEL_TYPE;

struct socket;

struct sk_buff_head {
    struct sk_buff *prev; // the last one
    uint32_t qlen;
} KERNEL_TYPE;

struct sock {
    struct sock_common __sk_common;
    struct sk_buff_head sk_receive_queue;
    struct socket *sk_socket; // NULL: nobody has accepted it
    uint32_t sk_pacing_status;
    unsigned long sk_tsq_flags;
    uint16_t sk_protocol;
} KERNEL_TYPE;

struct socket {
    struct sock *sk;
} KERNEL_TYPE;

struct inet_connection_sock {
    uint8_t icsk_ca_state : 5;
} KERNEL_TYPE;

struct tcp_sock {
    uint32_t rcv_nxt;
    uint32_t copied_seq;
    uint32_t snd_una;
    uint32_t snd_nxt;
    uint64_t bytes_received;
    uint64_t bytes_acked;
    uint64_t tcp_clock_cache;
    uint64_t tcp_wstamp_ns;
    uint32_t write_seq;
    uint32_t snd_wnd;
    uint32_t snd_cwnd;
    uint32_t mss_cache;
    uint32_t packets_out;
    uint32_t retrans_out;
    uint32_t sacked_out;
    uint32_t lost_out;
    uint8_t nonagle : 4;
} KERNEL_TYPE;

struct net_device;

struct sk_buff {
    struct net_device *dev;
    struct sock *sk;
    int64_t tstamp;
    char cb[48];
    unsigned int len;
    uint16_t queue_mapping;
    uint16_t transport_header;
    uint16_t network_header;
    unsigned int end;
    unsigned char *head;
    unsigned char *data;
} KERNEL_TYPE;

struct skb_shared_hwtstamps {
    int64_t hwtstamp;
} KERNEL_TYPE;

struct skb_shared_info {
    uint8_t tx_flags;
    uint16_t gso_segs;
    struct skb_shared_hwtstamps hwtstamps;
} KERNEL_TYPE;

struct tcp_skb_cb {
    uint32_t seq;
    uint32_t end_seq;
} KERNEL_TYPE;

struct Qdisc_ops {
    char id[16];
} KERNEL_TYPE;

struct Qdisc {
    const struct Qdisc_ops *ops;
} KERNEL_TYPE;

struct netdev_queue {
    struct Qdisc *qdisc;
} KERNEL_TYPE;

struct net_device {
    int ifindex;
    possible_net_t nd_net;
    struct netdev_queue *_tx;
} KERNEL_TYPE;

struct bpf_iter_meta;

struct bpf_iter__tcp {
    struct bpf_iter_meta *meta;
    struct sock_common *sk_common;
} KERNEL_TYPE;

enum { NAGLE_OFF = 1, NAGLE_CORK = 2 };           // bits of tcp_sock.nonagle, include/net/tcp.h
enum { TSQ_THROTTLED = 1 };                       // bit of sock.sk_tsq_flags, the same since 4.10
enum { RECOVERY_FAST = 3, RECOVERY_TIMEOUT = 4 }; // enum tcp_ca_state

enum sock_flags { SOCK_DONE = 1 }; // include/net/sock.h: a FIN has arrived

enum { FAMILY_INET = 2, FAMILY_INET6 = 10, PROTOCOL_TCP = 6, PROTOCOL_UDP = 17, MSG_PEEK = 2 };

enum skb_drop_reason { // since 5.17; the numbers are the running kernel's
#define EVENT_LOSS(NAME, number, words) SKB_DROP_REASON_##NAME = number,
#include "profiler/bpf/events.tbl.h"
};

enum { // include/net/tcp_states.h: part of the user interface, so fixed
    STATE_ESTABLISHED = 1,
    STATE_SYN_RECEIVED = 3,
    STATE_TIME_WAIT = 6,
    STATE_CLOSE = 7,
    STATE_CLOSE_WAIT = 8,
    STATE_LISTEN = 10,
    STATE_NEW_SYN_RECEIVED = 12,
};

#endif
