# shellcheck shell=bash
# How payloads state what they prove. Sourced. Every case prints one line: "ok NAME" or "FAIL NAME".
# Wants $CHECKOUT and $BUILD, makes the folder $scratch, and leaves nothing behind. All seconds are those of a quiet machine.
# shellcheck source=tests/guest/patience.sh
. "$CHECKOUT/tests/guest/patience.sh"

dmgraph=$BUILD/cli/dmgraph
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
export DMGRAPH_TEST_DEPTH=thin
measure_machine "$dmgraph" "$scratch"

# wait_within SECONDS COMMAND...: until it succeeds
wait_within() {
    local seconds=$1 started=$SECONDS
    shift
    while :; do
        "$@" >/dev/null 2>&1 && return 0
        if [ $((SECONDS - started)) -gt "$(patience "$seconds")" ]; then
            measure_machine "$dmgraph" "$scratch"
            [ $((SECONDS - started)) -le "$(patience "$seconds")" ] || return 1
        fi
        sleep 0.1
    done
}
wait_until() {
    wait_within 10 "$@"
}
# bounded SECONDS COMMAND...
bounded() {
    local seconds=$1
    shift
    measure_machine "$dmgraph" "$scratch"
    timeout -k 5 "$(patience "$seconds")" "$@"
}

ok() {
    echo "ok $1"
}
# fail NAME [FILE]: with the end of what was printed
fail() {
    failures=$((failures + 1))
    echo "FAIL $1"
    [ -z "${2:-}" ] || tail -n 15 "$2" | cut -c 1-300 | sed 's/^/     | /'
}
# verdict NAME STATUS [FILE]
verdict() {
    if [ "$2" = 0 ]; then ok "$1"; else fail "$1" "${3:-}"; fi
}

# holds NAME COMMAND...: a condition, or a command that takes no time
holds() {
    local name=$1
    shift
    "$@" >"$scratch/holds" 2>&1
    verdict "$name" $? "$scratch/holds"
}
# succeeds NAME SECONDS COMMAND...: a command, bounded
succeeds() {
    local name=$1 seconds=$2
    shift 2
    bounded "$seconds" "$@" >"$scratch/output" 2>&1
    verdict "$name" $? "$scratch/output"
}

# suite NAME SECONDS PROGRAM [SUITE]: a CUnit program; each of its tests is a case
suite() {
    local name=$1 seconds=$2 status
    shift 2
    bounded "$seconds" "$@" >"$scratch/suite" 2>&1
    status=$?
    awk -v name="$name" '
        function tell(word) { print (word == "passed" ? "ok " : "FAIL ") name ": " test; test = "" }
        / +Test: / { test = $2; if ($0 ~ /\.\.\.(passed|FAILED)$/) { tell($0 ~ /passed$/ ? "passed" : "FAILED") } next }
        test != "" && /^(passed|FAILED)$/ { tell($1) }
        END { if (test != "") { tell("unfinished") } }' "$scratch/suite" | tee "$scratch/suite.cases"
    if grep -q '^FAIL' "$scratch/suite.cases"; then
        failures=$((failures + 1))
        echo "     $name: the program ended with status $status"
        tail -n 40 "$scratch/suite" | cut -c 1-300 | sed 's/^/     | /'
    elif [ "$status" != 0 ] || [ ! -s "$scratch/suite.cases" ]; then
        fail "$name: the program ended with status $status" "$scratch/suite"
    fi
}

# answers NAME SECONDS ARGUMENT...: a run of dmgraph whose answer is that of a serial computation
answers() {
    local name=$1 seconds=$2
    shift 2
    bounded "$seconds" "$dmgraph" run "$@" --verify --no-progress >"$scratch/output" 2>&1 &&
        grep -q '^verified' "$scratch/output"
    verdict "$name" $? "$scratch/output"
}

# ends_with NAME STATUS PATTERN FILE ACTUAL: a run that had to fail did so with this exit code and one line
ends_with() {
    local name=$1 expected=$2 pattern=$3 file=$4 actual=$5 status=1
    if [ "$actual" = "$expected" ] && [ "$(grep -c . "$file")" = 1 ] && grep -qE "$pattern" "$file"; then
        status=0
    else
        echo "exit code $actual, expected $expected and one line like: $pattern" >>"$file"
    fi
    verdict "$name" "$status" "$file"
}

# stop PROCESS...: end what this payload started
stop() {
    kill "$@" 2>/dev/null
    wait "$@" 2>/dev/null
}
