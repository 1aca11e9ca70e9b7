// SPDX-License-Identifier: MIT
//
// The findings in plain words: recorded situations, what is said of each, what helps, and whether
// the commands end as inconclusive. One that is not told truthfully, or in jargon, fails.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/run/run_lede.h"

enum { MESSAGES = 100, REQUESTS = 10000 };
#define ALL_NS (20e6 * MESSAGES) // 20 ms longer each

#define CAUSE(NAME, CATEGORY, ROLE, share)                                                         \
    {                                                                                              \
        .name = (NAME), .category = CATEGORY, .role = (ROLE), .explains = true,                    \
        .total_ns = (share)*ALL_NS                                                                 \
    }

struct situation {
    const char *what;
    struct cause causes[4];
    const char *lede, *remedy; // wanted
    const char *doubt;         // of the load, in its own words
    const char *doubts[3];     // what its reasons are about, as its document says it
    const char *reason;        // why there is no verdict
    const char *capture;       // the capture's document
    double deviation_ns;       // of each message; 0: 20 ms
    double low, high;          // of the slice; 0: 0.99, 1
    double longer_than_ns;     // the slice's own latency; 0: it has none
    uint64_t unanswered, unfollowed;
    size_t servers;
    bool one, own_requests, traced, sampled;
};

#define SLOW "1 in 100 requests took 3.80 ms or more (usually 53.2 us). "

#define SLOW_UNEXPLAINED                                                                           \
    "1 in 100 requests took 3.80 ms or more (usually 53.2 us); nothing was found that explains "   \
    "it."
#define DOUBTED(words)         "Inconclusive: " words ". As measured, " SLOW
#define DOUBTED_NOTHING(words) "Inconclusive: " words ". As measured, " SLOW_UNEXPLAINED
#define UNKNOWN                                                                                    \
    "1 in 100 requests took 4.00 ms or more, half of them 50.0 us or less; why is not known."

#define KEEP_OFF                                                                                   \
    "Keep other programs off the server's cores (cpuset, taskset), or give it more of them"

