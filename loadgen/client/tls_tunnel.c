// SPDX-License-Identifier: MIT
#include "loadgen/client/tls_tunnel.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/passing_folder.h"

enum { PATIENCE_S = 5, BUFFER_BYTES = 64 << 10 };

struct tls_tunnel {
    const struct server_address *server;
    struct server_address address;
    struct passing_folder folder; // in which the listener is
    SSL_CTX *context;
    int listener, wake;
    bool has_thread;
    pthread_t thread;
    struct error err; // the first that went wrong; the thread's until it has ended
    char buffer[BUFFER_BYTES];
};

static void keep_error(struct tls_tunnel *tunnel, const struct error *err)
{
    if (!tunnel->err.kind)
        tunnel->err = *err;
}

static bool send_all(int to, const char *bytes, size_t count)
{
    while (count) {
        ssize_t taken = send(to, bytes, count, MSG_NOSIGNAL);
        if (taken <= 0)
            return false;
        bytes += taken;
        count -= (size_t)taken;
    }
    return true;
}

static bool client_to_server(struct tls_tunnel *tunnel, int client, SSL *tls)
{
    ssize_t count = recv(client, tunnel->buffer, sizeof tunnel->buffer, 0);
    return count > 0 && SSL_write(tls, tunnel->buffer, (int)count) == count;
}

// Also where what came was no data, but a ticket.
static bool server_to_client(struct tls_tunnel *tunnel, SSL *tls, int client)
{
    do {
        ERR_clear_error();
        int count = SSL_read(tls, tunnel->buffer, sizeof tunnel->buffer);
        if (count <= 0)
            return SSL_get_error(tls, count) == SSL_ERROR_WANT_READ;
        if (!send_all(client, tunnel->buffer, (size_t)count))
            return false;
    } while (SSL_pending(tls));
    return true;
}

static void carry(struct tls_tunnel *tunnel, int client, SSL *tls, struct error *err)
{
    struct pollfd ready[] = {{.fd = tunnel->wake, .events = POLLIN},
                             {.fd = client, .events = POLLIN},
                             {.fd = SSL_get_fd(tls), .events = POLLIN}};
    bool goes_on = true;
    while (goes_on && poll(ready, 3, -1) > 0 && !ready[0].revents) {
        if (ready[2].revents && !(goes_on = server_to_client(tunnel, tls, client)) &&
            tls_was_refused())
            tls_refuse(tls, tunnel->server, err);
        if (goes_on && ready[1].revents)
            goes_on = client_to_server(tunnel, client, tls);
    }
}

static int reach_server(const struct server_address *server, struct error *err)
{
    const struct timeval patience = {PATIENCE_S, 0};
    const int on = 1;
    int fd = socket(server->socket_address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        // Who has written twice before it reads would wait for the first's delayed acknowledgement.
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    }
    if (fd >= 0 &&
        connect(fd, (const void *)&server->socket_address, server->socket_address_bytes) == 0)
        return fd;
    error_set_errno(err, ERROR_FAILED, "cannot connect to %s (is a server running there?)",
                    server->text);
    if (fd >= 0)
        close(fd);
    return -1;
}

static void serve(struct tls_tunnel *tunnel, int client)
{
    struct error err = {0};
    int server = reach_server(tunnel->server, &err);
    SSL *tls = server >= 0 ? tls_connection_make(tunnel->context, tunnel->server) : NULL;
    unsigned records;
    if (tls && SSL_set_fd(tls, server) == 1) {
        tls_count_records(tls, &records);
        SSL_clear_mode(tls, SSL_MODE_AUTO_RETRY); // a ticket is no reason to wait for data
        ERR_clear_error();
        const bool done = SSL_do_handshake(tls) == 1;
        SSL_set_msg_callback(tls, NULL); // from here on the client has patience of its own
        if (done)
            carry(tunnel, client, tls, &err);
        else if (records > TLS_RECORDS_IN_VAIN)
            error_set(&err, ERROR_INPUT, "%s: no TLS with it: %s", tunnel->server->text,
                      tls_in_vain);
        else
            tls_refuse(tls, tunnel->server, &err);
        SSL_shutdown(tls);
    }
    if (err.kind)
        keep_error(tunnel, &err);
    SSL_free(tls);
    if (server >= 0)
        close(server);
}

static void *tunnel_main(void *argument)
{
    struct tls_tunnel *tunnel = argument;
    struct pollfd ready[] = {{.fd = tunnel->wake, .events = POLLIN},
                             {.fd = tunnel->listener, .events = POLLIN}};
    sigset_t all;
    sigfillset(&all); // also SIGPIPE, of a server that has gone
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    while (poll(ready, 2, -1) > 0 && !ready[0].revents) {
        int client = accept4(tunnel->listener, NULL, NULL, SOCK_CLOEXEC);
        if (client < 0)
            continue;
        serve(tunnel, client);
        close(client);
    }
    return NULL;
}

static int listen_in_folder(struct tls_tunnel *tunnel, struct error *err)
{
    char place[sizeof tunnel->folder.path + 20];
    int status = passing_folder_make(&tunnel->folder, "tls", err);
    if (status < 0)
        return status;
    snprintf(place, sizeof place, "unix:%s/server", tunnel->folder.path);
    status = server_address_parse(place, &tunnel->address, err);
    if (status == 0)
        status = server_address_resolve(&tunnel->address, err);
    if (status < 0)
        return status;
    memcpy(tunnel->address.text, tunnel->server->text, sizeof tunnel->address.text);
    tunnel->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (tunnel->listener < 0 ||
        bind(tunnel->listener, (const void *)&tunnel->address.socket_address,
             tunnel->address.socket_address_bytes) < 0 ||
        listen(tunnel->listener, 8) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot listen on %s", place);
    return 0;
}

int tls_tunnel_open(const struct tls_settings *settings, const struct server_address *server,
                    const char *alpn, struct tls_tunnel **opened, struct error *err)
{
    struct tls_tunnel *tunnel = *opened = calloc(1, sizeof *tunnel);
    if (!tunnel)
        return error_set(err, ERROR_FAILED, "out of memory for TLS");
    tunnel->server = server;
    tunnel->listener = -1;
    tunnel->wake = eventfd(0, EFD_CLOEXEC);
    int status = tls_context_make(settings, server, alpn, &tunnel->context, err);
    if (status == 0)
        status = listen_in_folder(tunnel, err);
    if (status == 0 && pthread_create(&tunnel->thread, NULL, tunnel_main, tunnel) != 0)
        status = error_set(err, ERROR_FAILED, "no thread can be started");
    tunnel->has_thread = status == 0;
    if (status < 0) {
        status = tls_tunnel_close(tunnel, status, err);
        *opened = NULL;
    }
    return status;
}

const struct server_address *tls_tunnel_address(const struct tls_tunnel *tunnel)
{
    return &tunnel->address;
}

int tls_tunnel_close(struct tls_tunnel *tunnel, int status, struct error *err)
{
    if (!tunnel)
        return status;
    if (tunnel->has_thread) {
        eventfd_write(tunnel->wake, 1);
        pthread_join(tunnel->thread, NULL);
    }
    if (tunnel->err.kind) {
        *err = tunnel->err;
        status = -(int)err->kind;
    }
    if (tunnel->listener >= 0)
        close(tunnel->listener);
    if (tunnel->wake >= 0)
        close(tunnel->wake);
    passing_folder_end(&tunnel->folder);
    SSL_CTX_free(tunnel->context);
    free(tunnel);
    return status;
}
