// SPDX-License-Identifier: MIT
//
// A plugin of QEMU's emulator (TCG; API version 4, QEMU 10) that gives each virtual CPU an Intel
// PT: it sees every block of code that runs, kernel and user, and writes the packets that a
// processor would have written. The guest's module intel_pt switches it
// (tests/guest/intel_pt/lab_page.h). Beside them it logs what ran: the truth (tests/lab/truth.h).
//
//     -plugin pt_plugin.so,page=FILE,cpus=N[,out=FOLDER][,truth=off][,raw=on][,ctc=TICKS]
//             [,counted=on]
//
// FILE is the memory of the ivshmem-plain device; into FOLDER go cpuN.truth and, with raw=on,
// cpuN.pt, a copy of what went into the ring.
//
// How it knows what ran: each instruction stores a pointer to its description as it begins (inline,
// without a call); when the next block begins, that is the last one of the block before, and the
// two addresses tell what it did. A block that begins where an interrupt handler does came by an
// interrupt, and where from stands on the stack. QEMU shares translations between addresses, so a
// block of a program is asked for the address that it runs at.
//
// What time it is: the host's TSC and a distance, which the guest's readings tell; with -icount
// what the guest's instructions make it (counted_time.h).
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <fcntl.h>
#include <unistd.h>
#include <x86intrin.h>
#include <glib.h>
#include <qemu-plugin.h>

#include "tests/guest/intel_pt/lab_page.h"
#include "tests/lab/counted_time.h"
#include "tests/lab/instruction.h"
#include "tests/lab/pt_writer.h"
#include "tests/lab/truth.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

enum { FILE_BUFFER = 1 << 20, HANDLER_SLOTS = 1024, TSC_EVERY = 2000 };

// A translated block; never freed, for QEMU does not say when one is gone.
struct block {
    uint64_t address; // where it was translated for
    bool kernel;
    uint16_t count, bytes;
    uint8_t *code;
    struct instruction *instructions;
    struct {
        bool done;
        uint64_t cr3, shift;
    } logged[LAB_CHANNELS];
};

struct cpu {
    struct lab_channel *channel;
    struct pt_writer writer;
    FILE *truth;
    GByteArray *bytes; // for reading registers and memory
    struct qemu_plugin_register *rsp, *rip, *cr3, *rax, *rdx;
    uint64_t control;
    bool following;             // between START and STOP
    bool enabled;               // what runs now is traced
    const struct block *block;  // that runs; NULL: none since START
    uint64_t shift;             // address of a block minus that of its translation
    uint64_t traced;            // instructions
    struct counted_moment read; // when the TSC was read last, where time is counted
    uint64_t doubts;
};

// QEMU's callbacks carry no pointer of the plugin's own, so this is where it is.
static struct lab {
    struct lab_page *page;
    uint8_t *rings;
    uint64_t ring_bytes;
    unsigned cpus;
    char out[400];
    bool truth, raw, counted;
    struct cpu cpu[LAB_CHANNELS];
    struct qemu_plugin_scoreboard *scores;
    qemu_plugin_u64 last, calls, ran; // of struct scores
    uint64_t handler[HANDLER_SLOTS]; // hash of the interrupt handlers' addresses, once a START came
    bool has_handlers;
} lab;

struct scores {
    uint64_t last;  // struct instruction *: begun last
    uint64_t calls; // why the next block begins with a call of the plugin: below; 0: it does not
    uint64_t ran;   // instructions, where time is counted: with those of the block that runs
};

// The CPU is followed; and how often it has read the TSC.
enum { CALLS_FOLLOWED = 1, CALLS_TSC_READ = 2 };

// --- the truth ---------------------------------------------------------------------------------

