// SPDX-License-Identifier: MIT
//
// Makes one kind of trouble for a server, for a stated time, once every so often, and notes in a
// fault log (workloads/lab/lab_fault.h) when exactly. It runs where the trouble is to be: in the
// server's network namespace and on its core, or on the client's (network).
//
//     inject KIND LENGTH EVERY LOG [ADDRESS]
//     inject sink | burn | burn-idle | limit
//     inject hold LENGTH FILE
//
// hog      a real-time thread uses the core up
// softoff  a thread uses the core up with softirqs held off, so that receiving waits too
// softirq  a softirq uses the core up
// timers   that many timers expire at once: LENGTH / 2.5 us
// stop     labserver is stopped, and continued
// migrate  labserver is moved to the next core, and back
// quota    labserver's control group uses its CPU quota up, and gets more of it LENGTH later
// request  another server, on port 11212 of ADDRESS, is asked for something (and notes itself what
//          it does then)
// command  another client's request takes labserver LENGTH (of its --protocol lab), at ADDRESS
// burst    another client sends LENGTH / 250 us requests of 250 us each at once
// unread   another client asks for a reply of 512 KiB and reads none of it for LENGTH, then all
// slowly   another client, with room for 8 KiB, reads 4 KiB of its reply every 200 us, LENGTH long:
//          its window is small, not shut, and labserver waits for room again and again
// burn     a bystander of the lowest priority uses all of the core that nobody else wants;
// burn-idle
//          makes way at once also for a server that is no real-time program
// limit    labserver's control group gets 8 MiB of memory from now on
// hold     the disk that FILE is on does nothing for labserver's control group until labserver has
//          waited LENGTH for it, whenever it writes
// network  LENGTH / 10 us bundles of datagrams are sent to ADDRESS, where a sink has to be: it
//          costs the receiver several times as much to take a bundle apart as the sender to make it
// loss     what is sent to ADDRESS does not arrive, LENGTH long
// queue    the device sends 100 Mbit/s at most from the beginning on, and now and then datagrams
// that
//          take LENGTH are put into its queueing discipline (tbf), for nobody at ADDRESS
// firewall a firewall (nft) throws away what comes for labserver's port, LENGTH long
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"
#include "workloads/protocols/lab.h"
#include "workloads/lab/lab_fault.h"

// What bpftool generates does not keep our warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wconversion"
#include "tests/faults/inject.skel.h"
#pragma GCC diagnostic pop

enum { TIMER_NS = 2500, TIMER_WATCHERS = 16, FIRST_ARMING_NS = 20000000 };
enum { FLOOD_PORT = 9, FLOOD_SEGMENT = 64 };
enum { SERVER_PORT = 11211, REQUEST_PORT = 11212 };
enum { BUNDLE_BYTES = 64 * FLOOD_SEGMENT, BUNDLE_NS = 10000 };

struct injector {
    uint64_t length_ns;
    const char *address;
    struct inject_bpf *programs; // softoff, softirq
    int *timers;                 // timers
    size_t timer_count;
    int64_t arming_ns;      // timers: how long it takes to set them, at most
    pid_t server;           // stop, migrate, quota
    clockid_t server_clock; // quota: the CPU time it has used
    const char *group;      // quota: the folder of its control group
    int flood, echo;
    int room; // for what is received, before the program has read it; 0: as usual (slowly)
    struct sockaddr_in target;
    struct arpreq peer; // loss, queue: ADDRESS as the device knows it
};

struct interval {
    int64_t begin_ns, end_ns;
};

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
    struct timespec length = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    nanosleep(&length, NULL);
}

// --- using the core up ---------------------------------------------------------------------------

static void hog(struct injector *injector, struct interval *out)
{
    out->begin_ns = fault_log_now();
    do
        out->end_ns = fault_log_now();
    while (out->end_ns < out->begin_ns + (int64_t)injector->length_ns);
}

static int prepare_programs(struct injector *injector, struct error *err)
{
    injector->programs = inject_bpf__open_and_load();
    if (!injector->programs)
        return error_set_errno(err, ERROR_FAILED, "cannot load the BPF programs");
    injector->programs->bss->length_ns = injector->length_ns;
    return 0;
}

static int test_run(struct bpf_program *program)
{
    char packet[64] = {0};
    LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = packet, .data_size_in = sizeof packet,
                .repeat = 1);
    int result = bpf_prog_test_run_opts(bpf_program__fd(program), &options);
    return result < 0 ? result : (int)options.retval;
}

// What the programs noted, in the log's clock.
static void take_occupation(struct injector *injector, struct interval *out)
{
    int64_t ahead = fault_log_now() - clock_ns(CLOCK_MONOTONIC);
    out->begin_ns = (int64_t)injector->programs->bss->latest_begin + ahead;
    out->end_ns = (int64_t)injector->programs->bss->latest_end + ahead;
}

