// SPDX-License-Identifier: MIT
#include "analysis/pt/pt_bytes.h"

#include "base/pages.h"

void pt_bytes_release(const struct pt_bytes *source, uint64_t offset, uint64_t bytes)
{
    if (source->release)
        source->release(source->context, offset, bytes);
    if (source->mapped && source->data)
        pages_release(source->data, source->data + offset, bytes);
}
