#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# The headline path (headline_lib.sh) with a memcached in which one function was made slower for some keys: that function is a
# cause. The first may be the wait of those behind these requests.
# Time limit: 900 s
if [ "${1:-}" != inside ]; then
    made=$(tests/lab/make_memcached.sh "${BUILD:=build}") || { tail -n 1 <<<"$made"; exit 77; }
fi
SERVER='kind: memcached'
RATE=10
AT_SERVER='cp /guest/memcached /usr/bin/memcached'
BRINGING=(-f "$BUILD/lab/memcached")
. tests/lab/headline_lib.sh
expect '[.causes[] | select(.class == "function" and (.cause | contains("do_item_get")))] | length > 0'
