// SPDX-License-Identifier: MIT
#include "experiments/keeper/keeper_journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log_file.h"
#include "base/clock.h"

enum { MOST_JOURNAL_BYTES = 4 << 20 };

// --- where ---------------------------------------------------------------------------------------

// Finds the directory of the journals. make: makes it, and those above it where this user may.
static int find_directory(char directory[300], bool make)
{
    const char *home = getenv("HOME"), *chosen = getenv("TAILLIGHT_STATE_DIR");
    char above[300];
    if (chosen && chosen[0] == '/' && strlen(chosen) < 290)
        snprintf(directory, 300, "%.290s", chosen);
    else if (geteuid() == 0)
        snprintf(directory, 300, "/var/lib/taillight");
    else if (home && home[0] == '/' && strlen(home) < 200)
        snprintf(directory, 300, "%.200s/.local/state/taillight", home);
    else
        return ENOENT;
    snprintf(above, sizeof above, "%s", directory);
    for (char *slash = above + 1; make && (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(above, 0700);
        *slash = '/';
    }
    return !make || mkdir(directory, 0700) == 0 || errno == EEXIST ? 0 : errno;
}

static void read_network(char network[40])
{
    ssize_t bytes = readlink("/proc/self/ns/net", network, 39);
    network[bytes > 0 ? bytes : 0] = '\0';
}

// --- noting --------------------------------------------------------------------------------------

static int write_line(int fd, json_t *line)
{
    char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
    json_decref(line);
    if (!text)
        return ENOMEM;
    size_t bytes = strlen(text);
    text[bytes] = '\n'; // replaces the string's end
    errno = ENOSPC;     // in case of a short write
    int number = write(fd, text, bytes + 1) == (ssize_t)bytes + 1 && fsync(fd) == 0 ? 0 : errno;
    free(text);
    return number;
}

static int begin_journal(struct keeper_journal *journal)
{
    char directory[300], boot_id[40], network[40];
    int number = find_directory(directory, true);
    if (number)
        return number;
    // Another keeper that ends may remove the directory at any moment.
    for (int attempt = 0; attempt < 100 && journal->fd < 0; attempt++) {
        // with the time, since an earlier keeper may have had the same process number
        snprintf(journal->path, sizeof journal->path, "%s/journal-%d-%llx", directory, getpid(),
                 (unsigned long long)clock_now_ns(CLOCK_REALTIME));
        journal->fd = open(journal->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
        if (journal->fd < 0 && (errno != ENOENT || find_directory(directory, true)))
            return errno;
    }
    if (journal->fd < 0 || flock(journal->fd, LOCK_EX | LOCK_NB) < 0)
        return errno;
    log_boot_id(boot_id);
    read_network(network);
    return write_line(journal->fd,
                      json_pack("{s:s, s:s, s:i, s:s}", "boot_id", boot_id, "network", network,
                                "process", (int)getpid(), "run", journal->run));
}

int keeper_journal_note(struct keeper_journal *journal, const struct keeper_change *change)
{
    if (journal->off)
        return 0;
    int number = journal->fd < 0 ? begin_journal(journal) : 0;
    // Without a place for journals a user cannot change settings; directories are made all the
    // same.
    if (journal->fd < 0 && change->is_directory)
        return 0;
    return number ? number : write_line(journal->fd, keeper_change_to_json(change));
}

void keeper_journal_note_set(struct keeper_journal *journal, const struct keeper_change *change)
{
    if (!journal->off && journal->fd >= 0 && change->set[0])
        write_line(journal->fd, json_pack("{s:s, s:s}", "path", change->path, "set", change->set));
}

// Opens the journals one after the other; the directory's stream is the caller's.
static int open_next(DIR *all, const char *directory, const char *prefix)
{
    char path[600];
    for (struct dirent *entry; (entry = readdir(all));) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0)
            return fd;
    }
    return -1;
}

bool keeper_journal_run(int process, char run[KEEPER_TEXT_BYTES])
{
    char directory[300], prefix[32], line[2 * KEEPER_TEXT_BYTES] = "";
    run[0] = '\0';
    DIR *all = find_directory(directory, false) == 0 ? opendir(directory) : NULL;
    if (!all)
        return false;
    snprintf(prefix, sizeof prefix, "journal-%d-", process);
    for (int fd; !run[0] && (fd = open_next(all, directory, prefix)) >= 0; close(fd)) {
        ssize_t bytes = read(fd, line, sizeof line - 1);
        line[bytes > 0 ? bytes : 0] = '\0';
        json_t *first = json_loads(line, JSON_DISABLE_EOF_CHECK, NULL);
        const char *found = json_string_value(json_object_get(first, "run"));
        // An earlier keeper may have had the same process number; its journal is not locked.
        if (found && flock(fd, LOCK_SH | LOCK_NB) < 0)
            snprintf(run, KEEPER_TEXT_BYTES, "%s", found);
        json_decref(first);
    }
    closedir(all);
    return run[0] != '\0';
}

unsigned keeper_journals_stale(void)
{
    char directory[300];
    unsigned stale = 0;
    DIR *all = find_directory(directory, false) == 0 ? opendir(directory) : NULL;
    for (int fd; all && (fd = open_next(all, directory, "journal-")) >= 0; close(fd))
        stale += flock(fd, LOCK_SH | LOCK_NB) == 0;
    if (all)
        closedir(all);
    return stale;
}

