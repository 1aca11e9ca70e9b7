// SPDX-License-Identifier: MIT
//
// Any bytes as a file of categories: taken or refused with its line, and never a crash.
#include <stdint.h>

#include "analysis/decomposition/categories.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct categories categories = {0};
    struct error err = {0};
    if (categories_add(&categories, (const char *)data, bytes, "fuzz", &err) == 0) {
        categories_of_function(&categories, "__tcp_sendmsg.isra.0", bytes % 2);
        categories_of_context(&categories, SPAN_TASK, "nginx");
    }
    categories_free(&categories);
    return 0;
}
