# shellcheck shell=bash
# The payload of `tests/guest/run --command`: that command.
# shellcheck source=tests/guest/cases.sh
. "$CHECKOUT/tests/guest/cases.sh"
# shellcheck source=tests/guest/devices.sh
. "$CHECKOUT/tests/guest/devices.sh"
. /run/results/command
