// SPDX-License-Identifier: MIT
//
// The schedule on the wire: how close to a Poisson process the requests leave, seen by a packet
// capture on the client's end of a veth cable, at 10,000 to 80,000 a second. memcached on the
// other core, one request per segment, depth unlimited, 16 connections.
//
// A send takes c, so two requests cannot leave closer than that and the distance of the gaps to the
// exponential distribution cannot be less than about 1 - exp(-c / mean gap): the bound. Lateness is
// what a send is late beyond a queue in which every earlier send takes as long as it really took.
//
// The capture runs in the client's sends and beside them: the lateness of a client that is captured
// is not its own. So every run is made twice, one way and the other in turn: the captured run says
// what the wire saw, the other one how late the client is (lateness of both is printed).
//
// The same with two places of the kernel's receiving of replies, ten microseconds a reply that RPS
// puts onto the server's core ("there": the client's core is otherwise idle) or, where a NIC's
// interrupt would come, onto the client's ("here"); and the peers, as they send, on the same
// capture.
//
//     BENCH_ROUNDS (3), BENCH_SECONDS (2)
//     BENCH_WITHIN (200)     seconds: no round begins that would probably end later
//                            writes $BUILD/bench/schedule.json
#include "base/tsc_rate.h"
#include "tests/bench/bench.h"
#include "tests/bench/wire_study.h"

enum { MEMCACHED_PORT = 22401, REDIS_PORT = 22402, NGINX_PORT = 22403, PLACES = 2 };

static const char *const receiving[PLACES] = {"there", "here"};
static const double rates[] = {10000, 20000, 50000, 80000};
enum {
    RATES = sizeof rates / sizeof *rates,
    PEERS = 3,
    RUNS_A_ROUND = RATES * PLACES * 2 + PEERS,
};

struct place {
    struct bench_lab lab;
    struct process memcached;
};

struct bench {
    struct place places[PLACES];
    struct process redis, nginx;
    struct bench_metrics metrics;
    double ticks_per_us;
    double seconds;
    int rounds;
    double began; // of the first run
    int runs;     // begun so far
};

// What the client's own record of its sends says.
struct sends {
    double call_us;      // median of the send calls
    double back_to_back; // median gap on the wire between sends of which the later was due; NaN
    double late_us[2];   // p50 and p99 of the lateness that earlier sends do not explain
    double wire_us[3];   // p50, p99 and the greatest of: wire stamp minus begin of the send call
    double per_segment;  // requests
};

static double sorted_quantile(double *values, size_t count, double q)
{
    quantile_sort(values, count);
    return quantile_sorted(values, count, q);
}

// When each request left, on the wire. Requests that went together are one point of the process.
static void match_wire(const struct bench_lab *lab, const struct sample *samples, size_t count,
                       const struct wire_capture *capture, const struct clock_pair pairs[2],
                       double ticks_per_us, struct sends *out)
{
    double *delays = calloc(count, sizeof *delays), *gaps = calloc(count, sizeof *gaps);
    size_t queued = 0, connections;
    struct follower *followers = open_followers(lab, &connections);
    const struct wire_packet *before = NULL;
    if (!delays || !gaps)
        bench_fail("out of memory");
    for (size_t i = 0; i < count; i++) {
        if (samples[i].connection < 1 || samples[i].connection > connections)
            bench_fail("a sample names a connection that does not exist");
        const struct wire_packet *packet = find_segment(&followers[samples[i].connection - 1],
                                                        &capture->packets, samples[i].request_end);
        if (!packet)
            bench_fail("a request was not seen on the wire");
        delays[i] =
            (ticks_at(pairs, packet->ns) - (double)(int64_t)(samples[i].send_tsc - pairs[0].tsc)) /
            ticks_per_us;
        if (i > 0 && packet != before && samples[i].intended_tsc <= samples[i - 1].sent_tsc)
            gaps[queued++] = (double)(int64_t)(packet->ns - before->ns) / 1e3;
        before = packet;
    }
    if (queued >= 20)
        out->back_to_back = sorted_quantile(gaps, queued, 0.5);
    out->wire_us[0] = sorted_quantile(delays, count, 0.5);
    out->wire_us[1] = quantile_sorted(delays, count, 0.99);
    out->wire_us[2] = delays[count - 1];
    free(delays);
    free(gaps);
    free(followers);
}