static const struct situation situations[] = {
    {.what = "an intruder",
     .servers = 1,
     .causes = {CAUSE("yes", "other programs", ROLE_A, .78),
                CAUSE("NET_RX softirq", "receive processing", ROLE_A, .1)},
     .lede = SLOW "For 78 % of that extra time another program, `yes`, had memcached's CPU core.",
     .remedy = KEEP_OFF},
    {.what = "behind others of their own connection, and of other ones",
     .servers = 1,
     .causes = {CAUSE("head-of-line blocking (same connection)", "head-of-line blocking", ROLE_A,
                      .6),
                CAUSE("head-of-line blocking", "head-of-line blocking", ROLE_A, .3)},
     .lede = SLOW "For 90 % of that extra time these requests stood behind others that memcached "
                  "was working on.",
     .remedy = "More threads, less load, or heavy requests kept apart"},
    {.what = "an intruder on both cores, and several servers",
     .remedy = KEEP_OFF,
     .servers = 2,
     .causes = {CAUSE("yes", "other programs", ROLE_A, .5),
                CAUSE("wake-up latency", "scheduling", ROLE_A, .2),
                CAUSE("yes", "other programs", ROLE_R, .3)},
     .lede = SLOW "For 80 % of that extra time another program, `yes`, had the CPU that the server "
                  "needed; for 20 % the server was woken late, or waited for its turn."},
    {.what = "only where it received",
     .remedy = KEEP_OFF,
     .servers = 1,
     .causes = {CAUSE("yes", "other programs", ROLE_R, .999)},
     .lede = SLOW "For 99 % of that extra time another program, `yes`, had the CPU core that "
                  "received packets for memcached."},
    {.what = "a name that would break out",
     .remedy = KEEP_OFF,
     .causes = {CAUSE("x`\n<b>", "other programs", ROLE_A, 1)},
     .lede = SLOW "For 100 % of that extra time another program, `x'\u240a<b>`, had the server's "
                  "CPU core."},
    {.what = "a category of the user's own",
     .causes = {CAUSE("nightly backup", "ours", ROLE_A, .9)},
     .lede = SLOW "For 90 % of that extra time it was `nightly backup`.",
     .remedy = ""},
    {.what = "a function",
     .causes = {{.name = "memcpy slower",
                 .category = "application",
                 .role = ROLE_A,
                 .class = CAUSE_FUNCTION,
                 .total_ns = .9 * ALL_NS}},
     .lede = SLOW "For 90 % of that extra time the server's own code ran longer than usual: "
                  "`memcpy slower`.",
     .remedy = "Look at that function: the report shows when it ran, and who called it"},
    {.what = "its own code, of which nothing more was recorded",
     .servers = 1,
     .causes = {CAUSE("application time", "application", ROLE_A, .9)},
     .lede = SLOW "For 90 % of that extra time memcached's own code ran longer than usual.",
     .remedy = "Profile the server (capture: samples)"},
    {.what = "its own code, of which the trace shows too little",
     .servers = 1,
     .traced = true,
     .causes = {CAUSE("application time", "application", ROLE_A, .9)},
     .lede = SLOW "For 90 % of that extra time memcached's own code ran longer than usual.",
     .remedy = "Trace more of what it does: a larger buffer, less detail, a shorter window "
               "(capture: buffer, detail, window)"},
    {.what = "its own code, of which there are samples",
     .servers = 1,
     .sampled = true,
     .causes = {CAUSE("application time", "application", ROLE_A, .9)},
     .lede = SLOW "For 90 % of that extra time memcached's own code ran longer than usual.",
     .remedy = "See in which functions its samples are: the report has them"},
    {.what = "half of it is not known",
     .remedy = KEEP_OFF,
     .causes = {CAUSE("yes", "other programs", ROLE_A, .4)},
     .lede = SLOW "For 40 % of that extra time another program, `yes`, had the server's CPU core. "
                  "Of another 60 % nobody knows where it went."},
    {.what = "the client was late",
     .remedy = "Keep other programs and interrupts off the cores of the load (taskset, cpuset), or "
               "give it cores of its own",
     .causes = {CAUSE("head-of-line blocking", "head-of-line blocking", ROLE_A, .4),
                CAUSE("yes", "client's cores", ROLE_CLIENT, .6)},
     .lede = "1 in 100 requests took 3.80 ms or more (usually 53.2 us), but it was the load "
             "generator that was late, not the server. For 60 % of that extra time the load "
             "generator did not have its CPU core: `yes`."},
    {.what = "nothing stands out",
     .deviation_ns = 10000,
     .causes = {{.name = "yes", .category = "other programs", .role = ROLE_A, .total_ns = 6e5}},
     .lede = "Nothing stands out: 1 in 100 requests took 3.80 ms or more (usually 53.2 us). The "
             "largest small thing: another program, `yes`, had the server's CPU core (6.00 us of "
             "each on average).",
     .remedy = ""},
    {.what = "a good part of what is small, and of a fast server",
     .servers = 1,
     .deviation_ns = 60000,
     .causes = {{.name = "wake-up latency",
                 .category = "scheduling",
                 .role = ROLE_A,
                 .total_ns = 19.9e3 * MESSAGES},
                {.name = "virtual CPU taken away",
                 .category = "virtual machine",
                 .role = ROLE_A,
                 .apart = true,
                 .total_ns = 24e3 * MESSAGES},
                {.name = "NET_RX softirq",
                 .category = "receive processing",
                 .role = ROLE_R,
                 .total_ns = 14e3 * MESSAGES}},
     .lede = "Nothing stands out: 1 in 100 requests took 3.80 ms or more (usually 53.2 us). For 40 "
             "% of that extra time the host of this virtual machine gave its processor to others. "
             "The largest small things: memcached was woken late, or waited for its turn (19.9 us "
             "of each on average); the kernel was receiving packets on the CPU core that "
             "received packets for memcached (14.0 us).",
     .remedy = "Ask for a dedicated host, or for processors of its own"},
    {.what = "20 us of each, a third of it all",
     .remedy = "Pin the threads, or forbid deep idle states",
     .servers = 1,
     .deviation_ns = 60000,
     .causes = {{.name = "wake-up latency",
                 .category = "scheduling",
                 .role = ROLE_A,
                 .total_ns = 20e3 * MESSAGES}},
     .lede = SLOW "For 33 % of that extra time memcached was woken late, or waited for its turn. "
                  "Of another 67 % nobody knows where it went."},
    {.what = "nothing but the virtual machine's host",
     .causes = {{.name = "virtual CPU taken away",
                 .category = "virtual machine",
                 .role = ROLE_A,
                 .apart = true,
                 .total_ns = .7 * ALL_NS}},
     .lede = "Nothing stands out: 1 in 100 requests took 3.80 ms or more (usually 53.2 us). For 70 "
             "% of that extra time the host of this virtual machine gave its processor to others. "
             "Of another 30 % nobody knows where it went.",
     .remedy = "Ask for a dedicated host, or for processors of its own"},
    {.what = "the virtual machine's host, and a little of the client",
     .causes = {{.name = "virtual CPU taken away",
                 .category = "virtual machine",
                 .role = ROLE_A,
                 .apart = true,
                 .total_ns = .7 * ALL_NS},
                CAUSE("yes", "client's cores", ROLE_CLIENT, .2)},
     .lede = SLOW "For 70 % of that extra time the host of this virtual machine gave its processor "
                  "to others; for 20 % the load generator did not have its CPU core: `yes`.",
     .remedy = "Ask for a dedicated host, or for processors of its own"},
    {.what = "the virtual machine's host, and less of the server's, which stands out all the same",
     .servers = 1,
     .causes = {{.name = "virtual CPU taken away",
                 .category = "virtual machine",
                 .role = ROLE_A,
                 .apart = true,
                 .total_ns = .5 * ALL_NS},
                {.name = "taillight (capture)",
                 .category = "Taillight itself",
                 .role = ROLE_A,
                 .apart = true,
                 .total_ns = .3 * ALL_NS},
                CAUSE("yes", "other programs", ROLE_A, .12)},
     .lede = SLOW "For 50 % of that extra time the host of this virtual machine gave its processor "
                  "to others; for 12 % another program, `yes`, had memcached's CPU core.",
     .remedy = "Ask for a dedicated host, or for processors of its own"},
    {.what = "no cause",
     .lede = "1 in 100 requests took 3.80 ms or more (usually 53.2 us); nothing was found that "
             "explains it.",
     .remedy = ""},
    {.what = "the load cannot be trusted",
     .doubt = "this client had its core for only 63 % of the time.",
     .causes = {CAUSE("yes", "other programs", ROLE_A, .8)},
     .lede = "Inconclusive: this client had its core for only 63 % of the time. As measured, " SLOW
             "For 80 % of that extra time another program, `yes`, had the server's CPU core.",
     .remedy = ""},
    {.what = "three causes, of which two are worth a reader's time",
     .servers = 1,
     .causes = {CAUSE("fdatasync", "block I/O", ROLE_A, .5),
                CAUSE("head-of-line blocking", "head-of-line blocking", ROLE_A, .3),
                CAUSE("yes", "other programs", ROLE_A, .2)},
     .lede =
         SLOW "For 50 % of that extra time a disk had to be waited for; for 30 % these requests "
              "stood behind others that memcached was working on.",
     .remedy = "Sync less often (appendfsync everysec), in a thread of its own, or to a faster "
               "device"},
    {.what = "small ones of the same words, which are more than the largest",
     .servers = 1,
     .causes = {CAUSE("yes", "other programs", ROLE_A, .3),
                CAUSE("blocked in fdatasync: disk vda", "block I/O", ROLE_A, .2),
                CAUSE("blocked in pwrite to log, disk vda", "block I/O", ROLE_A, .15),
                CAUSE("blocked in fdatasync: disk vdb", "block I/O", ROLE_A, .15)},
     .lede = SLOW "For 50 % of that extra time a disk had to be waited for; for 30 % another "
                  "program, `yes`, had memcached's CPU core.",
     .remedy = "Sync less often (appendfsync everysec), in a thread of its own, or to a faster "
               "device"},
    {.what = "a quota",
     .servers = 1,
     .causes = {CAUSE("throttled by /app", "CPU quota", ROLE_A, .95)},
     .lede = SLOW "For 95 % of that extra time memcached was not allowed to run: its control "
                  "group had used its CPU quota up.",
     .remedy = "Raise cpu.max of its control group, or give it no more threads than the quota has "
               "cores"},
    {.what = "a quota of a group that the kernel's account has, by a part of its name",
     .remedy =
         "Raise cpu.max of its control group, or give it no more threads than the quota has cores",
     .servers = 1,
     .capture = "{'quotas': [{'group': '/web.slice', 'times': 7, 'throttled_ms': 50.0, 'quota_ms': "
                "null, 'period_ms': 100.0}, {'group': '/system.slice/memcached-of-the-shop', "
                "'times': 93, 'throttled_ms': 4100.0, 'quota_ms': 5.0, 'period_ms': 50.0}]}",
     .causes = {CAUSE("throttled (CPU quota of memcached-of-the)", "CPU quota", ROLE_A, .95)},
     .lede = SLOW "For 95 % of that extra time memcached was not allowed to run: its control group "
                  "/system.slice/memcached-of-the-shop (CPU quota 5.00 ms of each 50.0 ms, used up "
                  "93 times) had used its CPU quota up."},
    {.what = "a limit of memory, and of one of that name the CPU quota",
     .servers = 1,
     .capture =
         "{'quotas': [{'group': '/pod/web', 'times': 7, 'throttled_ms': 50.0, 'quota_ms': "
         "5.0, 'period_ms': 100.0}], 'memory_limits': [{'group': '/pod/webs', 'times': 9999, "
         "'limit': 'memory.max', 'bytes': 1048576}, {'group': '/pod/web', 'times': 3412, "
         "'limit': 'memory.high', 'bytes': 50331648}]}",
     .causes = {CAUSE("blocked in a page fault, held back (memory.high of web)", "memory limit",
                      ROLE_A, .95)},
     .lede = SLOW "For 95 % of that extra time memcached had to give pages back, or was put to "
                  "sleep: its control group /pod/web (memory.high 48 MiB, reached 3,412 times) was "
                  "at its limit of memory.",
     .remedy = "Raise its control group's limit (memory.max, memory.high; Kubernetes' "
               "limits.memory), or use less: the files that it reads and writes count, too"},
    {.what = "a server behind the server",
     .servers = 1,
     .causes = {{.name = "redis-server: head-of-line blocking",
                 .tier = "redis-server",
                 .category = "head-of-line blocking",
                 .role = ROLE_A,
                 .explains = true,
                 .total_ns = .9 * ALL_NS}},
     .lede = SLOW "For 90 % of that extra time these requests stood behind others that "
                  "redis-server was working on.",
     .remedy = "More threads, less load, or heavy requests kept apart"},
    {.what = "a wait for another server",
     .remedy = "Look at that server: trace it, too",
     .causes = {{.name = "waiting for redis-server (127.0.0.1:6379)",
                 .category = "another host or server",
                 .tier = "redis-server",
                 .role = ROLE_A,
                 .explains = true,
                 .total_ns = .9 * ALL_NS}},
     .servers = 1,
     .lede = SLOW "For 90 % of that extra time memcached waited for another server: `waiting for "
                  "redis-server (127.0.0.1:6379)`."},
    {.what = "a pool of connections",
     .remedy = "More connections to it, where it can serve more at a time; else look at what keeps "
               "those that are taken: trace that server, too",
     .causes = {{.name = "waiting for a free connection: all 2 wait for 127.0.0.1:6379",
                 .category = "connection pool",
                 .tier = "127.0.0.1:6379",
                 .role = ROLE_A,
                 .explains = true,
                 .total_ns = .9 * ALL_NS}},
     .servers = 1,
     .lede = SLOW "For 90 % of that extra time every connection that memcached had to another "
                  "server was taken: `waiting for a free connection: all 2 wait for "
                  "127.0.0.1:6379`."},
    {.what = "a garbage collection",
     .servers = 1,
     .causes = {CAUSE("VM Thread", "garbage collection", ROLE_A, .9)},
     .lede = SLOW "For 90 % of that extra time a garbage collection stopped memcached's threads.",
     .remedy = "Fewer live objects, a larger heap, a concurrent collector on cores of its own"},
    {.what = "a lock",
     .servers = 1,
     .causes = {CAUSE("lock of worker", "locking", ROLE_A, .9)},
     .lede = SLOW "For 90 % of that extra time memcached waited for a lock that somebody else "
                  "held.",
     .remedy = "Hold it for less long (the cause names who did, and what he did meanwhile), or "
               "have fewer threads"},
    {.what = "no worker was free",
     .servers = 1,
     .causes = {CAUSE("waiting for a free worker", "worker threads", ROLE_A, .9)},
     .lede = SLOW "For 90 % of that extra time these requests waited until one of memcached's "
                  "workers was free.",
     .remedy = "More workers, or a shorter job for each"},
    {.what = "nobody accepted the connection",
     .servers = 1,
     .causes = {CAUSE("waiting to be accepted", "unaccepted connections", ROLE_A, .9)},
     .lede = SLOW
     "For 90 % of that extra time these requests' connections lay in the queue of "
     "memcached, which accepted them late: it was busy with others', or had as many as it may.",
     .remedy = "More workers, or a higher limit of connections (MaxRequestWorkers, "
               "pm.max_children, worker_connections, maxconn) or of open files (ulimit -n, "
               "worker_rlimit_nofile), and connections that are kept open without a request for "
               "less long"},
    {.what = "swap",
     .causes = {CAUSE("swap-in", "swapping", ROLE_A, .9)},
     .lede = SLOW "For 90 % of that extra time what the server needed was in swap.",
     .remedy = "Give it more memory, lock it (mlockall), lower vm.swappiness or turn swapping off"},
    {.what = "Nagle and delayed ACK, and a loss",
     .servers = 1,
     .causes = {CAUSE("Nagle and delayed ACK", "Nagle and delayed ACK", ROLE_A, .6),
                CAUSE("sent again", "packet loss", ROLE_A, .4)},
     .lede = SLOW
     "For 60 % of that extra time TCP kept back the end of replies, or of requests to "
     "other servers, to send it with more; for 40 % packets were lost and had to be sent again.",
     .remedy = "Set TCP_NODELAY on the server's sockets, also on those to other servers, or write "
               "what belongs together with one call; no TCP_CORK, no MSG_MORE"},
    {.what = "those longer than was asked for",
     .remedy = KEEP_OFF,
     .longer_than_ns = 1e6,
     .causes = {CAUSE("yes", "other programs", ROLE_A, 1)},
     .lede = "100 requests took longer than 1.00 ms (usually 53.2 us). For 100 % of that extra "
             "time another program, `yes`, had the server's CPU core."},
    {.what = "those in the middle",
     .remedy = KEEP_OFF,
     .low = 0.4,
     .high = 0.6,
     .causes = {CAUSE("yes", "other programs", ROLE_A, 1)},
     .lede = "The requests between the fastest 40 % and 60 % took 3.80 ms to 4.20 ms (usually 53.2 "
             "us). For 100 % of that extra time another program, `yes`, had the server's CPU "
             "core."},
    {.what = "records that were lost",
     .servers = 1,
     .causes = {CAUSE("lost records", "lost records", ROLE_R, .5)},
     .lede =
         SLOW "For 50 % of that extra time nobody knows what the CPU core that received packets "
              "for memcached did: its records were lost. Of another 50 % nobody knows where it "
              "went.",
     .remedy = "Record again; taillight doctor says what this machine hides"},
    {.what = "Taillight itself",
     .servers = 1,
     .causes = {CAUSE("taillight (capture)", "Taillight itself", ROLE_A, .9)},
     .lede = SLOW "For 90 % of that extra time Taillight's own recording had memcached's CPU core.",
     .remedy = "Record less: fewer events, or a shorter window"},
    {.what = "the server runs on the load's core",
     .servers = 1,
     .causes = {CAUSE("taillight:load-0", "load generator", ROLE_A, .9)},
     .lede = SLOW "For 90 % of that extra time the load generator itself had memcached's CPU core.",
     .remedy = "Keep the server off the load's cores (taskset, cpuset), or load it from another "
               "host"},
    {.what = "the client was starved of its core",
     .doubt = "rate not reached: 1,260 of 2,000 requests/s were answered; this client had its core "
              "for only 63 % of the time",
     .doubts = {"starved"},
     .causes = {CAUSE("yes", "other programs", ROLE_A, .8)},
     .lede =
         DOUBTED("the load generator was starved of its CPU core") "For 80 % of that extra time "
                                                                   "another program, `yes`, had "
                                                                   "the server's CPU core.",
     .remedy = "Give the load generator a core of its own"},
    {.what = "the server was asked for too much, and did not answer all",
     .doubt = "1,156 of 49,862 requests were not answered (0 never sent, 1,156 timed out, 0 lost): "
              "p99 and above are `never`",
     .doubts = {"unanswered", "overloaded", "closed-loop"},
     .unanswered = 1156,
     .lede = "Inconclusive: the server did not keep up with the rate that was asked for. As "
             "measured, 1 in 100 requests took 3.80 ms or more (usually 53.2 us); nothing was "
             "found that explains it. Besides, 1,156 requests were never answered.",
     .remedy = "Ask for a lower rate: of an overloaded server only the growth of its queue can be "
               "measured"},
    {.what = "a closed loop",
     .doubt = "812 of 4,000 requests had to wait for a connection with room (1 connections, 1 in "
              "flight on each): the load was closed-loop; the server did not keep up",
     .doubts = {"closed-loop"},
     .causes = {CAUSE("full connections", "full connections", ROLE_CLIENT, .9)},
     .lede = DOUBTED("every connection was full, and requests waited in the load generator for "
                     "one") "For 90 % of that extra time every connection of the load was waiting "
                            "for a reply.",
     .remedy = "More connections, a greater depth, or a lower rate"},
    {.what = "a closed loop, since another program had the load's core",
     .doubt = "812 of 4,000 requests had to wait for a connection with room (16 connections, 64 in "
              "flight on each): the load was closed-loop",
     .doubts = {"closed-loop"},
     .causes = {CAUSE("redis-server", "client's cores", ROLE_CLIENT, .8)},
     .lede = "Inconclusive: every connection was full, and requests waited in the load generator "
             "for one. As measured, 1 in 100 requests took 3.80 ms or more (usually 53.2 us), but "
             "it was the load generator that was late, not the server. For 80 % of that extra time "
             "the load generator did not have its CPU core: `redis-server`.",
     .remedy = "Keep other programs and interrupts off the cores of the load (taskset, cpuset), "
               "or give it cores of its own"},
    {.what = "an empty cache",
     .doubt =
         "43,833 of 49,862 reads found nothing, and that is what was measured; store the dataset "
         "first (--prepare)",
     .doubts = {"misses"},
     .deviation_ns = 10000,
     .causes = {{.name = "yes", .category = "other programs", .role = ROLE_A, .total_ns = 6e5}},
     .lede = "Inconclusive: most reads found nothing, and that is what was measured. As measured, "
             "nothing stands out: 1 in 100 requests took 3.80 ms or more (usually 53.2 us). The "
             "largest small thing: another program, `yes`, had the server's CPU core (6.00 us of "
             "each on average).",
     .remedy = "Store the dataset first (--prepare; in an experiment `fill: true` of a running "
               "server), or ask a web server for what it has (`http: {path}`)"},
    {.what = "another protocol",
     .doubt = "3,920 of 3,920 replies were errors; the first: \"-ERR unknown command\"",
     .doubts = {"errors"},
     .reason = "nothing was joined",
     .lede = "Inconclusive: the server answered with errors. " UNKNOWN,
     .remedy = "See the first of them below"},
    {.what = "another workload's values",
     .doubt = "900 of 1000 replies were not the value that was asked for",
     .doubts = {"wrong-values"},
     .lede = DOUBTED_NOTHING("the server's values were not those that were asked for"),
     .remedy = "Store this workload's dataset first (--prepare; in an experiment `fill: true` "
               "of a running server)"},
    {.what = "every reply twice",
     .doubt = "1000 replies came to no request, beside 1000 that did",
     .doubts = {"surplus"},
     .lede = DOUBTED_NOTHING("the server sent more replies than there were requests"),
     .remedy = "See the first of them below"},
    {.what = "the server went away",
     .doubt = "server restarted midway: 16 of 16 connections ended from 1.203 s on",
     .doubts = {"restarted", "unanswered", "overloaded"},
     .unanswered = 1,
     .lede =
         DOUBTED_NOTHING("the server went away while it was measured") " Besides, 1 request was "
                                                                       "never answered.",
     .remedy = "Look at the server's log: was it restarted, or killed?"},
    {.what = "connections broke",
     .doubt = "connections broke: 1 of 4 connections ended from 0.5 s on",
     .doubts = {"disconnected", "disconnected"},
     .lede = DOUBTED_NOTHING("connections to the server broke"),
     .remedy = "Look at the server's log, its limit of connections and its queue of new ones (ss "
               "-ltn), and what lies between"},
    {.what = "connections that a firewall lets nobody open",
     .servers = 1,
     .doubt = "connections could not be opened again at once: 78 times one of 4 connections ended",
     .doubts = {"unopened"},
     .capture = "{'events': {'segments_dropped': {'NETFILTER_DROP': 12}}, 'network': "
                "{'ListenOverflows': 3}}",
     .causes = {CAUSE("connection being opened", "connections", ROLE_CLIENT, .9)},
     .lede = DOUBTED(
         "connections to the server could not be opened again at once") "For 90 % of "
                                                                        "that extra time "
                                                                        "connections to memcached "
                                                                        "could not be opened: a "
                                                                        "firewall on its "
                                                                        "machine dropped 12 "
                                                                        "segments of its "
                                                                        "connections.",
     .remedy = "Have the firewall let more of what opens connections through (nft list ruleset, "
               "iptables -nvL), or keep connections open"},
    {.what = "connections for which the table has no room",
     .remedy = "A larger table of connections (net.netfilter.nf_conntrack_max), shorter timeouts "
               "of those that have ended, no tracking of this port (notrack), or connections that "
               "are kept open",
     .servers = 1,
     .capture = "{'events': {'segments_dropped': {'NETFILTER_DROP': 12}}, 'firewall': {'rules': "
                "9000, 'untracked': 12}}",
     .causes = {CAUSE("connection being opened", "connections", ROLE_CLIENT, .9)},
     .lede = SLOW "For 90 % of that extra time connections to memcached could not be opened: its "
                  "machine's table of connections (conntrack) had no room 12 times."},
    {.what = "the same, and no request that could be followed",
     .servers = 1,
     .reason = "no request of the slice could be followed",
     .doubt = "connections could not be opened again at once: 5 times one of 4 connections ended",
     .doubts = {"unopened"},
     .capture = "{'events': {'segments_dropped': {'NETFILTER_DROP': 12}}, 'firewall': {'rules': 1, "
                "'untracked': 12}}",
     .lede = "Inconclusive: connections to the server could not be opened again at once: its "
             "machine's table of connections (conntrack) had no room 12 times. " UNKNOWN,
     .remedy = "A larger table of connections (net.netfilter.nf_conntrack_max), shorter timeouts "
               "of those that have ended, no tracking of this port (notrack), or connections that "
               "are kept open"},
    {.what = "many rules for each packet",
     .servers = 1,
     .capture = "{'firewall': {'rules': 4002, 'untracked': 0}}",
     .causes = {CAUSE("NET_RX softirq", "receive processing", ROLE_A, .9)},
     .lede = SLOW "For 90 % of that extra time the kernel was receiving packets on memcached's CPU "
                  "core: its firewall has 4,002 rules.",
     .remedy = "Spread receive processing over cores (RSS, RPS); where a firewall has many rules "
               "(nft list ruleset, iptables -nvL), have sets and maps in their place"},
    {.what = "connections that find the queue full",
     .remedy = "A longer queue of connections (the server's backlog, net.core.somaxconn) and more "
               "threads that accept, or connections that are kept open",
     .servers = 1,
     .capture = "{'network': {'ListenOverflows': 1}}",
     .causes = {CAUSE("connection being opened", "connections", ROLE_CLIENT, .9)},
     .lede = SLOW "For 90 % of that extra time connections to memcached could not be opened: its "
                  "queue of new connections was full 1 time."},
    {.what = "connections for which the SYN queue has no room",
     .servers = 1,
     .capture = "{'network': {'ListenOverflows': 0, 'TCPReqQFullDrop': 2}}",
     .causes = {CAUSE("connection being opened", "connections", ROLE_CLIENT, .9)},
     .lede = SLOW "For 90 % of that extra time connections to memcached could not be opened: its "
                  "queue of half-open ones (SYN) was full 2 times.",
     .remedy = "A longer SYN queue (net.ipv4.tcp_max_syn_backlog and the server's backlog), SYN "
               "cookies (net.ipv4.tcp_syncookies), or connections that are kept open"},
    {.what = "connections for which there is no local port",
     .servers = 1,
     .doubt = "no local port was left for 12 attempts to open a connection again",
     .doubts = {"no-local-port"},
     .capture = "{'network': {'ListenOverflows': 0}}",
     .causes = {CAUSE("connection being opened", "connections", ROLE_CLIENT, .9)},
     .lede = DOUBTED(
         "the load's machine ran out of local ports for new connections") "For 90 % of "
                                                                          "that extra time "
                                                                          "connections to "
                                                                          "memcached could not be "
                                                                          "opened: the load's "
                                                                          "machine had "
                                                                          "no local port left.",
     .remedy = "Connections that are kept open: each that this side ends keeps its port in "
               "TIME_WAIT for a minute; else more ports (net.ipv4.ip_local_port_range), or "
               "net.ipv4.tcp_tw_reuse=1"},
    {.what = "connections that nobody on the server's machine dropped",
     .servers = 1,
     .capture = "{'network': {'ListenOverflows': 0}}",
     .causes = {CAUSE("connection being opened", "connections", ROLE_CLIENT, .9)},
     .lede = SLOW "For 90 % of that extra time connections to memcached could not be opened.",
     .remedy = "The server's machine counted none that it dropped: see whether the server listens "
               "all the time, and who drops SYNs on the way (a firewall, the link); or keep "
               "connections open"},
    {.what = "nobody there",
     .doubt = "server not there: nobody listened, and datagrams were refused 100 times",
     .doubts = {"absent", "unanswered"},
     .reason = "no request was answered",
     .lede = "Inconclusive: nobody listened at the server's address. " UNKNOWN,
     .remedy = "Start the server, or mend the address"},
    {.what = "Ctrl-C",
     .doubt = "interrupted after 0.512 s",
     .doubts = {"interrupted", "too-short"},
     .lede = DOUBTED_NOTHING("the load was interrupted"),
     .remedy = "Let it run to its end"},
    {.what = "the client had no CPU left, and an agent was lost",
     .doubt = "agent b was lost: fell silent for 5 s",
     .doubts = {"agent-lost", "out-of-cpu"},
     .lede = DOUBTED_NOTHING("an agent of the load was lost"),
     .remedy = "Look at that agent's machine and at the link to it"},
    {.what = "the client had no CPU left",
     .doubt = "client biased: out of CPU, only 0.4 % of the time was left",
     .doubts = {"out-of-cpu"},
     .lede = DOUBTED_NOTHING("the load generator had no CPU left"),
     .remedy = "More threads for the load, agents, or a lower rate"},
    {.what = "the client was late, by its own account",
     .doubt = "client biased: late by 400 us; without that, p99 would be 80.0 us, not 480.0 us",
     .doubts = {"late", "arrivals"},
     .lede = DOUBTED_NOTHING("the load generator was late by itself"),
     .remedy = "Give the load generator a core of its own, or ask for a lower rate"},
    {.what = "arrivals that are not those asked for",
     .doubt = "arrivals wrong: the gaps between sends are 0.589 (Kolmogorov-Smirnov) away from the "
              "process asked for",
     .doubts = {"arrivals"},
     .lede = DOUBTED_NOTHING("the requests did not leave when they were to"),
     .remedy = "Give the load generator a core of its own, or ask for a lower rate"},
    {.what = "a server that slows down",
     .remedy =
         "Begin when the server is warm, measure for longer, and see what else the machines do",
     .doubt = "not stationary: p99 was 210.0 us in the first half and 640.0 us in the second",
     .doubts = {"not-stationary"},
     .causes = {CAUSE("head-of-line blocking", "head-of-line blocking", ROLE_A, .7)},
     .lede = DOUBTED(
         "the server's latency changed while it was measured") "For 70 % of that extra time these "
                                                               "requests stood behind others that "
                                                               "the server was "
                                                               "working on. Of another 30 % nobody "
                                                               "knows where it went."},
    {.what = "a percentile that is not known well enough, of dependent samples",
     .doubt = "heavy tail: the interval of p99 is not bounded after 3400 samples",
     .doubts = {"not-independent", "interval"},
     .lede = DOUBTED_NOTHING("the percentile that was asked for is not known well enough"),
     .remedy = "A longer load"},
    {.what = "samples that depend on one another",
     .remedy = "A longer load",
     .doubt = "not independent: these 900 still depend on one another",
     .doubts = {"not-independent"},
     .lede = DOUBTED_NOTHING("the requests say too little, because they depend on one another")},
    {.what = "nobody got a reply for a while, and it is known why",
     .remedy = KEEP_OFF,
     .causes = {CAUSE("yes", "other programs", ROLE_A, .9)},
     .doubt = "the load was closed-loop; no reply came on any connection for 152 ms",
     .doubts = {"silent"},
     .lede = SLOW "For 90 % of that extra time another program, `yes`, had the server's CPU core."},
    {.what = "the same, and the load generator was short of memory",
     .remedy = "A shorter load, a lower rate, or more --memory",
     .causes = {CAUSE("yes", "other programs", ROLE_A, .9)},
     .doubt = "no reply came on any connection for 152 ms",
     .doubts = {"silent", "memory"},
     .lede = DOUBTED(
         "the load generator had no memory for more requests") "For 90 % of that "
                                                               "extra time another program, `yes`, "
                                                               "had the server's CPU core."},
    {.what = "nobody got a reply for a while, for reasons that are half known",
     .remedy = "Look for what stopped the server: a long command or housekeeping of its own, its "
               "host, or the network",
     .causes = {CAUSE("yes", "other programs", ROLE_A, .5)},
     .doubt = "no reply came on any connection for 152 ms",
     .doubts = {"silent"},
     .lede = DOUBTED("nobody got a reply for a while") "For 50 % of that extra time another "
                                                       "program, `yes`, had the server's CPU core. "
                                                       "Of another 50 % nobody knows where it "
                                                       "went."},
    {.what = "agents that disagree",
     .remedy = "Look at what is different between them: the network, or their own cores",
     .doubt = "agents disagree: p99 is 80.0 us [70.0, 90.0] to a and 480.0 us [400.0, 500.0] to b",
     .doubts = {"agents-disagree"},
     .lede = DOUBTED_NOTHING("the load's agents measured different latencies")},
    {.what = "memory was spent",
     .remedy = "A shorter load, a lower rate, or more --memory",
     .doubt = "memory for samples was spent after 400 requests, before the time",
     .doubts = {"memory"},
     .lede = DOUBTED_NOTHING("the load generator had no memory for more requests")},
    {.what = "a doubt that this version does not know",
     .doubt = "the moon was full",
     .doubts = {"moon"},
     .lede = DOUBTED_NOTHING("the moon was full"),
     .remedy = ""},
    {.what = "starved, and no verdict",
     .doubt = "this client had its core for only 12 % of the time",
     .doubts = {"starved"},
     .reason = "only 71.0 % of the answered requests could be followed (no M(a) stamp)",
     .lede = "Inconclusive: the load generator was starved of its CPU core. " UNKNOWN,
     .remedy = "Give the load generator a core of its own"},
    {.what = "no verdict",
     .reason = "only 71.0 % of the answered requests could be followed, 95 % are needed (most "
               "often: no M(a) stamp)",
     .lede = "Inconclusive: only 71.0 % of the answered requests could be followed, 95 % are "
             "needed. 1 in 100 requests took 4.00 ms or more, half of them 50.0 us or less; why is "
             "not known.",
     .remedy = ""},
    {.what = "unanswered and lost ones",
     .remedy = KEEP_OFF,
     .causes = {CAUSE("yes", "other programs", ROLE_A, 1)},
     .unanswered = 80,
     .unfollowed = 300,
     .lede = SLOW "For 100 % of that extra time another program, `yes`, had the server's CPU core. "
                  "Besides, 80 requests were never answered. 3 % of the answered requests could "
                  "not be followed and are not in this."},
    {.what = "another slice",
     .remedy = KEEP_OFF,
     .low = 0.85,
     .causes = {CAUSE("yes", "other programs", ROLE_A, 1)},
     .lede = "15 % of requests took 3.80 ms or more (usually 53.2 us). For 100 % of that extra "
             "time another program, `yes`, had the server's CPU core."},
    {.what = "one request, of clients that are not ours",
     .remedy = KEEP_OFF,
     .one = true,
     .own_requests = true,
     .causes = {CAUSE("yes", "other programs", ROLE_A, 1)},
     .lede = "Request 963 took 3.80 ms in the server (usually 53.2 us). For 100 % of that extra "
             "time another program, `yes`, had the server's CPU core."},
};

