#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# Somebody on the way sends packets of his own with trailers that he has seen, as they are, changed, or behind a packet
# of another flow, while packets carry their stamps: none of the others is lost or changed, no stamp that no hop wrote
# is believed, and each packet is counted at each hop, as what it was.
set -u
. "$(dirname "$0")/route_lib.sh"
make_route
need_carrying
serve_echo
timeout 60 "$taillight" capsule "${hops[@]}" --carry --filter 'udp port 7007' --json >"$work/forged.json" 2>"$work/forged.err" &
capsule=$!
children+=($capsule)
measures "$work/forged.err"
# What comes from the client is seen at p1, and sent to the server out of vs.
nsenter -t "$middle" -n python3 "$here/forge.py" p1 vs 5 >"$work/forger" 2>"$work/forger.err" &
forger=$!
children+=($forger)
await grep -q ready "$work/forger" || fail "there is no forger"
in_namespace "$client" timeout 30 python3 - <<'PY' || fail "datagrams are lost or changed"
import random, socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
s.connect(("10.99.0.2", 7007))
sent = set()
for n in range(2000):
    data = n.to_bytes(4, "big") + random.randbytes(random.choice((1, 18, 200, 1300)))
    sent.add(data)
    s.send(data)
    while (back := s.recv(2000)) != data: # the server answers forged ones too
        assert back in sent
PY
wait $forger || fail "the forger: exit $?"
kill -INT $capsule
wait $capsule || fail "exit $?"
jq -e --arg there "$there" --arg back "$back" --arg carries "vs:egress@$middle" --argjson forged "$(tail -n 1 "$work/forger")" '
    def all_hops(key): [.hops[][key]] | add;
    ([.routes[].hops | map(.hop) | join(" ")] | sort) == ([$there, $back] | sort)
    and all(.routes[]; .complete == 2000) and .rare == 0
    and $forged.all > 1000 and ($forged | length) == 9
    and all_hops("ended") == all_hops("recorded") + all_hops("damaged") and all_hops("dropped") == 0
    and all_hops("damaged") > 0 and all_hops("foreign") > 0
    and all(.hops[] | select(.role == "begins" and .matched == 2000); .begun == 2000)
    and all(.hops[] | select(.role == "ends"); .matched == .ended + .foreign + .unsampled)
    and all(.hops[] | select(.role == "carries"); .matched == .stamped + .foreign + .unsampled + .not_stamped)
    and any(.hops[]; .name == $carries and .matched == 2000 + $forged.all)' "$work/forged.json" >/dev/null ||
    fail "forged $(cat "$work/forger"): $(jq -c '.rare, (.routes[] | [.packets, .complete, .gaps, [.hops[].hop]]), (.hops[] | {name, role, matched, begun, stamped, ended, recorded, damaged, foreign, unsampled, not_stamped, dropped})' "$work/forged.json")"
echo "forged: $(tail -n 1 "$work/forger")"
