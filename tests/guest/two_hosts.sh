#!/bin/bash
# Two guests that map one memory, as two servers map a CXL pool: a memory node's segment lies in it, and each guest has a compute node.
# $ROLE tells them apart: the memory node is in guest 0. tests/guest/run hands what it says about the pool on to guest 1.
# shellcheck source=tests/guest/cases.sh
. "$CHECKOUT/tests/guest/cases.sh"

graph=$scratch/graph
shared=/run/results
own_address=10.99.0.$((ROLE + 1))

# The memory is the third region of a PCI device, which has to be switched on to be mapped.
find_memory() {
    local device
    for device in /sys/bus/pci/devices/*; do
        if [ "$(cat "$device/vendor") $(cat "$device/device")" = "0x1af4 0x1110" ]; then
            echo 1 >"$device/enable"
            memory=$device/resource2
            return 0
        fi
    done
    return 1
}
connect_hosts() {
    modprobe virtio_net && wait_until test -e /sys/class/net/eth0 && ip address add "$own_address/24" dev eth0 &&
        ip link set eth0 up
}
file_of_pool=/tmp/dmgraph-0/hosts.pool
say_of_pool() { # NAME: a value in the pool's file
    sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" "$file_of_pool" | tail -n 1
}
tell() { # FILE: for the other guest, as a whole
    cat >"$shared/$1.new" && mv "$shared/$1.new" "$shared/$1"
}
wait_for_other() { # FILE
    wait_within 90 test -e "$shared/$1"
}
start_pool() { # TRANSPORT
    bounded 60 "$dmgraph" pool start --name hosts --memory 48M --peer-timeout "$(patience 60)s" --transport "$1" --bind "$own_address"
}

"$dmgraph" generate kron --scale 9 "$graph" --quiet
holds "guest $ROLE has the memory" find_memory
holds "guest $ROLE is on the wire" connect_hosts
for coherence in coherent none; do
    transport=cxl_shm:coherence=$coherence,path=$memory,port=7711
    if [ "$ROLE" = 0 ]; then
        holds "$coherence: a memory node starts in the memory" start_pool "$transport"
        printf '%s %s\n' "$(say_of_pool address)" "$(say_of_pool token)" | tell "pool.$coherence"
    else
        holds "$coherence: the other guest has a memory node" wait_for_other "pool.$coherence"
    fi
    read -r address token <"$shared/pool.$coherence"
    succeeds "$coherence: guest $ROLE agrees with a serial computation, bfs, cc, pagerank, sssp" 120 \
        "$BUILD/tests/guest-rank" "cxl_shm:coherence=$coherence,path=$memory" "$address" "$token" "$coherence" "$ROLE" 2 "$graph"
    cat "$scratch/output"
    if [ "$ROLE" = 0 ]; then
        holds "$coherence: guest 1 is done" wait_for_other "done.$coherence"
        holds "$coherence: the memory node ends" bounded 60 "$dmgraph" pool stop hosts
    else
        echo done | tell "done.$coherence"
    fi
done
[ "$failures" = 0 ]