// The document of a load that says what it thinks of itself.
static json_t *load_of(const struct situation *of)
{
    json_t *load =
        json_pack("{s:s, s:[s], s:[]}", "verdict", "n/a", "reasons", of->doubt, "doubts");
    for (size_t i = 0; i < 3 && of->doubts[i]; i++)
        json_array_append_new(json_object_get(load, "doubts"), json_string(of->doubts[i]));
    return load;
}

static json_t *capture_of(const struct situation *of)
{
    char text[600] = "";
    for (size_t i = 0; of->capture && of->capture[i]; i++)
        text[i] = (char)(of->capture[i] == '\'' ? '"' : of->capture[i]);
    json_t *capture = json_loads(text, 0, NULL);
    assert_true(capture || !of->capture);
    return capture;
}

static void tell(const struct situation *of, struct run_lede *out, bool *conclusive)
{
    struct diagnosed_message messages[MESSAGES];
    struct application servers[] = {{.name = "memcached"}, {.name = "redis-server"}};
    struct diagnosis diagnosis = {
        .slice = {.low = of->low ? of->low : 0.99,
                  .high = of->high ? of->high : 1,
                  .min_latency_ns = of->longer_than_ns,
                  .one = of->one,
                  .request = 963},
        .reference_latency_ns = 53200,
        .slice_low_ns = 3.8e6,
        .slice_high_ns = 4.2e6,
        .messages = {.items = messages, .count = MESSAGES},
        .causes = {.items = (struct cause *)of->causes},
        .not_available = of->reason != NULL,
    };
    struct run_analysis run = {
        .evidence = {.load = of->doubt ? load_of(of) : NULL,
                     .capture = capture_of(of),
                     .without_client = of->own_requests,
                     .trace = {.asked = of->traced},
                     .samples = {.present = of->sampled}},
        .lifetimes = {.scheduled = REQUESTS,
                      .answered = REQUESTS - of->unanswered,
                      .applications = {.items = {.items = servers, .count = of->servers}}},
        .findings = {.diagnoses = {.items = &diagnosis, .count = 1},
                     .verdict_available = !of->reason},
    };
    run.lifetimes.states[LIFETIME_WHOLE] = run.lifetimes.answered - of->unfollowed;
    run.lifetimes.latency.value_ns[0] = 50000;
    run.lifetimes.latency.value_ns[2] = 4e6;
    for (size_t i = 0; i < MESSAGES; i++)
        messages[i] =
            (struct diagnosed_message){i, of->deviation_ns ? of->deviation_ns : 20e6, 0, 0};
    while (diagnosis.causes.count < 4 && of->causes[diagnosis.causes.count].name[0])
        diagnosis.coverage_total += of->causes[diagnosis.causes.count++].total_ns / ALL_NS;
    if (of->reason)
        snprintf(diagnosis.reason, sizeof diagnosis.reason, "%s", of->reason);
    run_lede(&run, out);
    *conclusive = run_is_conclusive(&run);
    json_decref(run.evidence.load);
    json_decref(run.evidence.capture);
}

