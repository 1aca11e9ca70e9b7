// SPDX-License-Identifier: MIT
#include "analysis/pt/pt_bytes.h"

#include <sys/mman.h>
#include <unistd.h>

void pt_bytes_release(const struct pt_bytes *source, uint64_t offset, uint64_t bytes)
{
    if (source->release)
        source->release(source->context, offset, bytes);
    if (!source->mapped || !source->data)
        return;
    // The kernel maps files in large pages where it can: touching the end of one brings back all of
    // it. So what lies before in the same large page is given back once more.
    enum { LARGE_PAGE = 2 << 20 };
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), data = (uintptr_t)source->data;
    uintptr_t begin = (data + offset) & ~(uintptr_t)(LARGE_PAGE - 1);
    uintptr_t end = (data + offset + bytes) & ~(page - 1);
    if (begin < data)
        begin = (data + page - 1) & ~(page - 1);
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_DONTNEED);
}
