// SPDX-License-Identifier: MIT
//
// How a process without rights has runs made by one that has them (divided_run.h): what crosses the
// channel between them, and the end that orders.
#ifndef EXPERIMENTS_RUN_RUN_ORDERS_H
#define EXPERIMENTS_RUN_RUN_ORDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/error.h"
#include "experiments/common/run_folder.h"
#include "experiments/plan/experiment.h"

struct experiment_list ARRAY_OF(struct experiment *);

struct run_orders {
    int channel; // SOCK_SEQPACKET
    const struct experiment_list *experiments;
};

// What crosses the channel. Both ends are one program, so its layout is no matter.
struct order {
    bool folder_only;
    uint32_t experiment; // its place in the list
    uint64_t seed;
    char name[100];              // of folder_only: the experiment's or study's
    char wanted[RUN_PATH_BYTES]; // empty: a fresh one
};

struct answer {
    int result;
    struct error err;
    struct run_folder folder;
};

// Have the other process do it, as run_experiment() and run_make_folder() would.
int run_order(struct run_orders *orders, const struct experiment *experiment, const char *wanted,
              struct run_folder *folder, struct error *err);
int run_order_folder(struct run_orders *orders, const char *wanted, const char *name,
                     struct run_folder *folder, struct error *err);

#endif
