// SPDX-License-Identifier: MIT
#include "workloads/dataset_client.h"
#include "base/text.h"

#include <inttypes.h>
#include <libmemcached/memcached.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEYS_AT_ONCE = 100, // read back with one request
    PROGRESS_EVERY = 2000,
    PATIENCE_MS = 5000,         // for a connection or any single answer
    USUAL_ITEM_BYTES = 1 << 20, // the most that memcached takes when it is told no other size (-I),
    ITEM_SLACK_BYTES = 512,     // with the key and what memcached writes beside it
    SET_BYTES = 64,             // of a set, besides its key and value; fewer
    // Of sets in a row over TLS, to wait for the last of which is asked with another request. Of a
    // record memcached (1.6.18) may leave unread what its buffer, of 16 KiB, has no room for, or
    // what comes behind a value that the record begins in the middle of, until another one comes.
    // These all fit into a record, and into libmemcached's buffer, of 8 KiB.
    TUNNELLED_BYTES = 8000,
};

static int memcached_refuse(const struct dataset *dataset, memcached_return_t status,
                            const char *doing, struct error *err)
{
    int number = memcached_last_error_errno(dataset->memcached);
    if (status == MEMCACHED_TIMEOUT)
        return error_set(err, ERROR_FAILED,
                         "cannot %s the dataset at %s: it has not answered for %d s (does it write "
                         "much of what it does, memcached -vv, to somebody who is slow to read?)",
                         doing, dataset->place, PATIENCE_MS / 1000);
    return error_set(err, ERROR_FAILED,
                     "cannot %s the dataset at %s: %s%s%s (is memcached running there?)", doing,
                     dataset->place, memcached_strerror(dataset->memcached, status),
                     number ? ": " : "", number ? strerror(number) : "");
}

static int progress_report(const struct dataset *dataset, const char *phase, uint64_t done,
                           struct error *err)
{
    const bool told = done % PROGRESS_EVERY == 0 || done == dataset->workload->key_count;
    return told ? dataset_tell(dataset, phase, done, err) : 0;
}

// Who logs in does so by SASL in the binary protocol, where libmemcached does it on every
// connection; in the others it is memcached's own way, done here, and holds for one connection.
static bool has_login(const struct dataset *dataset)
{
    return dataset->login->user[0] || dataset->login->password[0];
}

static bool speaks_sasl(const struct dataset *dataset)
{
    return has_login(dataset) && dataset->workload->protocol == &memcached_binary_protocol;
}

static bool logs_in_here(const struct dataset *dataset)
{
    return has_login(dataset) && !speaks_sasl(dataset);
}

static memcached_return_t put_login(struct dataset *dataset)
{
    const struct login *login = dataset->login;
    char words[LOGIN_WORDS_BYTES];
    int bytes = snprintf(words, sizeof words, "%s %s", login->user, login->password);
    return memcached_set(dataset->memcached, "login", 5, words, (size_t)bytes, 0, 0);
}

static int log_in(struct dataset *dataset, struct error *err)
{
    memcached_return_t status = put_login(dataset);
    if (status == MEMCACHED_SUCCESS)
        return 0;
    return status == MEMCACHED_CLIENT_ERROR
               ? error_set(err, ERROR_INPUT, "%s refuses the login: %s", dataset->place,
                           memcached_last_error_message(dataset->memcached))
               : memcached_refuse(dataset, status, "load", err);
}

static int open_client(struct dataset *dataset, struct error *err)
{
    dataset->memcached = memcached_create(NULL);
    if (!dataset->memcached)
        return error_set(err, ERROR_FAILED, "out of memory for the dataset");
    memcached_behavior_set(dataset->memcached, MEMCACHED_BEHAVIOR_CONNECT_TIMEOUT, PATIENCE_MS);
    memcached_behavior_set(dataset->memcached, MEMCACHED_BEHAVIOR_POLL_TIMEOUT, PATIENCE_MS);
    memcached_behavior_set(dataset->memcached, MEMCACHED_BEHAVIOR_TCP_NODELAY, 1);
    if (speaks_sasl(dataset)) {
        memcached_behavior_set(dataset->memcached, MEMCACHED_BEHAVIOR_BINARY_PROTOCOL, 1);
        memcached_set_sasl_auth_data(dataset->memcached, dataset->login->user,
                                     dataset->login->password);
    }
    memcached_return_t status =
        dataset->host[0] == '/'
            ? memcached_server_add_unix_socket(dataset->memcached, dataset->host)
            : memcached_server_add(dataset->memcached, dataset->host, dataset->port);
    if (status == MEMCACHED_SUCCESS && logs_in_here(dataset))
        return log_in(dataset, err);
    if (status == MEMCACHED_SUCCESS)
        // sends a request, so that an absent server shows here
        status = memcached_version(dataset->memcached);
    return status == MEMCACHED_SUCCESS ? 0 : memcached_refuse(dataset, status, "load", err);
}

