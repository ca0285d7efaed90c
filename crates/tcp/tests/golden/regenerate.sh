#!/bin/sh
# Writes the golden files of this folder anew from ns-2 (Debian's package ns2).
set -eu
cd "$(dirname "$0")"

write() { # name agent sink losses...
    name=$1
    shift
    ns drops.tcl "$@" >"$name-$(($# - 2))-losses.txt"
}

for losses in "14" "14 28" "14 26 28" "14 24 26 28"; do
    # shellcheck disable=SC2086 # the numbers are arguments of their own
    {
        write tahoe TCP TCPSink $losses
        write reno TCP/Reno TCPSink $losses
        write newreno TCP/Newreno TCPSink $losses
    }
done
for losses in "14" "14 26" "14 24 26" "14 22 24 26"; do
    # shellcheck disable=SC2086
    write sack TCP/FullTcp/Sack TCP/FullTcp/Sack $losses
done
