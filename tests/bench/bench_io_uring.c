// SPDX-License-Identifier: MIT
//
// Would io_uring make the load generator faster? A client that does what the engine's hot loop
// does and nothing else (connections, fixed requests, replies counted, a send for each connection
// that has had replies) against Redis and memcached on the other core, by epoll and by io_uring, in
// turns:
//
//     epoll      edge-triggered, recv and send, as loadgen/engine
//     defer      multishot receives, the sends of a round submitted together (DEFER_TASKRUN)
//     coop       the same with COOP_TASKRUN
//     plain      the same with neither
//     receives   as defer, but each send is a call of its own
//
// Rates are of clients that spin, as the engine does; what a request costs, in user and system time
// of the process, is of clients that sleep. With stamps each connection has the kernel's time
// stamps of both directions, and they are read. What io_uring can do here is the most that it can
// do for the engine, which has more to do for a request: `taillight load` on the same server says
// how much.
//
//     BENCH_ROUNDS (7), BENCH_SECONDS (0.1)
//     BENCH_CASES            only settings whose name holds this: "16x8", "redis", "stamps"
//                            writes $BUILD/bench/io_uring.json
#include <arpa/inet.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

#include "tests/bench/bench.h"
#include "tests/bench/io_ring.h"

enum {
    CONNECTIONS_MAX = 256,
    DEPTH_MAX = 8,
    VALUE_BYTES = 200,
    EVENTS_AT_ONCE = 64,
    TURNS = 64, // between looks at the clock
    CONTROL_BYTES = 64,
};
#define WARM_SECONDS 0.03
static const uint64_t of_send = 1u << 31; // in a completion's user_data, beside the connection

static const struct form {
    const char *name;
    unsigned setup;
    bool ring, sends_alone;
} forms[] = {
    {.name = "epoll"},
    {.name = "defer",
     .ring = true,
     .setup = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG},
    {.name = "coop",
     .ring = true,
     .setup = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG},
    {.name = "plain", .ring = true},
    {.name = "receives",
     .ring = true,
     .setup = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
     .sends_alone = true},
};
enum { FORMS = sizeof forms / sizeof *forms };

// Every request asks for the one value that is stored at first.
#define KEY "bench:uring"
static const struct target {
    const char *name, *url, *command, *store, *stored, *request;
    uint16_t port;
    size_t reply_bytes; // beside the value
} targets[] = {
    {.name = "redis",
     .port = 22451,
     .url = "redis://",
     .command = "redis-server --bind 127.0.0.1 --port 22451 --save --appendonly no --dir /tmp",
     .store = "*3\r\n$3\r\nSET\r\n$11\r\n" KEY "\r\n$%d\r\n%0*d\r\n",
     .stored = "+OK\r\n",
     .request = "*2\r\n$3\r\nGET\r\n$11\r\n" KEY "\r\n",
     .reply_bytes = sizeof "$200\r\n\r\n" - 1},
    {.name = "memcached",
     .port = 22452,
     .url = "memcached://",
     .command = "memcached -u root -U 0 -t 1 -l 127.0.0.1 -p 22452",
     .store = "set " KEY " 0 0 %d\r\n%0*d\r\n",
     .stored = "STORED\r\n",
     .request = "get " KEY "\r\n",
     .reply_bytes = sizeof "VALUE " KEY " 0 200\r\n\r\nEND\r\n" - 1},
};
enum { TARGETS = sizeof targets / sizeof *targets };

