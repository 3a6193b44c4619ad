# shellcheck shell=bash
# Soft-RoCE devices, made and removed. Sourced, with root's rights; works in a guest and on any machine whose kernel has rdma_rxe.
# docs/soft-roce.md tells what each step is for. Wants cases.sh. All names and addresses are these devices' own.

# In a guest, whose root is its own, libibverbs is spared the drivers of cards: each costs every process a little, and emulated a second in all.
leave_out_drivers() {
    local driver
    for driver in /etc/libibverbs.d/*.driver; do
        [ "$(basename "$driver")" = rxe.driver ] || rm -f "$driver"
    done
}

load_rdma_modules() {
    modprobe -a rdma_rxe ib_uverbs rdma_ucm "$@"
}

# gid_is_there DEVICE ADDRESS: the RoCE v2 GID of an IPv4 address stands at index 1, a moment after the device is made
gid_is_there() {
    local gid
    # shellcheck disable=SC2046
    gid=$(printf 'ffff:%02x%02x:%02x%02x' $(echo "$2" | tr . ' '))
    grep -q "$gid" "/sys/class/infiniband/$1/ports/1/gids/1"
}

# add_interface_address INTERFACE ADDRESS. An MTU above 4096 and headers lets RoCE use its largest packets.
bring_up() {
    ip link set "$1" mtu 4500
    ip address add "$2/24" dev "$1"
    ip link set "$1" up
}

add_device() { # NAME INTERFACE ADDRESS
    rdma link add "$1" type rxe netdev "$2" && wait_until gid_is_there "$1" "$3"
}

# One device, dmgrxe, on an interface without a wire.
one_device() {
    load_rdma_modules dummy && ip link add dmgdummy type dummy && bring_up dmgdummy 10.97.0.1 &&
        add_device dmgrxe dmgdummy 10.97.0.1
}
remove_one_device() {
    rdma link delete dmgrxe
    ip link delete dmgdummy
}

# Two devices, dmgrxe1 and dmgrxe2, at the ends of one wire. Both stand in one network namespace, for rxe receives in the initial one
# alone. The kernel would deliver packets between two addresses of its own without a wire: these rules send them over it.
wire_rules() { # add|delete
    ip rule "$1" priority 1 iif dmgwire1 lookup local
    ip rule "$1" priority 1 iif dmgwire2 lookup local
    ip rule "$1" priority 2 from 10.98.0.1 to 10.98.0.2 lookup 9801
    ip rule "$1" priority 2 from 10.98.0.2 to 10.98.0.1 lookup 9802
}
two_devices() {
    load_rdma_modules veth sch_netem && ip link add dmgwire1 type veth peer name dmgwire2 || return
    bring_up dmgwire1 10.98.0.1
    bring_up dmgwire2 10.98.0.2
    local name settings
    for name in dmgwire1 dmgwire2 all; do
        settings=/proc/sys/net/ipv4/conf/$name
        echo 1 >"$settings/accept_local"
        echo 0 >"$settings/rp_filter"
        echo 1 >"$settings/arp_ignore"
        echo 2 >"$settings/arp_announce"
    done
    wire_rules add
    ip route add 10.98.0.2 dev dmgwire1 src 10.98.0.1 table 9801
    ip route add 10.98.0.1 dev dmgwire2 src 10.98.0.2 table 9802
    ip rule add priority 100 lookup local
    ip rule delete priority 0
    add_device dmgrxe1 dmgwire1 10.98.0.1 && add_device dmgrxe2 dmgwire2 10.98.0.2
}
remove_two_devices() {
    rdma link delete dmgrxe1
    rdma link delete dmgrxe2
    ip rule add priority 0 lookup local
    ip rule delete priority 100 lookup local
    wire_rules delete
    ip link delete dmgwire1
}

# lose PERCENT: on the wire, in both directions; 0 ends it
lose() {
    local interface
    for interface in dmgwire1 dmgwire2; do
        tc qdisc delete dev "$interface" root 2>/dev/null
        [ "$1" = 0 ] || tc qdisc add dev "$interface" root netem loss "$1%"
    done
}

lost_packets() {
    tc -s qdisc show dev dmgwire1 | sed -n 's/.*dropped \([0-9]*\),.*/\1/p' | head -n 1
}

# sent_packets DEVICE: RDMA sends, reads and writes are not counted apart by rxe; packets are
sent_packets() {
    cat "/sys/class/infiniband/$1/ports/1/hw_counters/sent_pkts"
}
