# 40 "other.click"
a :: Idle;
b :: Idel;
