elementclass X { __REST__ $a, KEY $b | Idle }