static void truth_write(struct cpu *cpu, enum truth_kind kind, uint64_t a, uint64_t b,
                        const uint8_t *data, uint32_t bytes)
{
    static const uint8_t zeros[8];
    struct truth_record record = {cpu->writer.tsc, a, b, kind, bytes};
    if (!cpu->truth)
        return;
    fwrite_unlocked(&record, sizeof record, 1, cpu->truth);
    if (bytes) {
        fwrite_unlocked(data, bytes, 1, cpu->truth);
        fwrite_unlocked(zeros, -bytes & 7, 1, cpu->truth);
    }
}

static void truth_code(struct cpu *cpu, unsigned index, struct block *block, uint64_t address)
{
    uint64_t cr3 = block->kernel ? 0 : cpu->writer.cr3 & 0xfffffffffffe0ULL;
    if (!cpu->truth || (block->logged[index].done && block->logged[index].cr3 == cr3 &&
                        block->logged[index].shift == cpu->shift))
        return;
    block->logged[index].done = true;
    block->logged[index].cr3 = cr3;
    block->logged[index].shift = cpu->shift;
    truth_write(cpu, TRUTH_CODE, address, cr3, block->code, block->bytes);
}

// --- the guest's registers and memory ----------------------------------------------------------

static uint64_t read_register(struct cpu *cpu, struct qemu_plugin_register *which)
{
    uint64_t value = 0;
    g_byte_array_set_size(cpu->bytes, 0);
    int bytes = qemu_plugin_read_register(which, cpu->bytes);
    if (bytes > 0)
        memcpy(&value, cpu->bytes->data, bytes > 8 ? 8 : (size_t)bytes);
    return value;
}

static uint64_t read_memory(struct cpu *cpu, uint64_t address)
{
    uint64_t value = 0;
    g_byte_array_set_size(cpu->bytes, 0);
    if (qemu_plugin_read_memory_vaddr(address, cpu->bytes, sizeof value))
        memcpy(&value, cpu->bytes->data, sizeof value);
    return value;
}

static unsigned handler_slot(uint64_t address)
{
    return (unsigned)((address >> 4) * 2654435761U >> 7) % HANDLER_SLOTS;
}

static void learn_handlers(void)
{
    for (unsigned i = 0; i < 256; i++) {
        uint64_t address = lab.page->handler[i];
        unsigned slot = handler_slot(address);
        while (lab.handler[slot] && lab.handler[slot] != address)
            slot = (slot + 1) % HANDLER_SLOTS;
        lab.handler[slot] = address;
    }
    __atomic_store_n(&lab.has_handlers, true, __ATOMIC_RELEASE);
}

static bool is_handler(uint64_t address)
{
    unsigned slot = handler_slot(address);
    while (lab.handler[slot] && lab.handler[slot] != address)
        slot = (slot + 1) % HANDLER_SLOTS;
    return lab.handler[slot] == address;
}

// --- what is traced ----------------------------------------------------------------------------

static bool is_kernel(uint64_t address)
{
    return (int64_t)address < 0;
}

// Ring and address space.
static bool in_context(const struct cpu *cpu, uint64_t ip)
{
    if (!(cpu->control & (is_kernel(ip) ? LAB_OS : LAB_USER)))
        return false;
    return !(cpu->control & LAB_CR3_FILTER) ||
           ((cpu->writer.cr3 ^ cpu->channel->cr3) & 0xfffffffffffe0ULL) == 0;
}

static bool in_ranges(const struct cpu *cpu, uint64_t ip)
{
    const struct lab_channel *channel = cpu->channel;
    bool any = false, inside = false;
    for (unsigned i = 0; i < channel->ranges && i < LAB_RANGES; i++) {
        bool within = ip >= channel->range[i].begin && ip < channel->range[i].end;
        if (channel->range[i].stops && within)
            return false;
        any |= !channel->range[i].stops;
        inside |= !channel->range[i].stops && within;
    }
    return !any || inside;
}

static bool is_traced(const struct cpu *cpu, uint64_t ip)
{
    return in_context(cpu, ip) && in_ranges(cpu, ip);
}

static void set_on(struct cpu *cpu, uint64_t ip)
{
    pt_writer_enable(&cpu->writer, ip);
    truth_write(cpu, TRUTH_ON, ip, 0, NULL, 0);
    cpu->enabled = true;
}

