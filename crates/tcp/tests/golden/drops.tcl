# Which segments an ns-2 sender transmits, and when, if the network drops given ones once.
#
# usage: ns drops.tcl AGENT SINK SEGMENT...
#   AGENT    TCP, TCP/Reno, TCP/Newreno or TCP/FullTcp/Sack
#   SINK     TCPSink; for the last, TCP/FullTcp/Sack
#   SEGMENT  numbers, from 1, of the segments whose first transmission is lost
#
# Prints one line for each transmission of data: its time in seconds and the number of the segment.
#
# Sack1, ns-2's one-way SACK agent, is from 1996: it takes any hole for a loss as soon as recovery began. FullTcp/Sack can
# wait for three segments beyond the hole, as RFC 6675 (and RFC 3517 before it) asks.

set agent [lindex $argv 0]
set sink_kind [lindex $argv 1]
set dropped [lrange $argv 2 end]

# Rounds must be told apart: a window takes far less than the round-trip time of 200 ms to send.
set rate 100Mb
set delay 100ms
set window 28
set segments 100

set ns [new Simulator]
set sender [$ns node]
set receiver [$ns node]
$ns duplex-link $sender $receiver $rate $delay DropTail
$ns queue-limit $sender $receiver 1000

# Only first transmissions come before the first repair, so that the place in the order tells the number: after one SYN,
# which the one-way agents count as segment 0, or after SYN and ACK.
set is_full [string match TCP/FullTcp* $agent]
set places {}
foreach segment $dropped { lappend places [expr {$segment + ($is_full ? 1 : 0)}] }
set errors [new ErrorModel/List]
$errors droplist $places
$ns lossmodel $errors $sender $receiver

Agent/TCP set windowInit_ 1
Agent/TCP set packetSize_ 960
Agent/TCP set tcpTick_ 0.001
Agent/TCP set minrto_ 1
Agent/TCP set maxrto_ 60
Agent/TCP set rtxcur_init_ 3
Agent/TCP/FullTcp set segsize_ 960
# 3: either threshold tells a loss, three stretches or more than two segments of bytes.
Agent/TCP/FullTcp/Sack set sack_rtx_threshmode_ 3
Agent/TCP/FullTcp/Sack set sack_rtx_cthresh_ 3
Agent/TCP/FullTcp/Sack set sack_rtx_bthresh_ 1921
Agent/TCP set singledup_ 1
# A Reno sender repairs each loss of a window by itself, as the one of 1990 did.
Agent/TCP/Reno set bugFix_ false

set tcp [new Agent/$agent]
$tcp set window_ $window
$tcp set maxcwnd_ $window
set sink [new Agent/$sink_kind]
$ns attach-agent $sender $tcp
$ns attach-agent $receiver $sink
$ns connect $tcp $sink
if {$is_full} { $sink set window_ $window; $sink listen }

# "+" is an arrival at the sender's queue; fields: event time from to kind bytes flags flow source destination sequence.
# One-way agents number segments, full ones bytes from 1; segments of the handshake have at most 60 bytes.
if {$is_full} { set number {($11 - 1) / 960 + 1} } else { set number {$11} }
set output [open "|awk {\$1 == \"+\" && \$3 == 0 && \$6 > 60 {print \$2, $number}} >@stdout" w]
$ns trace-queue $sender $receiver $output
$ns at 0.0 "$tcp advanceby $segments"
$ns at 30.0 {
    $ns flush-trace
    close $output
    exit 0
}
$ns run
