// SPDX-License-Identifier: MIT
#include "loadgen/engine/thread_cores.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"

const char thread_cores_topology[] = "/sys/devices/system/cpu";

// How many of the allowed cores before it are hardware threads of the same physical core.
static unsigned rank_of(unsigned core, const cpu_set_t *allowed, const char *topology)
{
    char path[300], line[1000] = "";
    cpu_set_t siblings;
    struct error ignored;
    unsigned rank = 0;
    snprintf(path, sizeof path, "%s/cpu%u/topology/thread_siblings_list", topology, core);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    bool known = fgets(line, sizeof line, file);
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    if (!known || units_parse_cores(line, &siblings, &ignored) < 0)
        return 0;
    for (unsigned before = 0; before < core; before++)
        rank += CPU_ISSET(before, &siblings) && CPU_ISSET(before, allowed);
    return rank;
}

void thread_cores_choose(const cpu_set_t *allowed, unsigned wanted, const char *topology,
                         cpu_set_t *chosen)
{
    unsigned ranks[CPU_SETSIZE], count = 0, highest = 0;
    for (unsigned core = 0; core < CPU_SETSIZE; core++) {
        ranks[core] = CPU_ISSET(core, allowed) ? rank_of(core, allowed, topology) : 0;
        highest = ranks[core] > highest ? ranks[core] : highest;
    }
    CPU_ZERO(chosen);
    for (unsigned rank = 0; rank <= highest; rank++)
        for (unsigned core = 0; core < CPU_SETSIZE && count < wanted; core++)
            if (CPU_ISSET(core, allowed) && ranks[core] == rank) {
                CPU_SET(core, chosen);
                count++;
            }
}
