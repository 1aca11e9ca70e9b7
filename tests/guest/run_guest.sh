#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs a command in a guest with another kernel, Debian's 6.1, made of this machine's own programs:
#
#     run_guest.sh [-k newer] [-o DIR] [-t SECONDS] [-c CORES] [-n TAP] [-q EMULATOR] [-p PROGRAM]... [-f FILE]... COMMAND
#
# (with -k newer, the newest that Debian has for it). bash runs COMMAND as root with $BUILD's taillight, shim and labserver in /guest, where the files of
# -f are, too; the programs of -p (more than those below), with the libraries they load, are in PATH. What COMMAND prints appears
# here, and its exit code is this script's. What it leaves in /out is copied to DIR. With -n it has a
# NIC, eth0, whose other end is that tap device of the network namespace this runs in; with -q EMULATOR is
# started in place of qemu-system-x86_64, with its arguments. The guest lives
# in memory, is emulated (TCG: its timings mean nothing), and is gone after SECONDS (120) at most,
# which is exit 124. Its cores take turns in one thread: with a thread each (TAILLIGHT_GUEST_ACCEL) the
# emulator's clock jumps, and a core loses its timer, now and then. Rarely the others then wait for it for
# ever, as the guest boots or later: its console says so, or nothing; it is booted a second time. Where COMMAND failed its last
# steps are told (but of exit 77, whose reason is the last line), and where the host's cores
# were others' for 2 s or more, "the host starved the emulator", and for how long.
# Exit 77 and a reason: there is no guest to be had here.
set -u
here=$(cd "$(dirname "$0")" && pwd)
: "${BUILD:=build}"
out='' qemu='' which='' seconds=120 cores=2 files=() nic=(-net none)
programs=(bash busybox memcached ip jq unshare nsenter taskset setsid)
while getopts k:o:t:c:n:q:p:f: option; do
    case $option in
        k) which=$OPTARG ;;
        o) out=$OPTARG ;;
        t) seconds=$OPTARG ;;
        c) cores=$OPTARG ;;
        n) nic=(-netdev "tap,id=nic,ifname=$OPTARG,script=no,downscript=no"
            -device virtio-net-pci,netdev=nic,romfile=) ;;
        q) qemu=$OPTARG ;;
        p) programs+=("$OPTARG") ;;
        f) files+=("$OPTARG") ;;
        *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
command=${1:?usage: run_guest.sh [options] COMMAND}
skip() {
    echo "$*"
    exit 77
}
[ -n "$qemu" ] || qemu=$(command -v qemu-system-x86_64) || skip "there is no qemu-system-x86_64; install it: apt-get install qemu-system-x86"
for tool in cpio modprobe depmod "${programs[@]}"; do
    PATH=$PATH:/sbin:/usr/sbin command -v "$tool" >/dev/null || skip "there is no $tool for the guest"
