// SPDX-License-Identifier: MIT
//
// Transactions of a recorded load: which commands each MULTI and EXEC enclosed. Such a transaction
// is one request of the schedule, known by its place there, and leaves in one piece; a transaction
// that is drawn has always the same two commands instead. The keys of a recorded multiget
// (workloads/multiget.h) are kept in the same form.
#ifndef WORKLOADS_TRANSACTIONS_H
#define WORKLOADS_TRANSACTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "base/array.h"

struct request;
struct workload;

// With that many its replies can be counted in a reply_parser's parts_due.
enum { TRANSACTION_COMMANDS_MAX = 10000 };

struct recorded_command {
    uint32_t key;
    uint8_t operation; // of the protocol
};

struct recorded_transaction {
    uint32_t place; // of its request in the schedule
    uint32_t count; // of its commands, 1 or more
    size_t first;   // of them
};

// A zeroed one has none.
struct recorded_transactions {
    struct recorded_transaction_array ARRAY_OF(struct recorded_transaction) items; // by place
    struct recorded_command_array ARRAY_OF(struct recorded_command) commands;
};

void transactions_free(struct recorded_transactions *transactions);

// NULL: the request at that place is none, or transactions is NULL.
const struct recorded_transaction *
transactions_find(const struct recorded_transactions *transactions, uint64_t place);

// What the workload's longest transaction takes: all 0 without any.
struct transaction_most {
    size_t commands;
    size_t room_bytes;    // their keys and values
    size_t request_bytes; // encoded, in the workload's protocol
};
struct transaction_most transactions_most(const struct workload *workload);

// Makes a request, which is the transaction's, say these commands: as many as `commands` has room
// for, and `room` for their keys and values (transactions_most). The request points into both.
void transaction_add_commands(const struct workload *workload,
                              const struct recorded_transaction *transaction, uint64_t place,
                              struct request *commands, char *room, struct request *request);

#endif
