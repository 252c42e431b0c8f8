require(foo bar);
require(library);
