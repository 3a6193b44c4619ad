# shellcheck shell=bash disable=SC2154
# What boots a guest, for tests/guest/run: packages, kernel, initramfs, QEMU. Wants $work (a folder), $checkout and $build.
#
# The kernel is Debian's own, downloaded and unpacked but not installed. QEMU starts it as a bare ELF file, which spares the
# decompressor: under emulation that takes longer than the rest of the boot.

say() {
    printf '%s\n' "$*" >&2
}

# kernel_package: the package behind linux-image-amd64
kernel_package() {
    apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[0-9][^ ]*\)$/\1/p' | head -n 1
}

download_kernel() { # PACKAGE
    mkdir -p "$work/download"
    (cd "$work/download" && timeout 300 apt-get -qq -o APT::Sandbox::User=root -o Acquire::Retries=3 download "$1") &&
        dpkg -x "$work/download/$1"_*.deb "$work/kernel.new"
    local status=$?
    rm -rf "$work/download"
    return "$status"
}

# number_at FILE OFFSET BYTES: a little-endian number of the file
number_at() {
    od -An -t "u$3" -j "$2" -N "$3" "$1" | tr -d ' '
}

# extract_elf IMAGE ELF: the boot protocol's header says where the compressed kernel lies; its last four bytes are its size
extract_elf() {
    local start length
    start=$((($(number_at "$1" 497 1) + 1) * 512 + $(number_at "$1" 584 4)))
    length=$(($(number_at "$1" 588 4) - 4))
    tail -c +$((start + 1)) "$1" | head -c "$length" | xz -dc >"$2" && [ "$(head -c 4 "$2" | tail -c 3)" = ELF ]
}

kernel_version() {
    ls "$work/kernel/lib/modules"
}

prepare_kernel() {
    local package
    package=$(kernel_package)
    if [ -z "$package" ]; then
        apt-get -qq update >/dev/null 2>&1
        package=$(kernel_package)
    fi
    if [ -f "$work/kernel/vmlinux" ] && { [ -z "$package" ] || [ "$(cat "$work/kernel/package")" = "$package" ]; }; then
        return 0
    fi
    [ -n "$package" ] || { say "guest: Debian's kernel package linux-image-amd64 cannot be had: no guest is booted"; return 1; }
    rm -rf "$work/kernel" "$work/kernel.new"
    download_kernel "$package" || { say "guest: the kernel package $package cannot be downloaded: no guest is booted"; return 1; }
    depmod -b "$work/kernel.new" "$(ls "$work/kernel.new/lib/modules")" &&
        extract_elf "$work/kernel.new"/boot/vmlinuz-* "$work/kernel.new/vmlinux" ||
        { say "guest: the kernel package $package is not packed as expected: no guest is booted"; return 1; }
    echo "$package" >"$work/kernel.new/package"
    mv "$work/kernel.new" "$work/kernel"
}

# Static busybox, the program above, and the modules that the mounts need; all others come from the mounts.
prepare_initramfs() {
    local tree module
    tree=$(mktemp -d "$work/initramfs.XXXXXX")
    mkdir -p "$tree/bin" "$tree/modules"
    cp /bin/busybox "$tree/bin/"
    cp "$checkout/tests/guest/init" "$tree/init"
    chmod 755 "$tree/init"
    for module in virtio_pci 9p 9pnet_virtio overlay; do
        modprobe -d "$work/kernel" -S "$(kernel_version)" --show-depends "$module"
    done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r module; do
        cp "$module" "$tree/modules/"
        basename "$module" >>"$tree/modules/order"
    done
    (cd "$tree" && find . | cpio --quiet -o -H newc) >"$work/initramfs"
    local status=$?
    rm -rf "$tree"
    return "$status"
}

# qemu RESULTS SECONDS ARGUMENT...: start a guest and wait for its end, so long on a quiet host. Extra arguments follow those that every guest has.
qemu() {
    local results=$1 seconds=$2
    shift 2
    # Two processors at least: with one, emulation needs no atomic instructions, and what another guest or process adds is lost.
    local processor=(-accel "tcg,thread=multi" -cpu "max,la57=off") # page tables of five levels make emulation slower
    [ "$(cat "$work/accelerator" 2>/dev/null)" != kvm ] || processor=(-accel kvm -cpu host)
    local shares=(-virtfs "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap"
        -virtfs "local,path=$checkout,mount_tag=checkout,security_model=none,readonly=on,multidevs=remap"
        -virtfs "local,path=$build,mount_tag=build,security_model=none,readonly=on,multidevs=remap"
        -virtfs "local,path=$results,mount_tag=results,security_model=none")
    timeout --foreground -k 5 "$(patience "$seconds")" qemu-system-x86_64 "${processor[@]}" -smp 2 -nodefaults -no-reboot -display none -monitor none \
        -serial "file:$results/console" -kernel "$work/kernel/vmlinux" -initrd "$work/initramfs" \
        -append "console=ttyS0 quiet panic=-1 oops=panic mitigations=off nokaslr tsc=reliable tsc_early_khz=$("$build/tests/guest-tsc-frequency")" \
        "${shares[@]}" "$@" </dev/null >"$results/qemu" 2>&1
}

# make_results RESULTS PAYLOAD [ROLE]: an empty folder for what the guest leaves, with what it has to know
make_results() {
    rm -rf "$1"
    mkdir -p "$1"
    printf 'checkout=%q\nbuild=%q\nmodules=%q\npayload=%q\nrole=%q\nemulated=%q\n' "$checkout" "$build" "$work/kernel/lib/modules" \
        "$2" "${3:-}" "$([ "$(cat "$work/accelerator" 2>/dev/null)" = kvm ] || echo 1)" >"$1/settings"
}

# Hardware virtualisation where a trial boot with it works; it is there and broken on some virtual machines.
choose_accelerator() {
    [ ! -f "$work/accelerator" ] || return 0
    local accelerator=tcg
    if [ -r /dev/kvm ] && [ -w /dev/kvm ]; then
        echo kvm >"$work/accelerator"
        make_results "$work/trial" nothing.sh
        (qemu "$work/trial" 15 -machine q35 -m 512M) 2>/dev/null
        [ "$(cat "$work/trial/status" 2>/dev/null)" != 0 ] || accelerator=kvm
    fi
    echo "$accelerator" >"$work/accelerator"
}

prepare_guests() {
    command -v qemu-system-x86_64 >/dev/null || { say "guest: QEMU (qemu-system-x86) is not installed: no guest is booted"; return 1; }
    mkdir -p "$work"
    prepare_kernel && prepare_initramfs && choose_accelerator
}