static void situations_are_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof situations / sizeof *situations; i++) {
        struct run_lede lede;
        bool conclusive;
        tell(&situations[i], &lede, &conclusive);
        if (strcmp(lede.text, situations[i].lede) != 0)
            fail_msg("%s:\n  %s\nwanted:\n  %s", situations[i].what, lede.text, situations[i].lede);
        assert_string_equal(lede.remedy, situations[i].remedy);
        assert_int_equal(conclusive, strncmp(lede.text, "Inconclusive", 12) != 0);
    }
}

static const char *const jargon[] = {"(A)", "(R)", "M(", "overage", "joined", "lifetime", "p99"};

static void no_jargon(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof situations / sizeof *situations; i++) {
        struct run_lede lede;
        bool conclusive;
        tell(&situations[i], &lede, &conclusive);
        for (size_t j = 0; j < sizeof jargon / sizeof *jargon; j++)
            if (strstr(lede.text, jargon[j]) || strstr(lede.remedy, jargon[j]))
                fail_msg("%s: %s in \"%s\"", situations[i].what, jargon[j], lede.text);
    }
}

// Without any request that was answered, and where the tail never was.
static void what_never_came(void **state)
{
    (void)state;
    struct run_lede lede;
    struct run_analysis run = {.lifetimes = {.scheduled = 10}};
    run_lede(&run, &lede);
    assert_string_equal(lede.text, "Inconclusive: nothing was recorded that could say why. "
                                   "Besides, 10 requests were never answered.");
    run.lifetimes.answered = 9;
    run.lifetimes.latency.value_ns[2] = INFINITY;
    run_lede(&run, &lede);
    assert_string_equal(lede.text, "Inconclusive: nothing was recorded that could say why. More "
                                   "than 1 in 100 requests were never answered: 1 of 10.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(situations_are_told),
        cmocka_unit_test(no_jargon),
        cmocka_unit_test(what_never_came),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
