// SPDX-License-Identifier: MIT
#include "profiler/host/receive_cores.h"

#include <ctype.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/units.h"

enum { PATH_BYTES = 512, TEXT_BYTES = 4096 };

// The first line of a file, without its end; "" where it cannot be read.
static void read_line(const char *path, char text[TEXT_BYTES])
{
    FILE *file = fopen(path, "re");
    text[0] = '\0';
    if (!file)
        return;
    if (!fgets(text, TEXT_BYTES, file))
        text[0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    fclose(file);
}

// "ff,00000001": the last digit has the cores 0 to 3.
static void add_mask(const char *mask, cpu_set_t *out)
{
    unsigned core = 0;
    for (size_t at = strlen(mask); at-- > 0;) {
        const char digit[2] = {mask[at], '\0'};
        if (!isxdigit((unsigned char)mask[at]))
            continue;
        unsigned long bits = strtoul(digit, NULL, 16);
        for (unsigned bit = 0; bit < 4 && core < CPU_SETSIZE; bit++, core++)
            if (bits >> bit & 1)
                CPU_SET(core, out);
    }
}

// Calls `each` with every path that matches.
static void each_match(const char *pattern, void (*each)(const char *path, void *context),
                       void *context)
{
    glob_t found;
    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        each(found.gl_pathv[i], context);
    globfree(&found);
}

static void add_queue(const char *path, void *context)
{
    char mask[TEXT_BYTES];
    read_line(path, mask);
    add_mask(mask, context);
}

// What is collected of a device, or of all.
struct collection {
    const char *root;
    cpu_set_t *cores;
};

// Where an interrupt goes is one of the cores that it may go to, and known where the kernel says.
static void add_interrupt(const char *path, void *context)
{
    static const char *const names[] = {"effective_affinity_list", "smp_affinity_list"};
    const struct collection *interrupts = context;
    const char *number = strrchr(path, '/') + 1;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char file[PATH_BYTES], text[TEXT_BYTES];
        struct error ignored;
        cpu_set_t cores;
        snprintf(file, sizeof file, "%.200s/proc/irq/%.20s/%s", interrupts->root, number, names[i]);
        read_line(file, text);
        if (text[0] && units_parse_cores(text, &cores, &ignored) == 0) {
            CPU_OR(interrupts->cores, interrupts->cores, &cores);
            return;
        }
    }
}

static bool is_up(const char *device)
{
    char path[PATH_BYTES], flags[TEXT_BYTES];
    snprintf(path, sizeof path, "%.300s/flags", device);
    read_line(path, flags);
    return strtoul(flags, NULL, 16) & 1; // IFF_UP
}

static void add_device(const char *device, void *context)
{
    const struct collection *all = context;
    char pattern[PATH_BYTES];
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (!is_up(device))
        return;
    snprintf(pattern, sizeof pattern, "%.300s/queues/rx-*/rps_cpus", device);
    each_match(pattern, add_queue, &cores);
    struct collection interrupts = {.root = all->root, .cores = &cores};
    if (CPU_COUNT(&cores) == 0) {
        snprintf(pattern, sizeof pattern, "%.300s/device/msi_irqs/*", device);
        each_match(pattern, add_interrupt, &interrupts);
    }
    if (CPU_COUNT(&cores) == 0) { // of a virtio card, its bus device has them
        snprintf(pattern, sizeof pattern, "%.300s/device/../msi_irqs/*", device);
        each_match(pattern, add_interrupt, &interrupts);
    }
    CPU_OR(all->cores, all->cores, &cores);
}

// A /sys that shows this network namespace's devices, mounted nowhere: a process that was put into
// a namespace still has the /sys of where it came from. -1: it cannot be had.
static int open_own_sysfs(void)
{
    int made = fsopen("sysfs", FSOPEN_CLOEXEC), fd = -1;
    if (made < 0)
        return -1;
    if (fsconfig(made, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
        fd = fsmount(made, FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY);
    close(made);
    return fd;
}

void receive_cores_find(const char *root, cpu_set_t *out)
{
    char pattern[PATH_BYTES];
    struct collection all = {.root = root, .cores = out};
    int sysfs = root[0] ? -1 : open_own_sysfs();
    if (sysfs >= 0)
        snprintf(pattern, sizeof pattern, "/proc/self/fd/%d/class/net/*", sysfs);
    else
        snprintf(pattern, sizeof pattern, "%.200s/sys/class/net/*", root);
    each_match(pattern, add_device, &all);
    if (sysfs >= 0)
        close(sysfs);
}
