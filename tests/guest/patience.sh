# shellcheck shell=bash
# Deadlines that follow what the machine gives, for tests/guest/run and its payloads: "patience SECONDS" is what so many seconds of a
# quiet machine are now. Sourced; call "measure_machine" from time to time, in the shell itself.

slowness=10 # in tenths; at least 10
measured_at=-1000

# Two starts of the program side by side, with some work, against what they take on a quiet machine of two cores. In an emulated machine
# that is much longer, and its clock is that of the host: a busy host shows there, too.
measure_machine() { # PROGRAM FOLDER
    [ $((SECONDS - measured_at)) -ge 10 ] || return 0
    local started=${EPOCHREALTIME/[.,]/} quiet_ms=40 took_ms last=$slowness workers=()
    [ "${EMULATED:-}" != 1 ] || quiet_ms=400
    "$1" generate kron --scale 10 --seed 1 --quiet "$2/measured.1" >/dev/null 2>&1 &
    workers+=($!)
    "$1" generate kron --scale 10 --seed 1 --quiet "$2/measured.2" >/dev/null 2>&1 &
    workers+=($!)
    wait "${workers[@]}"
    took_ms=$(((${EPOCHREALTIME/[.,]/} - started) / 1000))
    rm -f "$2/measured.1" "$2/measured.2"
    slowness=$((10 * took_ms / quiet_ms))
    [ "$slowness" -ge 10 ] || slowness=10
    [ "$slowness" -le 200 ] || slowness=200
    # The worse of this one and half of the last: load comes and goes.
    [ "$slowness" -ge $((last / 2)) ] || slowness=$((last / 2))
    measured_at=$SECONDS
}

patience() { # SECONDS
    echo $((($1 * slowness + 9) / 10))
}
