// SPDX-License-Identifier: MIT
//
// labserver: a server whose service time is known. It speaks the memcached text protocol (keeping
// its items in memory) or the laboratory's own (workloads/protocols/lab.h), and before each answer
// spins on the TSC for a time drawn from a stated distribution: with one worker and Poisson
// arrivals it is an M/D/1, M/M/1 or M/G/1 queue whose latency theory gives exactly. Ground truth
// for the load generator and the diagnosis (design §15).
//
// Unless told otherwise its own work (waking up, receiving, sending) comes on top of that time, as
// in any server. With --exact it is part of it: a service begins when the kernel received the
// request, or when the service before it was to end, whichever is later.
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/tsc.h"
#include "base/tsc_rate.h"
#include "base/units.h"
#include "workloads/distribution.h"
#include "workloads/distribution_text.h"
#include "workloads/lab/lab_backend.h"
#include "workloads/lab/lab_fault.h"
#include "workloads/server_request.h"
#include "workloads/workload.h"

// --- its memory ----------------------------------------------------------------------------------
// Keys and values in a hash table with one lock. It can be simple, since the service time is drawn
// and does not depend on it.

enum { BUCKETS = 1 << 18 };

struct item {
    struct item *next;
    size_t key_bytes, value_bytes;
    unsigned flags;
    char bytes[]; // the key, then the value
};

struct item_store {
    pthread_mutex_t lock;
    struct item *buckets[BUCKETS];
};

// NULL: out of memory. It lives as long as the server: there is no call to free it.
static struct item_store *item_store_alloc(void)
{
    struct item_store *store = calloc(1, sizeof *store);
    if (store)
        pthread_mutex_init(&store->lock, NULL);
    return store;
}

// The pointer to that key's item, or where it would be inserted.
static struct item **item_find(struct item_store *store, const char *key, size_t key_bytes)
{
    uint64_t hash = key_bytes;
    for (size_t i = 0; i < key_bytes; i++)
        hash = hash64(hash ^ (unsigned char)key[i]);
    struct item **at = &store->buckets[hash % BUCKETS];
    while (*at && ((*at)->key_bytes != key_bytes || memcmp((*at)->bytes, key, key_bytes) != 0))
        at = &(*at)->next;
    return at;
}

// Stores a copy. False: out of memory, and the key keeps its old value.
static bool item_store_set(struct item_store *store, const char *key, size_t key_bytes,
                           const char *value, size_t value_bytes, unsigned flags)
{
    struct item *item = malloc(sizeof *item + key_bytes + value_bytes);
    if (!item)
        return false;
    *item = (struct item){NULL, key_bytes, value_bytes, flags};
    memcpy(item->bytes, key, key_bytes);
    memcpy(item->bytes + key_bytes, value, value_bytes);
    pthread_mutex_lock(&store->lock);
    struct item **at = item_find(store, key, key_bytes), *old = *at;
    item->next = old ? old->next : NULL;
    *at = item;
    pthread_mutex_unlock(&store->lock);
    free(old);
    return true;
}

// Copies the value out, at most out_bytes of it. Returns its whole length, or -1: no such key.
static long item_store_get(struct item_store *store, const char *key, size_t key_bytes, char *out,
                           size_t out_bytes, unsigned *flags)
{
    long bytes = -1;
    pthread_mutex_lock(&store->lock);
    const struct item *item = *item_find(store, key, key_bytes);
    if (item) {
        bytes = (long)item->value_bytes;
        *flags = item->flags;
        memcpy(out, item->bytes + key_bytes,
               item->value_bytes < out_bytes ? item->value_bytes : out_bytes);
    }
    pthread_mutex_unlock(&store->lock);
    return bytes;
}

enum {
    OUTPUT_BYTES = WORKLOAD_VALUE_BYTES_MAX + 4096,
    EVENTS = 64,
    SEND_PATIENCE_MS = 5000, // for a client that does not read
    OWN_WORK_NS = 200000,    // more than it takes to wake up, receive and send
};

