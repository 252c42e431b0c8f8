// SPDX-License-Identifier: MIT OR Apache-2.0
// Patterns for `castanet xform`: eight elements of different classes, which do nothing to the packets of this benchmark, on the path
// of a router with combination elements (TOCS 2000, section 6.4).

elementclass NoOpsIn { $color, __REST__ $check | input -> combo :: IPInputCombo($color, $check) -> output }
elementclass NoOpsIn_Replacement { $color, __REST__ $check |
    input -> combo :: IPInputCombo($color, $check) -> Null -> PushNull -> Strip(0) -> Unstrip(0) -> output
}

elementclass NoOpsOut { $color, $ip, $mtu, __REST__ $options |
    input -> combo :: IPOutputCombo($color, $ip, $mtu, $options) -> output;
    combo [1] -> [1] output; combo [2] -> [2] output; combo [3] -> [3] output; combo [4] -> [4] output
}
elementclass NoOpsOut_Replacement { $color, $ip, $mtu, __REST__ $options |
    input -> combo :: IPOutputCombo($color, $ip, $mtu, $options)
        -> Truncate(1500) -> CheckLength(1500) -> DecIPTTL(ACTIVE false) -> Suppressor -> output;
    combo [1] -> [1] output; combo [2] -> [2] output; combo [3] -> [3] output; combo [4] -> [4] output
}
