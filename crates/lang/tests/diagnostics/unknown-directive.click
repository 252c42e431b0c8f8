a :: Idle;
#include "x"
b :: Idle;