// To an address that is not traced. A processor says which only where its own context still is.
static void set_off(struct cpu *cpu, uint64_t ip)
{
    pt_writer_disable(&cpu->writer, in_context(cpu, ip) ? &ip : NULL);
    truth_write(cpu, TRUTH_OFF, ip, cpu->traced, NULL, 0);
    cpu->enabled = false;
}

// --- one step: what ran since the step before --------------------------------------------------

// Nothing that the plugin knows leads here: a loss is the honest thing to say.
static void doubt(struct cpu *cpu, uint64_t ip)
{
    cpu->doubts++;
    truth_write(cpu, TRUTH_DOUBT, ip, 0, NULL, 0);
    if (cpu->doubts <= 20)
        fprintf(stderr, "pt_plugin: cpu %zu: nothing leads to %" PRIx64 "\n",
                (size_t)(cpu - lab.cpu), ip);
    cpu->enabled = is_traced(cpu, ip);
    pt_writer_resume(&cpu->writer, ip, cpu->enabled);
    truth_write(cpu, TRUTH_FOUND, ip, 0, NULL, 0);
}

// Straight on to `ip`, with no branch.
static void pass(struct cpu *cpu, uint64_t ip)
{
    bool traced = is_traced(cpu, ip);
    if (cpu->enabled && !traced) {
        pt_writer_from(&cpu->writer, ip);
        set_off(cpu, ip);
    } else if (!cpu->enabled && traced) {
        set_on(cpu, ip);
    }
}

// The traced `last` was executed and went on at `next`, which is traced, too.
static void write_flow(struct cpu *cpu, const struct instruction *last, uint64_t next)
{
    struct pt_writer *writer = &cpu->writer;
    uint64_t behind = last->address + last->length;
    switch (last->kind) {
    case INSTRUCTION_CONDITIONAL:
        pt_writer_branch(writer, next != behind);
        break;
    case INSTRUCTION_DIRECT:
        if (last->call && next != behind) // a call of what follows is how code learns its address
            pt_writer_call(writer, behind);
        break;
    case INSTRUCTION_INDIRECT:
        if (last->call)
            pt_writer_call(writer, behind);
        pt_writer_target(writer, next);
        break;
    case INSTRUCTION_RETURN:
        pt_writer_return(writer, next);
        break;
    case INSTRUCTION_FAR:
    case INSTRUCTION_INTERRUPT:
        pt_writer_target(writer, next);
        break;
    }
}

static void complete(struct cpu *cpu, const struct instruction *last, uint64_t next)
{
    if (cpu->enabled) {
        cpu->traced++;
        if (last->call)
            truth_write(cpu, TRUTH_CALL, last->address, next, NULL, 0);
        else if (last->kind == INSTRUCTION_RETURN || last->kind == INSTRUCTION_FAR)
            truth_write(cpu, TRUTH_WENT, last->address, next, NULL, 0);
    }
    if (last->kind == INSTRUCTION_SET_CR3) {
        uint64_t cr3 = read_register(cpu, cpu->cr3);
        pt_writer_set_cr3(&cpu->writer, cr3);
        truth_write(cpu, TRUTH_CR3, cr3 & 0xfffffffffffe0ULL, 0, NULL, 0);
    }
    if (last->kind == INSTRUCTION_OTHER) {
        pass(cpu, next);
    } else if (cpu->enabled && is_traced(cpu, next)) {
        write_flow(cpu, last, next);
    } else if (cpu->enabled) {
        set_off(cpu, next);
    } else if (is_traced(cpu, next)) {
        set_on(cpu, next);
    }
}

// The instructions of the running block before its number `count`, none of which is a branch.
static void complete_straight(struct cpu *cpu, unsigned count)
{
    const struct block *block = cpu->block;
    for (unsigned i = 0; i < count; i++) {
        cpu->traced += cpu->enabled;
        if (cpu->channel->ranges)
            pass(cpu, block->instructions[i].address + block->instructions[i].length + cpu->shift);
    }
}

