// SPDX-License-Identifier: MIT
//
// The table of an experiment file's keys itself, for those that read it to say what keys there are.
#ifndef EXPERIMENTS_SPEC_EXPERIMENT_TABLE_H
#define EXPERIMENTS_SPEC_EXPERIMENT_TABLE_H

#include <cyaml/cyaml.h>
#include <stdbool.h>

extern const cyaml_schema_value_t experiment_table; // of the whole document

// Whether the mapping at a path of keys ("hosts", "tuning/server/0/sysctl") has the user's own
// names for keys. The table describes it as a list of {name, value}.
bool experiment_table_is_named(const char *path);

#endif