// capture: NULL, when nobody captured. A sender with a queue: it begins a request when it is due
// and the sends before it are done, each in the time that it really took; requests that shared a
// call begin with it. What a sender loses otherwise, between its sends, is lateness of its own, for
// those too that queue up behind until it has caught up.
static struct sends study_sends(const struct bench_lab *lab, const struct wire_capture *capture,
                                const struct clock_pair pairs[2], double ticks_per_us)
{
    struct sends out = {.back_to_back = NAN, .wire_us = {NAN, NAN, NAN}};
    struct log_reader reader;
    bench_log(lab, "samples", LOG_SAMPLES, sizeof(struct sample), &reader);
    const struct sample *samples = reader.records;
    size_t count = reader.count;
    double *late = calloc(count + 1, sizeof *late), *calls = calloc(count + 1, sizeof *calls);
    double free_at = 0; // when the modelled sender has done its earlier sends, ticks
    uint64_t *last_call = calloc(UINT16_MAX + 1, sizeof *last_call); // by connection
    double *begun = calloc(UINT16_MAX + 1, sizeof *begun);           // the model's time for it
    if (!late || !calls || !last_call || !begun || !count)
        bench_fail("no samples, or no memory for them");
    for (size_t i = 0; i < count; i++) {
        if (!samples[i].send_tsc)
            bench_fail("a request was not sent: the schedule could not be kept");
        double intended = (double)(samples[i].intended_tsc - samples[0].intended_tsc);
        double sent = (double)(int64_t)(samples[i].send_tsc - samples[0].intended_tsc);
        double took = (double)(samples[i].sent_tsc - samples[i].send_tsc);
        const size_t id = samples[i].connection & UINT16_MAX;
        bool same_call = samples[i].send_tsc == last_call[id]; // together with an earlier one
        begun[id] = fmax(intended, same_call ? begun[id] : free_at);
        last_call[id] = samples[i].send_tsc;
        late[i] = (sent - begun[id]) / ticks_per_us;
        calls[i] = took / ticks_per_us;
        free_at = fmax(free_at, begun[id] + took);
    }
    out.late_us[0] = sorted_quantile(late, count, 0.5);
    out.late_us[1] = quantile_sorted(late, count, 0.99);
    out.call_us = sorted_quantile(calls, count, 0.5);
    if (capture) {
        out.per_segment = (double)count / (double)capture->packets.count;
        match_wire(lab, samples, count, capture, pairs, ticks_per_us, &out);
    }
    log_reader_close(&reader);
    free(late);
    free(calls);
    free(last_call);
    free(begun);
    return out;
}

static void check_capture(const struct wire_capture *capture, const char *what)
{
    if (capture->dropped)
        bench_fail("%s: the capture lost %llu packets", what, (unsigned long long)capture->dropped);
}

// What it is at, and for how much longer at the pace so far.
static void show_progress(struct bench *bench, const char *what)
{
    const int all = bench->rounds * RUNS_A_ROUND, done = bench->runs++;
    const double passed = bench_now() - bench->began;
    if (done)
        bench_progress("run %d of %d: %s; %.0f s, %.0f to go", done + 1, all, what, passed,
                       passed / done * (all - done));
    else
        bench_progress("run 1 of %d: %s", all, what);
}

