// SPDX-License-Identifier: MIT
//
// What claim_port of tests/ports.sh is for test scripts: a port for a server that cannot be given
// port 0. It is this process's as long as it lives; both use the same claims.
#ifndef TESTS_PORTS_H
#define TESTS_PORTS_H

#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PORT_TEXT_BYTES = 6 };

static inline bool port_is_free(uint16_t port)
{
    const struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool bound = fd >= 0 && bind(fd, (const void *)&any, sizeof any) == 0;
    if (fd >= 0)
        close(fd);
    return bound;
}

// Also as text, for a server's arguments. Without a free one the process ends.
static inline uint16_t claim_port(char text[PORT_TEXT_BYTES])
{
    const char *folder = getenv("TMPDIR");
    char claims[400], path[420];
    snprintf(claims, sizeof claims, "%.350s/taillight-ports-%u", folder ? folder : "/tmp",
             (unsigned)getuid());
    mkdir(claims, 0777);
    for (unsigned attempt = 0; attempt < 200; attempt++) {
        unsigned port = 20000 + ((unsigned)getpid() * 7919 + attempt * 61) % 12000;
        snprintf(path, sizeof path, "%s/%u", claims, port);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && port_is_free((uint16_t)port)) {
            snprintf(text, PORT_TEXT_BYTES, "%u", port);
            return (uint16_t)port; // the claim ends with the process
        }
        if (fd >= 0)
            close(fd);
    }
    fprintf(stderr, "no free port found\n");
    exit(1);
}

#endif