// An interrupt or an exception came, and its handler is at `handler`.
static void interrupted(struct cpu *cpu, const struct instruction *last, uint64_t handler)
{
    uint64_t stack = read_register(cpu, cpu->rsp);
    // The frame is aligned; an error code below it is what makes it even again.
    uint64_t back = read_memory(cpu, (stack & 15) == 8 ? stack : stack + 8);
    bool branch = last->kind == INSTRUCTION_CONDITIONAL || last->kind == INSTRUCTION_DIRECT;
    // The FUP of int3 and its like has their own address, as that of a fault (Intel SDM vol. 3,
    // "FUP Cases and IP Payload"): it can be followed also where they are patched in and away
    // again.
    if (last->kind == INSTRUCTION_INTERRUPT)
        back = last->address;
    bool began_only = back == last->address && !(branch && instruction_leads_to(last, back));
    if (!began_only) {
        if (!instruction_leads_to(last, back)) {
            doubt(cpu, handler);
            return;
        }
        complete(cpu, last, back);
    }
    bool traced = is_traced(cpu, handler);
    if (cpu->enabled) {
        truth_write(cpu, TRUTH_WENT, back, handler, NULL, 0);
        pt_writer_from(&cpu->writer, back);
        if (traced)
            pt_writer_target(&cpu->writer, handler);
        else
            set_off(cpu, handler);
    } else if (traced) {
        set_on(cpu, handler);
    }
}

static void step(struct cpu *cpu, const struct instruction *begun, uint64_t next)
{
    const struct block *block = cpu->block;
    if (begun < block->instructions || begun >= block->instructions + block->count) {
        doubt(cpu, next);
        return;
    }
    struct instruction last = *begun;
    last.address += cpu->shift;
    last.target += cpu->shift;
    complete_straight(cpu, last.index);
    if (is_kernel(next) && is_handler(next))
        interrupted(cpu, &last, next);
    else if (instruction_leads_to(&last, next))
        complete(cpu, &last, next);
    else if (next != last.address) // it begins again: a rep, or code that has changed itself
        doubt(cpu, next);
}

// Before anything is written. false: nothing can be.
static bool has_room(struct cpu *cpu, uint64_t ip)
{
    struct pt_writer *writer = &cpu->writer;
    bool was_lost = writer->lost;
    bool room = pt_writer_has_room(writer);
    if (writer->lost && !was_lost)
        truth_write(cpu, TRUTH_LOST, ip, 0, NULL, 0);
    return room;
}

static void publish(struct cpu *cpu)
{
    cpu->channel->overflows = cpu->writer.overflows;
    __atomic_store_n(&cpu->channel->head, cpu->writer.head, __ATOMIC_RELEASE);
}