done
kernel=$("$here/fetch_kernel.sh" "$BUILD" ${which:+"$which"}) || skip "$(tail -n 1 <<<"$kernel")"
version=${kernel##*/kernel-}

work=$(mktemp -d /tmp/taillight-guest-XXXXXX)
pid=
cleanup() {
    [ -n "$pid" ] && kill "$pid" 2>/dev/null # timeout, which ends the emulator, too
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# --- the root file system ----------------------------------------------------------------------
root=$work/root
mkdir -p "$root"/{dev,proc,sys,tmp,etc,root,run,var,guest,out} \
    "$root"/usr/{bin,sbin,lib,lib64,lib/busybox}
for folder in bin sbin lib lib64; do ln -s "usr/$folder" "$root/$folder"; done

# A program at the path it has here, and every library the loader would take for it.
add_program() {
    local path
    path=$(PATH=$PATH:/sbin:/usr/sbin type -P "$1") # no function that is called so
    for path in "$path" $(ldd "$path" 2>/dev/null | grep -o '/[^ ]*'); do
        [ -e "$root$path" ] || install -D "$(readlink -f "$path")" "$root$path"
    done
}
for program in "${programs[@]}"; do add_program "$program"; done
for program in taillight labserver libtaillight-shim.so; do
    [ -e "$BUILD/$program" ] || continue
    add_program "$(cd "$BUILD" && pwd)/$program"
    rm -rf "${root:?}/${BUILD#/}"
    strip -g -o "$root/guest/$program" "$BUILD/$program"
done
for file in "${files[@]}"; do cp -r "$file" "$root/guest/"; done
printf '%s\n' "$command" >"$root/guest/command"
cp /etc/passwd /etc/group /etc/protocols "$root/etc/" 2>/dev/null
install "$here/guest_init.sh" "$root/init"

# The modules that a guest of this kind uses, and those they need.
[ -e "$kernel/lib/modules/$version/modules.dep.bin" ] || depmod -b "$kernel" "$version"
for module in virtio_pci virtio_blk virtio_net veth tcp_bbr sch_fq sch_ingress cls_bpf sch_netem bridge 8021q nft_numgen nft_ct tun vhost_net macvlan ipvlan vrf geneve sit ip6_gre ip6_tunnel cls_u32 act_nat; do
    modprobe -S "$version" -d "$kernel" --show-depends "$module"
done | sed -n "s|^insmod $kernel/||p" | sort -u | while read -r module; do
    install -D -m 644 "$kernel/$module" "$root/$module"
done
cp "$kernel/lib/modules/$version"/modules.{order,builtin,builtin.modinfo} "$root/lib/modules/$version/"
depmod -b "$root" "$version"
(cd "$root" && find . | cpio --quiet -o -H newc) >"$work/initramfs"
rm -rf "$root"

# --- the machine -------------------------------------------------------------------------------
truncate -s 256M "$work/disk"
# Sets $ended, and $stands: why it would never have ended; empty: it did.
boot() {
    : >"$work/output"
    : >"$work/console"
    timeout -k 5 "$seconds" "$qemu" -machine pc -accel "${TAILLIGHT_GUEST_ACCEL:-tcg,thread=single}" -cpu max -smp "$cores" -m 1536 \
        -kernel "$kernel/boot/vmlinuz-$version" -initrd "$work/initramfs" \
        -append "console=ttyS0 tsc=reliable no_timer_check panic=-1 quiet" -nodefaults -no-reboot -display none \
        -serial "file:$work/console" -serial "file:$work/output" \
        "${nic[@]}" \
        -drive "file=$work/disk,format=raw,if=virtio,cache=unsafe" </dev/null >"$work/qemu" 2>&1 &
    pid=$!
    tail -f --pid=$pid -s 0.2 "$work/output" | sed -u 's|\r||g' &
    started=$SECONDS
    while kill -0 $pid 2>/dev/null && [ -z "$(why_it_stands)" ]; do
        look_at_host 2>/dev/null
        sleep 0.2
    done
    stands=$(why_it_stands)
    [ -z "$stands" ] || kill $pid 2>/dev/null
    wait $pid
    ended=$?
    pid=
    wait
}
why_it_stands() {
    grep -m 1 -o -e 'soft lockup.*' -e 'stands still: .*' "$work/console" ||
        { [ $((SECONDS - started)) -lt 60 ] || grep -q 'the guest is up' "$work/console" ||
            { [ $((SECONDS - started)) -lt 240 ] && [ "$(seconds_spent)" -lt 60 ]; } ||
            echo "not up after $((SECONDS - started)) s"; }
}
# Of the host's cores, by the emulator: where others have these, booting takes the longer.
seconds_spent() { ps -o cputimes= -p "$(pgrep -d, -g $pid)" 2>/dev/null | awk '{ n += $1 } END { print n + 0 }'; }
# Adds to $starved, ms, the time since the last look, where its threads waited for the host's cores four times as long as they had them.
look_at_host() {
    local emulator='' schedstat on off now=${EPOCHREALTIME/./} had=0 waited=0
    read -r emulator _ <"/proc/$pid/task/$pid/children" # timeout's; without an end of line
    [ -n "$emulator" ] || return
    for schedstat in /proc/"$emulator"/task/*/schedstat; do
        read -r on off _ <"$schedstat" && ((had += on, waited += off))
    done
    ((waited - before[1] > 4 * (had - before[0]) && waited - before[1] > 100000000 && (starved += (now - before[2]) / 1000)))
    before=("$had" "$waited" "$now")
}
before=(0 0 "${EPOCHREALTIME/./}") starved=0
boot
if [ -n "$stands" ]; then
    echo "the emulated machine stood still ($stands): booting it once more" >&2
    boot
fi
[ $starved -lt 2000 ] ||
    echo "the host starved the emulator: for $starved ms it waited for cores four times as long as it had them" >&2
[ $ended -ne 124 ] && [ $ended -ne 137 ] || {
    echo "the guest did not end within $seconds s; its console:" >&2
    tail -n 20 "$work/console" >&2
    exit 124
}
status=$(tar -xOf "$work/disk" ./.status 2>/dev/null) || {
    echo "the guest left no exit code; qemu said: $(cat "$work/qemu"); its console:" >&2
    tail -n 20 "$work/console" >&2
    exit 125
}
[ "$status" = 0 ] || [ "$status" = 77 ] || {
    echo "the guest's command ended with $status; its last steps:"
    tar -xOf "$work/disk" ./.steps
} >&2
[ -z "$out" ] || { mkdir -p "$out" && tar -xf "$work/disk" -C "$out" && rm "$out/.status" "$out/.steps"; }
exit "$status"
