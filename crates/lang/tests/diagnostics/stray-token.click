a :: Idle;
% b :: Idle;