static void hold_softirqs_off(struct injector *injector, struct interval *out)
{
    if (test_run(injector->programs->progs.softirqs_off) == 0)
        take_occupation(injector, out);
}

static void occupy_softirq(struct injector *injector, struct interval *out)
{
    injector->programs->bss->latest_end = 0;
    if (test_run(injector->programs->progs.start_timer) != 0)
        return;
    sleep_ns(2 * injector->length_ns + 1000000);
    if (injector->programs->bss->latest_end)
        take_occupation(injector, out);
}

// --- timers --------------------------------------------------------------------------------------

// To set a timer takes a virtual machine a hundred times what its end takes, and the server is to
// notice its end alone: so each tells many who watch it, and fewer are enough.
static int watch_timers(const struct injector *injector)
{
    struct epoll_event event = {.events = EPOLLIN};
    for (int watcher = 0; watcher < TIMER_WATCHERS; watcher++) {
        int epoll = epoll_create1(EPOLL_CLOEXEC);
        for (size_t i = 0; i < injector->timer_count; i++)
            if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, injector->timers[i], &event) < 0)
                return -1;
    }
    return 0;
}

static int prepare_timers(struct injector *injector, struct error *err)
{
    injector->timer_count = injector->length_ns / TIMER_NS;
    injector->arming_ns = FIRST_ARMING_NS;
    const struct rlimit files = {injector->timer_count + 64, injector->timer_count + 64};
    injector->timers = calloc(injector->timer_count, sizeof *injector->timers);
    if (!injector->timers || setrlimit(RLIMIT_NOFILE, &files) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot have %zu timers", injector->timer_count);
    for (size_t i = 0; i < injector->timer_count; i++) {
        injector->timers[i] = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
        if (injector->timers[i] < 0)
            return error_set_errno(err, ERROR_FAILED, "cannot make timer %zu", i);
    }
    return watch_timers(injector) < 0
               ? error_set_errno(err, ERROR_FAILED, "cannot watch %zu timers",
                                 injector->timer_count)
               : 0;
}

// Sets all of them. Whether that was done before the first was due: how long it takes is known only
// after a try on this machine, and they must not wait for longer than that, as other timers come
// between.
static bool arm_timers(struct injector *injector, int64_t due_ns)
{
    // The server is to notice little of it, also where each takes microseconds.
    enum { AT_ONCE_NS = 30000, PAUSE_NS = 200000 };
    const struct itimerspec once = {
        .it_value = {(time_t)(due_ns / 1000000000), (long)(due_ns % 1000000000)}};
    int64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
    int64_t resumed_ns = begin_ns;
    for (size_t i = 0; i < injector->timer_count; i++) {
        timerfd_settime(injector->timers[i], TFD_TIMER_ABSTIME, &once, NULL);
        if (clock_ns(CLOCK_MONOTONIC) < resumed_ns + AT_ONCE_NS)
            continue;
        sleep_ns(PAUSE_NS);
        resumed_ns = clock_ns(CLOCK_MONOTONIC);
    }
    int64_t took_ns = clock_ns(CLOCK_MONOTONIC) - begin_ns;
    injector->arming_ns = took_ns + took_ns / 2;
    return begin_ns + took_ns < due_ns;
}

// They expire in one interrupt, in the order of their times; this thread's own wake-up, a real-time
// thread's, is the last of them.
static void expire_timers(struct injector *injector, struct interval *out)
{
    int64_t due = clock_ns(CLOCK_MONOTONIC) + injector->arming_ns;
    const struct timespec last = {(time_t)((due + 1) / 1000000000), (long)((due + 1) % 1000000000)};
    if (!arm_timers(injector, due))
        return;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &last, NULL);
    out->end_ns = fault_log_now();
    out->begin_ns = due + out->end_ns - clock_ns(CLOCK_MONOTONIC);
}

// --- the server ----------------------------------------------------------------------------------

