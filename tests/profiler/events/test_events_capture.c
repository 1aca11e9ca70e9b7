// SPDX-License-Identifier: MIT
//
// A real capture on this kernel (events_scene.h): the logs must hold exactly what was sent, every
// connection, every hand-off, every segment, every reply; and what the cores did meanwhile.
// Runs beside others: it counts.
#include <dirent.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "profiler/events/event_kinds.h"
#include "profiler/clock/clock_map.h"
#include "tests/profiler/events/events_scene.h"

static void test_nothing_lost(void **state)
{
    struct scene *scene = *state;
    assert_int_equal(figure(scene, "dropped"), 0);
    assert_int_equal(figure(scene, "unfinished"), 0);
    assert_int_equal(figure(scene, "sockets_dropped"), 0);
    assert_int_equal(figure(scene, "sockets_ambiguous"), 0);
    assert_int_equal(figure(scene, "records"), scene->events.count);
    assert_int_equal(scene->events.header.dropped, 0);
    assert_string_equal(json_string_value(json_object_get(scene->stats, "receive_stamps")), "on");
}

static void test_connections(void **state)
{
    struct scene *scene = *state;
    need(scene, "inet_sock_set_state");
    need(scene, "known_sockets");
    const struct connection *sockets = scene->sockets.records;
    assert_int_equal(scene->sockets.count, CONNECTIONS);
    for (size_t i = 0; i < CONNECTIONS; i++) {
        const struct talk *talk = &scene->talks[i];
        const struct connection *found = NULL;
        for (size_t j = 0; j < scene->sockets.count; j++)
            if (sockets[j].cookie == talk->cookie)
                found = &sockets[j];
        assert_non_null(found);
        assert_int_equal(found->id, (uint32_t)talk->cookie);
        assert_int_equal(found->protocol, CONNECTION_TCP);
        assert_memory_equal(found->local, talk->truth.local, 16);
        assert_memory_equal(found->peer, talk->truth.peer, 16);
        assert_int_equal(found->local_port, PORT);
        assert_int_equal(found->peer_port, talk->truth.peer_port);
        if (talk->sent_before)
            assert_int_equal(found->opened_time, 0);
        else
            assert_in_range(found->opened_time, scene->begin_ns, scene->end_ns);
    }
}

static const struct event *event_at(const struct scene *scene, size_t index)
{
    return (const struct event *)scene->events.records + index;
}

static int compare_times(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    return (x->time > y->time) - (x->time < y->time);
}

// The events of one kind on one socket, in order of time over all cores. The caller frees.
static struct event *events_of(const struct scene *scene, unsigned kind, uint64_t cookie,
                               size_t *count)
{
    struct event *found = calloc(scene->events.count + 1, sizeof *found);
    *count = 0;
    for (size_t i = 0; i < scene->events.count; i++)
        if (event_at(scene, i)->kind == kind && event_at(scene, i)->id == (uint32_t)cookie)
            found[(*count)++] = *event_at(scene, i);
    qsort(found, *count, sizeof *found, compare_times);
    return found;
}

static void test_handoffs(void **state)
{
    struct scene *scene = *state;
    need(scene, "sk_data_ready");
    for (size_t i = 0; i < CONNECTIONS; i++) {
        const struct talk *talk = &scene->talks[i];
        size_t count;
        struct event *handoffs = events_of(scene, EVENT_HANDOFF, talk->cookie, &count);
        assert_true(count >= ROUNDS + 1);
        uint64_t last = talk->sent_before, read = 0;
        for (size_t j = 0; j < count; j++) {
            assert_true(handoffs[j].payload.a >= last);
            assert_true(handoffs[j].payload.b <= handoffs[j].payload.a);
            assert_true(handoffs[j].payload.b >= read);
            assert_in_range(handoffs[j].time, scene->begin_ns, scene->end_ns);
            last = handoffs[j].payload.a;
            read = handoffs[j].payload.b;
        }
        assert_int_equal(last, talk->sent);
        free(handoffs);
    }
}

