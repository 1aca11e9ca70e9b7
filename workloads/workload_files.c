// SPDX-License-Identifier: MIT
#include "workloads/workload_files.h"

enum { TABLES = WORKLOAD_FILES_MAX - 1 };

// All places where a table may be.
static void find_tables(struct workload *workload, struct distribution *found[TABLES])
{
    struct distribution *const all[TABLES] = {&workload->key_size_bytes,
                                              &workload->value_size_bytes, &workload->arrivals,
                                              &workload->service_ns};
    for (size_t i = 0; i < TABLES; i++)
        found[i] = all[i];
}

size_t workload_files(const struct workload *workload, const char *paths[WORKLOAD_FILES_MAX])
{
    struct workload copy = *workload;
    struct distribution *tables[TABLES];
    size_t count = 0;
    find_tables(&copy, tables);
    for (size_t i = 0; i < TABLES; i++)
        if (tables[i]->table)
            paths[count++] = tables[i]->table->path;
    if (workload->recording)
        paths[count++] = workload->recording;
    return count;
}

char *workload_to_yaml_with(const struct workload *workload, const char *const *paths)
{
    struct workload copy = *workload;
    struct distribution *tables[TABLES];
    struct distribution_table renamed[TABLES];
    find_tables(&copy, tables);
    for (size_t i = 0; i < TABLES; i++)
        if (tables[i]->table) {
            renamed[i] = *tables[i]->table;
            renamed[i].path = (char *)(uintptr_t)*paths++;
            tables[i]->table = &renamed[i];
        }
    if (copy.recording)
        copy.recording = (char *)(uintptr_t)*paths;
    return workload_to_yaml(&copy);
}