static bool is_our_server(const char *pid)
{
    char path[64], mine[64], its[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%.20s/comm", pid);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    bool named = fgets(name, sizeof name, file) && strcmp(name, "labserver\n") == 0;
    fclose(file);
    snprintf(path, sizeof path, "/proc/%.20s/ns/net", pid);
    ssize_t a = readlink("/proc/self/ns/net", mine, sizeof mine);
    ssize_t b = readlink(path, its, sizeof its);
    return named && a > 0 && a == b && memcmp(mine, its, (size_t)a) == 0;
}

static int find_server(struct injector *injector, struct error *err)
{
    DIR *processes = opendir("/proc");
    for (struct dirent *entry; processes && !injector->server && (entry = readdir(processes));)
        if (is_our_server(entry->d_name))
            injector->server = (pid_t)atoi(entry->d_name);
    if (processes)
        closedir(processes);
    return injector->server
               ? 0
               : error_set(err, ERROR_FAILED, "there is no labserver in this network namespace");
}

static void stop_server(struct injector *injector, struct interval *out)
{
    out->begin_ns = fault_log_now();
    kill(injector->server, SIGSTOP);
    sleep_ns(injector->length_ns);
    kill(injector->server, SIGCONT);
    out->end_ns = fault_log_now();
}

static void move_server(struct injector *injector, struct interval *out)
{
    cpu_set_t home, away;
    CPU_ZERO(&away);
    if (sched_getaffinity(injector->server, sizeof home, &home) < 0)
        return;
    CPU_SET(CPU_ISSET(0, &home) ? 1 : 0, &away);
    out->begin_ns = fault_log_now();
    sched_setaffinity(injector->server, sizeof away, &away);
    sleep_ns(injector->length_ns);
    sched_setaffinity(injector->server, sizeof home, &home);
    out->end_ns = fault_log_now();
}

// A control group of its own, version 1 or 2, whose quota is set for as long as a fault lasts.
#define QUOTA_GROUP_1 "/sys/fs/cgroup/cpu/taillight-quota"
#define QUOTA_GROUP_2 "/sys/fs/cgroup/taillight-quota"

static bool write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    bool good = file && fputs(text, file) >= 0;
    return file && fclose(file) == 0 && good;
}

// Real-time threads have no quota; what else wants the core is to get as little of it as can be.
static int prepare_quota(struct injector *injector, struct error *err)
{
    const struct sched_param none = {0};
    injector->group =
        access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0 ? QUOTA_GROUP_2 : QUOTA_GROUP_1;
    if (find_server(injector, err) < 0)
        return -1;
    if (strcmp(injector->group, QUOTA_GROUP_2) == 0)
        write_file("/sys/fs/cgroup/cgroup.subtree_control", "+cpu");
    if ((mkdir(injector->group, 0755) < 0 && errno != EEXIST) ||
        sched_setscheduler(injector->server, SCHED_OTHER, &none) < 0 ||
        clock_getcpuclockid(injector->server, &injector->server_clock) != 0)
        return error_set_errno(err, ERROR_FAILED, "cannot make the control group %s",
                               injector->group);
    char path[128];
    bool second = strcmp(injector->group, QUOTA_GROUP_2) == 0;
    snprintf(path, sizeof path, "%s/%s", injector->group, second ? "cpu.weight" : "cpu.shares");
    write_file(path, second ? "10000" : "262144");
    return 0;
}

static bool set_quota(const struct injector *injector, bool limited)
{
    char path[128];
    if (strcmp(injector->group, QUOTA_GROUP_2) == 0) {
        snprintf(path, sizeof path, "%s/cpu.max", injector->group);
        return write_file(path, limited ? "1000 1000000" : "max 1000000");
    }
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", injector->group);
    bool good = write_file(path, "1000000");
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", injector->group);
    return write_file(path, limited ? "1000" : "-1") && good;
}

// For how long the group has been throttled in all, by the kernel's account.
static int64_t throttled_ns(const struct injector *injector)
{
    char path[128], line[64];
    long long ns = 0;
    snprintf(path, sizeof path, "%s/cpu.stat", injector->group);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        long long value;
        if (sscanf(line, "throttled_time %lld", &value) == 1)
            ns = value;
        else if (sscanf(line, "throttled_usec %lld", &value) == 1)
            ns = value * 1000;
    }
    if (file)
        fclose(file);
    return ns;
}

// Taking the quota away again ends the throttling, so that its beginning follows from how long the
// kernel says it lasted.
static void use_quota_up(struct injector *injector, struct interval *out)
{
    enum { QUOTA_NS = 1000000, LOOK_NS = 200000, LOOKS = 500 };
    char path[128], number[16];
    snprintf(path, sizeof path, "%s/cgroup.procs", injector->group);
    snprintf(number, sizeof number, "%d", injector->server);
    int64_t before = throttled_ns(injector);
    if (!write_file(path, number) || !set_quota(injector, true))
        return;
    int64_t used = clock_ns(injector->server_clock) + QUOTA_NS;
    for (int looks = 0; looks < LOOKS && clock_ns(injector->server_clock) < used; looks++)
        sleep_ns(LOOK_NS);
    sleep_ns(injector->length_ns);
    set_quota(injector, false);
    int64_t end = fault_log_now(), lasted = throttled_ns(injector) - before;
    if (lasted > 0)
        *out = (struct interval){end - lasted, end};
}

