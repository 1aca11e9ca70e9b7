// SPDX-License-Identifier: MIT
//
// Log files: a 128-byte header and then records of one fixed size, little-endian, as they lie in
// memory. Every log of a run has this shape; who writes a kind of record owns its struct.
//
// A file is written under a name of its own (base/new_file.h) and gets its name only when it is
// complete, so a killed writer never leaves something that looks whole. A reader maps the file,
// checks the header against the file's length, and trusts nothing else in it.
#ifndef BASE_LOG_FILE_H
#define BASE_LOG_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/new_file.h"

enum log_kind {
    LOG_CONNECTIONS = 1, // struct connection   (base/connection.h)
    LOG_SAMPLES = 2,     // struct sample       (loadgen/client/sample_log.h)
    LOG_CALLS = 3,       // struct call         (shim/message_log.h)
    LOG_EVENTS = 4,      // struct event        (profiler/bpf/event_log.h)
    LOG_CLOCK = 5,       // struct clock_reading (profiler/clock/clock_log.h)
    LOG_FUNCTIONS = 6,   // struct function_event (profiler/trace/function_log.h)
    LOG_HOPS = 7,        // struct hop_record   (profiler/bpf/hop_log.h)
    LOG_BPF_CODE = 8,    // struct bpf_code     (profiler/trace/bpf_code_log.h)
};

struct log_header {
    char magic[8];         // "TAILLOG" and NUL
    uint32_t kind;         // enum log_kind
    uint32_t version;      // of the record's layout
    uint32_t header_bytes; // sizeof(struct log_header)
    uint32_t record_bytes;
    uint64_t records;     // number of records that follow
    uint64_t dropped;     // records the writer lost, by its own count
    char boot_id[40];     // /proc/sys/kernel/random/boot_id of the host that wrote it
    uint8_t cut_short;    // 1: its writer was killed, and these are the records that it had written
    uint8_t reserved[47]; // zero
};
_Static_assert(sizeof(struct log_header) == 128, "the log format is fixed");

struct log_writer {
    struct new_file out;
    struct log_header header;
};

// Creates the partial file. On success the writer must be closed or discarded.
int log_writer_open(struct log_writer *writer, const char *path, enum log_kind kind,
                    uint32_t version, size_t record_bytes, struct error *err);

// Appends `count` records. A full disk is an error here or at close.
int log_writer_append(struct log_writer *writer, const void *records, size_t count,
                      struct error *err);

// Hands all records to the kernel: a full disk is an error here.
int log_writer_flush(struct log_writer *writer, struct error *err);

// After a failed append or flush: goes back to the last record that is in the file whole, which may
// then be closed with what it has (header.records). ERROR_FAILED: not even that can be done; err
// then stays as it was.
int log_writer_cut(struct log_writer *writer, struct error *err);

// Writes other records over those that it has, of which the former are the beginning but for what
// was not known then. What a killed writer leaves is a whole beginning at any moment. A pipe cannot
// be written so: ERROR_FAILED.
int log_writer_rewrite(struct log_writer *writer, const void *records, size_t count,
                       struct error *err);

// Writes the header with the final counts, syncs and renames to the real name. On failure the
// partial file is removed.
int log_writer_close(struct log_writer *writer, uint64_t dropped, struct error *err);

// Removes the partial file. Harmless on a closed writer.
void log_writer_discard(struct log_writer *writer);

// Writes a log that is whole in memory, in one call.
int log_write(const char *path, enum log_kind kind, uint32_t version, size_t record_bytes,
              const void *records, size_t count, uint64_t dropped, struct error *err);

// Gives a log its name of which a killed writer left a part, with what is whole of it (cut_short).
// Returns 1, or 0 where there is none, or nothing in it.
int log_rescue(const char *path, enum log_kind kind, uint32_t version, size_t record_bytes,
               struct error *err);

struct log_reader {
    const void *records; // of header.record_bytes each, valid until close
    size_t count;
    struct log_header header;
    const void *mapping;
    size_t mapping_bytes;
};

// Maps a finished log. Anything but a log of this kind, version and record size is ERROR_INPUT
// with the path and the reason.
int log_reader_open(struct log_reader *reader, const char *path, enum log_kind kind,
                    uint32_t version, size_t record_bytes, struct error *err);
void log_reader_close(struct log_reader *reader);

// Reads this host's boot id; an empty string where /proc does not have it.
void log_boot_id(char out[40]);

#endif
