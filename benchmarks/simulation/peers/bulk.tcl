# One TCP flow over 100 Mbit/s and 40 ms: AGENT SINK SECONDS. Prints how many packets were acknowledged.
set agent [lindex $argv 0]
set sink [lindex $argv 1]
set seconds [lindex $argv 2]

# Only the headers that are used: every further one costs time for each packet.
remove-all-packet-headers
add-packet-header IP TCP Flags
set simulator [new Simulator]
set server [$simulator node]
set mobile [$simulator node]
$simulator duplex-link $server $mobile 100Mb 20ms DropTail
$simulator queue-limit $server $mobile 334
set tcp [new Agent/TCP/$agent]
$tcp set packetSize_ 1460
$tcp set window_ 100000
set receiver [new Agent/$sink]
$simulator attach-agent $server $tcp
$simulator attach-agent $mobile $receiver
$simulator connect $tcp $receiver
set source [new Application/FTP]
$source attach-agent $tcp
$simulator at 0.0 "$source start"

proc finish {} {
    global tcp
    puts [$tcp set ack_]
    exit 0
}
$simulator at $seconds finish
$simulator run