// Whether a round more ends in time, if it takes as long as those before.
static bool has_time_for_round(const struct bench *bench, int round, double within)
{
    const double passed = bench_now() - bench->began;
    if (!round || passed / round * (round + 1) <= within)
        return true;
    bench_progress("%s", "");
    printf("%d of %d rounds, which took %.0f s: one more would end after %.0f s (BENCH_WITHIN)\n",
           round, bench->rounds, passed, within);
    return false;
}

static void load(struct bench *bench, struct place *place, double rate, int round)
{
    static struct bench_outcome outcome;
    struct bench_command command;
    bench_command(&command,
                  "%s/taillight load --server %s:%d --workload %s/workload.yaml --rate %.0f "
                  "--connections 16 --duration %.3fs --timeout 20s --stamps user --seed %d "
                  "--samples %s --json "
                  "--quiet",
                  bench_build(), bench_server_address(&place->lab), MEMCACHED_PORT, place->lab.dir,
                  rate, bench->seconds, round + 1, place->lab.dir);
    bench_run(&place->lab, &command, &place->memcached, &outcome);
    json_decref(bench_load_json(&outcome, &command));
}

// How late the client is when nobody captures.
static void run_alone(struct bench *bench, int at, double rate, int round, const char *name)
{
    struct place *place = &bench->places[at];
    struct bench_metrics *m = &bench->metrics;
    show_progress(bench, name);
    load(bench, place, rate, round);
    struct sends sends = study_sends(&place->lab, NULL, NULL, bench->ticks_per_us);
    bench_add(m, "us", sends.late_us[0], "own_lateness_p50_%s", name);
    bench_add(m, "us", sends.late_us[1], "own_lateness_p99_%s", name);
}

static void run_captured(struct bench *bench, int at, double rate, int round, const char *name)
{
    struct place *place = &bench->places[at];
    struct bench_metrics *m = &bench->metrics;
    struct wire_capture capture;
    struct clock_pair pairs[2];
    show_progress(bench, name);
    pairs[0] = take_clock_pair();
    wire_begin(&capture, &place->lab, MEMCACHED_PORT, WIRE_REQUESTS);
    load(bench, place, rate, round);
    wire_end(&capture);
    pairs[1] = take_clock_pair();
    check_capture(&capture, "taillight");
    struct shape shape = shape_of_packets(&capture, 0);
    struct sends sends = study_sends(&place->lab, &capture, pairs, bench->ticks_per_us);
    double c = isnan(sends.back_to_back) ? sends.call_us : sends.back_to_back;
    bench_add(m, "ratio", shape.cv, "cv_%s", name);
    bench_add(m, "distance", shape.ks, "ks_%s", name);
    bench_add(m, "distance", -expm1(-c / shape.mean_us) + 0.01, "ks_bound_%s", name);
    bench_add(m, "us", c, "send_cost_%s", name);
    bench_add(m, "us", shape.least_us, "least_gap_%s", name);
    bench_add(m, "us", sends.late_us[0], "captured_lateness_p50_%s", name);
    bench_add(m, "us", sends.late_us[1], "captured_lateness_p99_%s", name);
    bench_add(m, "requests", sends.per_segment, "requests_per_segment_%s", name);
    bench_add(m, "us", sends.wire_us[0], "send_to_wire_p50_%s", name);
    bench_add(m, "us", sends.wire_us[1], "send_to_wire_p99_%s", name);
    bench_add(m, "us", sends.wire_us[2], "send_to_wire_max_%s", name);
    wire_free(&capture);
}

static void run_ours(struct bench *bench, int at, double rate, int round)
{
    char name[40];
    snprintf(name, sizeof name, "%s_%.0fk", receiving[at], rate / 1000);
    for (int i = 0; i < 2; i++) {
        if ((i + round) % 2) // neither always comes first
            run_alone(bench, at, rate, round, name);
        else
            run_captured(bench, at, rate, round, name);
    }
}

// --- the peers -----------------------------------------------------------------------------------

