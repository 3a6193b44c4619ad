# shellcheck shell=bash
# The payload of a trial boot.
true
