#!/usr/bin/env bash
# Only arming takes rights. A run that was started with sudo leaves its folder to whoever typed that;
# who reads what servers and the kernel wrote, the load and the analysis, is that user, without any
# capability. So are analyze, report and compare that root starts on another user's folder.
# Runs beside others: who does what, not how fast.
. tests/experiments/run_lib.sh
need_program memcached memcached
need_program sqlite3 sqlite3
[ "$(id -u)" = 0 ] || skip "giving up root's rights takes root"
[ "$(nproc)" -ge 2 ] || skip "client and server need a core each; this machine has one for us"
need_program setpriv util-linux
setpriv --reuid=65534 --regid=65534 --clear-groups "$taillight" --version >/dev/null 2>&1 ||
    skip "user nobody cannot run what was built here"
claim_port
experiment "$work/user.yaml" local 500 1s <<<"servers: {cache: {kind: memcached, threads: 1, port: $port}}
capture: {backend: none}"
sudo=(env SUDO_UID=65534 SUDO_GID=65534)

# What each process of a run is, while it lasts: "<first words> <user> <capabilities>", once each. Starts little itself: a
# load of a second must not end between two looks. What the kernel says of a process is taken at once: read line by line, it
# is made anew each time, and a line that moved meanwhile is missed.
watch_processes() { # PID
    local process children words lines line said user
    for ((i = 0; i < 3000; i++)); do
        kill -0 "$1" 2>/dev/null || break
        read -r -a children <"/proc/$1/task/$1/children"
        for process in "${children[@]}"; do
            mapfile -d '' -t words <"/proc/$process/cmdline"
            mapfile -t lines <"/proc/$process/status"
            user=unknown
            for line in "${lines[@]}"; do
                case $line in
                    Uid:*) read -r -a said <<<"$line" && user=${said[2]} ;;
                    CapEff:*) echo "${words[1]:-} $user ${line##*[[:space:]]}" ;;
                esac
            done
        done
        sleep 0.01
    done 2>/dev/null | sort -u # they end while they are looked at
}

mkdir "$work/mine" && chmod 711 "$work/mine" # root's own: the user can pass it, and make nothing in it
run="$work/mine/new/run"
"${sudo[@]}" "$taillight" run "$work/user.yaml" --out "$run" --quiet >"$work/out" 2>"$work/run.err" &
watch_processes $! >"$work/seen"
wait $!
status=$?
[ $status -eq 4 ] || [ $status -eq 0 ] || fail "exit $status"
[ -s "$run/summary.json" ] && [ -s "$run/report.html" ] || fail "no results"
[ -z "$(find "$work/mine/new" ! -uid 65534)" ] || fail "left to root: $(find "$work/mine/new" ! -uid 65534)"
grep -q '^load 65534 0*$' "$work/seen" || fail "no load as the user without capabilities: $(cat "$work/seen")"
grep -q '^load 0 ' "$work/seen" && fail "a load as root: $(cat "$work/seen")"
grep -q '^run 65534 0*$' "$work/seen" || fail "nobody who reads as the user: $(cat "$work/seen")"

# Where the user cannot go, the folder stays root's, and the run says so.
mkdir -m 700 "$work/closed"
"${sudo[@]}" "$taillight" run "$work/user.yaml" --out "$work/closed/run" --quiet >"$work/out" 2>"$work/run.err"
status=$?
[ $status -eq 4 ] || [ $status -eq 0 ] || fail "exit $status where the user cannot go"
grep -q 'cannot reach .*stays root' "$work/run.err" || fail "does not say that the folder stays root's"
[ "$(stat -c %u "$work/closed/run/report.html")" = 0 ] || fail "it does not"

# Root on that folder: the user reads and writes, so nothing is written that he could not.
for words in "analyze $run --out $work/closed/else" "report $run -o $work/closed/page.html" \
    "compare $run $run -o $work/closed/page.html"; do
    # shellcheck disable=SC2086
    "$taillight" $words >"$work/out" 2>"$work/read.err" && fail "taillight $words could be written"
    grep -q 'Permission denied' "$work/read.err" || fail "taillight $words does not say why not"
    grep -q "reading $run as nobody" "$work/read.err" || fail "taillight $words does not say who reads"
done
[ -z "$(find "$work/closed" -mindepth 1 -maxdepth 1 ! -name run)" ] || fail "something was written as root"
rm "$run/report.html" "$run/summary.json"
"$taillight" analyze "$run" --quiet >"$work/out" 2>"$work/read.err"
"$taillight" report "$run" --quiet >"$work/out" 2>"$work/read.err"
[ "$(stat -c %u "$run/report.html" "$run/summary.json" | sort -u)" = 65534 ] || fail "not written as the user"
exit 0