// Follows the guest's TSC by what its CPUs read of it. QEMU never lets it go back: a CPU's reading
// that would be less than the latest one of another CPU, which ran on a core of the host whose TSC
// is a little ahead, moves it forward for good, and millions of readings do so by milliseconds a
// second. Each says what its distance to the host's is at least, and that only ever grows.
static void tsc_was_read(struct cpu *cpu)
{
    uint64_t tsc = read_register(cpu, cpu->rdx) << 32 | (uint32_t)read_register(cpu, cpu->rax);
    if (lab.counted) {
        counted_time_is(cpu->read, tsc);
        return;
    }
    uint64_t least = tsc - __rdtsc();
    uint64_t known = __atomic_load_n(&lab.page->tsc_offset, __ATOMIC_RELAXED);
    while ((int64_t)least > (int64_t)known &&
           !__atomic_compare_exchange_n(&lab.page->tsc_offset, &known, least, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
}

// The guest's TSC; it does not go back on a CPU.
static uint64_t now(const struct cpu *cpu)
{
    uint64_t tsc = lab.counted
                       ? counted_time(counted_moment(qemu_plugin_u64_sum(lab.ran)))
                       : __rdtsc() + __atomic_load_n(&lab.page->tsc_offset, __ATOMIC_RELAXED);
    return tsc > cpu->writer.tsc ? tsc : cpu->writer.tsc;
}

// A block begins; called while the CPU is followed, or when the last one read the TSC.
static void block_begins(unsigned index, void *data)
{
    struct block *block = data;
    struct cpu *cpu = &lab.cpu[index];
    if (qemu_plugin_u64_get(lab.calls, index) & ~(uint64_t)CALLS_FOLLOWED) {
        tsc_was_read(cpu);
        qemu_plugin_u64_set(lab.calls, index, cpu->following ? CALLS_FOLLOWED : 0);
    }
    if (!cpu->following)
        return;
    const struct instruction *begun =
        (const struct instruction *)qemu_plugin_u64_get(lab.last, index);
    uint64_t address = block->kernel ? block->address : read_register(cpu, cpu->rip);
    cpu->writer.tsc = now(cpu);
    if (!cpu->block) { // the first since START
        cpu->writer.cr3 = read_register(cpu, cpu->cr3);
        truth_write(cpu, TRUTH_BEGIN, cpu->control, 0, NULL, 0);
        truth_write(cpu, TRUTH_CR3, cpu->writer.cr3 & 0xfffffffffffe0ULL, 0, NULL, 0);
        if (has_room(cpu, address)) {
            if (cpu->writer.lost) { // since it was stopped with a full ring
                pt_writer_resume(&cpu->writer, address, false);
                truth_write(cpu, TRUTH_FOUND, address, 0, NULL, 0);
            }
            pt_writer_begin(&cpu->writer);
            if (is_traced(cpu, address))
                set_on(cpu, address);
        }
    } else if (!has_room(cpu, address)) {
        // CR3 has to be known afterwards.
        if (begun->kind == INSTRUCTION_SET_CR3)
            cpu->writer.cr3 = read_register(cpu, cpu->cr3);
    } else if (cpu->writer.lost) {
        cpu->writer.cr3 = read_register(cpu, cpu->cr3);
        cpu->enabled = is_traced(cpu, address);
        pt_writer_resume(&cpu->writer, address, cpu->enabled);
        truth_write(cpu, TRUTH_CR3, cpu->writer.cr3 & 0xfffffffffffe0ULL, 0, NULL, 0);
        truth_write(cpu, TRUTH_FOUND, address, 0, NULL, 0);
    } else {
        step(cpu, begun, address);
        if (cpu->enabled)
            pt_writer_synchronize(&cpu->writer, address);
    }
    if (!cpu->block || cpu->block->kernel != block->kernel)
        truth_write(cpu, TRUTH_RING, address, 0, NULL, 0);
    cpu->block = block;
    cpu->shift = address - block->address;
    truth_code(cpu, index, block, address);
    publish(cpu);
}

// --- the guest's commands ----------------------------------------------------------------------

static void start(struct cpu *cpu, unsigned index)
{
    const struct lab_page *page = lab.page;
    uint64_t control = cpu->channel->control;
    if (!lab.has_handlers)
        learn_handlers();
    cpu->control = control;
    cpu->writer.options = (struct pt_writer_options){
        .tsc = control & LAB_TSC,
        .mtc = (control & LAB_MTC) && page->tsc_per_ctc,
        .cyc = control & LAB_CYC,
        .kernel = control & LAB_OS,
        .compress_returns = !(control & LAB_NO_RETCOMP),
        .mtc_period = LAB_MTC_PERIOD(control),
        .cyc_least = LAB_CYC_THRESHOLD(control) ? 1U << (LAB_CYC_THRESHOLD(control) - 1) : 0,
        .psb_bytes = 2048ULL << LAB_PSB_PERIOD(control),
        .tsc_per_ctc = page->tsc_per_ctc,
        .tsc_every = TSC_EVERY,
        .bus_ratio = (uint8_t)page->bus_ratio,
    };
    cpu->block = NULL;
    cpu->enabled = false;
    cpu->following = true;
    cpu->channel->tracing = 1;
    qemu_plugin_u64_set(lab.calls, index, CALLS_FOLLOWED);
}

static void stop(struct cpu *cpu, unsigned index, const struct instruction *doorbell)
{
    uint64_t ip = doorbell->address; // a kernel's, so it was not shifted
    if (!cpu->following)
        return;
    cpu->writer.tsc = now(cpu);
    if (cpu->block && has_room(cpu, ip)) {
        if (cpu->writer.lost) {
            pt_writer_resume(&cpu->writer, ip, false);
            truth_write(cpu, TRUTH_FOUND, ip, 0, NULL, 0);
        } else {
            complete_straight(cpu, doorbell->index);
            if (cpu->enabled) {
                pt_writer_from(&cpu->writer, ip);
                pt_writer_disable(&cpu->writer, NULL);
                truth_write(cpu, TRUTH_OFF, ip, cpu->traced, NULL, 0);
            }
            pt_writer_flush(&cpu->writer);
        }
    }
    cpu->enabled = false;
    cpu->following = false;
    cpu->channel->tracing = 0;
    qemu_plugin_u64_set(lab.calls, index, 0);
    publish(cpu);
    if (cpu->truth)
        fflush(cpu->truth);
    if (cpu->writer.copy)
        fflush(cpu->writer.copy);
}

static void doorbell_rings(unsigned index, void *data)
{
    struct cpu *cpu = &lab.cpu[index];
    switch (cpu->channel->command) {
    case LAB_START:
        start(cpu, index);
        break;
    case LAB_STOP:
        stop(cpu, index, data);
        break;
    }
    cpu->channel->answered++;
}

// The instructions of the block that it ends are counted already.
static void tsc_is_read(unsigned index, void *data)
{
    (void)data;
    lab.cpu[index].read = counted_moment(qemu_plugin_u64_sum(lab.ran));
}

static bool is_doorbell(const struct instruction *instruction, const uint8_t *code)
{
    uint32_t mark = LAB_MARK;
    return instruction->length == 7 && code[0] == 0x0f && code[1] == 0x1f && code[2] == 0x80 &&
           memcmp(code + 3, &mark, sizeof mark) == 0;
}

static bool reads_tsc(const struct instruction *instruction, const uint8_t *code)
{
    static const uint8_t rdtsc[] = {0x0f, 0x31}, rdtscp[] = {0x0f, 0x01, 0xf9};
    return (instruction->length == sizeof rdtsc && memcmp(code, rdtsc, sizeof rdtsc) == 0) ||
           (instruction->length == sizeof rdtscp && memcmp(code, rdtscp, sizeof rdtscp) == 0);
}

// --- QEMU's side -------------------------------------------------------------------------------

static void block_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(tb), bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += qemu_plugin_insn_size(qemu_plugin_tb_get_insn(tb, i));
    struct block *block = calloc(1, sizeof *block + count * sizeof *block->instructions + bytes);
    if (!block)
        abort();
    block->address = qemu_plugin_tb_vaddr(tb);
    block->kernel = is_kernel(block->address);
    block->count = (uint16_t)count;
    block->bytes = (uint16_t)bytes;
    block->instructions = (struct instruction *)(block + 1);
    block->code = (uint8_t *)(block->instructions + count);
    qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, block_begins, QEMU_PLUGIN_CB_R_REGS,
                                              QEMU_PLUGIN_COND_NE, lab.calls, 0, block);
    if (lab.counted)
        qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, QEMU_PLUGIN_INLINE_ADD_U64, lab.ran,
                                                          count);
    uint8_t *code = block->code;
    for (size_t i = 0; i < count; i++) {
        struct qemu_plugin_insn *translated = qemu_plugin_tb_get_insn(tb, i);
        struct instruction *instruction = &block->instructions[i];
        instruction->address = qemu_plugin_insn_vaddr(translated);
        instruction->length = (uint8_t)qemu_plugin_insn_size(translated);
        instruction->index = (uint16_t)i;
        qemu_plugin_insn_data(translated, code, instruction->length);
        instruction_classify(instruction, code);
        qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
            translated, QEMU_PLUGIN_INLINE_STORE_U64, lab.last, (uint64_t)instruction);
        if (reads_tsc(instruction, code)) {
            // It is a block's last: what it reads is there in the next one.
            qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
                translated, QEMU_PLUGIN_INLINE_ADD_U64, lab.calls, CALLS_TSC_READ);
            if (lab.counted)
                qemu_plugin_register_vcpu_insn_exec_cb(translated, tsc_is_read,
                                                       QEMU_PLUGIN_CB_NO_REGS, NULL);
        }
        if (block->kernel && is_doorbell(instruction, code))
            qemu_plugin_register_vcpu_insn_exec_cb(translated, doorbell_rings,
                                                   QEMU_PLUGIN_CB_R_REGS, instruction);
        code += instruction->length;
    }
}