static void run_peer(struct bench *bench, const char *name, uint16_t port,
                     const struct process *server, const struct bench_command *command)
{
    static struct bench_outcome outcome;
    struct wire_capture capture;
    struct bench_lab *lab = &bench->places[0].lab;
    show_progress(bench, name);
    wire_begin(&capture, lab, port, WIRE_REQUESTS);
    bench_run(lab, command, server, &outcome);
    wire_end(&capture);
    check_capture(&capture, name);
    if (outcome.exit_code != 0)
        bench_fail("%s: exit %d", command->words[0], outcome.exit_code);
    struct shape shape = shape_of_packets(&capture, 0.5);
    bench_add(&bench->metrics, "segments/s", 1e6 / shape.mean_us, "rate_%s", name);
    bench_add(&bench->metrics, "ratio", shape.cv, "cv_%s", name);
    bench_add(&bench->metrics, "distance", shape.ks, "ks_%s", name);
    wire_free(&capture);
}

static void run_peers(struct bench *bench)
{
    struct bench_command command;
    const char *address = bench_server_address(&bench->places[0].lab);
    const int seconds = (int)ceil(bench->seconds);
    bench_command(&command, "redis-benchmark -h %s -p %d -t get -c 16 -d 200 -n %d -q", address,
                  REDIS_PORT, 50000 * seconds);
    run_peer(bench, "redis_benchmark", REDIS_PORT, &bench->redis, &command);
    bench_command(&command, "memcaslap -s %s:%d -T 1 -c 16 -w 1k -X 200 -t %ds", address,
                  MEMCACHED_PORT, seconds);
    run_peer(bench, "memaslap", MEMCACHED_PORT, &bench->places[0].memcached, &command);
    bench_command(&command, "wrk -t 1 -c 16 -d %d http://%s:%d/", seconds, address, NGINX_PORT);
    run_peer(bench, "wrk", NGINX_PORT, &bench->nginx, &command);
}

// --- servers -------------------------------------------------------------------------------------

static void receive_on_server_core(struct bench_lab *lab)
{
    struct command_log no_log = {0};
    struct error err;
    struct experiment_setting setting = {.host = BENCH_CLIENT, .kind = TUNING_RPS, .nic = "to*"};
    snprintf(setting.value, sizeof setting.value, "%x", 1u << BENCH_SERVER_CORE);
    struct experiment plan = lab->plan;
    plan.settings.items = &setting;
    plan.settings.count = 1;
    json_t *tuned = json_array();
    if (tuning_apply(&lab->hosts, &plan, "", &no_log, tuned, &err) < 0)
        exit(error_report(&err));
    if (!json_is_true(json_object_get(json_array_get(tuned, 0), "applied")))
        bench_fail("the client's cable takes no RPS");
    json_decref(tuned);
}

static void prepare_place(struct place *place, bool there)
{
    char path[100];
    struct bench_command command;
    static struct bench_outcome outcome;
    bench_lab_open(&place->lab, "reno");
    if (there)
        receive_on_server_core(&place->lab);
    bench_command(&command, "memcached -u root -U 0 -t 1 -m 256 -l %s -p %d",
                  bench_server_address(&place->lab), MEMCACHED_PORT);
    bench_serve(&place->lab, &place->memcached, MEMCACHED_PORT, &command);
    snprintf(path, sizeof path, "%s/workload.yaml", place->lab.dir);
    bench_write_text(path, "mix: {get: 1}\nkeys: {count: 10k, size: {fixed: 31}}\n"
                           "values: {size: {fixed: 200}}\n");
    bench_command(&command, "%s/taillight load --server %s:%d --workload %s --prepare --quiet",
                  bench_build(), bench_server_address(&place->lab), MEMCACHED_PORT, path);
    bench_run(&place->lab, &command, &place->memcached, &outcome);
    if (outcome.exit_code != 0)
        bench_fail("cannot load the dataset");
}

