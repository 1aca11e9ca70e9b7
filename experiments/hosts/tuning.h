// SPDX-License-Identifier: MIT
//
// Applies what an experiment tunes, through the hosts' keepers, which note every old value first
// and put it back however the run ends. That a host lacks a setting, or may not change it, is
// reported and not an error: which settings held is part of the result.
#ifndef EXPERIMENTS_HOSTS_TUNING_H
#define EXPERIMENTS_HOSTS_TUNING_H

#include <jansson.h>

#include "experiments/hosts/host.h"

// Applies all settings, in their order, and appends an object each to `report` (docs/formats.md,
// `tuned`): host, setting, path, value, old, applied, reason. `root` stands before /proc, /sys and
// /dev: "" but in tests. Fails when a keeper is gone, or a value is not one that the setting takes.
int tuning_apply(struct host_array *hosts, const struct experiment *experiment, const char *root,
                 struct command_log *log, json_t *report, struct error *err);

// The key of a step: "sysctl", "irq_affinity".
const char *tuning_kind_name(enum tuning_kind kind);

#endif
