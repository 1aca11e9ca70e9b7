// SPDX-License-Identifier: MIT
//
// A plugin of QEMU's emulator that finds the cache lines which CPUs of the guest take from one
// another in user space, as `perf c2c` does on hardware: here each access is seen, not a sample.
//
//     -plugin lines_plugin.so,out=FILE[,least=N]
//
// A line moves when a CPU writes it while another one has it, or reads it after another one wrote
// it. Lines are told apart by physical address, so programs of other address spaces share none with
// ours, and memory that two have in common counts. FILE begins with how many CPUs ran programs;
// then comes a row for each line that moved at least N (10) times, the one that moved most often
// first: how often, for the last move where in memory it was, which instruction took it and which
// had it, and how often which CPU took it (CPU:TIMES).
//
// For a machine whose CPUs take turns in one thread (run_guest.sh), so nothing here is locked.
// There QEMU 10 says of an access which CPU its code was translated for, not which one made it; who
// is at work is known by where the guest's kernel has its data of each CPU (the MSR
// KERNEL_GS_BASE), which Linux lays out in their order.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <glib.h>
#include <qemu-plugin.h>

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

enum { LINE_BITS = 6, PAGE_BITS = 12, PAGES = 1 << 20, LINES = 1 << (PAGE_BITS - LINE_BITS) };
enum { CPUS = 128 };

struct line {
    unsigned __int128 holders; // CPUs, as in all.bases
    bool written;              // by its one holder
    uint64_t last;             // instruction that had it
    uint64_t moves, memory, taken_by, taken_from;
    uint32_t *takers; // times, by CPU; NULL: it never moved
};

// QEMU's callbacks carry no pointer of the plugin's own, so this is where it is.
static struct {
    struct line *pages[PAGES]; // LINES each; NULL: no program touched it
    char out[400];
    uint64_t least, beyond; // memory above what there is room for
    struct qemu_plugin_register *base;
    GByteArray *bytes; // for reading it
    uint64_t bases[CPUS];
    int cpus; // that were seen
    int cpu;  // the one at work; -1: none that runs a program
} all;

static struct line *line_at(uint64_t physical)
{
    const uint64_t page = physical >> PAGE_BITS;
    if (page >= PAGES) {
        all.beyond++;
        return NULL;
    }
    if (!all.pages[page])
        all.pages[page] = g_new0(struct line, LINES);
    return &all.pages[page][physical >> LINE_BITS & (LINES - 1)];
}

static void touch(struct line *line, unsigned cpu, bool write, uint64_t memory,
                  uint64_t instruction)
{
    const unsigned __int128 self = (unsigned __int128)1 << cpu;
    const bool others = line->holders & ~self;
    if (others && (write || (line->written && !(line->holders & self)))) {
        if (!line->takers)
            line->takers = g_new0(uint32_t, CPUS);
        line->takers[cpu]++;
        line->moves++;
        line->memory = memory;
        line->taken_by = instruction;
        line->taken_from = line->last;
    }
    line->holders = write ? self : line->holders | self;
    line->written = write || (line->written && !others);
    line->last = instruction;
}

static void touches(unsigned index, qemu_plugin_meminfo_t info, uint64_t memory, void *instruction)
{
    (void)index;
    const struct qemu_plugin_hwaddr *where =
        all.cpu < 0 ? NULL : qemu_plugin_get_hwaddr(info, memory);
    if (!where || qemu_plugin_hwaddr_is_io(where))
        return;
    struct line *line = line_at(qemu_plugin_hwaddr_phys_addr(where));
    if (line)
        touch(line, (unsigned)all.cpu, qemu_plugin_mem_is_store(info), memory,
              (uintptr_t)instruction);
}

static void block_begins(unsigned index, void *data)
{
    uint64_t base = 0;
    (void)index;
    (void)data;
    g_byte_array_set_size(all.bytes, 0);
    if (qemu_plugin_read_register(all.base, all.bytes) == sizeof base)
        memcpy(&base, all.bytes->data, sizeof base);
    if (all.cpu >= 0 && all.bases[all.cpu] == base)
        return;
    all.cpu = 0;
    while (all.cpu < all.cpus && all.bases[all.cpu] != base)
        all.cpu++;
    if (all.cpu < all.cpus)
        return;
    if (base && all.cpus < CPUS)
        all.bases[all.cpus++] = base;
    else
        all.cpu = -1; // it boots
}

