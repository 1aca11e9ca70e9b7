# SPDX-License-Identifier: MIT
#
# What the tests of logins and TLS share: servers that are killed at the end, and a load's document.
# Sourced, with NAME of the test as $1; expects $BUILD.
taillight=${BUILD:-build}/taillight
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$(mktemp -d "/tmp/test-load-$1-XXXXXX")
servers=()
missing=
cleanup() {
    [ ${#servers[@]} -eq 0 ] || kill -9 "${servers[@]}" 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT
fail() {
    echo "FAIL: $*"
    cat "$dir"/out "$dir"/err "$dir"/log 2>/dev/null
    exit 1
}
. "$here/../ports.sh"
start() { # command ...; with PORT in its words
    claim_port
    "${@//PORT/$port}" >"$dir/log" 2>&1 &
    servers+=($!)
    await ports_listening "$port" || fail "$1 does not listen"
}
have() {
    command -v "$1" >/dev/null || { missing="$missing $1" && return 1; }
}
