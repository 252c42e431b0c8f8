define(a 1, $ 2, $b-c 3);