// Reads the last key back on the connection that carried the sets: once that is answered, all of
// them have been executed. Whether it is there is only checked later.
static memcached_return_t wait_for_sets(struct dataset *dataset)
{
    memcached_return_t status = memcached_flush_buffers(dataset->memcached);
    if (status != MEMCACHED_SUCCESS)
        return status;
    char key[WORKLOAD_KEY_BYTES_MAX];
    size_t bytes;
    uint32_t flags;
    size_t key_bytes = workload_key(dataset->workload, dataset->workload->key_count - 1, key);
    free(memcached_get(dataset->memcached, key, key_bytes, &bytes, &flags, &status));
    return status == MEMCACHED_NOTFOUND ? MEMCACHED_SUCCESS : status;
}

// Of the longest key and value.
static size_t set_bytes_max(const struct dataset *dataset)
{
    return WORKLOAD_KEY_BYTES_MAX + workload_value_bytes_max(dataset->workload) + SET_BYTES;
}

// Sets without replies and buffered: ten times faster, and the verification finds what went wrong.
// That they are buffered closes the connection, and what is logged in here is so anew, with an
// answer; the password is known to be right by then.
static memcached_return_t begin_quick(struct dataset *dataset)
{
    memcached_return_t status = MEMCACHED_SUCCESS;
    memcached_behavior_set(dataset->memcached, MEMCACHED_BEHAVIOR_BUFFER_REQUESTS, 1);
    if (logs_in_here(dataset))
        status = put_login(dataset);
    if (status == MEMCACHED_BUFFERED)
        status = wait_for_sets(dataset);
    memcached_behavior_set(dataset->memcached, MEMCACHED_BEHAVIOR_NOREPLY, 1);
    return status;
}

static int end_quick(struct dataset *dataset, struct error *err)
{
    memcached_behavior_set(dataset->memcached, MEMCACHED_BEHAVIOR_BUFFER_REQUESTS, 0);
    memcached_behavior_set(dataset->memcached, MEMCACHED_BEHAVIOR_NOREPLY, 0);
    return logs_in_here(dataset) ? log_in(dataset, err) : 0;
}

static int keys_store(struct dataset *dataset, struct error *err)
{
    char key[WORKLOAD_KEY_BYTES_MAX];
    const bool quick = !dataset->tunnelled || set_bytes_max(dataset) <= TUNNELLED_BYTES;
    memcached_return_t status = quick ? begin_quick(dataset) : MEMCACHED_SUCCESS;
    size_t unanswered = 0;
    if (status != MEMCACHED_SUCCESS)
        return memcached_refuse(dataset, status, "store", err);
    for (uint64_t i = 0; i < dataset->workload->key_count; i++) {
        size_t key_bytes = workload_key(dataset->workload, i, key);
        size_t value_bytes = workload_value_bytes(dataset->workload, i);
        const size_t set_bytes = key_bytes + value_bytes + SET_BYTES;
        workload_value(dataset->workload, i, dataset->value);
        status = MEMCACHED_SUCCESS;
        if (quick && dataset->tunnelled && unanswered + set_bytes > TUNNELLED_BYTES) {
            status = wait_for_sets(dataset);
            unanswered = 0;
        }
        unanswered += set_bytes;
        if (status == MEMCACHED_SUCCESS)
            status = memcached_set(dataset->memcached, key, key_bytes, dataset->value, value_bytes,
                                   0, 0);
        if (status != MEMCACHED_SUCCESS && status != MEMCACHED_BUFFERED)
            return memcached_refuse(dataset, status, "store", err);
        dataset->report->stored++;
        dataset->report->bytes += key_bytes + value_bytes;
        if (progress_report(dataset, "storing", i + 1, err) < 0)
            return -ERROR_FAILED;
    }
    status = wait_for_sets(dataset);
    if (status != MEMCACHED_SUCCESS)
        return memcached_refuse(dataset, status, "store", err);
    return quick ? end_quick(dataset, err) : 0;
}

