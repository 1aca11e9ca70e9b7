// SPDX-License-Identifier: MIT
//
// Connections accepted, shared by threads, and closed under a thread that waits on them.
// Runs beside others: what it compares is what calls return, not when.
#include "tests/shim/semantics.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/un.h>

static void sequence_accepts(void)
{
    struct sockaddr_storage address, peer;
    socklen_t bytes, peer_bytes;
    for (int family = AF_INET; family <= AF_INET6; family += AF_INET6 - AF_INET) {
        int listening = listener(family, &address, &bytes);
        SEE(accept4(listening, NULL, NULL, 0x40000000));
        SEE(fcntl(listening, F_SETFL, O_NONBLOCK));
        SEE(accept(listening, NULL, NULL));
        for (socklen_t room = 0; room <= sizeof peer; room += sizeof peer / 8) {
            int client = socket(family, SOCK_STREAM, 0);
            if (connect(client, (struct sockaddr *)&address, bytes) < 0)
                exit(96);
            peer_bytes = room;
            happen(listening, POLLIN);
            int server =
                (int)SEE(accept4(listening, (struct sockaddr *)&peer, &peer_bytes, SOCK_NONBLOCK));
            printf("  %u bytes\n", peer_bytes);
            SEE(fcntl(server, F_GETFL));
            SEE(read(server, &peer, 1));
            struct pair p = {client, server};
            account(&p, 0, 0);
            pair_close(&p);
        }
        // Gone before it is accepted.
        int client = socket(family, SOCK_STREAM, 0);
        if (connect(client, (struct sockaddr *)&address, bytes) < 0)
            exit(97);
        struct linger reset = {.l_onoff = 1};
        setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(client);
        happen(listening, POLLIN);
        int server = (int)SEE(accept(listening, NULL, NULL));
        happen(server, 0);
        SEE(recv(server, &peer, 1, 0));
        SEE(close(server));
        SEE(close(listening));
    }
    int ends[2]; // not TCP: not watched
    SEE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    SEE(write(ends[0], "unix", 4));
    SEE(read(ends[1], &peer, 16));
    close(ends[0]);
    close(ends[1]);
    struct pair p = connected();
    give(p.client, "one line\nanother\n");
    FILE *file = fdopen(p.server, "r+");
    char line[32];
    SEE(fgets(line, sizeof line, file) != NULL);
    printf("  %s", line);
    SEE(fclose(file));
    SEE(close(p.client));
}

// Many short connections on few descriptor numbers, from threads that come and go.
static void *echo_thread(void *argument)
{
    unsigned seed = *(unsigned *)argument;
    for (int i = 0; i < 40; i++) {
        struct pair p = connected();
        unsigned total = 0;
        for (int n = rand_r(&seed) % 8; n >= 0; n--) {
            char text[300], back[300];
            size_t length = 1 + (size_t)rand_r(&seed) % sizeof text;
            memset(text, 'a' + n, length);
            if (send(p.client, text, length, 0) != (ssize_t)length ||
                recv(p.server, back, length, MSG_WAITALL) != (ssize_t)length ||
                memcmp(text, back, length) != 0 ||
                write(p.server, back, length) != (ssize_t)length ||
                recv(p.client, text, length, MSG_WAITALL) != (ssize_t)length)
                exit(98);
            total += (unsigned)length;
        }
        account(&p, total, total);
        close(p.server);
        close(p.client);
    }
    return NULL;
}

static void sequence_threads(void)
{
    for (int round = 0; round < 3; round++) {
        pthread_t threads[6];
        unsigned seeds[6];
        for (unsigned i = 0; i < 6; i++) {
            seeds[i] = 100 * (unsigned)round + i;
            pthread_create(&threads[i], NULL, echo_thread, &seeds[i]);
        }
        for (unsigned i = 0; i < 6; i++)
            pthread_join(threads[i], NULL);
    }
    printf("threads done\n");
}

// A thread blocked in recv while another closes the descriptor and its number finds a new user.
struct blocked {
    int fd;
    _Atomic pid_t thread;
};

