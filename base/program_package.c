// SPDX-License-Identifier: MIT
#include "base/program_package.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *program, *package;
} packages[] = {
    {"ip", "iproute2"},        {"memcached", "memcached"},       {"nginx", "nginx-light"},
    {"perf", "linux-perf"},    {"redis-server", "redis-server"}, {"rsvg-convert", "librsvg2-bin"},
    {"ssh", "openssh-client"}, {"systemctl", "systemd"},         {"tar", "tar"},
};

const char *program_package(const char *program)
{
    const char *slash = strrchr(program, '/');
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++)
        if (strcmp(packages[i].program, slash ? slash + 1 : program) == 0)
            return packages[i].package;
    return NULL;
}
