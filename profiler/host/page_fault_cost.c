// SPDX-License-Identifier: MIT
#include "profiler/host/page_fault_cost.h"

#include <stddef.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "base/quantile.h"

enum { TOUCHES = 256, PAGE_BYTES = 4096 };

int64_t page_fault_cost_ns(void)
{
    const size_t bytes = (size_t)TOUCHES * PAGE_BYTES;
    double took_ns[TOUCHES];
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 0;
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < TOUCHES; i++) {
        int64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC_RAW);
        *(volatile char *)(memory + i * PAGE_BYTES) = 1;
        took_ns[i] = (double)(clock_now_ns(CLOCK_MONOTONIC_RAW) - begin_ns);
    }
    munmap(memory, bytes);
    quantile_sort(took_ns, TOUCHES);
    return (int64_t)quantile_sorted(took_ns, TOUCHES, 0.5);
}
