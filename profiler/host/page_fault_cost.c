// SPDX-License-Identifier: MIT
#include "profiler/host/page_fault_cost.h"

#include <linux/perf_event.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/quantile.h"

enum { TOUCHES = 256, TOUCHES_AFTER_A_REST = 16, PAGE_BYTES = 4096, REST_NS = 5000000 };

static void touch(char *page)
{
    *(volatile char *)page = 1;
}

static double median(double *values, size_t count)
{
    quantile_sort(values, count);
    return quantile_sorted(values, count, 0.5);
}

static int64_t try_whole(char *memory)
{
    double took_ns[TOUCHES];
    for (size_t i = 0; i < TOUCHES; i++) {
        int64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC_RAW);
        touch(memory + i * PAGE_BYTES);
        took_ns[i] = (double)(clock_now_ns(CLOCK_MONOTONIC_RAW) - begin_ns);
    }
    return (int64_t)median(took_ns, TOUCHES);
}

// The calling thread's page faults in its own code, as the kernel's handler counts them: where and
// when. One page of records follows the one that says how far the kernel has written.
struct fault_records {
    struct perf_event_mmap_page *head; // MAP_FAILED: there are none
    uint64_t seen;                     // bytes of records
};

struct fault_record {
    struct perf_event_header header;
    uint64_t time_ns, address;
};

static void fault_records_open(struct fault_records *records)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attr,
        .config = PERF_COUNT_SW_PAGE_FAULTS,
        .sample_period = 1,
        .sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC_RAW,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    const long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    *records = (struct fault_records){.head = MAP_FAILED};
    if (fd < 0)
        return;
    records->head = mmap(NULL, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
    close((int)fd);
}

static void fault_records_close(struct fault_records *records)
{
    if (records->head != MAP_FAILED)
        munmap(records->head, 2 * PAGE_BYTES);
}

// When the handler of the fault at that address began, of those since the last question; 0: it is
// none of them.
static int64_t handler_began(struct fault_records *records, const char *address)
{
    const char *bytes = (const char *)records->head + PAGE_BYTES;
    const uint64_t written = __atomic_load_n(&records->head->data_head, __ATOMIC_ACQUIRE);
    int64_t began_ns = 0;
    while (written - records->seen >= sizeof(struct perf_event_header)) {
        struct fault_record record;
        char *out = (char *)&record;
        for (size_t i = 0; i < sizeof record; i++)
            out[i] = bytes[(records->seen + i) % PAGE_BYTES];
        if (record.header.type == PERF_RECORD_SAMPLE && record.address == (uintptr_t)address)
            began_ns = (int64_t)record.time_ns;
        records->seen += record.header.size;
    }
    __atomic_store_n(&records->head->data_tail, written, __ATOMIC_RELEASE);
    return began_ns;
}

static int64_t try_before(char *memory)
{
    const struct timespec rest = {0, REST_NS};
    double before_ns[TOUCHES_AFTER_A_REST];
    size_t count = 0;
    struct fault_records records;
    fault_records_open(&records);
    for (size_t i = 0; i < TOUCHES_AFTER_A_REST && records.head != MAP_FAILED; i++) {
        char *page = memory + i * PAGE_BYTES;
        nanosleep(&rest, NULL);
        int64_t begin_ns = clock_now_ns(CLOCK_MONOTONIC_RAW);
        touch(page);
        int64_t began_ns = handler_began(&records, page);
        if (began_ns > begin_ns)
            before_ns[count++] = (double)(began_ns - begin_ns);
    }
    fault_records_close(&records);
    return count >= TOUCHES_AFTER_A_REST / 2 ? (int64_t)median(before_ns, count) : 0;
}

struct page_fault_cost page_fault_cost_try(void)
{
    const size_t bytes = (size_t)(TOUCHES + TOUCHES_AFTER_A_REST) * PAGE_BYTES;
    struct page_fault_cost cost = {0};
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return cost;
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    cost.whole_ns = try_whole(memory);
    cost.before_ns = try_before(memory + (size_t)TOUCHES * PAGE_BYTES);
    munmap(memory, bytes);
    return cost;
}
