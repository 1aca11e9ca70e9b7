// SPDX-License-Identifier: MIT
//
// Any text as a keeper's journal: changes that may be undone, or a refusal that names the line.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "experiments/keeper/keeper_journal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char boot_id[40], network[40];
    struct keeper_changes changes;
    struct error err;
    keeper_journal_parse((const char *)data, size, boot_id, network, &changes, &err);
    for (size_t i = 0; i < changes.count; i++) {
        if (changes.items[i].is_directory && !strstr(changes.items[i].path, "/taillight-"))
            __builtin_trap();
        keeper_change_forget(&changes.items[i]);
    }
    array_free(&changes);
    return 0;
}
