// SPDX-License-Identifier: MIT
#include "profiler/host/host_facts.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool host_read_line(const char *path, char *out, size_t out_bytes)
{
    out[0] = '\0';
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool got = fgets(out, (int)out_bytes, file) != NULL;
    fclose(file);
    out[strcspn(out, "\n")] = '\0';
    return got;
}

bool host_read_field(const char *path, const char *key, char *out, size_t out_bytes)
{
    char *line = NULL;
    size_t line_bytes = 0, key_bytes = strlen(key);
    bool found = false;
    out[0] = '\0';
    FILE *file = fopen(path, "re");
    while (file && !found && getline(&line, &line_bytes, file) > 0) {
        const char *after = line + key_bytes;
        if (strncmp(line, key, key_bytes) != 0 || !strchr("\t :=", *after))
            continue;
        snprintf(out, out_bytes, "%s", after + strspn(after, "\t :=\""));
        out[strcspn(out, "\"\n")] = '\0';
        found = true;
    }
    free(line);
    if (file)
        fclose(file);
    return found;
}

bool host_has_word(const char *list, const char *word)
{
    size_t bytes = strlen(word);
    for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
        if ((at == list || at[-1] == ' ') && (at[bytes] == ' ' || at[bytes] == '\0'))
            return true;
    return false;
}

bool host_find_program(const char *name, char *out, size_t out_bytes)
{
    // Servers are often in folders that are only in root's PATH.
    char places[4096];
    const char *path = getenv("PATH");
    snprintf(places, sizeof places, "%s:/usr/local/sbin:/usr/sbin:/sbin", path ? path : "");
    char *rest = places;
    for (char *place; (place = strsep(&rest, ":"));) {
        snprintf(out, out_bytes, "%s/%s", place, name);
        if (*place && access(out, X_OK) == 0)
            return true;
    }
    return false;
}

// --- privileges ----------------------------------------------------------------------------------

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