// Over loopback and veth each segment is also seen where its sender hands it over: the same bytes,
// no later than TCP sees them.
static void test_arrivals(void **state)
{
    struct scene *scene = *state;
    need(scene, "netif_rx");
    for (size_t i = 0; i < CONNECTIONS; i++) {
        const struct talk *talk = &scene->talks[i];
        size_t arrival_count, segment_count;
        struct event *arrivals = events_of(scene, EVENT_ARRIVAL, talk->cookie, &arrival_count);
        struct event *segments = events_of(scene, EVENT_SEGMENT, talk->cookie, &segment_count);
        assert_true(arrival_count > 0);
        assert_int_equal(arrivals[arrival_count - 1].payload.a,
                         segments[segment_count - 1].payload.a);
        size_t at = 0;
        for (size_t j = 0; j < segment_count; j++) {
            while (at < arrival_count && arrivals[at].payload.a < segments[j].payload.a)
                at++;
            assert_true(at < arrival_count);
            assert_true(arrivals[at].time <= segments[j].time);
        }
        free(arrivals);
        free(segments);
    }
}

static void test_segments(void **state)
{
    struct scene *scene = *state;
    need(scene, "tcp_probe");
    need(scene, "sk_data_ready");
    for (size_t i = 0; i < CONNECTIONS; i++) {
        const struct talk *talk = &scene->talks[i];
        size_t count, handoff_count, at = 0;
        struct event *segments = events_of(scene, EVENT_SEGMENT, talk->cookie, &count);
        struct event *handoffs = events_of(scene, EVENT_HANDOFF, talk->cookie, &handoff_count);
        uint64_t last = talk->sent_before;
        assert_true(count >= ROUNDS + 1);
        for (size_t j = 0; j < count; j++) {
            assert_true(segments[j].payload.a > last); // nothing is lost or repeated here
            last = segments[j].payload.a;
            assert_true(segments[j].payload.b != 0);
        }
        assert_int_equal(last, talk->sent);
        // Each segment is handed off after it arrived.
        for (size_t j = 0; j < count; j++) {
            while (at < handoff_count && handoffs[at].payload.a < segments[j].payload.a)
                at++;
            assert_true(at < handoff_count);
            int64_t arrived =
                clock_map_to_host(scene->clocks, HOST_CLOCK_REALTIME, segments[j].payload.b);
            int64_t handed =
                clock_map_to_host(scene->clocks, HOST_CLOCK_MONOTONIC, handoffs[at].time);
            double error = 2 * clock_map_worst_error_ns(scene->clocks);
            assert_true((double)(handed - arrived) >= -error);
            assert_true(handed - arrived < 1000000000);
            assert_true(segments[j].time <= handoffs[at].time);
        }
        free(segments);
        free(handoffs);
    }
}

static void test_transmissions(void **state)
{
    struct scene *scene = *state;
    need(scene, "net_dev_start_xmit");
    for (size_t i = 0; i < CONNECTIONS; i++) {
        const struct talk *talk = &scene->talks[i];
        size_t count;
        struct event *sent = events_of(scene, EVENT_TRANSMIT, talk->cookie, &count);
        uint64_t last = talk->replied_before;
        assert_true(count >= ROUNDS + 1);
        for (size_t j = 0; j < count; j++) {
            assert_true(sent[j].payload.b > 0);
            assert_true(sent[j].payload.a - sent[j].payload.b <= last); // no gap
            if (sent[j].payload.a > last)
                last = sent[j].payload.a;
        }
        assert_int_equal(last, talk->replied);
        free(sent);
    }
}

// Messages only of the watched port's sockets: the clients' own sockets must not appear.
static void test_only_watched_sockets(void **state)
{
    struct scene *scene = *state;
    for (size_t i = 0; i < scene->events.count; i++) {
        const struct event *event = event_at(scene, i);
        if (event->kind < EVENT_SEGMENT || event->kind > EVENT_TAKEN)
            continue;
        bool known = false;
        for (size_t j = 0; j < CONNECTIONS; j++)
            known |= event->id == (uint32_t)scene->talks[j].cookie;
        assert_true(known);
    }
}

static void test_order_and_cores(void **state)
{
    struct scene *scene = *state;
    for (size_t i = 1; i < scene->events.count; i++) {
        const struct event *before = event_at(scene, i - 1), *event = event_at(scene, i);
        assert_true(event->core >= before->core);
        if (event->core == before->core)
            assert_true(event->time >= before->time);
    }
}

