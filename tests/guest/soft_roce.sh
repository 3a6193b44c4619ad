#!/bin/bash
# RDMA without a card: the transport, BFS and PageRank over rc_verbs and ud_verbs, on one soft-RoCE device and on two with a wire between,
# which loses packets, goes down, and has a node killed behind it. In a guest, or as root on a machine with rdma_rxe:
# `tests/guest/run --here`.
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

[ -z "${GUEST:-}" ] || leave_out_drivers
"$dmgraph" generate kron --scale 9 "$graph" --quiet

holds "a soft-RoCE device comes up" one_device
rc_data=ucx:data=rc_verbs,device=dmgrxe,$retry
export DMGRAPH_TEST_TRANSPORT=$rc_data
suite "transport over rc_verbs" 240 "$BUILD/tests/unit-transport"
suite "faults over rc_verbs" 240 "$BUILD/tests/unit-transport_ucx"
unset DMGRAPH_TEST_TRANSPORT
over dmgrxe "rc_verbs" "ucx:data=rc_verbs,messages=rc_verbs,device=dmgrxe,$retry"
over dmgrxe "ud_verbs" "ucx:data=message,messages=ud_verbs,device=dmgrxe"
dies "a killed memory node ends the run: one device" 'memory node 0 .*killed by signal 9' dmgrxe \
    "ucx:data=rc_verbs,messages=rc_verbs,device=dmgrxe,$retry" kill_node memory
remove_one_device

holds "two soft-RoCE devices come up, with a wire between" two_devices
wire=device=dmgrxe2,memory-device=dmgrxe1,$retry
over dmgrxe1 "rc_verbs and a wire" "ucx:data=rc_verbs,messages=rc_verbs,$wire"
over dmgrxe1 "ud_verbs and a wire" "ucx:data=message,messages=ud_verbs,$wire"
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
