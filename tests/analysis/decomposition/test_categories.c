// SPDX-License-Identifier: MIT
//
// Categories of causes: the program's own table, files of the user's, and how much of this
// machine's kernel the table knows.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/decomposition/categories.h"
#include "tests/skip.h"

static void set_up(struct categories *categories)
{
    struct error err = {0};
    if (categories_init(categories, &err) < 0)
        fail_msg("%s", err.text);
}

// Why the kernel threw a segment away: whoever waits for it to be sent again sleeps in no call.
static void losses_have_a_category_of_losses(void **state)
{
    (void)state;
    static const char *const losses[] = {
#define EVENT_LOSS(NAME, number, words) words " (" #NAME ")",
#include "profiler/bpf/events.tbl.h"
    };
    static const char *const of_losses[] = {"firewall", "queueing discipline", "receive buffer",
                                            "routing", "packet loss"};
    struct categories categories;
    set_up(&categories);
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        char wait[160];
        snprintf(wait, sizeof wait, "sent again to the client (timeout), dropped by %s", losses[i]);
        const char *found = categories_of_wait(&categories, wait);
        bool known = false;
        for (size_t at = 0; at < sizeof of_losses / sizeof *of_losses; at++)
            known |= found && strcmp(found, of_losses[at]) == 0;
        if (!known)
            fail_msg("%s: %s", losses[i], found ? found : "none");
    }
    categories_free(&categories);
}

static void known_names_have_their_category(void **state)
{
    (void)state;
    static const char *const expected[][2] = {
        {"tcp_v4_rcv", "receive processing"},
        {"net_rx_action", "receive processing"},
        {"__napi_poll.constprop.0", "receive processing"},
        {"tcp_write_xmit", "transmit processing"},
        {"__dev_queue_xmit", "transmit processing"},
        {"tcp_retransmit_skb", "retransmission"},
        {"nf_hook_slow", "packet filter"},
        {"__x64_sys_recvfrom", "syscall entry"},
        {"entry_SYSCALL_64_after_hwframe", "syscall entry"},
        {"asm_exc_page_fault", "page faults"},
        {"change_protection", "NUMA balancing"},
        {"__schedule", "scheduling"},
        {"try_to_wake_up", "scheduling"},
        {"hrtimer_interrupt", "timers"},
        {"ktime_get", "clocks"},
        {"rcu_core_si", "RCU"},
        {"__alloc_pages_noprof", "memory"},
        {"kmem_cache_alloc_noprof", "memory"},
        {"shrink_folio_list", "memory reclaim"},
        {"futex_wait_queue", "locking"},
        {"blk_mq_dispatch_rq_list", "block I/O"},
        {"security_socket_recvmsg", "security"},
        {"ep_poll", "event polling"},
        {"bpf_prog_1a2b3c4d_on_switch", "Taillight itself"},
        {"__pfx_tcp_sendmsg", "sockets"},
    };
    struct categories categories;
    set_up(&categories);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const char *found = categories_of_function(&categories, expected[i][0], true);
        if (!found || strcmp(found, expected[i][1]) != 0)
            fail_msg("%s: %s, expected %s", expected[i][0], found ? found : "none", expected[i][1]);
    }
    assert_null(categories_of_function(&categories, "process_command", true));
    assert_string_equal(categories_of_context(&categories, SPAN_TASK, "yes"), "other programs");
    assert_string_equal(categories_of_context(&categories, SPAN_TASK, "ksoftirqd/0"), "OS threads");
    assert_string_equal(categories_of_context(&categories, SPAN_TASK, "taillight"),
                        "Taillight itself");
    assert_string_equal(categories_of_context(&categories, SPAN_TASK, "taillight:load-0"),
                        "load generator");
    assert_string_equal(categories_of_context(&categories, SPAN_SOFTIRQ, "NET_RX"),
                        "receive processing");
    assert_string_equal(categories_of_context(&categories, SPAN_VECTOR, "local timer"), "timers");
    assert_string_equal(categories_of_context(&categories, SPAN_IRQ, "eth0"), "device interrupts");
    assert_string_equal(categories_of_context(&categories, SPAN_STOLEN, "virtual CPU taken away"),
                        "virtual machine");
    assert_string_equal(categories_of_wait(&categories, "lock wait (futex)"), "locking");
    // What whoever was waited for did says what helps.
    static const char *const followed[][2] = {
        {"lock wait (futex): held by worker, throttled (CPU quota of web)", "CPU quota"},
        {"condition wait (futex): python3 (another thread), fork: copies page tables", "fork"},
        {"condition wait (futex): worker, page faults (copy on write after a fork)", "fork"},
        {"condition wait (futex): worker, behind redis-server (forked child)", "forked child"},
        {"lock wait (futex): held by worker, memory reclaim (memory limit)", "memory limit"},
        {"condition wait (futex): worker", "other threads"},
        {"waiting for the interpreter lock (GIL): held by worker", "interpreter lock"},
        {"waiting for the interpreter lock (GIL): held by worker, garbage collection",
         "garbage collection"},
        {"parked by its scheduler: web (another thread), stop-the-world pause",
         "garbage collection"},
        {"parked by its scheduler: web (another thread)", "other threads"},
        {"waiting for web (another goroutine), blocked in fsync of log", "other threads"},
        {"waiting for a free connection: all 2 wait for 10.0.0.7:5432", "connection pool"},
        {"waiting for a free worker, sleeping (timer)", "worker threads"},
        {"waiting for a free worker, blocked in fsync, disk vda: write", "block I/O"},
        {"condition wait (futex): mariadbd (another thread), waiting for its client to go on",
         "clients"},
        {"condition wait (futex): web (another thread), waiting for room to send", "slow reader"},
        {"blocked in msgrcv: python3 (another process), sleeping (timer)", "other threads"},
        {"blocked in write to a tty: kworker", "blocking calls"},
        {"blocked in pwrite to data, disk vda: held back", "I/O limit"},
        {"blocked in pwrite to data, disk vda: write", "block I/O"},
        {"blocked in pread from data, disk vda: write", "disk reads"},
        {"blocked in pread from data, disk vda: held back", "I/O limit"},
        {"waiting for the interpreter lock (GIL): held by worker, blocked in a page fault, disk "
         "vda: read",
         "disk reads"},
        {"blocked in sendfile, disk vda: read", "disk reads"},
        {"blocked in fsync of data, disk vda: flush", "block I/O"},
        {"stop-the-world pause (VM Thread for Attach Listener), page faults", "inspections"},
        {"condition wait (futex), timed out", "timers"}, // nobody woke it: Java's sleeps
    };
    for (size_t i = 0; i < sizeof followed / sizeof *followed; i++)
        assert_string_equal(categories_of_wait(&categories, followed[i][0]), followed[i][1]);
    categories_free(&categories);
}