static void block_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    if (qemu_plugin_tb_vaddr(tb) >> 63) // the kernel's lines are its own affair
        return;
    qemu_plugin_register_vcpu_tb_exec_cb(tb, block_begins, QEMU_PLUGIN_CB_R_REGS, NULL);
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(tb, i);
        qemu_plugin_register_vcpu_mem_cb(instruction, touches, QEMU_PLUGIN_CB_NO_REGS,
                                         QEMU_PLUGIN_MEM_RW,
                                         (void *)(uintptr_t)qemu_plugin_insn_vaddr(instruction));
    }
}

static void cpu_begins(qemu_plugin_id_t id, unsigned index)
{
    (void)id;
    (void)index;
    if (all.base)
        return;
    GArray *registers = qemu_plugin_get_registers();
    for (guint i = 0; i < registers->len; i++) {
        const qemu_plugin_reg_descriptor *found =
            &g_array_index(registers, qemu_plugin_reg_descriptor, i);
        if (strcmp(found->name, "k_gs_base") == 0)
            all.base = found->handle;
    }
    g_array_free(registers, TRUE);
    if (!all.base) {
        fprintf(stderr, "lines_plugin: QEMU does not tell k_gs_base\n");
        exit(1);
    }
}

static int most_moved_first(const void *a, const void *b)
{
    const struct line *const *one = a, *const *other = b;
    return ((*one)->moves < (*other)->moves) - ((*one)->moves > (*other)->moves);
}

// The guest's number of a CPU.
static int number_of(int cpu)
{
    int lower = 0;
    for (int i = 0; i < all.cpus; i++)
        lower += all.bases[i] < all.bases[cpu];
    return lower;
}

static void print_line(FILE *out, const struct line *line)
{
    fprintf(out, "%" PRIu64 " %#" PRIx64 " %#" PRIx64 " %#" PRIx64, line->moves, line->memory,
            line->taken_by, line->taken_from);
    for (int i = 0; i < all.cpus; i++)
        if (line->takers[i])
            fprintf(out, " %d:%" PRIu32, number_of(i), line->takers[i]);
    fprintf(out, "\n");
}

static void ends(qemu_plugin_id_t id, void *data)
{
    (void)id;
    (void)data;
    GPtrArray *moved = g_ptr_array_new();
    for (size_t page = 0; page < PAGES; page++)
        for (size_t i = 0; all.pages[page] && i < LINES; i++)
            if (all.pages[page][i].moves >= all.least)
                g_ptr_array_add(moved, &all.pages[page][i]);
    if (moved->len)
        qsort(moved->pdata, moved->len, sizeof *moved->pdata, most_moved_first);
    FILE *out = fopen(all.out, "we");
    if (!out) {
        fprintf(stderr, "lines_plugin: cannot write %s\n", all.out);
        return;
    }
    fprintf(out, "%d CPUs\n", all.cpus);
    for (size_t i = 0; i < moved->len; i++)
        print_line(out, moved->pdata[i]);
    fclose(out);
    if (all.beyond)
        fprintf(stderr, "lines_plugin: %" PRIu64 " accesses were beyond 4 GiB\n", all.beyond);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
                                           char **argv)
{
    if (!info->system_emulation || info->system.smp_vcpus > CPUS) {
        fprintf(stderr, "lines_plugin: only for whole machines of up to %d CPUs\n", CPUS);
        return -1;
    }
    all.least = 10;
    all.cpu = -1;
    all.bytes = g_byte_array_new();
    for (int i = 0; i < argc; i++) {
        if (sscanf(argv[i], "out=%399s", all.out) == 1 ||
            sscanf(argv[i], "least=%" SCNu64, &all.least) == 1)
            continue;
        fprintf(stderr, "lines_plugin: %s: unknown\n", argv[i]);
        return -1;
    }
    if (!*all.out || !all.least) {
        fprintf(stderr, "lines_plugin: needs out=FILE, and least=1 or more\n");
        return -1;
    }
    qemu_plugin_register_vcpu_init_cb(id, cpu_begins);
    qemu_plugin_register_vcpu_tb_trans_cb(id, block_translated);
    qemu_plugin_register_atexit_cb(id, ends, NULL);
    return 0;
}
