#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# `taillight capsule` as on a kernel without tcx (clsact_scene.sh).
set -u
here=$(dirname "$0")
for program in ip tc memcached python3 jq; do
    command -v $program >/dev/null || { echo "there is no $program"; exit 77; }
done
unshare -n tc qdisc add dev lo clsact 2>/dev/null || { echo "no clsact here: it takes root, and CONFIG_NET_SCH_INGRESS"; exit 77; }
said=$(python3 "$here/no_tcx.py" "$BUILD/taillight" capsule --hop lo --for 0.01 -q 2>&1)
[[ $said != *'no seccomp'* && $said != *'neither tcx'* && $said != *lacks* ]] || { echo "$said"; exit 77; }
exec bash "$here/clsact_scene.sh" python3 "$here/no_tcx.py" "$(cd "$BUILD" && pwd)/taillight"
