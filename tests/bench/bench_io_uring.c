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
#include "tests/bench/loop_client.h"

static const struct form forms[] = {
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

#define KEY "bench:uring"
static const struct target targets[] = {
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

// NaN where it had no core for all of its time.
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
    if (!json)
        bench_fail("taillight load says no cpu_us_per_request: %.200s", output);
    const double cpu_us = bench_json_number(json, "cpu_us_per_request");
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
