#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Runs a command on a machine with Intel PT and NIC clocks that is made of software (docs/lab.md):
#
#     lab.sh [-o DIR] [-t SECONDS] [-c CORES] [-n TAP] [-p PROGRAM]... [-f FILE]... [-x OPTIONS] [-i] COMMAND
#
# As tests/guest/run_guest.sh, whose options these are, with QEMU 10, the plugin that writes the trace,
# the PMU intel_pt, perf, and the pair of NICs with clocks (`insmod phcpair.ko`). DIR/lab gets the truth: cpuN.truth,
# what ran while it was traced. -x is for the plugin: raw=on (DIR/lab/cpuN.pt too), truth=off, ctc=TICKS (MTC).
# With -i the guest's time is its own work, whatever the host does: each instruction takes a nanosecond, and where all cores sleep
# the next timer is due at once. Microseconds mean something then. Its cores take turns in one thread, at each interrupt that one
# sends to another and at each sleep, else at the next timer.
# Exit 77 and a reason: the lab cannot be had here.
set -u
here=$(cd "$(dirname "$0")" && pwd)
guest=$here/../guest
: "${BUILD:=build}"
out='' cores=2 options=() given='' LAB_COUNTED=
while getopts o:t:c:n:p:f:x:i option; do
    case $option in
        o) out=$OPTARG ;;
        c) cores=$OPTARG ;;
        x) given=$OPTARG ;;
        i) LAB_COUNTED=yes TAILLIGHT_GUEST_ACCEL=tcg,thread=single ;;
        t | n | p | f) options+=("-$option" "$OPTARG") ;;
        *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
command=${1:?usage: lab.sh [options] COMMAND}
made=$("$here/make_lab.sh" "$BUILD") || {
    tail -n 1 <<<"$made"
    exit 77
}
work=$(mktemp -d /tmp/taillight-lab-XXXXXX)
LAB_PAGE=$(mktemp /dev/shm/taillight-lab-XXXXXX)
trap 'rm -rf "$work" "$LAB_PAGE"' EXIT
trap 'exit 130' INT TERM
export TAILLIGHT_GUEST_ACCEL=${TAILLIGHT_GUEST_ACCEL:-tcg,thread=multi} # the plugin's, a thread a core
export LAB_COUNTED LAB_PAGE LAB_OUT=$work/lab LAB_OPTIONS=$given LAB_CPUS=$cores
export LAB_QEMU=$made/qemu LAB_PLUGIN=$made/pt_plugin.so LAB_BYTES=$((64 << 20))
truncate -s $LAB_BYTES "$LAB_PAGE"
mkdir "$LAB_OUT"
module=$made/../guest
"$guest/run_guest.sh" -q "$here/qemu.sh" -c "$cores" ${out:+-o "$out"} -p perf -f "$module/intel_pt/intel_pt.ko" \
    -f "$module/phcpair/phcpair.ko" "${options[@]}" "insmod intel_pt.ko || exit 1; $command"
status=$?
[ -z "$out" ] || { mkdir -p "$out" && mv "$LAB_OUT" "$out/"; }
exit $status
