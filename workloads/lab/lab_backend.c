// SPDX-License-Identifier: MIT
#include "workloads/lab/lab_backend.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

int lab_backend_parse(const char *text, struct lab_backend *backend, struct error *err)
{
    char *end;
    unsigned long port = strtoul(text, &end, 10), count = 1;
    if (*end == ',')
        count = strtoul(end + 1, &end, 10);
    if (*end || port < 1 || port > 65535 || count < 1 || count > LAB_BACKEND_CONNECTIONS)
        return error_set(err, ERROR_INPUT, "--backend: \"%s\" is not PORT[,CONNECTIONS], 1 to %d",
                         text, LAB_BACKEND_CONNECTIONS);
    *backend = (struct lab_backend){
        .port = (uint16_t)port, .capacity = (unsigned)count, .idle_count = (unsigned)count};
    for (unsigned i = 0; i < backend->capacity; i++)
        backend->idle[i] = -1;
    pthread_mutex_init(&backend->lock, NULL);
    pthread_cond_init(&backend->returned, NULL);
    return 0;
}

// It may be starting still.
static int backend_connect(const struct lab_backend *backend)
{
    enum { TRIES = 100, PAUSE_NS = 50000000 };
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons(backend->port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int on = 1;
    for (int i = 0; i < TRIES; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, (const void *)&address, sizeof address) == 0) {
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            return fd;
        }
        if (fd >= 0)
            close(fd);
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    return -1;
}

static bool exchange(int fd)
{
    static const char question[] = "get backend\r\n", answer[] = "END\r\n";
    char reply[sizeof answer - 1];
    return send(fd, question, sizeof question - 1, MSG_NOSIGNAL) ==
               (ssize_t)(sizeof question - 1) &&
           recv(fd, reply, sizeof reply, MSG_WAITALL) == (ssize_t)sizeof reply &&
           memcmp(reply, answer, sizeof reply) == 0;
}

bool lab_backend_ask(struct lab_backend *backend)
{
    pthread_mutex_lock(&backend->lock);
    while (backend->idle_count == 0)
        pthread_cond_wait(&backend->returned, &backend->lock);
    int fd = backend->idle[--backend->idle_count];
    pthread_mutex_unlock(&backend->lock);
    if (fd < 0)
        fd = backend_connect(backend);
    bool answered = fd >= 0 && exchange(fd);
    if (!answered && fd >= 0) {
        close(fd);
        fd = -1;
    }
    pthread_mutex_lock(&backend->lock);
    backend->idle[backend->idle_count++] = fd;
    pthread_cond_signal(&backend->returned);
    pthread_mutex_unlock(&backend->lock);
    return answered;
}
