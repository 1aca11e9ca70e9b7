// SPDX-License-Identifier: MIT
//
// What a program cannot do but the kernel can: hold a core with softirqs off, and hold it inside a
// softirq. tests/faults/inject.c runs these.
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct timer_slot {
    struct bpf_timer timer;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct timer_slot);
} timers SEC(".maps");

__u64 length_ns;
__u64 latest_begin, latest_end; // CLOCK_MONOTONIC

struct spin {
    __u64 until, now;
};

static long look_at_clock(__u32 index, void *context)
{
    struct spin *spin = context;
    spin->now = bpf_ktime_get_ns();
    return spin->now >= spin->until;
}

static void occupy(void)
{
    struct spin spin = {};
    __u64 begin = bpf_ktime_get_ns();
    spin.until = begin + length_ns;
    bpf_loop(1 << 20, look_at_clock, &spin, 0);
    latest_begin = begin;
    latest_end = spin.now;
}

// A test run of such a program holds off softirqs while it runs.
SEC("tc")
int softirqs_off(struct __sk_buff *skb)
{
    occupy();
    return 0;
}

static int timer_fired(void *map, __u32 *key, struct timer_slot *slot)
{
    occupy();
    return 0;
}

// The timer's function runs in the HRTIMER softirq.
SEC("tc")
int start_timer(struct __sk_buff *skb)
{
    __u32 key = 0;
    struct timer_slot *slot = bpf_map_lookup_elem(&timers, &key);
    if (!slot)
        return 1;
    bpf_timer_init(&slot->timer, &timers, 1 /* CLOCK_MONOTONIC */);
    bpf_timer_set_callback(&slot->timer, timer_fired);
    return bpf_timer_start(&slot->timer, 100000, 2 /* BPF_F_TIMER_CPU_PIN */) ? 2 : 0;
}
