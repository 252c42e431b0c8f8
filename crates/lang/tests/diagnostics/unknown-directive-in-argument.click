Idle -> Queue(
#define X 5
50) -> Discard;
