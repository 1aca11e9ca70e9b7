// SPDX-License-Identifier: MIT
//
// What an emulator does for a virtual machine's network card with vhost-net, without a machine:
//
//     vhost_nic TAP INTERFACE
//
// makes the tap, has the kernel's vhost thread move its packets into and out of virtqueues of this
// process's memory, and hands them on to the other interface, and back. So who is behind that
// interface is reached through the tap as a guest is. Ends with a signal.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/vhost.h>
#include <linux/virtio_net.h>
#include <linux/virtio_ring.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    SLOTS = 256,
    FRAME_BYTES = sizeof(struct virtio_net_hdr) + 65550, // of one that is divided later (GSO), too
    RING_ALIGN = 4096,
    RING_BYTES = 16384, // of SLOTS, rounded up
};

enum { IN, OUT, QUEUES }; // by the machine: vhost's numbers

struct queue {
    struct vring ring;
    char (*frames)[FRAME_BYTES]; // of each descriptor
    unsigned short seen;         // used entries that were taken
    int kick, call;
};

static int checked(int result, const char *what)
{
    if (result < 0) {
        fprintf(stderr, "vhost_nic: %s: %s\n", what, strerror(errno));
        exit(1);
    }
    return result;
}

static int open_tap(const char *name)
{
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
    int fd = checked(open("/dev/net/tun", O_RDWR | O_NONBLOCK), "/dev/net/tun");
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    checked(ioctl(fd, TUNSETIFF, &request), name);
    return fd;
}

// Frames as they pass the interface, each with a header as virtio has it.
static int open_link(const char *name)
{
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    const int on = 1;
    int fd = checked(socket(AF_PACKET, SOCK_RAW, 0), "a packet socket");
    address.sll_ifindex = (int)if_nametoindex(name);
    checked(address.sll_ifindex ? 0 : -1, name);
    checked(setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on), "PACKET_VNET_HDR");
    checked(setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on), "its own packets");
    checked(bind(fd, (struct sockaddr *)&address, sizeof address), "binding the packet socket");
    return fd;
}

static void *memory(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    checked(at == MAP_FAILED ? -1 : 0, "memory");
    return at;
}

// The device sees the memory of both queues at the addresses that it has here.
static void set_memory(int vhost, void *at, size_t bytes)
{
    struct vhost_memory *table = calloc(1, sizeof *table + sizeof table->regions[0]);
    checked(table ? 0 : -1, "memory");
    table->nregions = 1;
    table->regions[0] = (struct vhost_memory_region){
        .guest_phys_addr = (uintptr_t)at, .memory_size = bytes, .userspace_addr = (uintptr_t)at};
    checked(ioctl(vhost, VHOST_SET_MEM_TABLE, table), "VHOST_SET_MEM_TABLE");
    free(table);
}

static void set_queue(int vhost, unsigned index, int tap, struct queue *queue, char *at)
{
    struct vhost_vring_state size = {.index = index, .num = SLOTS}, base = {.index = index};
    vring_init(&queue->ring, SLOTS, at, RING_ALIGN);
    queue->frames = (void *)(at + RING_BYTES);
    queue->kick = checked(eventfd(0, EFD_NONBLOCK), "eventfd");
    queue->call = checked(eventfd(0, EFD_NONBLOCK), "eventfd");
    struct vhost_vring_addr address = {.index = index,
                                       .desc_user_addr = (uintptr_t)queue->ring.desc,
                                       .used_user_addr = (uintptr_t)queue->ring.used,
                                       .avail_user_addr = (uintptr_t)queue->ring.avail};
    struct vhost_vring_file kick = {.index = index, .fd = queue->kick};
    struct vhost_vring_file call = {.index = index, .fd = queue->call};
    struct vhost_vring_file backend = {.index = index, .fd = tap};
    checked(ioctl(vhost, VHOST_SET_VRING_NUM, &size), "VHOST_SET_VRING_NUM");
    checked(ioctl(vhost, VHOST_SET_VRING_BASE, &base), "VHOST_SET_VRING_BASE");
    checked(ioctl(vhost, VHOST_SET_VRING_ADDR, &address), "VHOST_SET_VRING_ADDR");
    checked(ioctl(vhost, VHOST_SET_VRING_KICK, &kick), "VHOST_SET_VRING_KICK");
    checked(ioctl(vhost, VHOST_SET_VRING_CALL, &call), "VHOST_SET_VRING_CALL");
    checked(ioctl(vhost, VHOST_NET_SET_BACKEND, &backend), "VHOST_NET_SET_BACKEND");
}

