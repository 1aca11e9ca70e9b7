// SPDX-License-Identifier: MIT
#include "loadgen/client/stamp_mode.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { STAMPS_EVERY_MAX = 1000000 };

static int parse_every(const char *text, uint32_t *every, struct error *err)
{
    char *end;
    errno = 0;
    const unsigned long number = strtoul(text, &end, 10);
    if (errno || !isdigit((unsigned char)*text) || *end || number < 2 || number > STAMPS_EVERY_MAX)
        return error_set(err, ERROR_INPUT,
                         "sw:1/N: \"%s\" is no number of send calls from 2 to %d of which one is "
                         "stamped",
                         text, STAMPS_EVERY_MAX);
    *every = (uint32_t)number;
    return 0;
}

int stamp_mode_parse(const char *text, enum stamp_mode *mode, uint32_t *every, struct error *err)
{
    static const char *const names[] = {[STAMP_MODE_AUTO] = "auto",
                                        [STAMP_MODE_SOFTWARE] = "sw",
                                        [STAMP_MODE_USER] = "user",
                                        [STAMP_MODE_HARDWARE] = "hw"};
    static const char thinned[] = "sw:1/";
    *every = 0;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i]) == 0) {
            *mode = (enum stamp_mode)i;
            return 0;
        }
    *mode = STAMP_MODE_SOFTWARE;
    if (strncmp(text, thinned, sizeof thinned - 1) == 0)
        return parse_every(text + sizeof thinned - 1, every, err);
    return error_set(err, ERROR_INPUT, "\"%s\" is not auto, hw, sw, sw:1/N or user", text);
}
