// SPDX-License-Identifier: MIT
//
// The preset workloads are part of the program, so they are found wherever it is installed.
#include <string.h>

#include "workloads/workload.h"

// clang-format off
#define PRESET(symbol, file)                                                                       \
    __asm__(".pushsection .rodata\n"                                                               \
            ".local " #symbol "_begin, " #symbol "_end\n" #symbol                                  \
            "_begin: .incbin \"workloads/" file "\"\n" #symbol "_end: .byte 0\n"                   \
            ".popsection\n");                                                                      \
    extern const char symbol##_begin[], symbol##_end[];
// clang-format on

PRESET(preset_etc, "etc.yaml")
PRESET(preset_usr, "usr.yaml")
PRESET(preset_var, "var.yaml")

const char *workload_preset(const char *name, size_t *bytes)
{
    static const struct {
        const char *name, *begin, *end;
    } presets[] = {{"etc", preset_etc_begin, preset_etc_end},
                   {"usr", preset_usr_begin, preset_usr_end},
                   {"var", preset_var_begin, preset_var_end}};
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        if (strcmp(name, presets[i].name) != 0)
            continue;
        *bytes = (size_t)(presets[i].end - presets[i].begin);
        return presets[i].begin;
    }
    return NULL;
}

const char *workload_preset_names(void)
{
    return "etc, usr, var";
}
