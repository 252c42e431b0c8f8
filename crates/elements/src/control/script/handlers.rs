// SPDX-License-Identifier: MIT OR Apache-2.0
//! The handlers of scripts. Instructions of a script can call the same functions by name, so each handler passes its
//! name to the common `read` or `write`.

use super::class::Scripted;
use castanet_element::prelude::*;

#[handlers]
impl<const DRIVER: bool> Scripted<DRIVER> {
    /// Lets the script continue past the given number of blocking instructions, by default 1.
    #[write]
    fn step(&mut self, value: &str, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        self.write("step", value, cx)
    }
    /// Runs the script from a label. If a condition is given and false, does nothing.
    #[write]
    fn goto(&mut self, value: &str, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        self.write("goto", value, cx)
    }
    /// Runs the script with these arguments, and returns its value.
    #[read]
    fn run(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("run", parameters, cx)
    }
    #[write]
    fn set_run(&mut self, value: &str, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        self.write("run", value, cx)
    }
    /// Sets a variable; takes the name and a text.
    #[write(name = "set")]
    fn set_variable(&mut self, value: &str, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        self.write("set", value, cx)
    }
    /// The value of a variable.
    #[read]
    fn get(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("get", parameters, cx)
    }
    /// Removes the first word of a variable, by default `args`, and returns it.
    #[read]
    fn shift(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("shift", parameters, cx)
    }
    /// The sum of numbers.
    #[read]
    fn add(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("add", parameters, cx)
    }
    /// The first number minus the others.
    #[read]
    fn sub(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("sub", parameters, cx)
    }
    /// The smallest of the numbers.
    #[read]
    fn min(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("min", parameters, cx)
    }
    /// The greatest of the numbers.
    #[read]
    fn max(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("max", parameters, cx)
    }
    /// The product of numbers.
    #[read]
    fn mul(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("mul", parameters, cx)
    }
    /// The first number divided by the others, as a real number.
    #[read]
    fn div(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("div", parameters, cx)
    }
    /// The first integer divided by the others, rounded towards zero.
    #[read]
    fn idiv(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("idiv", parameters, cx)
    }
    /// The remainder of two integers; it has the sign of the first.
    #[read(name = "mod")]
    fn modulo(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("mod", parameters, cx)
    }
    /// The remainder of two numbers; it has the sign of the first.
    #[read]
    fn rem(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("rem", parameters, cx)
    }
    /// The number with its sign reversed.
    #[read]
    fn neg(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("neg", parameters, cx)
    }
    /// The number without its sign.
    #[read]
    fn abs(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("abs", parameters, cx)
    }
    /// The average of numbers, as a real number.
    #[read]
    fn avg(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("avg", parameters, cx)
    }
    /// The smallest whole number that is not below the number.
    #[read]
    fn ceil(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("ceil", parameters, cx)
    }
    /// The greatest whole number that is not above the number.
    #[read]
    fn floor(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("floor", parameters, cx)
    }
    /// The nearest whole number; halves are rounded away from zero.
    #[read]
    fn round(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("round", parameters, cx)
    }
    /// The number of words.
    #[read]
    fn count(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("count", parameters, cx)
    }
    /// The number of bits that are 1 in an integer.
    #[read]
    fn popcount(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("popcount", parameters, cx)
    }
    /// Whether two values are equal. If both are numbers, they are compared as numbers.
    #[read]
    fn eq(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("eq", parameters, cx)
    }
    /// Whether two values differ.
    #[read]
    fn ne(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("ne", parameters, cx)
    }
    /// Whether the first value is greater than the second.
    #[read]
    fn gt(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("gt", parameters, cx)
    }
    /// Whether the first value is greater than or equal to the second.
    #[read]
    fn ge(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("ge", parameters, cx)
    }
    /// Whether the first value is less than the second.
    #[read]
    fn lt(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("lt", parameters, cx)
    }
    /// Whether the first value is less than or equal to the second.
    #[read]
    fn le(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("le", parameters, cx)
    }
    /// The opposite truth value.
    #[read]
    fn not(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("not", parameters, cx)
    }
    /// The words after the first, in the format that the first word gives.
    #[read]
    fn sprintf(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("sprintf", parameters, cx)
    }
    /// The first word.
    #[read]
    fn first(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("first", parameters, cx)
    }
    /// A random integer: below N, or from LOW to HIGH.
    #[read]
    fn random(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("random", parameters, cx)
    }
    /// Whether all words are true.
    #[read]
    fn and(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("and", parameters, cx)
    }
    /// Whether at least one word is true.
    #[read]
    fn or(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("or", parameters, cx)
    }
    /// Whether at least one word is false.
    #[read]
    fn nand(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("nand", parameters, cx)
    }
    /// Whether all words are false.
    #[read]
    fn nor(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("nor", parameters, cx)
    }
    /// The second word if the first is true, else the third.
    #[read(name = "if")]
    fn choose(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("if", parameters, cx)
    }
    /// Whether the first word is among the others.
    #[read(name = "in")]
    fn contains(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("in", parameters, cx)
    }
    /// The time in seconds since 1970.
    #[read]
    fn now(&mut self, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("now", "", cx)
    }
    /// The time in seconds by a clock that never goes back (FastClick).
    #[read]
    fn now_steady(&mut self, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("now_steady", "", cx)
    }
    /// Whether all these handlers can be read.
    #[read]
    fn readable(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("readable", parameters, cx)
    }
    /// Whether all these handlers can be written.
    #[read]
    fn writable(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("writable", parameters, cx)
    }
    /// The length of the text in bytes.
    #[read]
    fn length(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("length", parameters, cx)
    }
    /// The text without quotes and with its escapes expanded.
    #[read]
    fn unquote(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("unquote", parameters, cx)
    }
    /// Converts a 16-bit number to network byte order.
    #[read]
    fn htons(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("htons", parameters, cx)
    }
    /// Converts a 32-bit number to network byte order.
    #[read]
    fn htonl(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("htonl", parameters, cx)
    }
    /// Converts a 16-bit number from network byte order.
    #[read]
    fn ntohs(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("ntohs", parameters, cx)
    }
    /// Converts a 32-bit number from network byte order.
    #[read]
    fn ntohl(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("ntohl", parameters, cx)
    }
    /// The text of a file; private.
    #[read(private)]
    fn cat(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("cat", parameters, cx)
    }
    /// The text of a file, quoted; private.
    #[read(private)]
    fn catq(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("catq", parameters, cx)
    }
    /// Sends a signal to processes; private.
    #[read(private)]
    fn kill(&mut self, parameters: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.read("kill", parameters, cx)
    }
}
