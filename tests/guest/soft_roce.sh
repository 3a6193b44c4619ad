#!/bin/bash
# RDMA without a card: the transport, BFS and PageRank over rc_verbs and ud_verbs, on one soft-RoCE device and on two with a wire between,
# which loses packets, goes down, and has a node killed behind it; and a run that was given up, and goes on. In a guest, or as root on a
# machine with rdma_rxe: `tests/guest/run --here`.
# shellcheck source=tests/guest/cases.sh
. "$CHECKOUT/tests/guest/cases.sh"
# shellcheck source=tests/guest/devices.sh
. "$CHECKOUT/tests/guest/devices.sh"

# An emulated machine is slow, and a busy one slower: nothing is dead that answers within this.
patient() {
    echo --peer-timeout "$(patience 30)s"
}
graph=$scratch/graph
retry=retries=4,retry-time=200ms

# over DEVICES TRANSPORTS...: BFS and PageRank, each with a memory node and two compute nodes, seen on the device
over() {
    local device=$1 title=$2 transport=$3 before
    before=$(sent_packets "$device")
    # shellcheck disable=SC2046
    answers "bfs over $title" 100 bfs "$graph" --transport "$transport" --mns 1 --cns 2 --threads 1 $(patient)
    # shellcheck disable=SC2046
    answers "pagerank over $title" 100 pagerank "$graph" --transport "$transport" --mns 1 --cns 2 --threads 1 \
        --iterations 5 $(patient)
    holds "the device carried it: $title" test $(($(sent_packets "$device") - before)) -gt 100
}

# endless TRANSPORT OPTION...: starts a run that does not end by itself; $run is its process
endless() {
    local transport=$1
    shift
    "$dmgraph" run pagerank "$graph" --transport "$transport" --mns 1 --cns 2 --threads 1 --iterations 1000000 --tolerance 0 \
        --quiet --no-progress "$@" >"$scratch/endless" 2>&1 &
    run=$!
}
node_of_run() { # memory|compute: the first process of that kind below the run
    local child
    for child in $(pgrep -P "$run"); do
        if tr '\0' ' ' <"/proc/$child/cmdline" | grep -q "$1"; then
            echo "$child"
            return
        fi
    done
    return 1
}
# iterates DEVICE: the run has started its iterations when so much has passed
iterates() {
    [ $(($(sent_packets "$1") - packets_at_start)) -gt 500 ]
}
iterates_or_ends() { # DEVICE
    iterates "$1" || ! kill -0 "$run" 2>/dev/null
}
wait_until_it_iterates() {
    wait_within 60 iterates_or_ends "$1" && iterates "$1"
}
# dies NAME PATTERN DEVICE TRANSPORT COMMAND...: while a run iterates something happens, and it ends with exit code 5 and one line
dies() {
    local name=$1 pattern=$2 device=$3 transport=$4 status
    shift 4
    packets_at_start=$(sent_packets "$device")
    measure_machine "$dmgraph" "$scratch"
    endless "$transport" --peer-timeout "$(patience 15)s"
    if ! wait_until_it_iterates "$device"; then
        kill -KILL "$run" 2>/dev/null
        wait "$run"
        fail "$name (it did not begin)" "$scratch/endless"
        return
    fi
    "$@"
    (sleep "$(patience 60)"; kill -KILL "$run" 2>/dev/null) &
    local guard=$!
    wait "$run"
    status=$?
    kill "$guard" 2>/dev/null
    wait "$guard" 2>/dev/null
    ends_with "$name" 5 "$pattern" "$scratch/endless" "$status"
}
kill_node() {
    kill -KILL "$(node_of_run "$1")"
}