// On a core no thread follows itself, the names are those of the threads, and every interrupt,
// softirq and vector that begins ends, properly nested.
static void test_switches(void **state)
{
    struct scene *scene = *state;
    size_t switches = 0, mine = 0;
    char comm[16] = {0};
    FILE *file = fopen("/proc/self/comm", "re");
    assert_non_null(file);
    assert_non_null(fgets(comm, sizeof comm, file));
    fclose(file);
    comm[strcspn(comm, "\n")] = '\0';
    const struct event *last = NULL;
    for (size_t i = 0; i < scene->events.count; i++) {
        const struct event *event = event_at(scene, i);
        if (event->kind != EVENT_SWITCH)
            continue;
        if (last && last->core == event->core && !(event->flags & SWITCH_UNSEEN))
            assert_int_not_equal(last->id, event->id);
        last = event;
        switches++;
        if (event->id == (uint32_t)getpid()) {
            mine++;
            assert_int_equal(strncmp(event->payload.text, comm, 16), 0);
        }
        if (event->id == 0)
            assert_int_equal(strncmp(event->payload.text, "swapper/", 8), 0);
    }
    print_message("%zu switches, %zu to this test\n", switches, mine);
    assert_true(mine >= ROUNDS / 2);
}

static void touch(char *pages, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += 4096)
        *(volatile char *)(pages + at) = 1;
}

static void *run_by_another_name(void *opaque)
{
    prctl(PR_SET_NAME, "another");
    for (int i = 0; i < ROUNDS; i++)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    *(uint32_t *)opaque = (uint32_t)gettid();
    return NULL;
}

// Pages touched for the first time: each fault is recorded, and when it has its page. A thread
// under another name than its process's: its process is recorded before the thread first runs.
static void test_faults_and_processes(void **state)
{
    enum { PAGES = 200 };
    struct scene *scene = *state;
    struct error err = {0};
    const struct events_capture_settings settings = {
        .groups = EVENT_GROUP_SCHEDULER | EVENT_GROUP_FAULTS, .ring_bytes = 4 << 20};
    struct events_capture *capture;
    struct log_reader reader;
    char path[128], comm[16] = "";
    uint32_t thread = 0;
    pthread_t other;
    if (events_capture_open(&settings, &capture, &err) < 0)
        fail_msg("%s", err.text);
    bool ends_known = false;
    for (size_t i = 0; i < EVENT_PROGRAMS; i++)
        ends_known |= strcmp(event_programs[i].name, "rss_stat") == 0 &&
                      events_capture_programs(capture)[i].attached;
    char *pages =
        mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    madvise(pages, PAGES * 4096, MADV_NOHUGEPAGE);
    touch(pages, PAGES * 4096);
    assert_int_equal(pthread_create(&other, NULL, run_by_another_name, &thread), 0);
    pthread_join(other, NULL);
    munmap(pages, PAGES * 4096);
    assert_int_equal(events_capture_stop(capture, scene->dir, NULL, &err), 0);
    events_capture_free(capture);
    snprintf(path, sizeof path, "%s/events.tlog", scene->dir);
    assert_int_equal(
        log_reader_open(&reader, path, LOG_EVENTS, EVENT_LOG_VERSION, sizeof(struct event), &err),
        0);
    const struct event *events = reader.records;
    size_t faults = 0, ends = 0, named = 0, members = 0;
    prctl(PR_GET_NAME, comm);
    for (size_t i = 0; i < reader.count; i++) {
        bool mine = events[i].id == (uint32_t)getpid();
        faults += mine && events[i].kind == EVENT_PAGE_FAULT &&
                  events[i].payload.a - (uint64_t)(uintptr_t)pages < PAGES * 4096;
        ends += mine && events[i].kind == EVENT_FAULT_END;
        if (events[i].id == thread && events[i].kind == EVENT_PROCESS)
            named += strncmp(events[i].payload.text, comm, 16) == 0;
        members += (mine || events[i].id == thread) && events[i].kind == EVENT_MEMBER &&
                   events[i].payload.a == (uint64_t)getpid() &&
                   events[i].payload.b == (uint64_t)getppid();
    }
    print_message("%zu of %d faults, %zu ends\n", faults, PAGES, ends);
    assert_int_equal(faults, PAGES);
    assert_true(!ends_known || ends >= PAGES);
    assert_true(named >= 1);
    assert_true(members >= 2);
    log_reader_close(&reader);
}