// --- a memory limit ------------------------------------------------------------------------------

#define MEMORY_GROUP_1 "/sys/fs/cgroup/memory/taillight-memory"
#define MEMORY_GROUP_2 "/sys/fs/cgroup/taillight-memory"

// What the server has already does not count in its new group.
static int be_limit(struct error *err)
{
    struct injector injector = {0};
    bool second = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
    char number[16];
    if (find_server(&injector, err) < 0)
        return -1;
    snprintf(number, sizeof number, "%d", injector.server);
    if (second)
        write_file("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
    if ((mkdir(second ? MEMORY_GROUP_2 : MEMORY_GROUP_1, 0755) < 0 && errno != EEXIST) ||
        !write_file(second ? MEMORY_GROUP_2 "/memory.max" : MEMORY_GROUP_1 "/memory.limit_in_bytes",
                    "8388608") ||
        !write_file(second ? MEMORY_GROUP_2 "/cgroup.procs" : MEMORY_GROUP_1 "/cgroup.procs",
                    number))
        return error_set_errno(err, ERROR_FAILED, "cannot limit the server's memory");
    for (;;)
        pause();
}

// --- a disk --------------------------------------------------------------------------------------

#define DISK_GROUP_1 "/sys/fs/cgroup/blkio/taillight-disk"
#define DISK_GROUP_2 "/sys/fs/cgroup/taillight-disk"

// "254:0" for the disk that holds the file, whole.
static int find_disk(const char *path, char out[32], struct error *err)
{
    struct stat file;
    char name[64], partition[96];
    if (stat(path, &file) < 0)
        return error_set_errno(err, ERROR_INPUT, "cannot look at %s", path);
    snprintf(name, sizeof name, "/sys/dev/block/%u:%u", major(file.st_dev), minor(file.st_dev));
    snprintf(partition, sizeof partition, "%s/partition", name);
    snprintf(partition, sizeof partition, "%s%s", name,
             access(partition, F_OK) == 0 ? "/../dev" : "/dev");
    FILE *number = fopen(partition, "re");
    bool found = number && fscanf(number, "%31s", out) == 1;
    if (number)
        fclose(number);
    return found ? 0 : error_set(err, ERROR_FAILED, "%s is on no disk that can be held", path);
}

static bool hold_disk(const char *disk, bool held)
{
    char line[64];
    bool second = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
    snprintf(line, sizeof line, second ? "%s wiops=%s" : "%s %s", disk,
             held     ? "1"
             : second ? "max"
                      : "0");
    return write_file(
        second ? DISK_GROUP_2 "/io.max" : DISK_GROUP_1 "/blkio.throttle.write_iops_device", line);
}

// Whether the server sleeps until something is done that no signal ends: a disk, as a rule.
static bool waits_for_disk(const struct injector *injector)
{
    char path[64], state = ' ';
    snprintf(path, sizeof path, "/proc/%d/stat", injector->server);
    FILE *file = fopen(path, "re");
    bool waits = file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1 && state == 'D';
    if (file)
        fclose(file);
    return waits;
}

static int be_holder(const char *length, const char *path, struct error *err)
{
    enum { LOOK_NS = 500000 };
    const struct sched_param first = {.sched_priority = 50};
    struct injector injector = {0};
    char disk[32], number[16];
    bool second = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
    if (units_parse_duration_ns(length, &injector.length_ns, err) < 0 ||
        find_disk(path, disk, err) < 0 || find_server(&injector, err) < 0)
        return -1;
    snprintf(number, sizeof number, "%d", injector.server);
    if (second)
        write_file("/sys/fs/cgroup/cgroup.subtree_control", "+io");
    if ((mkdir(second ? DISK_GROUP_2 : DISK_GROUP_1, 0755) < 0 && errno != EEXIST) ||
        !write_file(second ? DISK_GROUP_2 "/cgroup.procs" : DISK_GROUP_1 "/cgroup.procs", number) ||
        sched_setscheduler(0, SCHED_FIFO, &first) < 0 || !hold_disk(disk, true))
        return error_set_errno(err, ERROR_FAILED, "cannot hold the disk %s", disk);
    for (;;) {
        while (!waits_for_disk(&injector))
            sleep_ns(LOOK_NS);
        sleep_ns(injector.length_ns);
        hold_disk(disk, false);
        while (waits_for_disk(&injector))
            sleep_ns(LOOK_NS);
        sleep_ns(2 * LOOK_NS); // what it writes or syncs right after that
        hold_disk(disk, true);
    }
}

// --- the network ---------------------------------------------------------------------------------

static int prepare_flood(struct injector *injector, struct error *err)
{
    const int segment = FLOOD_SEGMENT, on = 1;
    const struct timeval patience = {0, 100000};
    injector->target = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(FLOOD_PORT)};
    if (!injector->address ||
        inet_pton(AF_INET, injector->address, &injector->target.sin_addr) != 1)
        return error_set(err, ERROR_INPUT, "network: the server's ADDRESS is needed");
    injector->flood = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    injector->echo = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
    if (injector->flood < 0 || injector->echo < 0 ||
        setsockopt(injector->flood, SOL_UDP, UDP_SEGMENT, &segment, sizeof segment) < 0 ||
        setsockopt(injector->echo, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
        setsockopt(injector->echo, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot make the flood's sockets");
    return 0;
}

static uint16_t internet_checksum(const void *bytes, size_t count)
{
    uint32_t sum = 0;
    for (size_t i = 0; i + 1 < count; i += 2) {
        uint16_t word;
        memcpy(&word, (const char *)bytes + i, 2);
        sum += word;
    }
    sum = (sum >> 16) + (sum & 0xffff);
    return (uint16_t) ~(sum + (sum >> 16));
}

// When the message came that recvmsg took, by the kernel's stamp; 0: it has none.
static int64_t came_at(struct msghdr *message)
{
    struct timespec stamp;
    struct cmsghdr *control = CMSG_FIRSTHDR(message);
    if (!control || control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_TIMESTAMPNS)
        return 0;
    memcpy(&stamp, CMSG_DATA(control), sizeof stamp);
    int64_t ago = clock_ns(CLOCK_REALTIME) - (stamp.tv_sec * 1000000000 + stamp.tv_nsec);
    return fault_log_now() - ago;
}

// Answered by the kernel in the same softirq, after all that came before, which puts the answer
// onto this host's backlog, where it gets its stamp: that this program is then waked takes a while.
// Returns that time, 0: there was no answer.
static int64_t ping(struct injector *injector, uint16_t number)
{
    struct icmphdr request = {.type = ICMP_ECHO, .un.echo = {(uint16_t)getpid(), number}};
    char reply[256], control[CMSG_SPACE(sizeof(struct timespec))];
    struct iovec bytes = {reply, sizeof reply};
    request.checksum = internet_checksum(&request, sizeof request);
    if (sendto(injector->echo, &request, sizeof request, 0, (void *)&injector->target,
               sizeof injector->target) < 0)
        return 0;
    for (;;) {
        struct msghdr message = {.msg_iov = &bytes,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = sizeof control};
        struct icmphdr got;
        if (recvmsg(injector->echo, &message, 0) < (ssize_t)(20 + sizeof request))
            return 0;
        memcpy(&got, reply + 20, sizeof got);
        if (got.type == ICMP_ECHOREPLY && got.un.echo.id == request.un.echo.id &&
            got.un.echo.sequence == number)
            return came_at(&message);
    }
}

static void flood(struct injector *injector, struct interval *out)
{
    static const char bytes[BUNDLE_BYTES];
    int64_t begin = fault_log_now();
    for (uint64_t sent = 0; sent < injector->length_ns / BUNDLE_NS; sent++)
        sendto(injector->flood, bytes, sizeof bytes, 0, (void *)&injector->target,
               sizeof injector->target);
    int64_t end = ping(injector, (uint16_t)(begin / 1000000));
    if (end)
        *out = (struct interval){begin, end};
}

// Takes datagrams and reads none of them.
static int be_sink(struct error *err)
{
    const struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(FLOOD_PORT)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const void *)&any, sizeof any) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot be the flood's sink");
    for (;;)
        pause();
}

// --- the link ------------------------------------------------------------------------------------

// The first device that is not loopback: hosts have no more.
static int find_device(char name[IF_NAMESIZE], struct error *err)
{
    struct if_nameindex *all = if_nameindex();
    name[0] = 0;
    for (const struct if_nameindex *one = all; one && one->if_index && !name[0]; one++)
        if (strcmp(one->if_name, "lo") != 0)
            snprintf(name, IF_NAMESIZE, "%s", one->if_name);
    if_freenameindex(all);
    return name[0] ? 0 : error_set(err, ERROR_FAILED, "there is no device but loopback");
}

static int prepare_link(struct injector *injector, struct error *err)
{
    struct sockaddr_in *peer = (struct sockaddr_in *)&injector->peer.arp_pa;
    char device[IF_NAMESIZE];
    if (prepare_flood(injector, err) < 0 || find_device(device, err) < 0)
        return -1;
    *peer = injector->target;
    snprintf(injector->peer.arp_dev, sizeof injector->peer.arp_dev, "%s", device);
    for (int tries = 0; tries < 100; tries++) { // until somebody has talked to it
        ping(injector, (uint16_t)tries);
        if (ioctl(injector->flood, SIOCGARP, &injector->peer) == 0 &&
            (injector->peer.arp_flags & ATF_COM))
            return 0;
    }
    return error_set(err, ERROR_FAILED, "nobody answers at %s", injector->address);
}

static int set_hardware_address(const struct injector *injector, struct arpreq peer)
{
    peer.arp_flags = ATF_COM | ATF_PERM;
    return ioctl(injector->flood, SIOCSARP, &peer);
}

// Sent to a hardware address that is nobody's, it gets as far as the peer's device.
static void lose(struct injector *injector, struct interval *out)
{
    struct arpreq nobody = injector->peer;
    nobody.arp_ha.sa_data[5] ^= 1;
    int64_t begin = fault_log_now();
    if (set_hardware_address(injector, nobody) < 0)
        return;
    out->begin_ns = begin;
    sleep_ns(injector->length_ns);
    set_hardware_address(injector, injector->peer);
    out->end_ns = fault_log_now();
}

static int prepare_queue(struct injector *injector, struct error *err)
{
    char command[256];
    if (prepare_link(injector, err) < 0)
        return -1;
    snprintf(command, sizeof command,
             "tc qdisc replace dev %s root tbf rate 100mbit burst 16kb limit 16mb",
             injector->peer.arp_dev);
    if (system(command) != 0)
        return error_set(err, ERROR_FAILED, "cannot limit the device: %s", command);
    const int whole = 0;
    if (setsockopt(injector->flood, SOL_UDP, UDP_SEGMENT, &whole, sizeof whole) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot send whole datagrams");
    return 0;
}

static void fill_queue(struct injector *injector, struct interval *out)
{
    enum { DATAGRAM = 1208, FRAME_NS = 100000 }; // with its headers 1250 bytes, at 100 Mbit/s
    static const char bytes[DATAGRAM];
    out->begin_ns = fault_log_now();
    for (uint64_t ns = 0; ns < injector->length_ns; ns += FRAME_NS)
        sendto(injector->flood, bytes, sizeof bytes, 0, (void *)&injector->target,
               sizeof injector->target);
    out->end_ns = out->begin_ns + (int64_t)injector->length_ns;
}

// --- a firewall ----------------------------------------------------------------------------------

#define FIREWALL "taillight-firewall"

// The network namespace that it is in ends with the run.
static int prepare_firewall(struct injector *injector, struct error *err)
{
    static const char command[] =
        "nft 'table ip " FIREWALL " { chain input { type filter hook input priority 0; }; }'";
    (void)injector;
    return system(command) == 0
               ? 0
               : error_set(err, ERROR_FAILED, "cannot make the firewall: %s", command);
}

// The commands take their time as ordinary programs, which hold nobody up.
static void drop_requests(struct injector *injector, struct interval *out)
{
    int64_t begin = fault_log_now();
    if (system("chrt -o 0 nft add rule ip " FIREWALL " input tcp dport 11211 drop") != 0)
        return;
    sleep_ns(injector->length_ns);
    if (system("chrt -o 0 nft flush chain ip " FIREWALL " input") == 0)
        *out = (struct interval){begin, fault_log_now()};
}

// --- a bystander ---------------------------------------------------------------------------------

static int be_bystander(int policy, struct error *err)
{
    const struct sched_param none = {0};
    if (prctl(PR_SET_NAME, "bystander") < 0 || sched_setscheduler(0, policy, &none) < 0 ||
        setpriority(PRIO_PROCESS, 0, 19) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot be a program of the lowest priority");
    for (;;)
        __builtin_ia32_pause();
}

// --- another server ------------------------------------------------------------------------------

static int connect_to(struct injector *injector, uint16_t port, struct error *err)
{
    injector->target = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    if (!injector->address ||
        inet_pton(AF_INET, injector->address, &injector->target.sin_addr) != 1)
        return error_set(err, ERROR_INPUT, "the server's ADDRESS is needed");
    injector->flood = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (injector->flood < 0 ||
        (injector->room && setsockopt(injector->flood, SOL_SOCKET, SO_RCVBUF, &injector->room,
                                      sizeof injector->room) < 0) ||
        connect(injector->flood, (void *)&injector->target, sizeof injector->target) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot connect to %s:%d", injector->address,
                               port);
    return 0;
}

static int prepare_request(struct injector *injector, struct error *err)
{
    return connect_to(injector, REQUEST_PORT, err);
}

static void request(struct injector *injector, struct interval *out)
{
    static const char get[] = "get nothing\r\n";
    char reply[4096];
    (void)out;
    if (send(injector->flood, get, sizeof get - 1, MSG_NOSIGNAL) == sizeof get - 1)
        (void)!recv(injector->flood, reply, sizeof reply, 0);
}

// --- another client of the same server -----------------------------------------------------------

enum { BURST_NS = 250000, BURST_MOST = 1000 };

static int prepare_client(struct injector *injector, struct error *err)
{
    const int on = 1;
    if (connect_to(injector, SERVER_PORT, err) < 0)
        return -1;
    return setsockopt(injector->flood, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) == 0
               ? 0
               : error_set_errno(err, ERROR_FAILED, "no stamps of what is received");
}

// When the bytes came that a call received, by the kernel's stamp of them: the thread that waits
// for them may get its core later than that.
static int64_t received_ns(const struct msghdr *message)
{
    struct timespec came, now;
    const struct cmsghdr *control = CMSG_FIRSTHDR(message);
    int64_t raw_ns = fault_log_now();
    clock_gettime(CLOCK_REALTIME, &now);
    if (!control || control->cmsg_type != SCM_TIMESTAMPNS)
        return raw_ns;
    memcpy(&came, CMSG_DATA(control), sizeof came);
    return raw_ns - ((now.tv_sec - came.tv_sec) * 1000000000 + now.tv_nsec - came.tv_nsec);
}

// Asks for so many replies without payload, each after so long, and awaits them.
static void ask(struct injector *injector, size_t count, uint64_t service_ns, struct interval *out)
{
    static char requests[BURST_MOST * LAB_REQUEST_BYTES], replies[BURST_MOST * LAB_REPLY_BYTES];
    const uint64_t service = htobe64(service_ns);
    count = count > BURST_MOST ? BURST_MOST : count;
    for (size_t i = 0; i < count; i++) {
        char *one = requests + i * LAB_REQUEST_BYTES;
        memcpy(one, "LABQ", 4);
        memcpy(one + 16, &service, sizeof service);
    }
    char control[CMSG_SPACE(sizeof(struct timespec))];
    struct iovec into = {replies, count * LAB_REPLY_BYTES};
    struct msghdr reply = {.msg_iov = &into,
                           .msg_iovlen = 1,
                           .msg_control = control,
                           .msg_controllen = sizeof control};
    int64_t begin_ns = fault_log_now();
    if (send(injector->flood, requests, count * LAB_REQUEST_BYTES, MSG_NOSIGNAL) < 0 ||
        recvmsg(injector->flood, &reply, MSG_WAITALL) <= 0)
        return;
    *out = (struct interval){begin_ns, received_ns(&reply)};
}

static void send_command(struct injector *injector, struct interval *out)
{
    ask(injector, 1, injector->length_ns, out);
}

static void send_burst(struct injector *injector, struct interval *out)
{
    ask(injector, injector->length_ns / BURST_NS, BURST_NS, out);
}

static void lab_request_write(char out[LAB_REQUEST_BYTES], uint32_t payload)
{
    payload = htobe32(payload);
    memset(out, 0, LAB_REQUEST_BYTES);
    memcpy(out, "LABQ", 4);
    memcpy(out + 4, &payload, sizeof payload);
}

// A connection that nobody reads from has no room after a while; each gets one of its own, which
// begins with as little.
static void leave_unread(struct injector *injector, struct interval *out)
{
    enum { PAYLOAD = LAB_PAYLOAD_BYTES_MAX / 2 }; // beyond both ends' buffers
    static char request[LAB_REQUEST_BYTES], reply[LAB_REPLY_BYTES + PAYLOAD];
    struct error err = {0};
    lab_request_write(request, PAYLOAD);
    if (connect_to(injector, SERVER_PORT, &err) < 0)
        return;
    int64_t begin_ns = fault_log_now();
    bool asked = send(injector->flood, request, sizeof request, MSG_NOSIGNAL) > 0;
    sleep_ns(injector->length_ns);
    int64_t end_ns = fault_log_now();
    if (asked && recv(injector->flood, reply, sizeof reply, MSG_WAITALL) == sizeof reply)
        *out = (struct interval){begin_ns, end_ns};
    close(injector->flood);
}

// The server has gone on when it answers another connection, whose request came behind.
static void read_slowly(struct injector *injector, struct interval *out)
{
    enum { PIECE = 4096, PIECE_NS = 200000, ROOM = 8192, MOST = LAB_PAYLOAD_BYTES_MAX };
    static char request[LAB_REQUEST_BYTES], reply[LAB_REPLY_BYTES + MOST];
    const struct timespec pause = {.tv_nsec = PIECE_NS};
    size_t payload = MOST / 2 + injector->length_ns / PIECE_NS * PIECE; // beyond both ends' buffers
    payload = payload < MOST ? payload : MOST;
    size_t left = LAB_REPLY_BYTES + payload;
    struct error err = {0};
    injector->room = ROOM;
    int connected = connect_to(injector, SERVER_PORT, &err), slow = injector->flood;
    injector->room = 0;
    if (connected < 0 || connect_to(injector, SERVER_PORT, &err) < 0)
        return;
    struct pollfd behind = {.fd = injector->flood, .events = POLLIN};
    lab_request_write(request, (uint32_t)payload);
    int64_t begin_ns = fault_log_now();
    bool asked = send(slow, request, sizeof request, MSG_NOSIGNAL) > 0;
    lab_request_write(request, 0);
    nanosleep(&pause, NULL);
    asked &= send(behind.fd, request, sizeof request, MSG_NOSIGNAL) > 0;
    while (asked && left > PIECE && ppoll(&behind, 1, &pause, NULL) == 0) {
        ssize_t got = recv(slow, reply, PIECE, MSG_DONTWAIT);
        left -= got > 0 ? (size_t)got : 0;
    }
    int64_t end_ns = fault_log_now();
    if (asked && recv(slow, reply, left, MSG_WAITALL) == (ssize_t)left)
        *out = (struct interval){begin_ns, end_ns};
    close(slow);
    close(behind.fd);
}

// --- the whole -----------------------------------------------------------------------------------

static const struct kind {
    const char *name;
    int (*prepare)(struct injector *injector, struct error *err);
    void (*make)(struct injector *injector, struct interval *out); // leaves *out zero: it failed
} kinds[] = {
    {"hog", NULL, hog},
    {"softoff", prepare_programs, hold_softirqs_off},
    {"softirq", prepare_programs, occupy_softirq},
    {"timers", prepare_timers, expire_timers},
    {"stop", find_server, stop_server},
    {"migrate", find_server, move_server},
    {"quota", prepare_quota, use_quota_up},
    {"network", prepare_flood, flood},
    {"request", prepare_request, request},
    {"command", prepare_client, send_command},
    {"burst", prepare_client, send_burst},
    {"unread", NULL, leave_unread},
    {"slowly", NULL, read_slowly},
    {"loss", prepare_link, lose},
    {"queue", prepare_queue, fill_queue},
    {"firewall", prepare_firewall, drop_requests},
};

static const struct kind *kind_of(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

int main(int argc, char **argv)
{
    struct error err = {0};
    struct injector injector = {.address = argc > 5 ? argv[5] : NULL};
    struct fault_log log;
    uint64_t every_ns;
    const struct kind *kind = argc > 4 ? kind_of(argv[1]) : NULL;
    if (argc == 2 && strcmp(argv[1], "sink") == 0 && be_sink(&err) < 0)
        return error_report(&err);
    if (argc == 2 && strcmp(argv[1], "burn") == 0 && be_bystander(SCHED_OTHER, &err) < 0)
        return error_report(&err);
    if (argc == 2 && strcmp(argv[1], "burn-idle") == 0 && be_bystander(SCHED_IDLE, &err) < 0)
        return error_report(&err);
    if (argc == 2 && strcmp(argv[1], "limit") == 0 && be_limit(&err) < 0)
        return error_report(&err);
    if (argc == 4 && strcmp(argv[1], "hold") == 0 && be_holder(argv[2], argv[3], &err) < 0)
        return error_report(&err);
    if (!kind) {
        fputs("usage: inject hog|softoff|softirq|timers|stop|migrate|quota|network|request|command|"
              "burst|unread|slowly|loss|queue|firewall LENGTH EVERY LOG [ADDRESS]\n",
              stderr);
        return 2;
    }
    if (units_parse_duration_ns(argv[2], &injector.length_ns, &err) < 0 ||
        units_parse_duration_ns(argv[3], &every_ns, &err) < 0 ||
        fault_log_open(&log, argv[4], &err) < 0 ||
        (kind->prepare && kind->prepare(&injector, &err) < 0))
        return error_report(&err);
    const struct sched_param first = {.sched_priority = 50};
    if (sched_setscheduler(0, SCHED_FIFO, &first) < 0 || mlockall(MCL_CURRENT | MCL_FUTURE) < 0) {
        error_set_errno(&err, ERROR_FAILED, "cannot be a real-time program");
        return error_report(&err);
    }
    while (log.used < FAULT_LOG_LINES) {
        struct interval interval = {0};
        sleep_ns(every_ns);
        kind->make(&injector, &interval);
        if (interval.end_ns)
            fault_log_add(&log, interval.begin_ns, interval.end_ns, kind->name);
    }
    return 0;
}