static void lines_of_the_user_come_first(void **state)
{
    (void)state;
    static const char text[] = "# mine\n\npattern,category\r\n task nginx , web tier\r\n"
                               "tcp_v4_rcv,mine alone";
    struct categories categories;
    struct error err = {0};
    set_up(&categories);
    assert_int_equal(categories_add(&categories, text, sizeof text - 1, "mine.csv", &err), 0);
    assert_string_equal(categories_of_context(&categories, SPAN_TASK, "nginx"), "web tier");
    assert_string_equal(categories_of_context(&categories, SPAN_TASK, "redis"), "other programs");
    assert_string_equal(categories_of_function(&categories, "tcp_v4_rcv", true), "mine alone");
    assert_string_equal(categories_of_function(&categories, "tcp_v6_rcv", true),
                        "receive processing");
    categories_free(&categories);
}

// memcached's worker_libevent is no work queue of the kernel's, nor is what it calls.
static void functions_of_programs_are_not_the_kernels(void **state)
{
    (void)state;
    static const char *const names[] = {"worker_libevent", "task_run",   "tcp_read",
                                        "rcu_read_lock",   "io_handler", "__memcpy_avx"};
    static const char text[] = "worker_*,my workers\nprogram io_*,my disk\n";
    struct categories categories;
    struct error err = {0};
    set_up(&categories);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_null(categories_of_function(&categories, names[i], false));
    assert_string_equal(categories_of_function(&categories, "[libtaillight-shim.so]", false),
                        "Taillight itself");
    assert_int_equal(categories_add(&categories, text, sizeof text - 1, "mine.csv", &err), 0);
    assert_string_equal(categories_of_function(&categories, "worker_libevent", false),
                        "my workers");
    assert_string_equal(categories_of_function(&categories, "io_handler", false), "my disk");
    assert_string_equal(categories_of_function(&categories, "io_handler", true), "io_uring");
    assert_null(categories_of_function(&categories, "task_run", false));
    categories_free(&categories);
}

static void bad_lines_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t bytes;
        const char *error;
    } bad[] = {
        {"a,b\nno comma here\n", 0, "mine.csv:2: no comma"},
        {"a,b\n\n# c\n,x\n", 0, "mine.csv:4: there is no pattern"},
        {"a,\n", 0, "mine.csv:1: there is no category"},
        {"a,b,c\n", 0, "mine.csv:1: more than one comma"},
        {"a,01234567890123456789012345678901\n", 0, "mine.csv:1: the category is longer than 31"},
        {"a,b\nc,d\x01\n", 0, "mine.csv:2: the category has a character"},
        {"a,b\nc\0,d\n", 9, "mine.csv:2: a NUL byte"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct categories categories;
        struct error err = {0};
        set_up(&categories);
        size_t before = categories.rules.count;
        size_t bytes = bad[i].bytes ? bad[i].bytes : strlen(bad[i].text);
        assert_int_equal(categories_add(&categories, bad[i].text, bytes, "mine.csv", &err),
                         -ERROR_INPUT);
        if (!strstr(err.text, bad[i].error))
            fail_msg("'%s', expected '%s'", err.text, bad[i].error);
        assert_int_equal(categories.rules.count, before);
        categories_free(&categories);
    }
    struct categories none = {0};
    struct error err = {0};
    assert_int_equal(categories_add_file(&none, "/nonexistent/mine.csv", &err), -ERROR_INPUT);
    assert_non_null(strstr(err.text, "/nonexistent/mine.csv"));
}