static const struct setting {
    unsigned connections, depth;
    bool stamps;
} settings[] = {
    {1, 1, false},  {1, 8, false},   {16, 1, false},  {16, 8, false}, {64, 1, false},
    {64, 8, false}, {256, 1, false}, {256, 8, false}, {16, 1, true},  {16, 8, true},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

struct client {
    const struct form *form;
    const struct target *target;
    unsigned connections, depth;
    bool stamps, sleeps;
    int sockets[CONNECTIONS_MAX];
    uint64_t received[CONNECTIONS_MAX]; // bytes
    unsigned owed[CONNECTIONS_MAX];     // requests, for the replies that came
    unsigned dirty[CONNECTIONS_MAX], dirty_count;
    uint64_t replies, receives, stamped;
    char requests[DEPTH_MAX * 64];
    size_t request_bytes, reply_bytes;
    int epoll_fd;
    struct io_ring ring;
    struct msghdr with_control; // what a multishot receive with stamps is made like
};

struct figures {
    double rate, cpu_us, stamped;
};

__attribute__((noreturn)) static void client_fail(const char *what)
{
    bench_fail("%s: %s", what, strerror(errno));
}

static void take_bytes(struct client *client, unsigned at, size_t bytes)
{
    const uint64_t before = client->received[at] / client->reply_bytes;
    client->received[at] += bytes;
    const unsigned count = (unsigned)(client->received[at] / client->reply_bytes - before);
    client->receives++;
    client->replies += count;
    if (count && !client->owed[at])
        client->dirty[client->dirty_count++] = at;
    client->owed[at] += count;
}

static void send_owed(struct client *client, unsigned at)
{
    const size_t bytes = client->owed[at] * client->request_bytes;
    if (send(client->sockets[at], client->requests, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) !=
        (ssize_t)bytes)
        client_fail("send");
    client->owed[at] = 0;
}

static void send_all_owed(struct client *client)
{
    for (unsigned i = 0; i < client->dirty_count; i++)
        send_owed(client, client->dirty[i]);
    client->dirty_count = 0;
}

// --- stamps --------------------------------------------------------------------------------------

static void count_stamp(struct client *client, struct msghdr *message)
{
    for (struct cmsghdr *h = CMSG_FIRSTHDR(message); h; h = CMSG_NXTHDR(message, h))
        client->stamped += h->cmsg_level == SOL_SOCKET && h->cmsg_type == SO_TIMESTAMPING_NEW;
}

static void read_sent_stamps(const struct client *client, unsigned at)
{
    char control[256];
    struct msghdr message;
    do
        message = (struct msghdr){.msg_control = control, .msg_controllen = sizeof control};
    while (recvmsg(client->sockets[at], &message, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0);
}

// --- epoll ---------------------------------------------------------------------------------------

static void epoll_begin(struct client *client)
{
    client->epoll_fd = epoll_create1(0);
    for (unsigned i = 0; i < client->connections; i++) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                    .data.u32 = i};
        if (epoll_ctl(client->epoll_fd, EPOLL_CTL_ADD, client->sockets[i], &event) < 0)
            client_fail("epoll_ctl");
    }
}

static void epoll_receive(struct client *client, unsigned at)
{
    static char bytes[65536];
    char control[CONTROL_BYTES];
    struct iovec buffer = {bytes, sizeof bytes};
    struct msghdr message = {.msg_iov = &buffer,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    const ssize_t count = client->stamps
                              ? recvmsg(client->sockets[at], &message, MSG_DONTWAIT)
                              : recv(client->sockets[at], bytes, sizeof bytes, MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN)
        return;
    if (count <= 0)
        client_fail("recv");
    if (client->stamps) {
        count_stamp(client, &message);
        read_sent_stamps(client, at);
    }
    take_bytes(client, at, (size_t)count);
}

static void epoll_turn(struct client *client)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    const int count = epoll_wait(client->epoll_fd, events, EVENTS_AT_ONCE, client->sleeps ? -1 : 0);
    for (int i = 0; i < count; i++)
        if (events[i].events & EPOLLIN)
            epoll_receive(client, events[i].data.u32);
    send_all_owed(client);
}

// --- io_uring ------------------------------------------------------------------------------------

static void arm(struct client *client, unsigned at)
{
    struct io_uring_sqe *sqe =
        ring_fill(&client->ring, client->stamps ? IORING_OP_RECVMSG : IORING_OP_RECV, at);
    sqe->ioprio = IORING_RECV_MULTISHOT;
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->user_data = at;
    if (client->stamps) {
        sqe->addr = (uint64_t)(uintptr_t)&client->with_control;
        sqe->len = 1;
    }
}

static void ring_begin(struct client *client)
{
    if (ring_make(&client->ring, client->form->setup, client->sockets, client->connections) < 0)
        client_fail("io_uring");
    client->with_control = (struct msghdr){.msg_controllen = CONTROL_BYTES};
    for (unsigned i = 0; i < client->connections; i++)
        arm(client, i);
}

static void ring_receive(struct client *client, unsigned at, const struct io_uring_cqe *cqe)
{
    const unsigned id = cqe->flags >> IORING_CQE_BUFFER_SHIFT;
    size_t bytes = (size_t)cqe->res;
    if (client->stamps) {
        struct io_uring_recvmsg_out *out = (void *)ring_buffer(&client->ring, id);
        struct msghdr message = {.msg_control = out + 1, .msg_controllen = out->controllen};
        bytes = out->payloadlen;
        count_stamp(client, &message);
        read_sent_stamps(client, at);
    }
    take_bytes(client, at, bytes);
    ring_give(&client->ring, id);
}