static void report(const struct bench *bench)
{
    const struct bench_metrics *m = &bench->metrics;
    printf(
        "The gaps on the wire and the way to it: with a packet capture running. Lateness beyond\n"
        "that of earlier sends: of runs without one, then, beside it, of the captured runs.\n");
    printf("%-18s %6s %6s %6s %8s %9s %17s %17s %26s\n", "", "CV", "KS", "bound", "c", "least gap",
           "lateness p50/p99", "captured p50/p99", "send to wire p50/p99/max");
    for (int r = 0; r < RATES; r++)
        for (int c = 0; c < PLACES; c++) {
            char name[40];
            snprintf(name, sizeof name, "%s_%.0fk", receiving[c], rates[r] / 1000);
            printf("%-6.0f/s %-9s %6.3f %6.3f %6.3f %6.1fus %7.1fus %7.1f/%6.1fus %7.1f/%6.1fus "
                   "%8.1f/%6.1f/%7.0fus\n",
                   rates[r], receiving[c], bench_median(m, "cv_%s", name),
                   bench_median(m, "ks_%s", name), bench_median(m, "ks_bound_%s", name),
                   bench_median(m, "send_cost_%s", name), bench_median(m, "least_gap_%s", name),
                   bench_median(m, "own_lateness_p50_%s", name),
                   bench_median(m, "own_lateness_p99_%s", name),
                   bench_median(m, "captured_lateness_p50_%s", name),
                   bench_median(m, "captured_lateness_p99_%s", name),
                   bench_median(m, "send_to_wire_p50_%s", name),
                   bench_median(m, "send_to_wire_p99_%s", name),
                   bench_median(m, "send_to_wire_max_%s", name));
        }
    static const char *const peers[] = {"redis_benchmark", "memaslap", "wrk"};
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++)
        printf("%-18s %6.3f %6.3f  at %.0f segments/s\n", peers[i],
               bench_median(m, "cv_%s", peers[i]), bench_median(m, "ks_%s", peers[i]),
               bench_median(m, "rate_%s", peers[i]));
}

int main(void)
{
    static struct bench bench;
    struct bench_lab *first = &bench.places[0].lab;
    bench.rounds = (int)bench_setting("BENCH_ROUNDS", 3, 1, BENCH_ROUNDS_MAX);
    bench.seconds = bench_setting("BENCH_SECONDS", 2, 0.5, 8);
    const double within = bench_setting("BENCH_WITHIN", 200, 1, 1e6);
    bench.ticks_per_us = tsc_measure_hz(100000000) / 1e6;
    bench_need("redis-benchmark", "redis-server", "memcaslap", "wrk", "nginx", "memcached", NULL);
    for (int c = 0; c < PLACES; c++)
        prepare_place(&bench.places[c], c == 0);
    bench_serve_redis(first, &bench.redis, REDIS_PORT);
    bench_serve_nginx(first, &bench.nginx, (struct bench_nginx_ports){.http = NGINX_PORT});
    printf("%d runs of %.1f s and what it takes to begin and to study them\n",
           bench.rounds * RUNS_A_ROUND, bench.seconds);
    fflush(stdout);
    bench.began = bench_now();
    for (int round = 0; round < bench.rounds && has_time_for_round(&bench, round, within);
         round++) {
        for (int r = 0; r < RATES; r++)
            for (int i = 0; i < PLACES; i++) // nobody always comes first
                run_ours(&bench, (i + round) % PLACES, rates[r], round);
        run_peers(&bench);
    }
    bench_progress("%s", "");
    report(&bench);
    bench_write(&bench.metrics, "schedule");
    process_stop(&bench.redis, 2000);
    process_stop(&bench.nginx, 2000);
    for (int c = 0; c < PLACES; c++) {
        process_stop(&bench.places[c].memcached, 2000);
        bench_lab_close(&bench.places[c].lab);
    }
    return 0;
}
