# One download over a link whose rate changes, split before it or not: RATES PERIOD_S DELAY_S SPLIT SECONDS.
# RATES holds a rate in bit/s a line, one a period. Prints the bytes that the link sent and what TCP delivered.
lassign $argv rates_file period delay is_split seconds

remove-all-packet-headers
add-packet-header IP TCP Flags
set simulator [new Simulator]
set server [$simulator node]
set node [$simulator node]
set mobile [$simulator node]
$simulator duplex-link $server $node 100Mb 10ms DropTail
$simulator queue-limit $server $node 1000
$simulator duplex-link $node $mobile 720kb $delay DropTail
$simulator queue-limit $node $mobile 16 ;# 15 wait, one is in service
set link [[$simulator link $node $mobile] link]
set monitor [$simulator monitor-queue $node $mobile ""]

proc new_sender {} {
    set tcp [new Agent/TCP/Newreno]
    $tcp set packetSize_ 472
    $tcp set window_ 128
    $tcp set windowInit_ 2
    $tcp set minrto_ 0.2
    $tcp set tcpTick_ 0.001
    return $tcp
}

proc connect_ends {from to sender} {
    global simulator
    set sink [new Agent/TCPSink]
    $simulator attach-agent $from $sender
    $simulator attach-agent $to $sink
    $simulator connect $sender $sink
    return $sink
}

# What arrives at a split is sent on; what arrives behind it makes room for more.
Class Application/Forward -superclass Application
Application/Forward instproc recv {bytes} {
    [set ::next_of_$self] advanceby [expr $bytes / 472]
}

if {$is_split} {
    set far [new_sender]
    set near [new_sender]
    set far_sink [connect_ends $server $node $far]
    set near_sink [connect_ends $node $mobile $near]
    foreach {sink next} [list $far_sink $near $near_sink $far] {
        set forward [new Application/Forward]
        $forward attach-agent $sink
        set next_of_$forward $next
        $simulator at 0.0 "$forward start"
    }
    $simulator at 0.0 "$far advanceby 256"
    set last $near
} else {
    set last [new_sender]
    connect_ends $server $mobile $last
    set source [new Application/FTP]
    $source attach-agent $last
    $simulator at 0.0 "$source start"
}

set channel [open $rates_file]
set rates [split [string trim [read $channel]] "\n"]
close $channel
proc change {number} {
    global simulator link rates period
    $link set bandwidth_ [lindex $rates $number]
    if {$number + 1 < [llength $rates]} {
        $simulator at [expr ($number + 1) * $period] "change [expr $number + 1]"
    }
}
change 0

proc finish {} {
    global monitor last
    puts "[expr int([$monitor set bdepartures_])] [expr 472 * ([$last set ack_] + 1)]"
    exit 0
}
$simulator at $seconds finish
$simulator run