static FILE *open_beside(unsigned index, const char *ending)
{
    char path[sizeof lab.out + 32];
    snprintf(path, sizeof path, "%s/cpu%u.%s", lab.out, index, ending);
    FILE *file = fopen(path, "wb");
    if (file)
        setvbuf(file, NULL, _IOFBF, FILE_BUFFER);
    else
        fprintf(stderr, "pt_plugin: cannot write %s\n", path);
    return file;
}

static void cpu_begins(qemu_plugin_id_t id, unsigned index)
{
    (void)id;
    if (index >= lab.cpus || lab.cpu[index].bytes)
        return;
    struct cpu *cpu = &lab.cpu[index];
    if (lab.counted)
        counted_time_begins(index);
    cpu->bytes = g_byte_array_new();
    cpu->channel = &lab.page->channel[index];
    cpu->writer.ring = lab.rings + index * lab.ring_bytes;
    cpu->writer.ring_bytes = lab.ring_bytes;
    cpu->writer.taken = &cpu->channel->tail;
    cpu->writer.reserved = &cpu->channel->reserved;
    GArray *registers = qemu_plugin_get_registers();
    for (guint i = 0; i < registers->len; i++) {
        qemu_plugin_reg_descriptor *found =
            &g_array_index(registers, qemu_plugin_reg_descriptor, i);
        if (strcmp(found->name, "rsp") == 0)
            cpu->rsp = found->handle;
        else if (strcmp(found->name, "rip") == 0)
            cpu->rip = found->handle;
        else if (strcmp(found->name, "cr3") == 0)
            cpu->cr3 = found->handle;
        else if (strcmp(found->name, "rax") == 0)
            cpu->rax = found->handle;
        else if (strcmp(found->name, "rdx") == 0)
            cpu->rdx = found->handle;
    }
    g_array_free(registers, TRUE);
    if (!cpu->rsp || !cpu->rip || !cpu->cr3 || !cpu->rax || !cpu->rdx) {
        fprintf(stderr, "pt_plugin: QEMU does not tell rsp, rip, cr3, rax and rdx\n");
        exit(1);
    }
    if (!lab.out[0])
        return;
    if (lab.raw)
        cpu->writer.copy = open_beside(index, "pt");
    if (lab.truth && (cpu->truth = open_beside(index, "truth"))) {
        struct truth_header header = {.magic = TRUTH_MAGIC, .cpu = index};
        fwrite(&header, sizeof header, 1, cpu->truth);
    }
}

