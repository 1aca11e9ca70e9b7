#!/usr/bin/env bash
# `taillight doctor HOST` through a real sshd: what it says of the host is what the host says of
# itself, what goes wrong names the host with ssh's own words, and nothing is left there.
# Runs beside others: words and files, no times.
. "$(dirname "$0")/../run_lib.sh"
. "$(dirname "$0")/ssh_lib.sh"
need_program jq jq
ssh_hosts there
doctor() { near "$taillight" doctor --ssh-config "$ssh_config" --directory "$work/there-files" "$@"; }
refused() { # EXIT PATTERN ARGUMENTS...
    local wanted=$1 pattern=$2 said="$work/refused-$BASHPID.err" status
    shift 2
    doctor "$@" >"$said.out" 2>"$said"
    status=$?
    [ $status -eq "$wanted" ] || fail "doctor $*: exit $status instead of $wanted"
    grep -Eq "$pattern" "$said" || fail "doctor $*: does not say \"$pattern\""
    echo "doctor $*: $(tail -n 1 "$said")"
}
# This one waits, for a second; the others meanwhile.
refused 1 '^taillight: the link to host 10.246.0.99 could not be set up: .*(timed out|No route)' 10.246.0.99 --ssh-option ConnectTimeout=1 &
waiting=$!

doctor there --json >"$work/far.json" 2>"$work/doctor.err" || fail "doctor there: exit $?"
far there "$taillight" doctor --json >"$work/itself.json" || fail "doctor on the host"
for what in .host.boot_id .host.kernel .host.cores '[.items[].name]'; do
    [ "$(jq -c "$what" "$work/far.json")" = "$(jq -c "$what" "$work/itself.json")" ] ||
        fail "doctor there and the host itself differ in $what"
done
ssh_nothing_left there 10

refused 1 'Permission denied \(publickey\)' there --ssh-option PubkeyAuthentication=no
refused 1 'Connection refused' there --ssh-option Port=2
refused 1 'Host key verification failed' there --ssh-option UserKnownHostsFile=/dev/null
refused 2 'is not a \[user@\]host' 'there;id'
refused 1 'mktemp: .*No such file or directory .*`directory` can be another place' there --directory "$work/none"
refused 2 'is not an absolute path' there --directory '/tmp/$(id)'
# A disk too small for the program, and one that may not run any.
mkdir "$work/small"
inside there mount -t tmpfs -o size=1m tmpfs "$work/small" || skip "no tmpfs can be mounted here; the rest passed"
refused 1 'could not be set up: .*No space left on device' there --directory "$work/small"
[ -z "$(inside there ls "$work/small")" ] || fail "left on the small disk: $(inside there ls "$work/small")"
inside there mount -o remount,size=200m,noexec "$work/small"
refused 1 'could not be set up: .*Permission denied \(in .*/small there; `directory` can be' there --directory "$work/small"
[ -z "$(inside there ls "$work/small")" ] || fail "left on the disk without programs"
inside there mount -o remount,ro,exec "$work/small"
refused 1 'Read-only file system \(in .*/small there; `directory` can be' there --directory "$work/small"
ssh_nothing_left there 10
wait $waiting || exit 1