struct settings {
    uint64_t port, threads, seed;
    struct distribution service_ns;
    bool lab;     // speaks the laboratory protocol
    bool exact;   // its own work is part of the service time
    double drift; // how much of itself the service time grows by each second
    uint64_t began_tsc;
    double ticks_per_ns;
    struct item_store *store;
    struct worker *workers;
    struct lab_backend backend;
    struct lab_fault fault;
    const char *fault_log;
};

struct client {
    int socket_fd;
    size_t used; // of input
    bool nagle;  // its latest reply was sent in two halves
    char input[SERVER_REQUEST_BYTES_MAX];
};

struct worker {
    struct settings *settings; // only its fault changes
    pthread_t thread;
    int listener, epoll;
    uint64_t random;       // state of random_fraction
    struct client *client; // whose request is being answered
    uint64_t arrived_tsc;  // when the kernel received it (exact)
    uint64_t free_tsc;     // when the service before it was to end (exact)
    bool closing;          // it quit, or cannot be answered
    char output[OUTPUT_BYTES];
};

// --- answering -----------------------------------------------------------------------------------

// A server that resumes later than its own work explains was stopped or preempted, and a stopped
// server serves nobody.
static uint64_t exact_begin(const struct worker *worker)
{
    uint64_t begin =
        worker->arrived_tsc > worker->free_tsc ? worker->arrived_tsc : worker->free_tsc;
    uint64_t now = tsc_now();
    return now - begin > (uint64_t)(OWN_WORK_NS * worker->settings->ticks_per_ns) ? now : begin;
}

static void serve_for(struct worker *worker, double ns)
{
    struct settings *settings = worker->settings;
    lab_fault_begin_service(&settings->fault);
    if (settings->drift > 0)
        ns *= 1 + settings->drift * (double)(tsc_now() - settings->began_tsc) /
                      (settings->ticks_per_ns * 1e9);
    uint64_t begin = settings->exact ? exact_begin(worker) : tsc_now();
    worker->free_tsc = begin + (uint64_t)(ns * settings->ticks_per_ns);
    while (tsc_now() < worker->free_tsc)
        _mm_pause();
    lab_fault_end_service(&settings->fault);
    if (settings->backend.port && !lab_backend_ask(&settings->backend))
        worker->closing = true;
}

static void service_spin(struct worker *worker)
{
    serve_for(worker, distribution_sample(&worker->settings->service_ns, &worker->random));
}

// The first half goes out at once; the second has to wait for its acknowledgement (Nagle), unless
// it is already the next reply's turn.
static void send_first_half(struct worker *worker, const char **bytes, size_t *count)
{
    const int on = 1, off = 0;
    int fd = worker->client->socket_fd;
    if (worker->client->nagle)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    worker->client->nagle = lab_fault_halves(&worker->settings->fault);
    if (!worker->client->nagle)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &off, sizeof off);
    ssize_t sent = send(fd, *bytes, *count / 2, MSG_NOSIGNAL);
    if (sent > 0) {
        *bytes += sent;
        *count -= (size_t)sent;
    }
}

static void requests_answer(struct worker *worker, const char *bytes, size_t count)
{
    send_first_half(worker, &bytes, &count);
    while (count && !worker->closing) {
        lab_fault_begin_send(&worker->settings->fault);
        ssize_t sent = send(worker->client->socket_fd, bytes, count, MSG_NOSIGNAL);
        lab_fault_end_send(&worker->settings->fault);
        if (sent <= 0) { // SO_SNDTIMEO bounds the wait
            worker->closing = true;
            return;
        }
        bytes += sent;
        count -= (size_t)sent;
    }
}

static void answer_text(struct worker *worker, const char *text)
{
    requests_answer(worker, text, strlen(text));
}