static void take_completion(struct client *client, const struct io_uring_cqe *cqe)
{
    const unsigned at = (unsigned)(cqe->user_data & ~of_send);
    errno = cqe->res < 0 ? -cqe->res : ECONNRESET;
    if (cqe->user_data & of_send) { // the engine, too, would have to know that all of it left
        if (cqe->res <= 0 || (size_t)cqe->res % client->request_bytes)
            client_fail("send through io_uring");
        return;
    }
    if (cqe->res > 0)
        ring_receive(client, at, cqe);
    else if (errno != ENOBUFS && errno != EAGAIN)
        client_fail("receive through io_uring");
    if (!(cqe->flags & IORING_CQE_F_MORE))
        arm(client, at);
}

static void fill_sends(struct client *client)
{
    for (unsigned i = 0; i < client->dirty_count; i++) {
        const unsigned at = client->dirty[i];
        struct io_uring_sqe *sqe = ring_fill(&client->ring, IORING_OP_SEND, at);
        sqe->addr = (uint64_t)(uintptr_t)client->requests;
        sqe->len = (unsigned)(client->owed[at] * client->request_bytes);
        sqe->msg_flags = MSG_NOSIGNAL | MSG_WAITALL;
        sqe->user_data = of_send | at;
        client->owed[at] = 0;
    }
    client->dirty_count = 0;
}

static void ring_turn(struct client *client)
{
    struct io_ring *ring = &client->ring;
    const struct io_uring_cqe *cqe;
    if (ring_enter(ring, client->sleeps) < 0)
        client_fail("io_uring_enter");
    unsigned head = *ring->cq_head;
    while ((cqe = ring_next(ring, &head)))
        take_completion(client, cqe);
    ring_seen(ring, head);
    ring_publish(ring);
    if (client->form->sends_alone)
        send_all_owed(client);
    else
        fill_sends(client);
}

// --- a client ------------------------------------------------------------------------------------

static int connect_once(const struct target *target)
{
    const int yes = 1, made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(target->port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (made >= 0 && connect(made, (struct sockaddr *)&to, sizeof to) == 0 &&
        setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) == 0)
        return made;
    if (made >= 0)
        close(made);
    return -1;
}

static void store_value(const struct target *target)
{
    char text[VALUE_BYTES + 100], said[16] = "";
    const int made = connect_once(target);
    const int bytes = snprintf(text, sizeof text, target->store, VALUE_BYTES, VALUE_BYTES, 0);
    if (made < 0 || write(made, text, (size_t)bytes) != bytes ||
        read(made, said, sizeof said - 1) <= 0 || strcmp(said, target->stored) != 0)
        bench_fail("%s does not store: %s", target->name, said);
    close(made);
}

static void connect_all(struct client *client)
{
    const unsigned flags = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_TX_SOFTWARE |
                           SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY |
                           SOF_TIMESTAMPING_OPT_ID;
    for (unsigned i = 0; i < client->connections; i++)
        if ((client->sockets[i] = connect_once(client->target)) < 0 ||
            (client->stamps && setsockopt(client->sockets[i], SOL_SOCKET, SO_TIMESTAMPING_NEW,
                                          &flags, sizeof flags) < 0))
            client_fail("connect");
}

static double cpu_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void run_until(struct client *client, double end)
{
    while (bench_now() < end)
        for (int i = 0; i < TURNS; i++)
            (client->form->ring ? ring_turn : epoll_turn)(client);
}

static struct figures run_client(struct client *client, double seconds)
{
    client->request_bytes = strlen(client->target->request);
    client->reply_bytes = VALUE_BYTES + client->target->reply_bytes;
    for (unsigned i = 0; i < client->depth; i++)
        memcpy(client->requests + i * client->request_bytes, client->target->request,
               client->request_bytes);
    connect_all(client);
    (client->form->ring ? ring_begin : epoll_begin)(client);
    for (unsigned i = 0; i < client->connections; i++) {
        client->owed[i] = client->depth;
        send_owed(client, i);
    }
    run_until(client, bench_now() + WARM_SECONDS);
    const uint64_t replies = client->replies;
    const double began = bench_now(), cpu = cpu_now();
    run_until(client, began + seconds);
    const double count = (double)(client->replies - replies);
    return (struct figures){count / (bench_now() - began), (cpu_now() - cpu) / count * 1e6,
                            (double)client->stamped / (double)client->receives};
}

