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

// Whether the folder that the group is to be made in hands out cores already: "on", "off".
// EOPNOTSUPP: it has no cpuset controller.
int keeper_cpuset_read(const char *group, char *old, size_t old_bytes);

// Makes the group. text: its cores, and how: "0-1", "0-1 exclusive". EBUSY: it cannot have them for
// itself (another partition has them, or nobody else would have any). On failure nothing is left.
int keeper_cpuset_make(const char *group, const char *text, const char *old);

// Moves what is still in it to where it came from, waiting up to 3 s for what is dying, removes it,
// and hands out no cores any more where that was so.
int keeper_cpuset_remove(const char *group, const char *old);

#endif