// Writes "VALUE <key> <flags> <bytes>\r\n" in front of the value, which is already in place.
// Returns where it begins.
static char *write_head(char *value, const struct text_span *key, unsigned flags, long bytes)
{
    static const char word[] = "VALUE ";
    char numbers[48];
    const int count = snprintf(numbers, sizeof numbers, " %u %ld\r\n", flags, bytes);
    char *head = value - count - key->count - (sizeof word - 1);
    memcpy(head, word, sizeof word - 1);
    memcpy(head + sizeof word - 1, key->bytes, key->count);
    memcpy(value - count, numbers, (size_t)count);
    return head;
}

// One service time per command, whatever the number of keys.
static void answer_get(struct worker *worker, struct text_span keys)
{
    char *value = worker->output + WORKLOAD_KEY_BYTES_MAX + 64;
    struct text_span key;
    service_spin(worker);
    for (bool more = server_request_next_key(&keys, &key); more;) {
        const struct text_span found = key;
        unsigned flags = 0;
        long bytes = item_store_get(worker->settings->store, key.bytes, key.count, value,
                                    WORKLOAD_VALUE_BYTES_MAX, &flags);
        more = server_request_next_key(&keys, &key);
        if (bytes < 0)
            continue;
        char *head = write_head(value, &found, flags, bytes);
        memcpy(value + bytes, more ? "\r\n" : "\r\nEND\r\n", more ? 2 : 7);
        requests_answer(worker, head, (size_t)(value - head) + (size_t)bytes + (more ? 2 : 7));
        if (!more)
            return;
    }
    answer_text(worker, "END\r\n");
}

static void answer_set(struct worker *worker, const struct server_request *request)
{
    service_spin(worker);
    bool whole = request->kind == SERVER_SET;
    bool stored =
        whole && item_store_set(worker->settings->store, request->key.bytes, request->key.count,
                                request->value.bytes, request->value.count, request->flags);
    if (!request->no_reply)
        answer_text(worker, stored  ? "STORED\r\n"
                            : whole ? "SERVER_ERROR out of memory storing object\r\n"
                                    : "CLIENT_ERROR bad data chunk\r\n");
}

static void answer_call(struct worker *worker, const struct lab_request *call)
{
    if (call->service_ns == request_service_from_server)
        service_spin(worker);
    else
        serve_for(worker, call->service_ns < lab_service_ns_max ? (double)call->service_ns
                                                                : (double)lab_service_ns_max);
    lab_reply_write(worker->output, call->id, call->payload_bytes);
    requests_answer(worker, worker->output, LAB_REPLY_BYTES + call->payload_bytes);
}

static void answer_request(struct worker *worker, const struct server_request *request)
{
    switch (request->kind) {
    case SERVER_GET:
        answer_get(worker, request->keys);
        break;
    case SERVER_SET:
    case SERVER_BAD_DATA:
        answer_set(worker, request);
        break;
    case SERVER_CALL:
        answer_call(worker, &request->call);
        break;
    case SERVER_VERSION:
        answer_text(worker, "VERSION 1.0.0 labserver\r\n"); // clients expect three numbers
        break;
    case SERVER_UNKNOWN:
        answer_text(worker, "ERROR\r\n");
        break;
    case SERVER_BAD_SET:
        answer_text(worker, "CLIENT_ERROR bad command line format\r\n");
        worker->closing = true;
        break;
    case SERVER_LONG_LINE:
        answer_text(worker, "ERROR line too long\r\n");
        worker->closing = true;
        break;
    case SERVER_QUIT:
    case SERVER_BAD_CALL:
        worker->closing = true;
        break;
    }
}

// --- connections ---------------------------------------------------------------------------------

// A child of the fault that forks may have the socket, too: only so its end is seen by the client,
// and nothing more is heard of it.
static void close_client(const struct worker *worker, struct client *client)
{
    epoll_ctl(worker->epoll, EPOLL_CTL_DEL, client->socket_fd, NULL);
    shutdown(client->socket_fd, SHUT_RDWR);
    close(client->socket_fd);
    free(client);
}