// This test slept on purpose: each time its switch away is preceded by the call it slept in.
static void test_what_threads_sleep_in(void **state)
{
    struct scene *scene = *state;
    size_t mine = 0;
    for (size_t i = 0; i < scene->events.count; i++) {
        const struct event *event = event_at(scene, i);
        mine += event->kind == EVENT_BLOCKED && event->id == (uint32_t)getpid() &&
                (uint32_t)event->payload.a == SYS_clock_nanosleep &&
                !(event->payload.b & BLOCKED_STOPPED);
    }
    print_message("asleep in clock_nanosleep %zu times\n", mine);
    assert_true(mine >= ROUNDS / 2);
}

// --- what stops a thread -------------------------------------------------------------------------

enum stop { STOP_SIGNAL, STOP_TRACER, STOP_VFORK, STOP_FREEZER, STOPS };

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

static void wait_in_vfork(void)
{
    pid_t child = vfork();
    if (child == 0) {
        syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 20000000}, NULL);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

// A child that is stopped in that way, or waits to be.
static pid_t begin_stop(enum stop how)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    if (how == STOP_TRACER)
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    if (how == STOP_SIGNAL || how == STOP_TRACER)
        raise(SIGSTOP);
    if (how == STOP_VFORK)
        wait_in_vfork();
    if (how == STOP_FREEZER)
        for (;;)
            sleep_ms(1);
    _exit(0);
}

static bool write_word(const char *path, const char *word)
{
    int fd = open(path, O_WRONLY);
    bool written = fd >= 0 && write(fd, word, strlen(word)) > 0;
    if (fd >= 0)
        close(fd);
    return written;
}

// Freezes a process for a while in a control group (v2) of its own. false: there is no such thing.
static bool freeze(pid_t child)
{
    static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        char group[80], path[120], word[16];
        snprintf(path, sizeof path, "%s/cgroup.controllers", roots[i]);
        snprintf(group, sizeof group, "%s/taillight-test-%d", roots[i], (int)getpid());
        if (access(path, F_OK) < 0 || mkdir(group, 0700) < 0)
            continue;
        snprintf(path, sizeof path, "%s/cgroup.procs", group);
        snprintf(word, sizeof word, "%d", (int)child);
        bool frozen = write_word(path, word);
        snprintf(path, sizeof path, "%s/cgroup.freeze", group);
        frozen = frozen && write_word(path, "1");
        sleep_ms(30);
        write_word(path, "0");
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        for (int tries = 0; rmdir(group) < 0 && tries < 100; tries++)
            sleep_ms(1);
        return frozen;
    }
    return false;
}

// A thread that is stopped, or waits in vfork, is not frozen, though the kernel counts it as such.
static void test_what_stops_a_thread(void **state)
{
    struct scene *scene = *state;
    struct error err = {0};
    const struct events_capture_settings settings = {.groups = EVENT_GROUP_SCHEDULER,
                                                     .ring_bytes = 4 << 20};
    struct events_capture *capture;
    struct log_reader reader;
    char path[128];
    pid_t children[STOPS];
    size_t blocked = 0, frozen[STOPS] = {0}, states[STOPS] = {0};
    if (events_capture_open(&settings, &capture, &err) < 0)
        fail_msg("%s", err.text);
    for (int how = 0; how < STOPS; how++)
        children[how] = begin_stop((enum stop)how);
    bool freezes = freeze(children[STOP_FREEZER]);
    waitpid(children[STOP_SIGNAL], NULL, WUNTRACED);
    waitpid(children[STOP_TRACER], NULL, 0);
    sleep_ms(5);
    for (int how = 0; how < STOPS; how++) {
        if (how != STOP_VFORK)
            kill(children[how], SIGKILL);
        waitpid(children[how], NULL, 0);
    }
    assert_int_equal(events_capture_stop(capture, scene->dir, NULL, &err), 0);
    events_capture_free(capture);
    snprintf(path, sizeof path, "%s/events.tlog", scene->dir);
    assert_int_equal(
        log_reader_open(&reader, path, LOG_EVENTS, EVENT_LOG_VERSION, sizeof(struct event), &err),
        0);
    const struct event *events = reader.records;
    for (size_t i = 0; i < reader.count; i++) {
        if (events[i].kind != EVENT_BLOCKED)
            continue;
        blocked++;
        for (int how = 0; how < STOPS; how++) {
            if (events[i].id != (uint32_t)children[how])
                continue;
            frozen[how] += (events[i].flags & BLOCKED_FROZEN) != 0;
            states[how] |= events[i].payload.b;
        }
    }
    log_reader_close(&reader);
    if (blocked == 0) // before Linux 5.15
        return;
    assert_true((states[STOP_SIGNAL] & BLOCKED_STOPPED) == BLOCKED_SIGNALLED);
    assert_true((states[STOP_TRACER] & BLOCKED_STOPPED) == BLOCKED_TRACED);
    assert_true(states[STOP_VFORK] && !(states[STOP_VFORK] & BLOCKED_STOPPED));
    assert_int_equal(frozen[STOP_SIGNAL] + frozen[STOP_TRACER] + frozen[STOP_VFORK], 0);
    if (freezes)
        assert_true(frozen[STOP_FREEZER] > 0);
    else
        print_message("no control groups of version 2 that freeze\n");
}

