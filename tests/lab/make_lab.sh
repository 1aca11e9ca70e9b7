#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Makes what the lab needs under BUILD/lab and BUILD/guest: QEMU, its plugins and the guest's modules.
# make_lab.sh BUILD prints BUILD/lab. Exit 77 and the reason when a part cannot be had.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?usage: make_lab.sh BUILD}" && pwd)
skip() {
    tail -n 1 <<<"$1"
    exit 77
}
qemu=$("$here/fetch_qemu.sh" "$build") || skip "$qemu"
for module in intel_pt phcpair; do
    said=$("$here/../guest/build_module.sh" "$build" $module) || skip "$said"
done
cd "$here/../.."
exec 9>"$build/lab/.plugin-lock"
flock 9
make_plugin() { # NAME SOURCE...
    local plugin=$build/lab/$1.so
    shift
    [ -n "$(find "$@" tests/lab/*.h tests/guest/intel_pt/lab_page.h "$qemu" -maxdepth 0 -newer "$plugin" 2>&1)" ] || return 0
    ${CC:-gcc} -shared -fPIC -std=gnu17 -O2 -g -Wall -Wextra -Wshadow -Wvla -Wconversion ${CI:+-Werror} \
        -D_GNU_SOURCE -I. -isystem "$qemu/usr/include" -isystem "$qemu/usr/include/glib-2.0" \
        -isystem "$qemu/usr/lib/x86_64-linux-gnu/glib-2.0/include" -o "$plugin.new" "$@"
    mv "$plugin.new" "$plugin"
}
make_plugin pt_plugin tests/lab/{pt_plugin,pt_writer,instruction,counted_time}.c
make_plugin lines_plugin tests/lab/lines_plugin.c
echo "$build/lab"