static void ends(qemu_plugin_id_t id, void *data)
{
    (void)id;
    (void)data;
    for (unsigned i = 0; i < lab.cpus; i++) {
        struct cpu *cpu = &lab.cpu[i];
        if (!cpu->bytes)
            continue;
        if (cpu->truth)
            fclose(cpu->truth);
        if (cpu->writer.copy)
            fclose(cpu->writer.copy);
        fprintf(stderr,
                "pt_plugin: cpu %u: %" PRIu64 " instructions, %" PRIu64 " bytes, %" PRIu64
                " overflows, %" PRIu64 " doubts\n",
                i, cpu->traced, cpu->writer.head, cpu->writer.overflows, cpu->doubts);
    }
}

// The page, and behind it the rings: as much of the file as makes each a power of two.
static int map_page(const char *path, unsigned cpus, uint64_t tsc_per_ctc)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    off_t bytes = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
    if (bytes < LAB_HEADER * 2) {
        fprintf(stderr, "pt_plugin: page=%s is no file of %d bytes or more\n", path,
                LAB_HEADER * 2);
        return -1;
    }
    void *map = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        return -1;
    lab.page = map;
    lab.rings = (uint8_t *)map + LAB_HEADER;
    lab.ring_bytes = 1 << 14;
    while (lab.ring_bytes * 2 * cpus <= (uint64_t)bytes - LAB_HEADER)
        lab.ring_bytes *= 2;
    lab.cpus = cpus;
    lab.page->ring_bytes = lab.ring_bytes;
    lab.page->tsc_per_ctc = tsc_per_ctc;
    lab.page->tsc_offset = 1ULL << 63; // the least
    lab.page->magic = LAB_MAGIC;
    return 0;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
                                           char **argv)
{
    const char *page = NULL;
    unsigned cpus = 2;
    uint64_t tsc_per_ctc = 0;
    lab.truth = true;
    if (!info->system_emulation) {
        fprintf(stderr, "pt_plugin: only for whole machines\n");
        return -1;
    }
    for (int i = 0; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        size_t length = value ? (size_t)(value++ - argv[i]) : 0;
        if (length == 4 && strncmp(argv[i], "page", 4) == 0) {
            page = value;
        } else if (length == 4 && strncmp(argv[i], "cpus", 4) == 0) {
            cpus = (unsigned)strtoul(value, NULL, 10);
        } else if (length == 3 && strncmp(argv[i], "out", 3) == 0) {
            snprintf(lab.out, sizeof lab.out, "%s", value);
        } else if (length == 3 && strncmp(argv[i], "ctc", 3) == 0) {
            tsc_per_ctc = strtoull(value, NULL, 10);
        } else if (length == 5 && strncmp(argv[i], "truth", 5) == 0) {
            lab.truth = strcmp(value, "off") != 0;
        } else if (length == 3 && strncmp(argv[i], "raw", 3) == 0) {
            lab.raw = strcmp(value, "on") == 0;
        } else if (length == 7 && strncmp(argv[i], "counted", 7) == 0) {
            lab.counted = strcmp(value, "on") == 0;
        } else {
            fprintf(stderr, "pt_plugin: %s: unknown\n", argv[i]);
            return -1;
        }
    }
    if (!page || cpus < 1 || cpus > LAB_CHANNELS || tsc_per_ctc >= 512 ||
        map_page(page, cpus, tsc_per_ctc) < 0) {
        fprintf(stderr, "pt_plugin: needs page=FILE and cpus=1 to %d\n", LAB_CHANNELS);
        return -1;
    }
    if (lab.counted && !counted_time_is_possible()) {
        fprintf(stderr, "pt_plugin: this QEMU does not tell plugins of its -icount\n");
        return -1;
    }
    lab.scores = qemu_plugin_scoreboard_new(sizeof(struct scores));
    lab.last = qemu_plugin_scoreboard_u64_in_struct(lab.scores, struct scores, last);
    lab.calls = qemu_plugin_scoreboard_u64_in_struct(lab.scores, struct scores, calls);
    lab.ran = qemu_plugin_scoreboard_u64_in_struct(lab.scores, struct scores, ran);
    qemu_plugin_register_vcpu_init_cb(id, cpu_begins);
    qemu_plugin_register_vcpu_tb_trans_cb(id, block_translated);
    qemu_plugin_register_atexit_cb(id, ends, NULL);
    return 0;
}