void keeper_journal_end(struct keeper_journal *journal, bool undone)
{
    char directory[300];
    if (journal->fd < 0)
        return;
    if (undone && unlink(journal->path) == 0 && find_directory(directory, false) == 0)
        rmdir(directory); // fails while other journals lie there
    close(journal->fd);
    journal->fd = -1;
}

// --- replaying -----------------------------------------------------------------------------------

static int take_line(const char *line, size_t bytes, unsigned number, char boot_id[40],
                     char network[40], struct keeper_changes *changes, struct error *err)
{
    struct keeper_change change;
    json_error_t where;
    json_t *json = json_loadb(line, bytes, 0, &where);
    const char *boot = json_string_value(json_object_get(json, "boot_id"));
    const char *net = json_string_value(json_object_get(json, "network"));
    int result = 0;
    if (!json_is_object(json) || (number == 1 && (!boot || !net)))
        result = error_set(err, ERROR_INPUT, "line %u is none of a journal", number);
    else if (number == 1) {
        snprintf(boot_id, 40, "%.39s", boot);
        snprintf(network, 40, "%.39s", net);
    } else if (json_object_get(json, "set")) {
        const char *path = json_string_value(json_object_get(json, "path"));
        const char *set = json_string_value(json_object_get(json, "set"));
        struct keeper_change *last = changes->count ? &changes->items[changes->count - 1] : NULL;
        if (!path || !set || !last || strcmp(path, last->path) != 0)
            result = error_set(err, ERROR_INPUT, "line %u is of no change", number);
        else
            snprintf(last->set, sizeof last->set, "%s", set);
    } else if ((result = keeper_change_from_json(json, &change, err)) < 0) {
        error_prefix(err, "line %u", number);
    } else if (array_push(changes, change) < 0) {
        keeper_change_forget(&change);
        result = error_set(err, ERROR_FAILED, "out of memory");
    }
    json_decref(json);
    return result;
}

int keeper_journal_parse(const char *text, size_t bytes, char boot_id[40], char network[40],
                         struct keeper_changes *changes, struct error *err)
{
    const char *end = text + bytes, *newline;
    *changes = (struct keeper_changes){0};
    boot_id[0] = network[0] = '\0';
    for (unsigned number = 1; (newline = memchr(text, '\n', (size_t)(end - text))); number++) {
        int result =
            take_line(text, (size_t)(newline - text), number, boot_id, network, changes, err);
        if (result < 0)
            return result;
        text = newline + 1;
    }
    return 0;
}

static int undo_all(const struct keeper_changes *changes, bool same_boot, const char *path,
                    struct keeper_restored *restored, struct error *err)
{
    int result = 0;
    for (size_t i = changes->count; i-- > 0;) {
        const struct keeper_change *change = &changes->items[i];
        if (!change->is_directory && !same_boot) {
            restored->rebooted++;
            continue;
        }
        int number = keeper_change_set_aside(change);
        if (number == 0)
            number = keeper_change_undo(change);
        if (number && number != ENOENT && number != ENODEV) {
            restored->failed++;
            result = error_set(
                err, ERROR_FAILED, "%s: cannot undo the change to %s: %s", path, change->path,
                number == EEXIST ? "somebody else has changed it since" : strerror(number));
        } else if (change->is_directory) {
            restored->directories++;
        } else {
            restored->settings++;
        }
    }
    return result;
}

static int replay(int fd, const char *path, struct keeper_restored *restored, struct error *err)
{
    char boot_id[40], network[40], this_boot[40], this_network[40];
    struct keeper_changes changes = {0};
    char *text = malloc(MOST_JOURNAL_BYTES);
    ssize_t bytes = text ? read(fd, text, MOST_JOURNAL_BYTES) : -1;
    int result = bytes < 0 ? error_set_errno(err, ERROR_FAILED, "cannot read %s", path) : 0;
    if (result == 0 &&
        (result = keeper_journal_parse(text, (size_t)bytes, boot_id, network, &changes, err)) < 0)
        error_prefix(err, "%s", path);
    log_boot_id(this_boot);
    read_network(this_network);
    bool same_boot = strcmp(boot_id, this_boot) == 0;
    if (result == 0 && same_boot && strcmp(network, this_network) != 0)
        restored->elsewhere++;
    else if (result == 0 && (result = undo_all(&changes, same_boot, path, restored, err)) == 0) {
        unlink(path);
        restored->journals++;
    }
    for (size_t i = 0; i < changes.count; i++)
        keeper_change_forget(&changes.items[i]);
    array_free(&changes);
    free(text);
    return result;
}

int keeper_journals_restore(struct keeper_restored *restored, struct error *err)
{
    char directory[300], path[600];
    int result = 0;
    *restored = (struct keeper_restored){.journals = 0};
    DIR *all = find_directory(directory, false) == 0 ? opendir(directory) : NULL;
    if (!all)
        return 0; // no run ever left one
    for (struct dirent *entry; (entry = readdir(all));) {
        struct error one;
        if (strncmp(entry->d_name, "journal-", 8) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
            restored->live++;
        else if (fd >= 0 && replay(fd, path, restored, &one) < 0) {
            *err = one;
            result = -ERROR_FAILED;
        }
        if (fd >= 0)
            close(fd);
    }
    closedir(all);
    rmdir(directory);
    return result;
}
