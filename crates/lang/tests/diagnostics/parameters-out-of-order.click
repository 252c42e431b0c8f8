elementclass X { KEY $a, $b | Idle }
X(1, KEY 2);
