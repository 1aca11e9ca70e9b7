// SPDX-License-Identifier: MIT
//
// perf.data as it lies in the file: the numbers and layouts that the kernel's and perf's ABI fix
// (include/uapi/linux/perf_event.h, tools/lib/perf/include/perf/event.h and
// tools/perf/Documentation/perf.data-file-format.txt of the Linux sources). Everything is
// little-endian; records are multiples of 8 bytes but may start anywhere, so they are read with
// memcpy, never through a cast.
#ifndef ANALYSIS_PERF_PERF_DATA_FORMAT_H
#define ANALYSIS_PERF_PERF_DATA_FORMAT_H

#include <stdint.h>
#include <string.h>

enum perf_record_type {
    // what the kernel writes
    PERF_MMAP = 1,
    PERF_LOST = 2,
    PERF_COMM = 3,
    PERF_EXIT = 4,
    PERF_THROTTLE = 5,
    PERF_UNTHROTTLE = 6,
    PERF_FORK = 7,
    PERF_READ = 8,
    PERF_SAMPLE = 9,
    PERF_MMAP2 = 10,
    PERF_AUX = 11,
    PERF_ITRACE_START = 12,
    PERF_LOST_SAMPLES = 13,
    PERF_SWITCH = 14,
    PERF_SWITCH_CPU_WIDE = 15,
    PERF_NAMESPACES = 16,
    PERF_KSYMBOL = 17,
    PERF_BPF_EVENT = 18,
    PERF_CGROUP = 19,
    PERF_TEXT_POKE = 20,
    PERF_AUX_OUTPUT_HW_ID = 21,
    PERF_CALLCHAIN_DEFERRED = 22,
    // what the perf tool writes
    PERF_HEADER_ATTR = 64,
    PERF_HEADER_EVENT_TYPE = 65,
    PERF_HEADER_TRACING_DATA = 66,
    PERF_HEADER_BUILD_ID = 67,
    PERF_FINISHED_ROUND = 68,
    PERF_ID_INDEX = 69,
    PERF_AUXTRACE_INFO = 70,
    PERF_AUXTRACE = 71,
    PERF_AUXTRACE_ERROR = 72,
    PERF_THREAD_MAP = 73,
    PERF_CPU_MAP = 74,
    PERF_STAT_CONFIG = 75,
    PERF_STAT = 76,
    PERF_STAT_ROUND = 77,
    PERF_EVENT_UPDATE = 78,
    PERF_TIME_CONV = 79,
    PERF_HEADER_FEATURE = 80,
    PERF_COMPRESSED = 81,
    PERF_FINISHED_INIT = 82,
    PERF_COMPRESSED2 = 83,
    PERF_BPF_METADATA = 84,
    PERF_SCHEDSTAT_CPU = 85,
    PERF_SCHEDSTAT_DOMAIN = 86,
    PERF_RECORD_TYPES = 87
};

struct perf_record_header {
    uint32_t type; // enum perf_record_type
    uint16_t misc;
    uint16_t size; // of the whole record; AUXTRACE and TRACING_DATA have data after it
};

// misc
enum {
    PERF_MISC_CPUMODE_MASK = 7,
    PERF_MISC_KERNEL = 1,
    PERF_MISC_USER = 2,
    PERF_MISC_HYPERVISOR = 3,
    PERF_MISC_GUEST_KERNEL = 4,
    PERF_MISC_GUEST_USER = 5,
    PERF_MISC_FORK_EXEC = 1 << 13,      // FORK: synthesized, brings its own mappings
    PERF_MISC_COMM_EXEC = 1 << 13,      // COMM
    PERF_MISC_MMAP_DATA = 1 << 13,      // MMAP, MMAP2: not executable
    PERF_MISC_SWITCH_OUT = 1 << 13,     // SWITCH, SWITCH_CPU_WIDE
    PERF_MISC_SWITCH_PREEMPT = 1 << 14, // the same: it was still runnable
    PERF_MISC_MMAP_BUILD_ID = 1 << 14,  // MMAP2: carries a build-id instead of device and inode
    PERF_MISC_BUILD_ID_SIZE = 1 << 15,  // HEADER_BUILD_ID: its length is stored
    PERF_MISC_EXACT = 1 << 14,
};

