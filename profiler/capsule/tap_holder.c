// SPDX-License-Identifier: MIT
#include "profiler/capsule/tap_holder.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/text.h"
#include "profiler/host/host_facts.h"

enum { PATH_BYTES = 96 };

// What is looked for among the open files of processes.
struct wanted {
    const char *interface;
    uint32_t namespace;
    bool is_upon;             // upon another interface (macvtap, ipvtap), else a tap
    unsigned majors[2];       // of these: of the character devices that their other ends are
    unsigned char address[6]; // the same: the interface's own, on the link
};

// The major number of the character devices of that driver; 0: there are none.
static unsigned major_of(const char *driver)
{
    char line[64], name[32];
    unsigned number = 0, found = 0;
    FILE *devices = fopen("/proc/devices", "re");
    while (devices && !found && fgets(line, sizeof line, devices))
        if (sscanf(line, "%u %31s", &number, name) == 2 && strcmp(name, driver) == 0)
            found = number;
    if (devices)
        fclose(devices);
    return found;
}

// False: the interface is none that has another end in a process.
static bool is_tap(struct wanted *wanted)
{
    struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
    struct ifreq request = {.ifr_data = (void *)&driver};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", wanted->interface);
    bool known = ioctl(fd, SIOCETHTOOL, &request) == 0;
    bool has_address = ioctl(fd, SIOCGIFHWADDR, &request) == 0;
    close(fd);
    if (known && strcmp(driver.driver, "tun") == 0)
        return true;
    memcpy(wanted->address, request.ifr_hwaddr.sa_data, sizeof wanted->address);
    wanted->is_upon = true;
    wanted->majors[0] = major_of("macvtap");
    wanted->majors[1] = major_of("ipvtap");
    return known && has_address && (wanted->majors[0] || wanted->majors[1]) &&
           (strcmp(driver.driver, "macvlan") == 0 || strcmp(driver.driver, "ipvlan") == 0);
}

// An open file of another process, as one of our own; -1: it is not to be had.
static int copy_of(int process, int fd)
{
    int handle = (int)syscall(SYS_pidfd_open, process, 0);
    int copy = handle < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, handle, fd, 0);
    if (handle >= 0)
        close(handle);
    return copy;
}

// Whether an open file of another process is a queue of an interface of that namespace. Interfaces
// of several namespaces may have one name.
static bool is_of_namespace(int process, int fd, uint32_t namespace)
{
    struct stat file;
    bool is = false;
    int copy = copy_of(process, fd);
    int its = copy < 0 ? -1 : ioctl(copy, TUNGETDEVNETNS);
    if (its >= 0)
        is = fstat(its, &file) == 0 && (uint32_t)file.st_ino == namespace;
    if (its >= 0)
        close(its);
    if (copy >= 0)
        close(copy);
    return is;
}

// What /proc says of an open file: "iff:\ttap0".
static bool is_named(int process, const char *fd, const char *interface)
{
    char path[PATH_BYTES], line[64], name[IFNAMSIZ];
    bool is = false;
    snprintf(path, sizeof path, "/proc/%d/fdinfo/%.16s", process, fd);
    FILE *info = fopen(path, "re");
    while (info && !is && fgets(line, sizeof line, info))
        is = sscanf(line, "iff: %15s", name) == 1 && strcmp(name, interface) == 0;
    if (info)
        fclose(info);
    return is;
}

// An open file of a process, in its folder of these: the other end of a tap.
static bool is_end_of_tap(int process, int folder, const char *fd, const struct wanted *wanted)
{
    char target[16];
    ssize_t bytes = readlinkat(folder, fd, target, sizeof target);
    return bytes == 12 && memcmp(target, "/dev/net/tun", 12) == 0 &&
           is_named(process, fd, wanted->interface) &&
           is_of_namespace(process, atoi(fd), wanted->namespace);
}

// The same, of an interface upon another, which nobody says the namespace of: but its address is
// its own.
static bool is_end_upon(int process, int folder, const char *fd, const struct wanted *wanted)
{
    struct ifreq request = {.ifr_ifindex = 0};
    struct stat file;
    if (fstatat(folder, fd, &file, 0) < 0 || !S_ISCHR(file.st_mode) ||
        (major(file.st_rdev) != wanted->majors[0] && major(file.st_rdev) != wanted->majors[1]))
        return false;
    int copy = copy_of(process, atoi(fd));
    bool is = copy >= 0 && ioctl(copy, SIOCGIFHWADDR, &request) == 0 &&
              strncmp(request.ifr_name, wanted->interface, sizeof request.ifr_name) == 0 &&
              memcmp(request.ifr_hwaddr.sa_data, wanted->address, sizeof wanted->address) == 0;
    if (copy >= 0)
        close(copy);
    return is;
}

