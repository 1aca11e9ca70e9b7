// SPDX-License-Identifier: MIT
//
// Bytes received and sent, by every call that moves them.
// Runs beside others: what it compares is what calls return, not when.
#include "tests/shim/semantics.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

extern ssize_t __read_chk(int fd, void *buffer, size_t bytes, size_t room);
extern ssize_t __recv_chk(int fd, void *buffer, size_t bytes, size_t room, int flags);

static void sequence_receive(void)
{
    struct pair p = connected();
    char a[64] = "", b[64] = "";
    give(p.client, "abcdefghijklmnopqrstuvwxyz0123456789");
    SEE(recv(p.server, a, 3, MSG_PEEK));
    SEE(recv(p.server, a, 3, 0));
    see_text(a, 3);
    SEE(read(p.server, a, 2));
    see_text(a, 2);
    SEE(recvfrom(p.server, a, 4, 0, NULL, NULL));
    struct sockaddr_storage from;
    socklen_t from_bytes = sizeof from;
    SEE(recvfrom(p.server, a, 1, 0, (struct sockaddr *)&from, &from_bytes));
    printf("  from %u bytes\n", from_bytes);
    struct iovec parts[2] = {{a, 2}, {b, 3}};
    SEE(readv(p.server, parts, 2));
    see_text(a, 2);
    see_text(b, 3);
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    SEE(recvmsg(p.server, &message, MSG_PEEK));
    SEE(recvmsg(p.server, &message, 0));
    printf("  flags %x\n", message.msg_flags);
    SEE(__read_chk(p.server, a, 1, sizeof a));
    SEE(__recv_chk(p.server, a, 1, sizeof a, 0));
    struct mmsghdr many[2] = {{.msg_hdr = {.msg_iov = parts, .msg_iovlen = 1}},
                              {.msg_hdr = {.msg_iov = parts + 1, .msg_iovlen = 1}}};
    SEE(recvmmsg(p.server, many, 2, 0, NULL));
    printf("  %u %u\n", many[0].msg_len, many[1].msg_len);
    SEE(recv(p.server, NULL, 2, MSG_TRUNC)); // thrown away, but off the stream
    SEE(recv(p.server, a, 0, 0));
    SEE(read(p.server, a, 0));
    SEE(recv(p.server, a, sizeof a, MSG_DONTWAIT));
    see_text(a, 9);
    SEE(recv(p.server, a, 1, MSG_DONTWAIT));
    SEE(recv(p.server, a, 1, MSG_DONTWAIT | MSG_ERRQUEUE));
    SEE(recvmmsg(p.server, many, 2, MSG_DONTWAIT, NULL));
    account(&p, 36, 0);
    SEE(shutdown(p.client, SHUT_WR));
    SEE(recv(p.server, a, 1, 0));
    SEE(readv(p.server, parts, 2));
    pair_close(&p);
}

static void sequence_send(void)
{
    struct pair p = connected();
    char a[64];
    SEE(send(p.server, "abc", 3, 0));
    SEE(write(p.server, "defg", 4));
    SEE(sendto(p.server, "hi", 2, 0, NULL, 0));
    struct iovec parts[2] = {{"jk", 2}, {"lmn", 3}};
    SEE(writev(p.server, parts, 2));
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    SEE(sendmsg(p.server, &message, 0));
    struct mmsghdr many[2] = {{.msg_hdr = {.msg_iov = parts, .msg_iovlen = 1}},
                              {.msg_hdr = {.msg_iov = parts, .msg_iovlen = 2}}};
    SEE(sendmmsg(p.server, many, 2, 0));
    SEE(send(p.server, "", 0, 0));
    SEE(write(p.server, "", 0));
    FILE *file = tmpfile();
    fputs("from a file", file);
    fflush(file);
    off_t offset = 2;
    SEE(sendfile(p.server, fileno(file), &offset, 6));
    printf("  offset %ld\n", (long)offset);
    int tube[2];
    SEE(pipe(tube));
    SEE(write(tube[1], "spliced", 7));
    SEE(splice(tube[0], NULL, p.server, NULL, 7, 0));
    SEE(recv(p.client, a, 26, MSG_WAITALL));
    see_text(a, 26);
    arrive(p.client, 13);
    SEE(recv(p.client, a, sizeof a, MSG_DONTWAIT));
    SEE(send(p.client, "back", 4, 0));
    SEE(splice(p.server, NULL, tube[1], NULL, 4, 0));
    fclose(file);
    close(tube[0]);
    close(tube[1]);
    account(&p, 4, 39);
    pair_close(&p);
}

static void sequence(void)
{
    sequence_receive();
    sequence_send();
}

int main(int argc, char **argv)
{
    return semantics_main(argc, argv, &(struct semantics){sequence, .connections = 2});
}
