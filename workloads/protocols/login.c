// SPDX-License-Identifier: MIT
#include "workloads/protocols/login.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/protocols/protocol.h"

static int keep_password(struct login *login, const char *text, size_t bytes, const char *source,
                         struct error *err)
{
    if (bytes == 0)
        return error_set(err, ERROR_INPUT, "%s: its first line is the password, and is empty",
                         source);
    if (bytes >= sizeof login->password)
        return error_set(err, ERROR_INPUT, "%s: a password has %zu bytes at most", source,
                         sizeof login->password - 1);
    memcpy(login->password, text, bytes);
    login->password[bytes] = '\0';
    return 0;
}

int login_take_password(struct login *login, const char *file, struct error *err)
{
    char line[LOGIN_PASSWORD_BYTES + 2] = "";
    const char *given = file ? NULL : getenv(LOGIN_PASSWORD_VARIABLE);
    if (given)
        return keep_password(login, given, strlen(given), LOGIN_PASSWORD_VARIABLE, err);
    if (!file)
        return 0;
    FILE *in = fopen(file, "re");
    if (!in)
        return error_set_errno(err, ERROR_INPUT, "cannot read %s", file);
    bool read = fgets(line, sizeof line, in) != NULL;
    int failure = !read && ferror(in) ? errno : 0;
    fclose(in);
    errno = failure;
    if (failure)
        return error_set_errno(err, ERROR_INPUT, "cannot read %s", file);
    return keep_password(login, line, strcspn(line, "\r\n"), file, err);
}

int login_make_words(const struct login *login, const struct protocol *protocol,
                     struct login_words *words, struct error *err)
{
    *words = (struct login_words){0};
    if (!login->user[0] && !login->password[0] && !login->database)
        return 0;
    if (!protocol->log_in)
        return error_set(err, ERROR_INPUT, "protocol %s knows no login", protocol->name);
    return protocol->log_in(login, words, err);
}
