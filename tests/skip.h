// SPDX-License-Identifier: MIT
//
// A case that cannot be tried here, and why: `make check` tells both. Header-only.
#ifndef TESTS_SKIP_H
#define TESTS_SKIP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define skip_case(...)                                                                             \
    do {                                                                                           \
        print_message(__VA_ARGS__);                                                                \
        print_message("\n");                                                                       \
        skip();                                                                                    \
    } while (0)

#endif