static bool is_entry(unsigned kind)
{
    return kind == EVENT_IRQ_ENTRY || kind == EVENT_SOFTIRQ_ENTRY || kind == EVENT_VECTOR_ENTRY;
}

static bool is_exit(unsigned kind)
{
    return kind == EVENT_IRQ_EXIT || kind == EVENT_SOFTIRQ_EXIT || kind == EVENT_VECTOR_EXIT;
}

static void test_interrupts_nest(void **state)
{
    struct scene *scene = *state;
    const struct event *stack[32];
    size_t depth = 0, pairs = 0;
    bool begun = false;
    for (size_t i = 0; i < scene->events.count; i++) {
        const struct event *event = event_at(scene, i);
        if (i && event->core != event_at(scene, i - 1)->core) {
            depth = 0;
            begun = false;
        }
        // Programs are attached one after the other; from a switch on, everything is seen.
        begun |= event->kind == EVENT_SWITCH && event->time >= scene->begin_ns;
        if (!begun || event->time > scene->end_ns)
            continue;
        if (is_entry(event->kind)) {
            assert_true(depth < 32);
            stack[depth++] = event;
        } else if (is_exit(event->kind)) {
            assert_true(depth > 0);
            depth--;
            assert_int_equal(stack[depth]->kind + 1, event->kind);
            assert_int_equal(stack[depth]->id, event->id);
            pairs++;
        }
    }
    print_message("%zu interrupts, softirqs and vectors, all paired\n", pairs);
    assert_true(pairs >= ROUNDS / 2);
}

// Programs come and go one after another, and to patch the kernel's code for each interrupts the
// cores. Of what is recorded nothing is a half but what was under way at the beginning or the end.
static void test_interrupts_whole(void **state)
{
    struct scene *scene = *state;
    size_t depth = 0, halves = 0, cores = 1;
    for (size_t i = 0; i < scene->events.count; i++) {
        const struct event *event = event_at(scene, i);
        if (i && event->core != event_at(scene, i - 1)->core) {
            cores++;
            halves += depth;
            depth = 0;
        }
        if (is_entry(event->kind))
            depth++;
        else if (is_exit(event->kind) && depth > 0)
            depth--;
        else if (is_exit(event->kind))
            halves++;
    }
    print_message("%zu halves of interrupts on %zu cores\n", halves + depth, cores);
    assert_in_range(halves + depth, 0, 2 * cores);
}

// How often this process has the kernel's statistics of programs on.
static int statistics_on(void)
{
    DIR *files = opendir("/proc/self/fd");
    char name[64];
    int count = 0;
    assert_non_null(files);
    for (struct dirent *entry; (entry = readdir(files));) {
        ssize_t length = readlinkat(dirfd(files), entry->d_name, name, sizeof name - 1);
        name[length < 0 ? 0 : length] = '\0';
        count += strcmp(name, "anon_inode:bpf-stats") == 0;
    }
    closedir(files);
    return count;
}

// Captures the scheduler while this process and a child wake each other up `rounds` times.
static void capture_ping_pong(struct scene *scene, uint64_t ring_bytes, int rounds, bool poll,
                              json_t **stats)
{
    struct events_capture_settings settings = {.ring_bytes = ring_bytes,
                                               .groups = EVENT_GROUP_SCHEDULER};
    struct events_capture *capture;
    struct error err = {0};
    int there[2], back[2];
    assert_int_equal(pipe(there), 0);
    assert_int_equal(pipe(back), 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(there[1]);
        while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
            ;
        _exit(0);
    }
    close(there[0]);
    if (events_capture_open(&settings, &capture, &err) < 0)
        fail_msg("%s", err.text);
    char byte = 0;
    const int on = statistics_on();
    for (int i = 0; i < rounds; i++) {
        // Turning them on or off takes a core for milliseconds: not while somebody is measured.
        if (poll && i % 1024 == 0)
            assert_int_equal(statistics_on(), on);
        assert_true(write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1);
        if (poll && i % 16 == 0)
            events_capture_poll(capture);
    }
    if (events_capture_stop(capture, scene->dir, stats, &err) < 0)
        fail_msg("%s", err.text);
    events_capture_free(capture);
    close(there[1]);
    struct process ended = {.pid = child, .input = -1, .output = -1};
    process_stop(&ended, 1000);
    close(back[0]);
    close(back[1]);
}

