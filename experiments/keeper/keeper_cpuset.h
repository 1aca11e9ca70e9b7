// SPDX-License-Identifier: MIT
//
// A cpuset: a control group (cgroup v2) whose processes run on some cores only, and, where it is
// exclusive, which leaves these cores to nobody else (a partition root; Linux,
// Documentation/admin-guide/cgroup-v2.rst, "Cpuset"). Interrupts and the kernel's own threads of a
// core are no part of it. Internal to the keeper. All return 0 or an errno.
#ifndef EXPERIMENTS_KEEPER_KEEPER_CPUSET_H
#define EXPERIMENTS_KEEPER_KEEPER_CPUSET_H

#include <stdbool.h>
#include <stddef.h>

// Whether the folder in which the group is to be made has the cpuset controller switched on for its
// groups: "on", "off". EOPNOTSUPP: it has no such controller.
int keeper_cpuset_read(const char *group, char *old, size_t old_bytes);

// Makes the group. text: its cores, and how: "0-1", "0-1 exclusive". EBUSY: it cannot have them
// alone (another partition has them, or no core would be left for anybody else). On failure nothing
// is left.
int keeper_cpuset_make(const char *group, const char *text, const char *old);

// Moves the processes that are still in it to where they came from, waiting up to 3 s for dying
// ones, removes it, and switches the controller off again if it was off before.
int keeper_cpuset_remove(const char *group, const char *old);

#endif
