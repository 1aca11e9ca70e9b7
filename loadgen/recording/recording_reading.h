// SPDX-License-Identifier: MIT
//
// What every recording with columns is read into, be it text (recording_csv.h) or packets
// (recording_pcap.h): a request at a time, whose keys are numbered as they come.
#ifndef LOADGEN_RECORDING_RECORDING_READING_H
#define LOADGEN_RECORDING_RECORDING_READING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/array.h"
#include "base/error.h"
#include "base/map.h"
#include "loadgen/recording/recording.h"
#include "loadgen/recording/recording_monitor.h"
#include "loadgen/recording/recording_transactions.h"

enum { COLUMNS_MOST = 32 };

enum column {
    COLUMN_OTHER,
    COLUMN_TIME,
    COLUMN_KEY,
    COLUMN_OPERATION,
    COLUMN_KEY_SIZE,
    COLUMN_VALUE_SIZE,
    COLUMN_EXPIRY, // in seconds
    COLUMNS
};

// Begins with path, workload, recording, err and .begin = -1, else zeroed.
struct reading {
    const char *path;
    size_t line;          // or packet: for errors
    size_t left_out_line; // of the first request that the protocol has no operation for
    const struct workload *workload;
    struct recording *recording;
    enum column columns[COLUMNS_MOST]; // what they hold
    size_t column_count;               // 0: nobody knows yet
    bool has[COLUMNS];
    bool commands;                      // as a server gets them; a size that none has is empty
    bool copies_keys;                   // their texts do not outlive the call that brings them
    bool fractions;                     // of seconds
    double begin, before;               // the first time, below 0: none yet; and the last
    struct ARRAY_OF(struct piece) keys; // the keys' texts, by number
    struct map keys_map;
    struct client_transactions transactions;
    struct client_transaction *within; // the one that the command being taken belongs to, or NULL
    struct error *err;
};

bool piece_is(struct piece piece, const char *word); // whatever the case
bool piece_number(struct piece piece, double *number);

// ERROR_INPUT: what is wrong with what stands at reading->line.
int reading_wrong(const struct reading *reading, const char *what);
int reading_no_memory(const struct reading *reading);

void reading_set_columns(struct reading *reading, const enum column *columns, size_t count);

// Takes one: as many fields as there are columns. One that the protocol has no operation for is
// counted as left out. Errors are ERROR_INPUT, or ERROR_FAILED without memory.
int reading_take_request(struct reading *reading, const struct piece *fields);

// Or commands, after reading_expect_commands.
void reading_expect_commands(struct reading *reading);
// What a client's MULTI and EXEC enclose becomes one request, at EXEC's time, if the protocol has
// transactions.
int reading_take_command(struct reading *reading, const struct monitor_line *said);

// That client's commands are not seen without a gap: what its MULTI may have begun has no end.
void reading_break_transaction(struct reading *reading, struct piece client);

// After the last. ERROR_INPUT: too few requests.
int reading_finish(struct reading *reading);

void reading_free(struct reading *reading);

#endif
