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
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)source->data + offset + page - 1) & ~(page - 1);
    uintptr_t end = ((uintptr_t)source->data + offset + bytes) & ~(page - 1);
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_DONTNEED);
}
