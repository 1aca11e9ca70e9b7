// SPDX-License-Identifier: MIT
#include "base/rights.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_GROUPS = 256 };

// --- who it is -----------------------------------------------------------------------------------

static bool read_number(const char *text, unsigned *out)
{
    char *end;
    if (!text || *text < '0' || *text > '9')
        return false;
    errno = 0;
    unsigned long number = strtoul(text, &end, 10);
    if (*end || errno || number >= (unsigned)-1) // -1 means "leave it" to setresuid
        return false;
    *out = (unsigned)number;
    return true;
}

static void name_person(struct person *person)
{
    const struct passwd *known = getpwuid(person->user);
    snprintf(person->name, sizeof person->name, "user %u", person->user);
    if (known)
        snprintf(person->name, sizeof person->name, "%s", known->pw_name);
}

bool rights_invoker(struct person *out)
{
    unsigned user, group;
    if (geteuid() != 0 || !read_number(getenv("SUDO_UID"), &user) ||
        !read_number(getenv("SUDO_GID"), &group) || user == 0)
        return false;
    *out = (struct person){.user = user, .group = group};
    name_person(out);
    return true;
}

// --- giving up -----------------------------------------------------------------------------------

static int take_groups(const struct person *person)
{
    gid_t groups[MOST_GROUPS] = {person->group};
    int count = 1;
    const struct passwd *known = getpwuid(person->user);
    if (known) {
        count = MOST_GROUPS;
        // Who is in more groups than that loses some: less, never more, is his.
        if (getgrouplist(known->pw_name, person->group, groups, &count) < 0)
            count = MOST_GROUPS;
    }
    return setgroups((size_t)count, groups);
}

static int drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{.effective = 0}};
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return (int)syscall(SYS_capset, &header, none);
}

// Asks the kernel instead of believing the calls, as does what follows.
static bool has_no_capability(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct have[_LINUX_CAPABILITY_U32S_3];
    unsigned left = 0;
    if (syscall(SYS_capget, &header, have) < 0)
        return false;
    for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        left |= have[i].permitted | have[i].effective | have[i].inheritable;
    return left == 0;
}

static bool has_nothing_left(const struct person *person)
{
    uid_t real, effective, saved;
    gid_t real_group, effective_group, saved_group;
    if (getresuid(&real, &effective, &saved) < 0 ||
        getresgid(&real_group, &effective_group, &saved_group) < 0)
        return false;
    bool is_person = real == person->user && effective == person->user && saved == person->user &&
                     real_group == person->group && effective_group == person->group &&
                     saved_group == person->group;
    return is_person && has_no_capability() && (person->user == 0 || setuid(0) < 0);
}

int rights_give_up_capabilities(struct error *err)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || drop_capabilities() < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot give up capabilities");
    return has_no_capability()
               ? 0
               : error_set(err, ERROR_FAILED,
                           "capabilities are left after giving them up; nothing is read with them");
}

int rights_give_up(const struct person *person, struct error *err)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        (person->user != 0 &&
         (take_groups(person) < 0 || setresgid(person->group, person->group, person->group) < 0 ||
          setresuid(person->user, person->user, person->user) < 0)) ||
        drop_capabilities() < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot give up root's rights and become %s",
                               person->name);
    return has_nothing_left(person)
               ? 0
               : error_set(
                     err, ERROR_FAILED,
                     "root's rights are not gone after becoming %s; nothing is read with them",
                     person->name);
}

bool rights_reach(const struct person *person, const char *path, int mode)
{
    int status;
    struct error ignored;
    pid_t child = fork();
    if (child == 0)
        _exit(rights_give_up(person, &ignored) < 0 || access(path, mode) < 0);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

// --- of a command --------------------------------------------------------------------------------

int rights_become_owner(const char *const *paths, size_t count, bool quiet, struct error *err)
{
    struct person owner = {.user = 0};
    size_t known = 0;
    if (geteuid() != 0)
        return 0;
    for (size_t i = 0; i < count; i++) {
        struct stat status;
        if (stat(paths[i], &status) < 0)
            continue;
        if (known++ == 0) {
            owner = (struct person){.user = status.st_uid, .group = status.st_gid};
        } else if (owner.user != status.st_uid) {
            fprintf(stderr,
                    "warning: %s and %s are of different users, so both are read as root; copy one "
                    "to the other's owner to have them read without its rights\n",
                    paths[0], paths[i]);
            return 0;
        }
    }
    if (owner.user == 0)
        return 0;
    name_person(&owner);
    int result = rights_give_up(&owner, err);
    if (result == 0 && !quiet)
        fprintf(stderr, "reading %s as %s, whose it is\n", paths[0], owner.name);
    return result;
}
