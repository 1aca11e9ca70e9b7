# SPDX-License-Identifier: MIT
#
# For test scripts that start servers and wait for them.
#
# pause SECONDS: sleeps without starting a program, which takes longer than many a pause. Nobody writes what
# is read.
exec {never}<> <(:)
pause() { read -r -t "$1" -u "$never" || :; }

# await COMMAND...: waits until it succeeds, for a minute at most. What soon comes on an idle machine
# comes later on a busy one; only what never comes is a failure. Looks less often at what does not come soon:
# most looks are a program.
await() {
    local last=$((SECONDS + 60)) await_looks=0 # a name that no COMMAND uses: it would be this one
    until "$@" 2>/dev/null; do
        [ $SECONDS -lt $last ] || return 1
        [ $((await_looks++)) -lt 10 ] && pause 0.03 || pause 0.1
    done
}

# value NAME: of the load's document in $dir/out, a member that is no object; without starting a program.
value() {
    local line
    while IFS= read -r line; do
        [[ $line == "  \"$1\": "* ]] || continue
        line=${line#*: } line=${line#\"}
        echo "${line%%[\",]*}"
    done <"$dir/out"
}

# rest_is_long: `make check` ends a test here; what comes behind is for check-long and check-trust.
is_long() { [ -n "${TAILLIGHT_LONG:-}${TAILLIGHT_TRUST:-}" ]; }
rest_is_long() { is_long || exit 0; }

# claim_port: sets `port` to one on which nobody listens, by
# TCP over IPv4 or IPv6. It is this script's, and its children's, for as long as they live: another
# copy that runs meanwhile gets another, also between the look and the server's bind. Below the
# range that the kernel takes local ports from.
ports_listening() { (exec 3<>"/dev/tcp/127.0.0.1/$1" || exec 3<>"/dev/tcp/::1/$1") 2>/dev/null; }
claim_port() {
    local folder=${TMPDIR:-/tmp}/taillight-ports-$EUID claim
    [ -d "$folder" ] || mkdir -p "$folder"
    for _ in {1..200}; do
        port=$((20000 + RANDOM % 12000))
        exec {claim}>"$folder/$port"
        flock -n "$claim" && ! ports_listening $port && return
        exec {claim}>&-
    done
    echo 'no free port found' >&2
    exit 1
}
