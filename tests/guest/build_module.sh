#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Builds the kernel module of a folder beside this script for the guest's kernel:
# build_module.sh BUILD NAME. Prints the path of NAME.ko. Exit 77 and the reason when the kernel's
# headers, or the compiler it was built with, cannot be had.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${1:?usage: build_module.sh BUILD NAME}" && pwd)
name=${2:?}
kernel=$("$here/fetch_kernel.sh" "$build" headers) || {
    tail -n 1 <<<"$kernel"
    exit 77
}
version=${kernel##*/kernel-}
headers=$build/guest/headers-$version
tree=$headers/usr/src/linux-headers-$version
# The package expects to lie under /usr.
sed -i "s|^include /usr/src|include $headers/usr/src|" "$tree/Makefile"
compiler=$(sed -n 's/^CONFIG_CC_VERSION_TEXT="\([^ ]*\).*/\1/p' "$tree/.config")
command -v "$compiler" >/dev/null || {
    echo "the guest's kernel was built with $compiler, which is not here"
    exit 77
}
mkdir -p "$build/guest/$name"
exec 9>"$build/guest/$name/.lock"
flock 9
cp -u "$here/$name"/*.[ch] "$build/guest/$name/"
echo "obj-m := $name.o" >"$build/guest/$name/Kbuild"
env -u MAKEFLAGS -u MAKELEVEL make -s -C "$tree" M="$build/guest/$name" CC="$compiler" modules \
    >"$build/guest/$name/log" 2>&1 || {
    cat "$build/guest/$name/log" >&2
    exit 1
}
echo "$build/guest/$name/$name.ko"