// In a process of its own, whose end closes everything.
static struct figures run(const struct form *form, const struct target *target,
                          const struct setting *setting, bool sleeps, double seconds)
{
    int ends[2], status;
    struct figures figures;
    if (pipe(ends) < 0)
        client_fail("pipe");
    const pid_t child = fork();
    if (child == 0) {
        static struct client client;
        cpu_set_t core;
        CPU_ZERO(&core);
        CPU_SET(BENCH_CLIENT_CORE, &core);
        sched_setaffinity(0, sizeof core, &core);
        alarm(BENCH_PATIENCE_MS / 1000); // one that loses a reply waits for ever
        client.form = form;
        client.target = target;
        client.connections = setting->connections;
        client.depth = setting->depth;
        client.stamps = setting->stamps;
        client.sleeps = sleeps;
        figures = run_client(&client, seconds);
        _exit(write(ends[1], &figures, sizeof figures) != sizeof figures);
    }
    close(ends[1]);
    const bool whole = read(ends[0], &figures, sizeof figures) == sizeof figures;
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0 || !whole)
        bench_fail("%s, %u connections: the client failed", form->name, setting->connections);
    return figures;
}

// --- taillight load ------------------------------------------------------------------------------

static double run_taillight(const struct target *target, const struct setting *setting)
{
    static char output[BENCH_OUTPUT_BYTES];
    struct bench_command command;
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(BENCH_CLIENT_CORE, &core);
    const struct process_place place = {.cores = &core};
    bench_command(&command,
                  "%s/taillight load --server %s127.0.0.1:%d --rate max --connections %u "
                  "--depth %u --duration 300ms --stamps %s --sleep --json --quiet",
                  bench_build(), target->url, target->port, setting->connections, setting->depth,
                  setting->stamps ? "sw" : "user");
    process_run(command.words, &place, BENCH_PATIENCE_MS, output, sizeof output, NULL);
    json_t *json = json_loads(output, 0, NULL);
    const double cpu_us = bench_json_number(json, "cpu_us_per_request");
    if (!isfinite(cpu_us))
        bench_fail("taillight load says no cpu_us_per_request: %.200s", output);
    json_decref(json);
    return cpu_us;
}

// --- the benchmark -------------------------------------------------------------------------------

// False: nobody asked for it.
static bool name_case(const struct target *target, const struct setting *setting, char name[40])
{
    const char *asked = getenv("BENCH_CASES");
    snprintf(name, 40, "%s_%ux%u%s", target->name, setting->connections, setting->depth,
             setting->stamps ? "_stamps" : "");
    return !asked || strstr(name, asked);
}

static void run_case(struct bench_metrics *m, const struct target *target,
                     const struct setting *setting, double seconds, int round)
{
    char name[40];
    if (!name_case(target, setting, name))
        return;
    bench_progress("round %d: %s", round + 1, name);
    for (int i = 0; i < FORMS; i++) { // nobody always comes first
        const struct form *form = &forms[(i + round) % FORMS];
        const struct figures spinning = run(form, target, setting, false, seconds),
                             sleeping = run(form, target, setting, true, seconds);
        bench_add(m, "requests/s", spinning.rate, "%s_%s_rate", name, form->name);
        bench_add(m, "us", sleeping.cpu_us, "%s_%s_cpu", name, form->name);
        if (setting->stamps)
            bench_add(m, "fraction", sleeping.stamped, "%s_%s_stamped", name, form->name);
    }
    if (round % 2 == 0) // it takes longer than all others together
        bench_add(m, "us", run_taillight(target, setting), "%s_taillight_cpu", name);
    const double taillight_us = bench_latest(m, "%s_taillight_cpu", name),
                 epoll_us = bench_latest(m, "%s_epoll_cpu", name),
                 epoll_rate = bench_latest(m, "%s_epoll_rate", name);
    for (const struct form *form = forms + 1; form < forms + FORMS; form++) {
        const double ring_us = bench_latest(m, "%s_%s_cpu", name, form->name);
        bench_add(m, "times", bench_latest(m, "%s_%s_rate", name, form->name) / epoll_rate,
                  "%s_%s_rate_ratio", name, form->name);
        bench_add(m, "times", ring_us / epoll_us, "%s_%s_cpu_ratio", name, form->name);
        bench_add(m, "times", 1 + (ring_us - epoll_us) / taillight_us, "%s_%s_engine_ratio", name,
                  form->name);
    }
}