static int value_compare(struct dataset *dataset, memcached_result_st *found, struct error *err)
{
    const char *key = memcached_result_key_value(found);
    size_t key_bytes = memcached_result_key_length(found);
    uint64_t index = 0;
    for (size_t i = 0; i < key_bytes; i++)
        index = index * 10 + (uint64_t)(key[i] - '0'); // keys are their index in decimal
    if (index >= dataset->workload->key_count)
        return error_set(err, ERROR_FAILED, "%s answered with a key nobody asked for",
                         dataset->place);
    size_t bytes = workload_value_bytes(dataset->workload, index);
    workload_value(dataset->workload, index, dataset->value);
    if (memcached_result_length(found) != bytes ||
        memcmp(memcached_result_value(found), dataset->value, bytes) != 0)
        return error_set(err, ERROR_FAILED,
                         "%s: the value of key %.*s is not what was stored: another client "
                         "writes to this server",
                         dataset->place, (int)key_bytes, key);
    dataset->report->verified++;
    return 0;
}

static int verify_some(struct dataset *dataset, uint64_t first, size_t count, struct error *err)
{
    char room[KEYS_AT_ONCE][WORKLOAD_KEY_BYTES_MAX];
    const char *keys[KEYS_AT_ONCE];
    size_t key_bytes[KEYS_AT_ONCE];
    for (size_t i = 0; i < count; i++) {
        keys[i] = room[i];
        key_bytes[i] = workload_key(dataset->workload, first + i, room[i]);
    }
    memcached_return_t status = memcached_mget(dataset->memcached, keys, key_bytes, count);
    if (status != MEMCACHED_SUCCESS)
        return memcached_refuse(dataset, status, "verify", err);
    int result = 0;
    memcached_result_st found;
    memcached_result_create(dataset->memcached, &found);
    while (result == 0 && memcached_fetch_result(dataset->memcached, &found, &status))
        result = value_compare(dataset, &found, err);
    memcached_result_free(&found);
    if (result == 0 && status != MEMCACHED_END && status != MEMCACHED_NOTFOUND &&
        status != MEMCACHED_SUCCESS)
        result = memcached_refuse(dataset, status, "verify", err);
    return result;
}

static int keys_verify(struct dataset *dataset, struct error *err)
{
    uint64_t all = dataset->workload->key_count;
    for (uint64_t first = 0; first < all; first += KEYS_AT_ONCE) {
        size_t count = all - first < KEYS_AT_ONCE ? (size_t)(all - first) : KEYS_AT_ONCE;
        int result = verify_some(dataset, first, count, err);
        if (result == 0)
            result = progress_report(dataset, "verifying", first + count, err);
        if (result < 0)
            return result;
    }
    if (dataset->report->verified == all)
        return 0;
    const size_t longest = workload_value_bytes_max(dataset->workload);
    char items[80] = "";
    if (longest + ITEM_SLACK_BYTES > USUAL_ITEM_BYTES)
        snprintf(items, sizeof items, "allow it items of %zu MiB (memcached -I %zum), ",
                 (longest >> 20) + 1, (longest >> 20) + 1);
    return error_set(err, ERROR_FAILED,
                     "%s holds only %s of the %s keys it was given (%" PRIu64
                     " MiB): %sgive it more memory (memcached -m), or take fewer or smaller values",
                     dataset->place, TEXT_COUNT(dataset->report->verified), TEXT_COUNT(all),
                     dataset->report->bytes >> 20, items);
}

int dataset_prepare_memcached(struct dataset *dataset, struct error *err)
{
    int result = open_client(dataset, err);
    if (result == 0)
        result = keys_store(dataset, err);
    if (result == 0)
        result = keys_verify(dataset, err);
    if (dataset->memcached)
        memcached_free(dataset->memcached);
    return result;
}