static void *blocked_thread(void *argument)
{
    struct blocked *blocked = argument;
    char a[16];
    blocked->thread = gettid();
    ssize_t got = recv(blocked->fd, a, sizeof a, 0);
    printf("blocked = %zd\n", got);
    return NULL;
}

// Returns when the thread is in its call: the kernel says which one, and the descriptor.
static void blocked_await(const struct blocked *blocked)
{
    for (int tries = 0; tries < PATIENCE_MS; tries++) {
        char path[64];
        long call = -1;
        unsigned fd = 0;
        snprintf(path, sizeof path, "/proc/self/task/%d/syscall", blocked->thread);
        FILE *file = blocked->thread ? fopen(path, "re") : NULL;
        int fields = file ? fscanf(file, "%ld %x", &call, &fd) : 0; // one: "running"
        if (file)
            fclose(file);
        if (fields == 2 && call == SYS_recvfrom && fd == (unsigned)blocked->fd)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    exit(99);
}

static void sequence_late(void)
{
    struct pair old = connected();
    struct blocked blocked = {.fd = old.server};
    pthread_t thread;
    pthread_create(&thread, NULL, blocked_thread, &blocked);
    blocked_await(&blocked);
    SEE(close(old.server));
    struct pair fresh = connected(); // takes the lowest numbers, the old server's among them
    give(old.client, "late");
    pthread_join(thread, NULL);
    give(fresh.client, "fresh!");
    char a[16];
    SEE(recv(fresh.server, a, sizeof a, 0));
    account(&fresh, 6, 0);
    pair_close(&fresh);
    SEE(close(old.client));
}

// Connected at once, in the background, asked twice, refused, again on the same descriptor; a UNIX
// socket, and datagrams.
static void sequence_connects(void)
{
    struct sockaddr_storage address;
    struct sockaddr_un path = {.sun_family = AF_UNIX, .sun_path = "\0semantics"};
    struct sockaddr_in nowhere = {.sin_family = AF_INET};
    socklen_t bytes, path_bytes = offsetof(struct sockaddr_un, sun_path) + 10;
    char a[16];
    nowhere.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int family = AF_INET; family <= AF_INET6; family += AF_INET6 - AF_INET) {
        int listening = listener(family, &address, &bytes);
        struct pair p = {.client = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0)};
        SEE(connect(p.client, (struct sockaddr *)&address, 1));
        SEE(connect(p.client, (struct sockaddr *)&address, bytes));
        happen(p.client, POLLOUT);
        SEE(connect(p.client, (struct sockaddr *)&address, bytes));
        SEE(connect(p.client, (struct sockaddr *)&address, bytes));
        p.server = accept(listening, NULL, NULL);
        give(p.client, "peer");
        happen(p.server, POLLIN);
        SEE(recv(p.server, a, sizeof a, 0));
        account(&p, 4, 0);
        pair_close(&p);
        SEE(close(listening));
    }
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    SEE(connect(fd, (struct sockaddr *)&nowhere, sizeof nowhere));
    SEE(connect(-1, (struct sockaddr *)&nowhere, sizeof nowhere));
    SEE(close(fd));
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    nowhere.sin_port = htons(9);
    SEE(connect(fd, (struct sockaddr *)&nowhere, sizeof nowhere));
    SEE(close(fd));
    int listening = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    SEE(connect(client, (struct sockaddr *)&path, path_bytes));
    path.sun_path[10] = (char)getpid();
    SEE(bind(listening, (struct sockaddr *)&path, path_bytes + 1));
    SEE(listen(listening, 4));
    SEE(connect(client, (struct sockaddr *)&path, path_bytes + 1));
    SEE(write(client, "unix", 4));
    SEE(close(client));
    SEE(close(listening));
}

static void sequence(void)
{
    sequence_accepts();
    sequence_connects();
    sequence_threads();
    sequence_late();
}

int main(int argc, char **argv)
{
    return semantics_main(
        argc, argv,
        &(struct semantics){sequence, .connections = 741, .late = 1, .unseen = 1, .dropped = 101});
}
