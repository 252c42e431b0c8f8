elementclass C { ... || Idle }