static json_int_t figure_of(const json_t *stats, const char *name)
{
    return json_integer_value(json_object_get(stats, name));
}

// Rings of 256 records under a storm of wake-ups: what does not fit is counted, the rest is whole.
static void test_overflow(void **state)
{
    struct scene *scene = *state;
    struct error err = {0};
    json_t *stats = NULL;
    char path[128];
    capture_ping_pong(scene, 1, 5000, false, &stats);
    json_int_t dropped = figure_of(stats, "dropped"), records = figure_of(stats, "records");
    print_message("tiny rings: %lld records kept, %lld dropped\n", (long long)records,
                  (long long)dropped);
    assert_true(dropped > 5000);
    assert_true(records > 100);
    struct log_reader reader;
    snprintf(path, sizeof path, "%s/events.tlog", scene->dir);
    assert_int_equal(
        log_reader_open(&reader, path, LOG_EVENTS, EVENT_LOG_VERSION, sizeof(struct event), &err),
        0);
    assert_int_equal(reader.header.dropped, dropped);
    assert_int_equal(reader.count, records);
    const struct event *events = reader.records;
    for (size_t i = 0; i < reader.count; i++) {
        switch (events[i].kind) {
        case EVENT_SWITCH:
        case EVENT_WAKING:
        case EVENT_BLOCKED:
        case EVENT_FILE:
        case EVENT_MIGRATE:
        case EVENT_PROCESS:
        case EVENT_MEMBER:
        case EVENT_UNSEEN:
        case EVENT_STOLEN:  // where the host takes the core away meanwhile
        case EVENT_RENAMED: // where a program begins meanwhile
        case EVENT_WATCHED:
            continue;
        default:
            fail_msg("record %zu is of kind %d", i, events[i].kind);
        }
    }
    log_reader_close(&reader);
    json_decref(stats);
}

// Rings that are drained while programs write to them, several times over: all of it is kept.
static void test_drained_while_running(void **state)
{
    struct scene *scene = *state;
    json_t *stats = NULL;
    capture_ping_pong(scene, 1 << 20, 60000, true, &stats);
    print_message("1 MiB rings, polled: %lld records\n", (long long)figure_of(stats, "records"));
    assert_true(figure_of(stats, "records") > 2 * 65536);
    assert_int_equal(figure_of(stats, "dropped"), 0);
    assert_int_equal(figure_of(stats, "unfinished"), 0);
    // A sample of how long programs run was taken before.
    json_t *program = json_object_get(json_object_get(stats, "programs"), "sched_switch");
    double mean_ns = json_number_value(json_object_get(program, "mean_ns"));
    print_message("sched_switch: %lld runs, %.0f ns each\n", (long long)figure_of(program, "runs"),
                  mean_ns);
    assert_true(figure_of(program, "runs") > 0);
    assert_true(mean_ns > 10 && mean_ns < 100000);
    json_decref(stats);
}

