elementclass X { $a, $a | Idle }