// Determines when the kernel received a message: as long before now as its stamp is older than now
// by the stamp's own clock.
static void note_arrival(struct worker *worker, struct msghdr *message)
{
    struct timespec now, stamp;
    uint64_t now_tsc = tsc_now();
    clock_gettime(CLOCK_REALTIME, &now);
    worker->arrived_tsc = now_tsc;
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    if (!header || header->cmsg_type != SCM_TIMESTAMPNS)
        return;
    memcpy(&stamp, CMSG_DATA(header), sizeof stamp);
    double age_ns =
        (double)(now.tv_sec - stamp.tv_sec) * 1e9 + (double)(now.tv_nsec - stamp.tv_nsec);
    if (age_ns > 0)
        worker->arrived_tsc -= (uint64_t)(age_ns * worker->settings->ticks_per_ns);
}

static ssize_t client_receive(struct worker *worker, struct client *client)
{
    char control[CMSG_SPACE(sizeof(struct timespec))] __attribute__((aligned(16)));
    struct iovec buffer = {client->input + client->used, sizeof client->input - client->used};
    struct msghdr message = {.msg_iov = &buffer,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    if (!worker->settings->exact)
        return recv(client->socket_fd, buffer.iov_base, buffer.iov_len, MSG_DONTWAIT);
    ssize_t count = recvmsg(client->socket_fd, &message, MSG_DONTWAIT);
    if (count > 0)
        note_arrival(worker, &message);
    return count;
}

static void read_client(struct worker *worker, struct client *client)
{
    ssize_t count = client_receive(worker, client);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (count <= 0) {
        close_client(worker, client);
        return;
    }
    client->used += (size_t)count;
    worker->client = client;
    worker->closing = false;
    size_t at = 0, taken = 1;
    while (at < client->used && taken && !worker->closing) {
        struct server_request request;
        taken = server_request_read(worker->settings->lab, client->input + at, client->used - at,
                                    &request);
        if (taken)
            answer_request(worker, &request);
        worker->closing |= taken && lab_fault_closes(&worker->settings->fault);
        at += taken;
    }
    if (worker->closing) {
        close_client(worker, client);
        return;
    }
    client->used -= at;
    memmove(client->input, client->input + at, client->used);
}

static void accept_client(struct worker *worker)
{
    int socket_fd = accept4(worker->listener, NULL, NULL, SOCK_CLOEXEC);
    struct client *client = socket_fd >= 0 ? malloc(sizeof *client) : NULL;
    if (!client) {
        if (socket_fd >= 0)
            close(socket_fd);
        return;
    }
    const int on = 1;
    const struct timeval patience = {SEND_PATIENCE_MS / 1000, 0};
    setsockopt(socket_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(socket_fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    client->socket_fd = socket_fd;
    client->used = 0;
    client->nagle = false;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    if (epoll_ctl(worker->epoll, EPOLL_CTL_ADD, socket_fd, &event) < 0)
        close_client(worker, client);
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    const int patience_ms = worker->settings->exact ? 0 : -1; // waking up takes time
    for (;;) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(worker->epoll, events, EVENTS, patience_ms);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr)
                read_client(worker, events[i].data.ptr);
            else
                accept_client(worker);
        }
    }
    return NULL;
}