// attr.sample_type
enum {
    PERF_SAMPLE_HAS_IP = 1 << 0,
    PERF_SAMPLE_HAS_TID = 1 << 1,
    PERF_SAMPLE_HAS_TIME = 1 << 2,
    PERF_SAMPLE_HAS_ADDR = 1 << 3,
    PERF_SAMPLE_HAS_READ = 1 << 4,
    PERF_SAMPLE_HAS_CALLCHAIN = 1 << 5,
    PERF_SAMPLE_HAS_ID = 1 << 6,
    PERF_SAMPLE_HAS_CPU = 1 << 7,
    PERF_SAMPLE_HAS_PERIOD = 1 << 8,
    PERF_SAMPLE_HAS_STREAM_ID = 1 << 9,
    PERF_SAMPLE_HAS_IDENTIFIER = 1 << 16,
    PERF_SAMPLE_HAS_AUX = 1 << 20,
};

// attr.read_format: what a sample's READ holds
enum {
    PERF_READ_TOTAL_TIME_ENABLED = 1 << 0,
    PERF_READ_TOTAL_TIME_RUNNING = 1 << 1,
    PERF_READ_ID = 1 << 2,
    PERF_READ_GROUP = 1 << 3,
    PERF_READ_LOST = 1 << 4,
};

// Frames of a call chain from here on are no addresses but say what kind those behind them are.
#define PERF_CONTEXT_FIRST UINT64_C(0xfffffffffffff001) // -4095

// attr's flag bits, counted from the lowest of the 64 that follow read_format
enum {
    PERF_ATTR_SAMPLE_ID_ALL_BIT = 18,
};

// AUX: flags
enum {
    PERF_AUX_TRUNCATED = 1, // the buffer was full: trace was lost
    PERF_AUX_OVERWRITE = 2, // snapshot mode
    PERF_AUX_PARTIAL = 4,   // there are gaps in it
    PERF_AUX_COLLISION = 8, // another user of the same hardware
};

// AUXTRACE_INFO: type
enum { PERF_AUXTRACE_INTEL_PT = 1 };

// HEADER_* features: bits of the header's bitmap, and feat_id of HEADER_FEATURE records
enum perf_feature {
    PERF_FEATURE_TRACING_DATA = 1,
    PERF_FEATURE_BUILD_ID = 2,
    PERF_FEATURE_HOSTNAME = 3,
    PERF_FEATURE_OS_RELEASE = 4,
    PERF_FEATURE_VERSION = 5,
    PERF_FEATURE_ARCH = 6,
    PERF_FEATURE_CPU_COUNTS = 7,
    PERF_FEATURE_CPU_DESCRIPTION = 8,
    PERF_FEATURE_CPUID = 9,
    PERF_FEATURE_TOTAL_MEMORY = 10,
    PERF_FEATURE_COMMAND_LINE = 11,
    PERF_FEATURE_EVENT_DESCRIPTION = 12,
    PERF_FEATURE_CPU_TOPOLOGY = 13,
    PERF_FEATURE_SAMPLE_TIME = 21,
    PERF_FEATURE_CLOCK_ID = 23,
    PERF_FEATURE_DIRECTORY = 24,
    PERF_FEATURE_BPF_PROGRAMS = 25,
    PERF_FEATURE_COMPRESSED = 27,
    PERF_FEATURE_CLOCK_DATA = 29,
    PERF_FEATURES = 256
};

// "MMAP2", "SWITCH_CPU_WIDE", …; NULL for a type this reader does not know.
const char *perf_record_name(uint32_t type);

// --- bytes, wherever they lie --------------------------------------------------------------------

static inline uint16_t perf_u16(const uint8_t *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline uint32_t perf_u32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline uint64_t perf_u64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline struct perf_record_header perf_header_at(const uint8_t *record)
{
    return (struct perf_record_header){perf_u32(record), perf_u16(record + 4),
                                       perf_u16(record + 6)};
}

#endif
