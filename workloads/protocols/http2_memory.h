// SPDX-License-Identifier: MIT
//
// The memory of nghttp2, which takes and frees a dozen small blocks for each request: those of a
// session that are free are kept for its next ones.
#ifndef WORKLOADS_PROTOCOLS_HTTP2_MEMORY_H
#define WORKLOADS_PROTOCOLS_HTTP2_MEMORY_H

#include <nghttp2/nghttp2.h>

struct http2_block;

enum { HTTP2_BLOCK_SIZES = 8 }; // larger blocks are not kept

// Zeroed: nothing is kept yet. One session's, and so one thread's at a time.
struct http2_memory {
    struct http2_block *kept[HTTP2_BLOCK_SIZES];
};

// For nghttp2, which copies it; the memory must outlive what nghttp2 makes with it.
nghttp2_mem http2_memory_use(struct http2_memory *memory);

// Frees what is kept.
void http2_memory_fini(struct http2_memory *memory);

#endif