static const struct table {
    const char *key, *beside, *unit, *words;
} tables[] = {
    {"rate", "epoll_rate", "/s", "Rate of a client that spins, beside epoll's"},
    {"cpu", "epoll_cpu", " us",
     "User and system time a request of one that sleeps, beside epoll's"},
    {"engine", "taillight_cpu", " us",
     "taillight load's request with what is saved there, beside what it takes"},
};

static void report_case(const struct bench_metrics *m, const struct table *table,
                        const struct target *target, const struct setting *setting)
{
    char name[40];
    if (!name_case(target, setting, name))
        return;
    printf("%-22s %9.*f%-3s", name, *table->unit == '/' ? 0 : 2,
           bench_median(m, "%s_%s", name, table->beside), table->unit);
    for (const struct form *form = forms + 1; form < forms + FORMS; form++) {
        char ratio[80];
        snprintf(ratio, sizeof ratio, "%s_%s_%s_ratio", name, form->name, table->key);
        printf("  x%5.3f [%5.3f, %5.3f]", bench_median(m, "%s", ratio),
               bench_quantile(m, 0.25, "%s", ratio), bench_quantile(m, 0.75, "%s", ratio));
    }
    putchar('\n');
}

static void report_stamps(const struct bench_metrics *m, const struct target *target)
{
    for (int i = 0; i < FORMS; i++) {
        const double share =
            bench_median(m, "%s_16x1_stamps_%s_stamped", target->name, forms[i].name);
        if (isfinite(share))
            printf("%s, %s: %.2f %% of the receives had their stamps\n", target->name,
                   forms[i].name, 100 * share);
    }
}

static void report(const struct bench_metrics *m)
{
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        printf("%s; medians [quartiles]\n%35s", tables[t].words, "");
        for (const struct form *form = forms + 1; form < forms + FORMS; form++)
            printf("  %-21s", form->name);
        putchar('\n');
        for (int target = 0; target < TARGETS; target++)
            for (int s = 0; s < SETTINGS; s++)
                report_case(m, &tables[t], &targets[target], &settings[s]);
        putchar('\n');
    }
    for (int target = 0; target < TARGETS; target++)
        report_stamps(m, &targets[target]);
}

// Ends with 77 where the kernel does not give what each form asks for.
static void need_io_uring(void)
{
    for (const struct form *form = forms; form < forms + FORMS; form++) {
        struct io_ring ring = {0};
        const int any = 0;
        if (!form->ring || ring_make(&ring, form->setup, &any, 1) == 0)
            continue;
        printf("this kernel gives no io_uring with what is compared here (%s): %s; it takes Linux "
               "6.1, and kernel.io_uring_disabled = 0\n",
               form->name, strerror(errno));
        exit(77);
    }
}

static void serve(const struct target *target, struct process *server)
{
    struct bench_command command;
    struct error err;
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(BENCH_SERVER_CORE, &core);
    const struct process_place place = {.cores = &core, .discard_output = true};
    bench_command(&command, "%s", target->command);
    if (process_start(server, command.words, &place, &err) < 0)
        exit(error_report(&err));
    for (int i = 0, made = -1; made < 0; i++) {
        if (i == 100)
            bench_fail("%s does not listen on port %d", target->name, target->port);
        usleep(50000);
        made = connect_once(target);
        if (made >= 0)
            close(made);
    }
    store_value(target);
}

int main(void)
{
    struct bench_metrics metrics = {0};
    struct process servers[TARGETS];
    const int rounds = (int)bench_setting("BENCH_ROUNDS", 7, 1, BENCH_ROUNDS_MAX);
    const double seconds = bench_setting("BENCH_SECONDS", 0.1, 0.02, 10);
    bench_need("redis-server", "memcached", NULL);
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
        printf("needs two cores: one for the client, one for the server\n");
        return 77;
    }
    need_io_uring();
    for (int target = 0; target < TARGETS; target++)
        serve(&targets[target], &servers[target]);
    for (int round = 0; round < rounds; round++)
        for (int target = 0; target < TARGETS; target++)
            for (int s = 0; s < SETTINGS; s++)
                run_case(&metrics, &targets[target], &settings[s], seconds, round);
    bench_progress("%s", "");
    report(&metrics);
    bench_write(&metrics, "io_uring");
    for (int target = 0; target < TARGETS; target++)
        process_stop(&servers[target], 2000);
    return 0;
}
