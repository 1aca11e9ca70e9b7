// SPDX-License-Identifier: MIT
//
// NGINX, as a server or beside one: a configuration of the run's own, in a folder of the run's, and
// one page, whatever is asked for. It takes nothing from the machine's installation but the program
// and writes nowhere else.
#ifndef EXPERIMENTS_NGINX_H
#define EXPERIMENTS_NGINX_H

#include <stdbool.h>

#include "base/error.h"
#include "experiments/run_folder.h"

struct nginx_plan {
    const char *address;
    uint16_t port;
    uint64_t workers;
    uint64_t page_bytes;
    uint64_t rules; // rewrite rules that each request is tried against, and none of which it meets
    bool as_root;   // its processes are root's
};

// Where it is: on PATH, or where only root's PATH leads.
const char *nginx_program(void);

// Its words, with the folder that nginx_configure filled; NULL at the end.
#define NGINX_COMMAND(folder)                                                                      \
    {                                                                                              \
        nginx_program(), "-e", "stderr", "-p", folder, "-c", "nginx.conf", NULL                    \
    }

// Makes the folder `name` in the run's with nginx.conf and the page.
int nginx_configure(const struct run_folder *folder, const char *name,
                    const struct nginx_plan *plan, struct error *err);

#endif