static int open_worker(struct worker *worker, unsigned index, struct error *err)
{
    const struct settings *settings = worker->settings;
    const int on = 1, off = 0;
    const struct sockaddr_in6 any = {.sin6_family = AF_INET6,
                                     .sin6_port = htons((uint16_t)settings->port),
                                     .sin6_addr = IN6ADDR_ANY_INIT};
    worker->epoll = epoll_create1(EPOLL_CLOEXEC);
    worker->listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (worker->epoll < 0 || worker->listener < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot make worker %u", index);
    worker->random = hash64(settings->seed + index);
    setsockopt(worker->listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    setsockopt(worker->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    // Connections inherit it. Set early, because the kernel begins to stamp only after one of its
    // worker threads has run.
    if (settings->exact)
        setsockopt(worker->listener, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    // Each worker has its own queue of connections; the kernel distributes them.
    if (settings->threads > 1)
        setsockopt(worker->listener, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (bind(worker->listener, (const void *)&any, sizeof any) < 0 ||
        listen(worker->listener, 1024) < 0 ||
        epoll_ctl(worker->epoll, EPOLL_CTL_ADD, worker->listener, &event) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot listen on port %u",
                               (unsigned)settings->port);
    return 0;
}

// --- options -------------------------------------------------------------------------------------

static int parse_service(const char *text, struct distribution *service, struct error *err)
{
    struct distribution parsed;
    if (distribution_parse(text, UNIT_NS, &parsed, err) < 0)
        return error_prefix(err, "--service");
    distribution_free(service);
    *service = parsed;
    return 0;
}

static int parse_protocol(const char *text, struct settings *settings, struct error *err)
{
    settings->lab = strcmp(text, "lab") == 0;
    if (settings->lab || strcmp(text, "memcached") == 0)
        return 0;
    return error_set(err, ERROR_INPUT, "--protocol: \"%s\" is neither memcached nor lab", text);
}

static int parse_number_option(const char *name, const char *text, uint64_t low, uint64_t high,
                               uint64_t *out, struct error *err)
{
    if (units_parse_count(text, out, err) < 0)
        return error_prefix(err, "--%s", name);
    if (*out < low || *out > high)
        return error_set(err, ERROR_INPUT, "--%s must be %llu to %llu", name,
                         (unsigned long long)low, (unsigned long long)high);
    return 0;
}

static int parse_drift(const char *text, double *drift, struct error *err)
{
    if (units_parse_number(text, drift, err) < 0)
        return error_prefix(err, "--drift");
    if (*drift < 0)
        return error_set(err, ERROR_INPUT, "--drift must be at least 0");
    return 0;
}

static void print_usage(FILE *out)
{
    fputs(
        "usage: labserver --port PORT [--protocol memcached|lab] [--service DISTRIBUTION] "
        "[--threads N] [--seed N] [--drift FACTOR] [--exact] [--backend PORT[,CONNECTIONS]] "
        "[--fault KIND,LENGTH,EVERY --fault-log FILE]\n\n"
        "A server whose service time, spun before each answer, is drawn from a known "
        "distribution: fixed:10us,\nexponential:10us, uniform:5us,15us, lognormal:10us,0.5, "
        "bimodal:5us,100us,0.05, ... (fixed:0 when none\nis given; with lab, a request may "
        "state its own). With --drift it grows by FACTOR of itself each second. With --exact it "
        "holds "
        "the server's own\nwork too, counted from the kernel's receive stamp, and the server "
        "polls instead of sleeping.\nWith --backend it asks a memcached on this machine before "
        "each answer,\nover so many "
        "connections (1) that all workers share. With --fault it misbehaves for LENGTH once EVERY "
        "so often "
        "and notes in FILE when: slow (a function takes that\nlong), calls (a function is "
        "called over and over), pages (page faults), sync (a file is written and synced),\n"
        "fork (it forks, and writes to memory that it then shares), swap (memory that was paged "
        "out is touched),\nlock (a thread sleeps with the lock that "
        "each request takes), compact (the kernel compacts memory), kernel (it is at work in one "
        "call), deaf (its queue of connections "
        "is full,\nand it takes none; it "
        "closes each after "
        "a reply), syn (the same, but a firewall drops what opens connections), collect (it works "
        "by turns, and is\ncalled as Java's that stops the "
        "world), room (it notes when it waits for somebody to read a reply); one worker.\nPrints "
        "\"ready\" when it listens; runs until killed.\n",
        out);
}

// Returns 1 when --help was asked for.
static int parse_options(int argc, char **argv, struct settings *settings, struct error *err)
{
    static const struct option longs[] = {
        {"port", required_argument, NULL, 'p'},     {"threads", required_argument, NULL, 't'},
        {"seed", required_argument, NULL, 'r'},     {"service", required_argument, NULL, 's'},
        {"protocol", required_argument, NULL, 'o'}, {"drift", required_argument, NULL, 'd'},
        {"exact", no_argument, NULL, 'e'},          {"backend", required_argument, NULL, 'b'},
        {"fault", required_argument, NULL, 'f'},    {"fault-log", required_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0}};
    int status = 0, option;
    while (status == 0 && (option = getopt_long(argc, argv, "p:t:s:h", longs, NULL)) != -1) {
        if (option == 'p')
            status = parse_number_option("port", optarg, 1, 65535, &settings->port, err);
        else if (option == 't')
            status = parse_number_option("threads", optarg, 1, 256, &settings->threads, err);
        else if (option == 'r')
            status = parse_number_option("seed", optarg, 0, UINT32_MAX, &settings->seed, err);
        else if (option == 's')
            status = parse_service(optarg, &settings->service_ns, err);
        else if (option == 'o')
            status = parse_protocol(optarg, settings, err);
        else if (option == 'd')
            status = parse_drift(optarg, &settings->drift, err);
        else if (option == 'e')
            settings->exact = true;
        else if (option == 'b')
            status = lab_backend_parse(optarg, &settings->backend, err);
        else if (option == 'f')
            status = lab_fault_parse(optarg, &settings->fault, err);
        else if (option == 'l')
            settings->fault_log = optarg;
        else if (option == 'h')
            return 1;
        else
            status = error_set(err, ERROR_INPUT, "see labserver --help");
    }
    if (status == 0 && (settings->port == 0 || optind < argc))
        status = error_set(err, ERROR_INPUT, "--port PORT is needed, and nothing but options");
    if (status == 0 && (settings->fault.kind != LAB_FAULT_NONE) != (settings->fault_log != NULL))
        status = error_set(err, ERROR_INPUT, "--fault and --fault-log go together");
    if (status == 0 && settings->fault.kind != LAB_FAULT_NONE && settings->threads > 1)
        status = error_set(err, ERROR_INPUT, "--fault takes one worker: no --threads");
    return status;
}

// Creates everything that the workers need, and starts all but the first.
static int workers_start(struct settings *settings, struct error *err)
{
    settings->store = item_store_alloc();
    struct worker *workers = settings->workers = calloc(settings->threads, sizeof *workers);
    if (!settings->store || !workers)
        return error_set(err, ERROR_FAILED, "out of memory for %u workers",
                         (unsigned)settings->threads);
    int status = 0;
    for (unsigned i = 0; status == 0 && i < settings->threads; i++) {
        workers[i].settings = settings;
        status = open_worker(&workers[i], i, err);
    }
    if (status < 0)
        return status;
    settings->ticks_per_ns = tsc_measure_hz(50000000) / 1e9;
    settings->began_tsc = tsc_now();
    settings->fault.listener = workers[0].listener;
    settings->fault.epoll = workers[0].epoll;
    status = lab_fault_start(&settings->fault, settings->fault_log, err);
    for (unsigned i = 1; status == 0 && i < settings->threads; i++)
        if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) != 0)
            status = error_set(err, ERROR_FAILED, "cannot start worker %u", i);
    return status;
}

int main(int argc, char **argv)
{
    struct error err = {0};
    struct settings settings = {.threads = 1, .seed = 1};
    int status = parse_options(argc, argv, &settings, &err);
    if (status == 0)
        status = workers_start(&settings, &err);
    if (status < 0)
        exit(error_report(&err)); // never returns: running workers use the settings
    if (status == 1) {
        print_usage(stdout);
        return 0;
    }
    puts("ready");
    fflush(stdout);
    worker_main(&settings.workers[0]);
    return 0;
}