// --- this machine's kernel -----------------------------------------------------------------------

// Prefixes that the kernel's own subsystems use, by the folder they come from: net/, kernel/sched/,
// kernel/time/ and mm/.
static const char *const subsystems[][40] = {
    {"networking", "tcp_",     "udp_",   "ip_",     "ip6_",   "ipv6_",   "inet_",    "inet6_",
     "sock_",      "sk_",      "skb_",   "net_",    "netif_", "netdev_", "netlink_", "napi_",
     "dev_",       "neigh_",   "fib_",   "icmp_",   "igmp_",  "arp_",    "rtnl_",    "nf_",
     "xfrm_",      "ethtool_", "qdisc_", "packet_", "unix_",  "gro_"},
    {"scheduler", "sched_", "enqueue_task", "dequeue_task", "pick_next", "update_curr", "ttwu_",
     "select_task_rq", "task_tick", "switched_", "wake_up_", "load_balance", "put_prev_",
     "set_next_", "update_rq_", "update_load_", "psi_", "cpuacct_", "yield_task"},
    {"timer", "hrtimer_", "timer_", "tick_", "timekeeping_", "clockevents_", "clocksource_",
     "ktime_", "alarm_", "posix_cpu_", "posix_timer", "ntp_", "timerfd_", "timerqueue_", "itimer_"},
    {"memory management",
     "mm_",
     "vm_",
     "vma_",
     "mmap_",
     "page_",
     "folio_",
     "kmem_",
     "slab_",
     "kmalloc",
     "kfree",
     "vmalloc",
     "swap_",
     "shmem_",
     "shrink_",
     "lru_",
     "mem_cgroup_",
     "memcg_",
     "alloc_pages",
     "free_pages",
     "filemap_",
     "hugetlb_",
     "zap_",
     "unmap_",
     "khugepaged_",
     "migrate_",
     "compact",
     "pcpu_",
     "mlock",
     "mprotect_",
     "madvise_",
     "oom_",
     "rmap_",
     "vmstat_"},
};
enum { SUBSYSTEMS = sizeof subsystems / sizeof *subsystems };

static int subsystem_of(const char *name)
{
    name += strspn(name, "_");
    for (int s = 0; s < SUBSYSTEMS; s++)
        for (int i = 1; i < 40 && subsystems[s][i]; i++)
            if (strncmp(name, subsystems[s][i], strlen(subsystems[s][i])) == 0)
                return s;
    return -1;
}

static void this_kernel_is_covered(void **state)
{
    (void)state;
    FILE *file = fopen("/proc/kallsyms", "re");
    if (!file)
        skip_case("/proc/kallsyms cannot be read");
    unsigned total[SUBSYSTEMS] = {0}, known[SUBSYSTEMS] = {0};
    struct categories categories;
    set_up(&categories);
    char line[600], name[512], type;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%*s %c %511s", &type, name) != 2 || (type != 't' && type != 'T') ||
            strncmp(name, "__pfx_", 6) == 0)
            continue;
        int subsystem = subsystem_of(name);
        if (subsystem < 0)
            continue;
        bool has = categories_of_function(&categories, name, true) != NULL;
        total[subsystem]++;
        known[subsystem] += has;
        if (!has && total[subsystem] - known[subsystem] <= 10)
            print_message("  %s: %s has no category\n", subsystems[subsystem][0], name);
    }
    fclose(file);
    categories_free(&categories);
    unsigned all = 0;
    for (int s = 0; s < SUBSYSTEMS; s++) {
        print_message("%s: %u of %u symbols have a category\n", subsystems[s][0], known[s],
                      total[s]);
        assert_true(known[s] >= 0.95 * total[s]);
        all += total[s];
    }
    assert_true(all > 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_names_have_their_category),
        cmocka_unit_test(losses_have_a_category_of_losses),
        cmocka_unit_test(lines_of_the_user_come_first),
        cmocka_unit_test(functions_of_programs_are_not_the_kernels),
        cmocka_unit_test(bad_lines_are_named),
        cmocka_unit_test(this_kernel_is_covered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
