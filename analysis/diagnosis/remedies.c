// SPDX-License-Identifier: MIT
#include "analysis/diagnosis/remedies.h"

#include <stddef.h>
#include <string.h>

static const struct remedy remedies[] = {
#define REMEDY(category, expected, happened, helps) {category, expected, happened, helps},
#include "analysis/diagnosis/remedies.tbl.h"
};

const struct remedy *remedy_of(const char *category)
{
    for (size_t i = 0; i < sizeof remedies / sizeof *remedies; i++)
        if (strcmp(remedies[i].category, category) == 0)
            return &remedies[i];
    return NULL;
}
