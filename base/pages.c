// SPDX-License-Identifier: MIT
#include "base/pages.h"

#include <sys/mman.h>
#include <unistd.h>

void pages_release(const uint8_t *mapping, const uint8_t *from, size_t bytes)
{
    // The kernel maps files in large pages where it can: touching the end of a large page maps all
    // of it again. So what lies earlier in the same large page is given back once more.
    enum { LARGE_PAGE = 2 << 20 };
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)mapping;
    uintptr_t begin = (uintptr_t)from & ~(uintptr_t)(LARGE_PAGE - 1);
    uintptr_t end = ((uintptr_t)from + bytes) & ~(page - 1);
    if (begin < first)
        begin = first;
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_DONTNEED);
}