static bool holds(int process, const struct wanted *wanted)
{
    char path[PATH_BYTES];
    const struct dirent *entry;
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/fd", process);
    DIR *files = opendir(path);
    while (files && !found && (entry = readdir(files)))
        found = wanted->is_upon ? is_end_upon(process, dirfd(files), entry->d_name, wanted)
                                : is_end_of_tap(process, dirfd(files), entry->d_name, wanted);
    if (files)
        closedir(files);
    return found;
}

static void add_thread(struct tap_holder *out, const char *folder, const char *number)
{
    char path[PATH_BYTES], name[TAP_NAME_BYTES];
    snprintf(path, sizeof path, "%.48s/%.16s/comm", folder, number);
    if (out->thread_count == TAP_THREADS_MAX || !host_read_line(path, name, sizeof name))
        return;
    struct tap_thread *thread = &out->threads[out->thread_count++];
    thread->thread = (uint32_t)strtoul(number, NULL, 10);
    text_clean(name, false, thread->name, sizeof thread->name);
}

// Before Linux 6.4 a vhost thread is one of the kernel's own, and has the process's number in its
// name.
static void add_kernel_threads(struct tap_holder *out)
{
    char wanted[TAP_NAME_BYTES], path[PATH_BYTES], name[TAP_NAME_BYTES];
    const struct dirent *entry;
    snprintf(wanted, sizeof wanted, "vhost-%u", out->process);
    DIR *all = opendir("/proc");
    while (all && (entry = readdir(all))) {
        snprintf(path, sizeof path, "/proc/%.16s/comm", entry->d_name);
        if (atoi(entry->d_name) > 0 && host_read_line(path, name, sizeof name) &&
            strcmp(name, wanted) == 0)
            add_thread(out, "/proc", entry->d_name);
    }
    if (all)
        closedir(all);
}

// The kernel's vhost threads, where there are any; else the process's first one has the devices.
static void find_readers(struct tap_holder *out)
{
    bool any = false;
    for (size_t i = 0; i < out->thread_count; i++) {
        out->threads[i].reads = strncmp(out->threads[i].name, "vhost-", 6) == 0;
        any |= out->threads[i].reads;
    }
    for (size_t i = 0; i < out->thread_count && !any; i++)
        out->threads[i].reads = out->threads[i].thread == out->process;
}

bool tap_holder_find(const char *interface, uint32_t namespace, struct tap_holder *out)
{
    char path[PATH_BYTES];
    const struct dirent *entry;
    struct wanted wanted = {.interface = interface, .namespace = namespace};
    *out = (struct tap_holder){.process = 0};
    DIR *all = is_tap(&wanted) ? opendir("/proc") : NULL;
    out->takes_received = wanted.is_upon;
    while (all && !out->process && (entry = readdir(all)))
        if (atoi(entry->d_name) > 0 && holds(atoi(entry->d_name), &wanted))
            out->process = (uint32_t)atoi(entry->d_name);
    if (all)
        closedir(all);
    if (!out->process)
        return false;
    snprintf(path, sizeof path, "/proc/%u/task", out->process);
    DIR *threads = opendir(path);
    while (threads && (entry = readdir(threads)))
        if (atoi(entry->d_name) > 0)
            add_thread(out, path, entry->d_name);
    if (threads)
        closedir(threads);
    add_kernel_threads(out);
    find_readers(out);
    return true;
}

void tap_holder_cores(const struct tap_holder *holder, cpu_set_t *out)
{
    cpu_set_t its;
    CPU_ZERO(out);
    for (size_t i = 0; i < holder->thread_count; i++)
        if (sched_getaffinity((pid_t)holder->threads[i].thread, sizeof its, &its) == 0)
            CPU_OR(out, out, &its);
}

enum tap_core tap_thread_core(const struct tap_thread *thread, unsigned core)
{
    // QEMU's (with -name ...,debug-threads=on), Firecracker's, Cloud Hypervisor's, crosvm's.
    static const char *const names[] = {"CPU %u/", "fc_vcpu %u", "vcpu%u", "crosvm_vcpu%u"};
    unsigned is;
    if (strncmp(thread->name, "ALL CPUs/", 9) == 0)
        return TAP_CORE_THIS;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (sscanf(thread->name, names[i], &is) == 1)
            return is == core ? TAP_CORE_THIS : TAP_CORE_ANOTHER;
    return TAP_CORE_NOT_KNOWN;
}
