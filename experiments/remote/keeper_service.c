// SPDX-License-Identifier: MIT
#include "experiments/remote/keeper_service.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <jansson.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/log_file.h"
#include "base/units.h"
#include "experiments/keeper/keeper.h"
#include "experiments/common/program_path.h"
#include "base/clock.h"

// --- what this machine is ------------------------------------------------------------------------

static int address_of_card(const char *nic, char *address, struct error *err)
{
    struct ifaddrs *all = NULL;
    bool found = false;
    if (getifaddrs(&all) < 0)
        return error_set_errno(err, ERROR_FAILED, "cannot list the network cards");
    for (const struct ifaddrs *one = all; one && !found; one = one->ifa_next) {
        if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET ||
            strcmp(one->ifa_name, nic) != 0)
            continue;
        const struct sockaddr_in *inet = (const void *)one->ifa_addr;
        found = inet_ntop(AF_INET, &inet->sin_addr, address, INET_ADDRSTRLEN) != NULL;
    }
    freeifaddrs(all);
    return found ? 0
                 : error_set(err, ERROR_FAILED, "there is no network card %s with an IPv4 address",
                             nic);
}

// sshd(8): SSH_CONNECTION is "client-address client-port server-address server-port".
static int address_of_ssh(char *address, struct error *err)
{
    const char *connection = getenv("SSH_CONNECTION");
    struct in_addr ignored;
    address[0] = '\0';
    if (connection)
        sscanf(connection, "%*s %*s %15s", address);
    return inet_pton(AF_INET, address, &ignored) == 1
               ? 0
               : error_set(err, ERROR_FAILED,
                           "ssh reached it over no IPv4 address (%s); name its card: `nic: ...`",
                           connection ? connection : "no SSH_CONNECTION");
}

static int write_facts(const char *nic, char text[KEEPER_TEXT_BYTES], struct error *err)
{
    char address[INET_ADDRSTRLEN], cores[200], boot_id[40], directory[4096];
    struct utsname system;
    cpu_set_t mine;
    int result = *nic ? address_of_card(nic, address, err) : address_of_ssh(address, err);
    if (result == 0)
        result = program_path_self(directory, sizeof directory, err);
    if (result < 0)
        return result;
    *strrchr(directory, '/') = '\0';
    CPU_ZERO(&mine);
    sched_getaffinity(0, sizeof mine, &mine);
    uname(&system);
    log_boot_id(boot_id);
    json_t *facts = json_pack("{s:i, s:s, s:s, s:s, s:s, s:s}", "uid", (int)geteuid(), "cores",
                              units_format_cores(&mine, cores, sizeof cores), "address", address,
                              "directory", directory, "boot_id", boot_id, "kernel", system.release);
    size_t bytes = json_dumpb(facts, text, KEEPER_TEXT_BYTES - 1, JSON_COMPACT);
    json_decref(facts);
    if (bytes == 0 || bytes >= KEEPER_TEXT_BYTES)
        return error_set(err, ERROR_FAILED, "what there is to say of this machine is too long");
    text[bytes] = '\0';
    return 0;
}

// --- serving -------------------------------------------------------------------------------------

static bool read_request(struct keeper_request *request)
{
    size_t have = 0;
    while (have < sizeof *request) {
        ssize_t got = read(STDIN_FILENO, (char *)request + have, sizeof *request - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        have += (size_t)got;
    }
    request->path[KEEPER_TEXT_BYTES - 1] = request->text[KEEPER_TEXT_BYTES - 1] = '\0';
    return true;
}

static int answer_request(struct keeper *keeper, const struct keeper_request *request,
                          struct keeper_answer *answer, struct error *err)
{
    *answer = (struct keeper_answer){.number = 0};
    if (request->verb == VERB_CLOCK) {
        snprintf(answer->text, sizeof answer->text, "%lld", (long long)monotonic_ns());
    } else if (request->verb == VERB_FACTS) {
        if (write_facts(request->path, answer->text, err) < 0) {
            answer->number = EINVAL;
            snprintf(answer->text, sizeof answer->text, "%.500s", err->text);
        }
    } else {
        return keeper_ask(keeper, request, answer, err);
    }
    return 0;
}

static int send_answer(const struct keeper_answer *answer, struct error *err)
{
    return write(STDOUT_FILENO, answer, sizeof *answer) == sizeof *answer
               ? 0
               : error_set_errno(err, ERROR_FAILED, "cannot answer");
}

// Has this program's own directory, which the bootstrap made for this run, removed in the end.
static int adopt_own_directory(struct keeper *keeper, struct error *err)
{
    char directory[4096];
    struct stat status;
    int result = program_path_self(directory, sizeof directory, err);
    if (result < 0)
        return result;
    *strrchr(directory, '/') = '\0';
    const char *name = strrchr(directory, '/');
    if (!name || strncmp(name, "/taillight-", 11) != 0 || stat(directory, &status) < 0 ||
        status.st_uid != geteuid() || (status.st_mode & 0777) != 0700)
        return error_set(err, ERROR_INPUT,
                         "%s is no directory made for one run; this is started by other commands",
                         directory);
    return keeper_adopt_directory(keeper, directory, err);
}

int keeper_service_run(struct error *err)
{
    struct keeper keeper;
    struct keeper_request request = {.verb = VERB_READY};
    struct keeper_answer answer = {.number = 0};
    struct error ignored;
    int result = keeper_start(&keeper, false, err);
    if (result < 0)
        return result;
    result = adopt_own_directory(&keeper, err);
    if (result == 0)
        result = send_answer(&answer, err);
    while (result == 0 && read_request(&request)) {
        result = answer_request(&keeper, &request, &answer, err);
        if (result == 0)
            result = send_answer(&answer, err);
        if (request.verb == VERB_END)
            break;
    }
    keeper_end(&keeper, &ignored); // undoes everything now, unless VERB_END already did
    return result;
}
