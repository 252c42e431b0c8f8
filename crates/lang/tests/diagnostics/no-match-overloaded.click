elementclass X { $a | Idle || $a, KEY $k | Idle || __REST__ $r | -> ; }
X(1, 2, 3);
