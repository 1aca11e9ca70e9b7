// SPDX-License-Identifier: MIT
//
// Whose stamps a load asks for, as `load --stamps` and an experiment's `stamps` name them.
#ifndef LOADGEN_CLIENT_STAMP_MODE_H
#define LOADGEN_CLIENT_STAMP_MODE_H

#include <stdint.h>

#include "base/error.h"

enum stamp_mode {
    // the NIC's where it stamps every packet, else the kernel's, else the program's own
    STAMP_MODE_AUTO,
    STAMP_MODE_SOFTWARE,
    STAMP_MODE_USER,
    STAMP_MODE_HARDWARE,
};

// What the words are, for people.
#define STAMP_MODE_WORDS "auto|hw|sw|sw:1/N|user"

// *every: of the kernel's TX stamps one send call in so many has one; 0: each. ERROR_INPUT, with a
// text that does not say where the words stood.
int stamp_mode_parse(const char *text, enum stamp_mode *mode, uint32_t *every, struct error *err);

#endif
