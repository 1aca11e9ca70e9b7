// SPDX-License-Identifier: MIT
#include "experiments/common/program_path.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/program_package.h"

int program_path_self(char *path, size_t path_bytes, struct error *err)
{
    ssize_t bytes = readlink("/proc/self/exe", path, path_bytes - 1);
    if (bytes < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot find out where this program is");
    path[bytes] = '\0';
    return 0;
}

int program_path_beside(const char *name, char *path, size_t path_bytes, struct error *err)
{
    char self[PATH_MAX];
    int result = program_path_self(self, sizeof self, err);
    if (result < 0)
        return result;
    *strrchr(self, '/') = '\0';
    const char *const places[] = {"", "/../lib/taillight"};
    for (size_t i = 0; i < 2; i++) {
        int used = snprintf(path, path_bytes, "%s%s/%s", self, places[i], name);
        if (used > 0 && (size_t)used < path_bytes && access(path, R_OK) == 0)
            return 0;
    }
    return error_set(err, ERROR_FAILED,
                     "%s is neither in %s nor in %s/../lib/taillight; build it with `make`", name,
                     self, self);
}

int program_path_shim(char *path, size_t path_bytes, struct error *err)
{
    int result = program_path_beside("libtaillight-shim.so", path, path_bytes, err);
    if (result < 0)
        snprintf(err->text + strlen(err->text), sizeof err->text - strlen(err->text),
                 ", or set `shim: false`");
    return result;
}

static bool is_program(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

bool program_exists(const char *name)
{
    const char *folders = getenv("PATH");
    char path[PATH_MAX];
    if (strchr(name, '/'))
        return is_program(name);
    for (const char *at = folders ? folders : "/bin:/usr/bin"; at; at = strchr(at, ':')) {
        at += *at == ':';
        int used = snprintf(path, sizeof path, "%.*s/%s", (int)strcspn(at, ":"), at, name);
        if (used > 0 && (size_t)used < sizeof path && is_program(path))
            return true;
    }
    return false;
}

int program_needed(const char *name, struct error *err)
{
    const char *package = program_package(name);
    return program_exists(name)
               ? 0
               : error_set(err, ERROR_FAILED, "there is no command `%s`%s%s", name,
                           package ? "; install it: apt-get install " : "", package ? package : "");
}
