elementclass A { elementclass B { Idle } B }
A; b :: B;
