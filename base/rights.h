// SPDX-License-Identifier: MIT
//
// Whom a program that was started as root works for, and how a process gives up what it may do
// beyond that person: before it reads what others wrote, so that a parser that they found a hole in
// is theirs only as far as they already were (docs/security.md).
#ifndef BASE_RIGHTS_H
#define BASE_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

struct person {
    uid_t user;
    gid_t group;
    char name[64]; // of the user; its number where it has no name
};

// Who started this process by sudo (SUDO_UID, SUDO_GID). False: it is not root, or root itself did.
bool rights_invoker(struct person *out);

// Becomes that person, with his groups, and gives up all capabilities, for good: no program that is
// started from now on gains any (PR_SET_NO_NEW_PRIVS). Only for a process of one thread that is
// root; of root itself it takes the capabilities. ERROR_FAILED where anything is left: then the
// process must read nothing. A death signal (PR_SET_PDEATHSIG) is to be asked for again.
int rights_give_up(const struct person *person, struct error *err);

// Stays who it is, and gives up all capabilities in the same way: those that root has, or those
// that somebody else was given (setpriv, a systemd unit's AmbientCapabilities). ERROR_FAILED where
// any is left.
int rights_give_up_capabilities(struct error *err);

// Whether that person may do `mode` (access(2)) with a path; false also when nobody can tell. Only
// for root.
bool rights_reach(const struct person *person, const char *path, int mode);

// For a command that root started on files of somebody else's: becomes the owner of these paths,
// and says so on stderr unless it is quiet. Stays as it is where it is not root, or they are
// root's; where they are of several users, nobody of whom could read the others', it says that. A
// path that cannot be looked at is left to whoever opens it.
int rights_become_owner(const char *const *paths, size_t count, bool quiet, struct error *err);

#endif
