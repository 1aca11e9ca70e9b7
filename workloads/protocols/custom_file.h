// SPDX-License-Identifier: MIT
//
// The keys of `custom:` in a workload's YAML.
#ifndef WORKLOADS_PROTOCOLS_CUSTOM_FILE_H
#define WORKLOADS_PROTOCOLS_CUSTOM_FILE_H

#include "workloads/protocols/custom.h"

struct binding;
struct fields;
struct node;

extern const struct fields custom_fields;

// Reads them; the caller frees *out (custom_free), after an error, too. ERROR_INPUT has its place.
int custom_read(const struct binding *binding, const struct node *node, struct custom **out);

#endif