# says NUMBER: a number of the pool's status
says() {
    bounded 30 "$dmgraph" pool status rdma --json | sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" | head -n 1
}
allocates() { # BYTES
    [ "$(says allocated_bytes)" = "$1" ]
}
# listens PROCESS...: one of them has a port, or a UDP socket
listens() {
    local process
    for process in "$@"; do
        ss -Hltunp 2>/dev/null | grep -q "pid=$process," && return 0
    done
    return 1
}
has_ended() { # PROCESS: a child of ours
    case $(ps -o stat= -p "$1") in
    '' | Z*) return 0 ;;
    *) return 1 ;;
    esac
}
# given_up DEVICE TRANSPORT: a run in a pool is stopped for longer than its lease, other graphs are loaded, and it goes on
given_up() {
    local device=$1 transport=$2 node full status loads=0 stopped
    measure_machine "$dmgraph" "$scratch"
    bounded 60 "$dmgraph" pool start --name rdma --memory 16M --transport "$transport" --peer-timeout "$(patience 6)s" >"$scratch/pool" 2>&1
    verdict "a pool starts" $? "$scratch/pool"
    node=$(sed -n 's/.*pid \([0-9]*\),.*/\1/p' "$scratch/pool")
    succeeds "a graph is loaded over RDMA" 60 "$dmgraph" load "$graph" --pool rdma --as graph --threads 1
    full=$(says allocated_bytes)
    packets_at_start=$(sent_packets "$device")
    "$dmgraph" run pagerank graph --pool rdma --cns 2 --threads 1 --iterations 1000000 --tolerance 0 --quiet --no-progress \
        >"$scratch/endless" 2>&1 &
    run=$!
    if ! wait_until_it_iterates "$device"; then
        kill -KILL "$run" 2>/dev/null
        wait "$run"
        fail "a run in the pool (it did not begin)" "$scratch/endless"
        return
    fi
    # A guest has no /dev/fd, which a process substitution would need.
    mapfile -t stopped <<<"$run"$'\n'"$(pgrep -P "$run")"
    if listens "$node" "${stopped[@]}"; then fail "nothing listens where a stranger could connect"; else ok "nothing listens where a stranger could connect"; fi
    kill -STOP "${stopped[@]}"
    holds "what a stopped run had is free when its lease is over" wait_within 60 allocates "$full"
    # The first of them lies where the run's memory was.
    while [ "$loads" -lt 2 ] && bounded 60 "$dmgraph" load "$graph" --pool rdma --as "neighbour$loads" --threads 1 >"$scratch/load" 2>&1; do
        loads=$((loads + 1))
    done
    holds "other graphs are loaded" test "$loads" -eq 2
    kill -CONT "${stopped[@]}"
    wait_within 60 has_ended "$run" || kill -KILL "$run"
    wait "$run"
    status=$?
    ends_with "the run that was given up says so" 5 'given up|peer timeout' "$scratch/endless" "$status"
    while [ "$loads" -gt 0 ]; do
        loads=$((loads - 1))
        answers "neighbour $loads is as it was loaded" 60 bfs "neighbour$loads" --pool rdma --threads 1
    done
    holds "the pool ends" bounded 60 "$dmgraph" pool stop rdma
}

[ -z "${GUEST:-}" ] || leave_out_drivers
"$dmgraph" generate kron --scale 9 "$graph" --quiet

holds "a soft-RoCE device comes up" one_device
rc_data=ucx:data=rc_verbs,device=dmgrxe,$retry
export DMGRAPH_TEST_TRANSPORT=$rc_data
suite "transport over rc_verbs" 240 "$BUILD/tests/unit-transport"
export DMGRAPH_TEST_TRANSPORT=$rc_data,messages=rc_verbs
suite "faults over rc_verbs" 300 "$BUILD/tests/unit-transport_ucx"
unset DMGRAPH_TEST_TRANSPORT
over dmgrxe "rc_verbs" "ucx:data=rc_verbs,messages=rc_verbs,device=dmgrxe,$retry"
over dmgrxe "ud_verbs" "ucx:data=message,messages=ud_verbs,trust-network=yes,device=dmgrxe"
given_up dmgrxe "ucx:data=rc_verbs,device=dmgrxe,$retry"
dies "a killed memory node ends the run: one device" 'memory node 0 .*killed by signal 9' dmgrxe \
    "ucx:data=rc_verbs,messages=rc_verbs,device=dmgrxe,$retry" kill_node memory
remove_one_device

holds "two soft-RoCE devices come up, with a wire between" two_devices
wire=device=dmgrxe2,memory-device=dmgrxe1,$retry
over dmgrxe1 "rc_verbs and a wire" "ucx:data=rc_verbs,messages=rc_verbs,$wire"
over dmgrxe1 "ud_verbs and a wire" "ucx:data=message,messages=ud_verbs,trust-network=yes,$wire"
lose 3
over dmgrxe1 "rc_verbs and a wire that loses 3 %" "ucx:data=rc_verbs,messages=rc_verbs,$wire"
holds "the wire lost packets" test "$(lost_packets)" -gt 0
lose 0
dies "a killed compute node ends the run" 'compute node [01] .*killed by signal 9' dmgrxe1 \
    "ucx:data=rc_verbs,messages=rc_verbs,$wire" kill_node compute
dies "a wire that goes down ends the run" 'memory node 0' dmgrxe1 "ucx:data=rc_verbs,messages=rc_verbs,$wire" \
    ip link set dmgwire1 down
remove_two_devices
[ "$failures" = 0 ]
