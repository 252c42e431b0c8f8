{ require(library x.click) Idle };
