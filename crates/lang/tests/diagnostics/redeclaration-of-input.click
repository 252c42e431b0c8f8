elementclass C { input :: Idle }
