// SPDX-License-Identifier: MIT
#include "profiler/privilege.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t effective_capabilities(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    if (!file)
        return 0;
    char line[256];
    uint64_t bits = 0;
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "CapEff:", 7) == 0)
            bits = strtoull(line + 7, NULL, 16);
    fclose(file);
    return bits;
}

bool privilege_held(enum privilege privilege)
{
    uint64_t bits = effective_capabilities();
    uint64_t enough = UINT64_C(1) << privilege;
    if (privilege == PRIVILEGE_BPF || privilege == PRIVILEGE_PERFMON)
        enough |= UINT64_C(1) << PRIVILEGE_SYS_ADMIN;
    return (bits & enough) != 0;
}

char *privilege_lacking_for_bpf(char *out, size_t out_bytes)
{
    bool bpf = privilege_held(PRIVILEGE_BPF), perfmon = privilege_held(PRIVILEGE_PERFMON);
    snprintf(out, out_bytes, "%s%s%s", bpf ? "" : "CAP_BPF", bpf || perfmon ? "" : " and ",
             perfmon ? "" : "CAP_PERFMON");
    return out;
}
