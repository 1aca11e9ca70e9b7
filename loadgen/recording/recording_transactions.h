// SPDX-License-Identifier: MIT
//
// Which client's commands are between MULTI and EXEC while a recording is read: MONITOR prints, and
// packets hold, those of other clients in between.
#ifndef LOADGEN_RECORDING_RECORDING_TRANSACTIONS_H
#define LOADGEN_RECORDING_RECORDING_TRANSACTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/array.h"
#include "base/map.h"
#include "loadgen/recording/recording_monitor.h"
#include "workloads/transactions.h"

// Transactions of a recording that are not sent as such.
struct lost_transactions {
    uint64_t discarded; // by DISCARD or RESET
    uint64_t unended;   // nothing says how they ended
    uint64_t empty;     // nothing was executed (aborted), or nothing that the protocol has
    uint64_t too_long;  // of more than TRANSACTION_COMMANDS_MAX commands
    uint64_t commands;  // that these four enclosed and the protocol has: not sent
    uint64_t nested;    // a MULTI within another, which the server refuses: the other goes on
    uint64_t unbegun;   // an EXEC or DISCARD without MULTI: its commands are sent one by one
};

struct client_transaction {
    struct piece client;
    bool is_open;
    struct recorded_command_array commands; // of the open one
};

// A zeroed one is empty.
struct client_transactions {
    struct ARRAY_OF(struct client_transaction) items;
    struct map map;
    size_t open; // how many are
    bool copies; // clients' texts do not outlive the call that brings them
};

// The words that begin and end one.
enum transaction_word { WORD_NONE, WORD_MULTI, WORD_EXEC, WORD_DISCARD, WORD_RESET };
enum transaction_word transaction_word(struct piece operation);

// NULL: that client has none open.
struct client_transaction *transactions_of_client(struct client_transactions *all,
                                                  struct piece client);

// Begins one, or counts that it is open already. Returns 0, or -1: out of memory.
int transactions_begin(struct client_transactions *all, struct piece client,
                       struct lost_transactions *lost);

// It ends; of one that is not sent, *why (of `lost`) is one more. NULL: it is sent.
void transactions_end(struct client_transactions *all, struct client_transaction *one,
                      uint64_t *why, struct lost_transactions *lost);

// All that are open never ended.
void transactions_end_all(struct client_transactions *all, struct lost_transactions *lost);

void client_transactions_free(struct client_transactions *all);

#endif