// A connection whose beginning the capture cannot have seen: older, and of another namespace than
// the one it looks for such in. Its first bytes enter it; where somebody had asked for its cookie
// before, its end does.
static void late_connection(struct scene *scene, bool asked_before)
{
    struct events_capture *capture;
    struct error err = {0};
    struct log_reader sockets;
    char path[128];
    const uint16_t port = PORT + 1;
    struct events_capture_settings settings = {.ports = &port, .port_count = 1};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    uint64_t cookie = 0;
    socklen_t bytes = sizeof cookie;
    enter(scene->client_ns);
    inet_aton("127.0.0.1", &address.sin_addr);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof address), 0);
    int server = accept(listener, NULL, NULL);
    assert_true(server >= 0);
    if (asked_before)
        getsockopt(server, SOL_SOCKET, SO_COOKIE, &cookie, &bytes);
    enter(scene->server_ns);
    if (events_capture_open(&settings, &capture, &err) < 0)
        fail_msg("%s", err.text);
    pass(client, server, 100);
    pass(server, client, 100);
    if (!asked_before)
        getsockopt(server, SOL_SOCKET, SO_COOKIE, &cookie, &bytes);
    close(client);
    close(server);
    close(listener);
    if (events_capture_stop(capture, scene->dir, NULL, &err) < 0)
        fail_msg("%s", err.text);
    events_capture_free(capture);
    snprintf(path, sizeof path, "%s/sockets.tlog", scene->dir);
    assert_int_equal(log_reader_open(&sockets, path, LOG_CONNECTIONS, EVENT_LOG_VERSION,
                                     sizeof(struct connection), &err),
                     0);
    const struct connection *found = sockets.records;
    assert_int_equal(sockets.count, 1);
    assert_int_equal(found->cookie, cookie);
    assert_int_equal(found->local_port, port);
    assert_int_equal(found->opened_time, 0);
    log_reader_close(&sockets);
}

static void test_beginning_not_seen(void **state)
{
    need(*state, "inet_sock_set_state");
    late_connection(*state, false);
    late_connection(*state, true);
}

static void test_bad_settings(void **state)
{
    (void)state;
    struct events_capture_settings settings = {0};
    struct events_capture *capture = NULL;
    struct error err = {0};
    CPU_SET(1000, &settings.cores);
    assert_int_equal(events_capture_open(&settings, &capture, &err), -ERROR_INPUT);
    assert_null(capture);
    assert_non_null(strstr(err.text, "core 1000"));
}

static void test_unwritable_folder(void **state)
{
    (void)state;
    struct events_capture_settings settings = {.groups = EVENT_GROUP_FAULTS};
    struct events_capture *capture;
    struct error err = {0};
    json_t *stats = NULL;
    assert_int_equal(events_capture_open(&settings, &capture, &err), 0);
    assert_int_equal(events_capture_stop(capture, "/prof-no-such-folder", &stats, &err),
                     -ERROR_FAILED);
    assert_null(stats);
    assert_non_null(strstr(err.text, "/prof-no-such-folder/events.tlog"));
    events_capture_free(capture);
}

// Every kind of the table has its own count and its own key, the last one as well.
static void test_every_kind_is_counted(void **state)
{
    struct scene *scene = *state;
    struct event events[EVENT_KINDS + 1] = {0};
    uint64_t counts[EVENT_KINDS] = {0};
    for (unsigned kind = 0; kind <= EVENT_KINDS; kind++)
        events[kind].kind = (uint8_t)kind;
    event_kinds_count(events, EVENT_KINDS + 1, counts);
    event_kinds_count(events + EVENT_STOLEN, 1, counts);
    assert_int_equal(counts[0], 2); // what is no event at all
    json_t *json = event_kinds_json(counts);
    json_t *captured = json_object_get(scene->stats, "events");
    assert_int_equal(json_object_size(json), EVENT_KINDS - 1);
    assert_int_equal(json_object_size(captured), EVENT_KINDS - 1);
#define EVENT(NAME, number, name, becomes, carries, means)                                         \
    assert_non_null(json_object_get(captured, name));                                              \
    assert_int_equal(json_integer_value(json_object_get(json, name)), 1 + (number == EVENT_STOLEN));
#include "profiler/bpf/events.tbl.h"
    json_decref(json);
}

int main(void)
{
    if (!can_capture_in_namespaces())
        return 77;
    srand(7);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_lost),
        cmocka_unit_test(test_every_kind_is_counted),
        cmocka_unit_test(test_connections),
        cmocka_unit_test(test_handoffs),
        cmocka_unit_test(test_segments),
        cmocka_unit_test(test_arrivals),
        cmocka_unit_test(test_transmissions),
        cmocka_unit_test(test_only_watched_sockets),
        cmocka_unit_test(test_order_and_cores),
        cmocka_unit_test(test_switches),
        cmocka_unit_test(test_what_threads_sleep_in),
        cmocka_unit_test(test_what_stops_a_thread),
        cmocka_unit_test(test_interrupts_nest),
        cmocka_unit_test(test_interrupts_whole),
        cmocka_unit_test(test_faults_and_processes),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_drained_while_running),
        cmocka_unit_test(test_beginning_not_seen),
        cmocka_unit_test(test_bad_settings),
        cmocka_unit_test(test_unwritable_folder),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
