// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the compiler's errors for wrong declarations: macros/NAME.rs does not compile, and macros/NAME.stderr has the
//! expected error.

#[test]
fn wrong_declarations_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/macros/*.rs");
}
