// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the compiler says of declarations that are wrong: macros/NAME.rs does not compile, and macros/NAME.stderr says why.

#[test]
fn wrong_declarations_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/macros/*.rs");
}
