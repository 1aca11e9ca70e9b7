// SPDX-License-Identifier: MIT
//
// Calls that fail, and descriptors that are duplicated, closed, inherited and used again.
// Runs beside others: what it compares is what calls return, not when.
#include "tests/shim/semantics.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <sys/wait.h>

static void sequence_errors(void)
{
    char a[16];
    struct iovec none = {NULL, 8};
    struct msghdr message = {.msg_iov = &none, .msg_iovlen = 1};
    int missing = 9999, beyond = 2000000;
    void *volatile nowhere = NULL; // volatile: the compiler shall not see what is wrong
    volatile int negative = -1;
    SEE(read(-1, a, 1));
    SEE(read(missing, a, 1));
    SEE(read(beyond, a, 1));
    SEE(recv(missing, a, 1, 0));
    SEE(recvmsg(missing, &message, 0));
    SEE(write(-1, a, 1));
    SEE(sendmsg(-1, &message, 0));
    SEE(close(-1));
    SEE(close(missing));
    SEE(close(beyond));
    SEE(dup(-1));
    SEE(dup2(-1, 5));
    SEE(dup2(missing, beyond));
    SEE(accept(-1, NULL, NULL));
    SEE(fcntl(-1, F_DUPFD, 0));
    SEE(epoll_wait(-1, nowhere, 1, 0));
    SEE(poll(NULL, 0, 0));
    SEE(select(-1, NULL, NULL, NULL, NULL));
    struct pair p = connected();
    SEE(accept(p.server, NULL, NULL));
    SEE(send(p.client, "xyz", 3, 0));
    SEE(recv(p.server, nowhere, 2, 0));
    SEE(readv(p.server, &none, 1));
    SEE(recvmsg(p.server, &message, 0));
    SEE(recvmsg(p.server, NULL, 0));
    SEE(write(p.server, nowhere, 2));
    struct iovec parts[1025];
    for (int i = 0; i < 1025; i++)
        parts[i] = (struct iovec){a, 1};
    SEE(readv(p.server, parts, 1025));
    SEE(writev(p.server, parts, 1025));
    SEE(readv(p.server, parts, 1024));
    SEE(writev(p.server, parts, 1024));
    SEE(readv(p.server, parts, negative));
    SEE(recv(p.server, a, 1, MSG_OOB));
    SEE(dup2(p.server, -1));
    SEE(dup3(p.server, p.server, 0));
    SEE(dup2(p.server, p.server));
    SEE(dup2(missing, p.server)); // must leave it as it was
    SEE(send(p.client, "still", 5, 0));
    SEE(recv(p.server, a, 5, 0));
    account(&p, 8, 1024);
    arrive(p.client, 1024); // unread: so the end is a reset
    SEE(close(p.client));
    happen(p.server, 0);
    SEE(send(p.server, a, 1, MSG_NOSIGNAL));
    SEE(send(p.server, a, 1, MSG_NOSIGNAL));
    SEE(close(p.server));
    SEE(close(p.server));
    SEE(recv(p.server, a, 1, 0));
}

static void sequence_duplicates(void)
{
    struct pair p = connected(), q = connected();
    char a[16];
    int one = (int)SEE(dup(p.server));
    int two = (int)SEE(fcntl(p.server, F_DUPFD, 100));
    int three = (int)SEE(fcntl(p.server, F_DUPFD_CLOEXEC, 100));
    SEE(dup3(p.server, 120, O_CLOEXEC));
    SEE(fcntl(120, F_GETFD));
    give(p.client, "abcdefgh");
    SEE(recv(one, a, 1, 0));
    SEE(close(p.server));
    SEE(read(two, a, 2));
    SEE(recv(p.server, a, 1, 0)); // closed
    SEE(recv(three, a, 1, 0));
    SEE(dup2(120, q.server)); // closes q's server side
    SEE(recv(q.client, a, 1, 0));
    SEE(read(q.server, a, 1));
    see_text(a, 1);
    SEE(send(q.server, "123", 3, 0));
    SEE(close_range((unsigned)two, (unsigned)two, 0));
    SEE(close_range((unsigned)three, 120, (int)CLOSE_RANGE_CLOEXEC));
    SEE(recv(three, a, 1, 0));
    SEE(fcntl(p.client, F_GETFL));
    SEE(fcntl(p.client, F_SETFL, O_NONBLOCK));
    account(&p, 8, 3);
    SEE(close_range((unsigned)three, 200, 0));
    SEE(recv(one, a, 16, 0));
    SEE(close(one));
    SEE(close(q.server));
    arrive(p.client, 3);
    SEE(recv(p.client, a, 16, 0));
    happen(p.client, POLLRDHUP);
    SEE(recv(p.client, a, 16, 0));
    SEE(close(p.client));
    SEE(close(q.client));
    // The descriptor's next user is nobody's connection.
    struct pair r = connected();
    int number = r.server;
    SEE(close(r.server) == 0 && open("/dev/zero", O_RDONLY) == number);
    SEE(read(number, a, 5));
    SEE(close(number));
    SEE(close(r.client));
}

static void sequence_processes(void)
{
    struct pair p = connected();
    char a[16];
    int status;
    give(p.client, "abcdef");
    SEE(recv(p.server, a, 2, 0));
    fflush(stdout);
    pid_t child = vfork();
    if (child == 0) { // what it closes is its own
        close(p.server);
        dup2(p.client, p.server);
        close(p.client);
        closefrom(3);
        execlp("true", "true", (char *)NULL);
        _exit(1);
    }
    SEE(waitpid(child, &status, 0) == child && status == 0);
    SEE(recv(p.server, a, 1, 0));
    fflush(stdout);
    child = fork();
    if (child == 0) {
        SEE(recv(p.server, a, 1, 0));
        SEE(send(p.server, "from the child", 14, 0));
        SEE(close(p.server));
        fflush(stdout);
        _exit(7);
    }
    SEE(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
    SEE(recv(p.client, a, 16, 0));
    see_text(a, 14);
    SEE(recv(p.server, a, 2, 0));
    see_text(a, 2);
    char *argv[] = {"true", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addclose(&actions, p.server);
    SEE(posix_spawnp(&child, "true", &actions, NULL, argv, environ));
    posix_spawn_file_actions_destroy(&actions);
    SEE(waitpid(child, &status, 0) == child && status == 0);
    pair_close(&p); // not accounted for: the child's byte is in the child's own book
}

static void sequence(void)
{
    sequence_errors();
    sequence_duplicates();
    sequence_processes();
}

int main(int argc, char **argv)
{
    return semantics_main(argc, argv,
                          &(struct semantics){sequence, .connections = 2, .doubtful = 1});
}
