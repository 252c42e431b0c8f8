// SPDX-License-Identifier: MIT OR Apache-2.0
// Patterns for IP routers: elements of the forwarding path of TOCS 2000, Figure 8, become combination elements (ASPLOS 2002,
// figures 4 to 6).

// The input side. CheckIPHeader sets the destination address annotation, so GetIPAddress is not needed after it, unless the header
// is elsewhere.
elementclass IPInput {
   $color | input -> Paint($color) -> Strip(14) -> CheckIPHeader -> GetIPAddress(16) -> output
|| $color, $interfaces | input -> Paint($color) -> Strip(14) -> CheckIPHeader(INTERFACES $interfaces) -> GetIPAddress(16) -> output
|| $color, $interfaces, $good | input -> Paint($color) -> Strip(14) -> CheckIPHeader(INTERFACES $interfaces, GOODDST $good) -> GetIPAddress(16) -> output
|| $color, $bad | input -> Paint($color) -> Strip(14) -> CheckIPHeader(BADSRC $bad) -> GetIPAddress(16) -> output
|| $color, $bad, $good | input -> Paint($color) -> Strip(14) -> CheckIPHeader(BADSRC $bad, GOODDST $good) -> GetIPAddress(16) -> output
|| $color, __REST__ $check | input -> Paint($color) -> Strip(14) -> CheckIPHeader($check) -> output
}
elementclass IPInput_Replacement {
   $color | input -> IPInputCombo($color) -> output
|| $color, $interfaces | input -> IPInputCombo($color, INTERFACES $interfaces) -> output
|| $color, $interfaces, $good | input -> IPInputCombo($color, INTERFACES $interfaces, GOODDST $good) -> output
|| $color, $bad | input -> IPInputCombo($color, BADSRC $bad) -> output
|| $color, $bad, $good | input -> IPInputCombo($color, BADSRC $bad, GOODDST $good) -> output
|| $color, __REST__ $check | input -> IPInputCombo($color, $check) -> output
}

// Several interfaces share Strip and CheckIPHeader. Each of them gets its own combination element.
elementclass IPInputShared { $color |
    input -> Paint($color) -> strip :: Strip(14) -> check :: CheckIPHeader -> address :: GetIPAddress(16) -> output;
    input [1] -> strip
|| $color, $interfaces |
    input -> Paint($color) -> strip :: Strip(14) -> check :: CheckIPHeader(INTERFACES $interfaces) -> address :: GetIPAddress(16) -> output;
    input [1] -> strip
|| $color, $interfaces, $good |
    input -> Paint($color) -> strip :: Strip(14) -> check :: CheckIPHeader(INTERFACES $interfaces, GOODDST $good) -> address :: GetIPAddress(16) -> output;
    input [1] -> strip
|| $color, $bad |
    input -> Paint($color) -> strip :: Strip(14) -> check :: CheckIPHeader(BADSRC $bad) -> address :: GetIPAddress(16) -> output;
    input [1] -> strip
|| $color, $bad, $good |
    input -> Paint($color) -> strip :: Strip(14) -> check :: CheckIPHeader(BADSRC $bad, GOODDST $good) -> address :: GetIPAddress(16) -> output;
    input [1] -> strip
|| $color, __REST__ $check |
    input -> Paint($color) -> strip :: Strip(14) -> check :: CheckIPHeader($check) -> output; input [1] -> strip
}
elementclass IPInputShared_Replacement { $color | input -> IPInputCombo($color) -> output;
    input [1] -> strip :: Strip(14) -> check :: CheckIPHeader -> address :: GetIPAddress(16) -> output
|| $color, $interfaces | input -> IPInputCombo($color, INTERFACES $interfaces) -> output;
    input [1] -> strip :: Strip(14) -> check :: CheckIPHeader(INTERFACES $interfaces) -> address :: GetIPAddress(16) -> output
|| $color, $interfaces, $good | input -> IPInputCombo($color, INTERFACES $interfaces, GOODDST $good) -> output;
    input [1] -> strip :: Strip(14) -> check :: CheckIPHeader(INTERFACES $interfaces, GOODDST $good) -> address :: GetIPAddress(16) -> output
|| $color, $bad | input -> IPInputCombo($color, BADSRC $bad) -> output;
    input [1] -> strip :: Strip(14) -> check :: CheckIPHeader(BADSRC $bad) -> address :: GetIPAddress(16) -> output
|| $color, $bad, $good | input -> IPInputCombo($color, BADSRC $bad, GOODDST $good) -> output;
    input [1] -> strip :: Strip(14) -> check :: CheckIPHeader(BADSRC $bad, GOODDST $good) -> address :: GetIPAddress(16) -> output
|| $color, __REST__ $check | input -> IPInputCombo($color, $check) -> output;
    input [1] -> strip :: Strip(14) -> check :: CheckIPHeader($check) -> output
}

// The output side. Outputs: packets to send, and packets for which the router sends an ICMP error: redirects, bad options,
// expired packets, packets that are too long, and packets whose source route cannot be followed.
elementclass IPOutput { $color, $ip, $mtu, __REST__ $options |
    input -> DropBroadcasts -> redirect :: PaintTee($color) -> options :: IPGWOptions($ip, $options) -> FixIPSrc($ip)
        -> ttl :: DecIPTTL -> fragment :: IPFragmenter($mtu) -> output;
    redirect [1] -> [1] output; options [1] -> [2] output; ttl [1] -> [3] output; fragment [1] -> [4] output
||
    $color, $ip, $mtu, __REST__ $options |
    input -> DropBroadcasts -> redirect :: PaintTee($color) -> options :: IPGWOptions($ip, $options) -> FixIPSrc($ip)
        -> ttl :: DecIPTTL -> fragment :: IPFragmenter($mtu) -> output;
    redirect [1] -> [1] output; options [1] -> [2] output; ttl [1] -> [3] output; fragment [1] -> [4] output;
    options [2] -> [5] output
}
elementclass IPOutput_Replacement { $color, $ip, $mtu, __REST__ $options |
    input -> combo :: IPOutputCombo($color, $ip, $mtu, FRAGMENT true, $options) -> output;
    combo [1] -> [1] output; combo [2] -> [2] output; combo [3] -> [3] output; combo [4] -> [4] output
||
    $color, $ip, $mtu, __REST__ $options |
    input -> combo :: IPOutputCombo($color, $ip, $mtu, FRAGMENT true, $options) -> output;
    combo [1] -> [1] output; combo [2] -> [2] output; combo [3] -> [3] output; combo [4] -> [4] output;
    combo [5] -> [5] output
}