static void give(struct queue *queue, unsigned slot, size_t bytes, unsigned short flags)
{
    const unsigned short at = queue->ring.avail->idx;
    queue->ring.desc[slot] = (struct vring_desc){
        .addr = (uintptr_t)queue->frames[slot], .len = (unsigned)bytes, .flags = flags};
    queue->ring.avail->ring[at % SLOTS] = (unsigned short)slot;
    __atomic_store_n(&queue->ring.avail->idx, (unsigned short)(at + 1), __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!(queue->ring.used->flags & VRING_USED_F_NO_NOTIFY))
        checked(eventfd_write(queue->kick, 1), "a kick");
}

static const struct vring_used_elem *take(struct queue *queue)
{
    if (queue->seen == __atomic_load_n(&queue->ring.used->idx, __ATOMIC_ACQUIRE))
        return NULL;
    return &queue->ring.used->ring[queue->seen++ % SLOTS];
}

// What the device put into the machine goes on to the link.
static void pass_in(struct queue *queue, int link)
{
    const struct vring_used_elem *used;
    while ((used = take(queue))) {
        // A link that is full drops it.
        if (send(link, queue->frames[used->id], used->len, 0) < 0 && errno != ENOBUFS)
            checked(-1, "sending to the interface");
        give(queue, used->id, FRAME_BYTES, VRING_DESC_F_WRITE);
    }
}

// What comes from the link goes out, while the device has room; the rest waits in the socket.
static void pass_out(struct queue *queue, int link, unsigned *free_slots, unsigned *free_count)
{
    const struct vring_used_elem *used;
    while ((used = take(queue)))
        free_slots[(*free_count)++] = used->id;
    while (*free_count) {
        const unsigned slot = free_slots[*free_count - 1];
        ssize_t bytes = recv(link, queue->frames[slot], FRAME_BYTES, MSG_DONTWAIT);
        if (bytes < 0)
            return;
        --*free_count;
        give(queue, slot, (size_t)bytes, 0);
    }
}

int main(int argc, char **argv)
{
    struct queue queues[QUEUES];
    unsigned free_slots[SLOTS], free_count = 0;
    if (argc != 3) {
        fprintf(stderr, "usage: vhost_nic TAP INTERFACE\n");
        return 2;
    }
    const size_t each = RING_BYTES + (size_t)SLOTS * FRAME_BYTES;
    char *at = memory(QUEUES * each);
    int tap = open_tap(argv[1]), link = open_link(argv[2]);
    int vhost = checked(open("/dev/vhost-net", O_RDWR), "/dev/vhost-net");
    const unsigned long long features =
        0; // one descriptor a frame, the short header, each used entry told
    checked(ioctl(vhost, VHOST_SET_OWNER), "VHOST_SET_OWNER");
    checked(ioctl(vhost, VHOST_SET_FEATURES, &features), "VHOST_SET_FEATURES");
    set_memory(vhost, at, QUEUES * each);
    for (unsigned i = 0; i < QUEUES; i++)
        set_queue(vhost, i, tap, &queues[i], at + i * each);
    for (unsigned i = 0; i < SLOTS; i++) {
        give(&queues[IN], i, FRAME_BYTES, VRING_DESC_F_WRITE);
        free_slots[free_count++] = i;
    }
    for (;;) {
        struct pollfd ready[] = {{queues[IN].call, POLLIN, 0},
                                 {queues[OUT].call, POLLIN, 0},
                                 {link, free_count ? POLLIN : 0, 0}};
        eventfd_t calls;
        checked(poll(ready, 3, -1), "poll");
        for (unsigned i = 0; i < QUEUES; i++)
            (void)!read(queues[i].call, &calls, sizeof calls);
        pass_in(&queues[IN], link);
        pass_out(&queues[OUT], link, free_slots, &free_count);
    }
}
