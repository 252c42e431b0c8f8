// SPDX-License-Identifier: MIT OR Apache-2.0
//! The handlers of scripts. A script calls the same handlers as functions, by name: `$(add 1 2)`.

use super::function::{self, first_word, words};
use super::kill::kill;
use super::machine::Machine;
use super::number::{Number, value};
use super::output;
use super::substitute::is_name;
use castanet_element::prelude::*;
use castanet_lang::args as text;
use std::cmp::Ordering;

/// Returns the text of a file. If the file cannot be read, prints a message and returns `None`.
fn contents(file: &str, cx: &mut Cx<'_>) -> Result<Option<String>, HandlerError> {
    let name = cx.with_args(|a| Filename::parse(file.trim(), a))?;
    Ok(output::read(&name.0).map_err(|e| cx.message(&e.to_string())).ok())
}

#[handlers]
impl Machine {
    /// Lets the script continue past the given number of blocking instructions, by default 1.
    #[write(name = "step")]
    fn step_by(&mut self, steps: &str, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        let n = match steps.trim() {
            // `router` stands for a request to stop, which counts as one step.
            "" | "router" => 1,
            n => value(n).ok_or_else(|| format!("'{n}' is not a number of steps"))?,
        };
        self.step(n, cx);
        Ok(())
    }
    /// Runs the script from a label. If a condition is given and false, does nothing.
    #[write(name = "goto")]
    fn go_to_label(&mut self, arguments: &str, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        let (label, condition) = first_word(arguments);
        if condition.is_empty() || function::truth(condition)? {
            self.go_to(label, cx)?;
        }
        Ok(())
    }
    /// Runs the script with the given arguments, and returns its value.
    #[read(name = "run")]
    fn read_run(&mut self, arguments: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        self.run_as("run", arguments, false, cx)
    }
    #[write(name = "run")]
    fn write_run(&mut self, arguments: &str, cx: &mut Cx<'_>) -> Result<(), HandlerError> {
        self.run_as("run", arguments, true, cx).map(drop)
    }
    /// Sets a variable; takes the name and a text.
    #[write(name = "set")]
    fn set_variable(&mut self, arguments: &str) -> Result<(), HandlerError> {
        let (variable, text) = first_word(arguments);
        if variable.is_empty() || !variable.bytes().all(is_name) {
            return Err("expected a variable and a text".into());
        }
        self.set(variable, text.to_string());
        Ok(())
    }
    /// The value of a variable.
    #[read]
    fn get(&self, name: &str) -> Result<String, HandlerError> {
        let name = name.trim();
        self.variable(name).ok_or_else(|| format!("no variable '{name}'").into())
    }
    /// Removes the first word from a variable (by default `args`), and returns the word.
    #[read]
    fn shift(&mut self, variable: &str) -> Result<String, HandlerError> {
        let name = if variable.trim().is_empty() { "args" } else { variable.trim() };
        let old = self.get(name)?;
        let (first, rest) = first_word(&old);
        self.set(name, rest.to_string());
        Ok(first.to_string())
    }
    /// The sum of numbers.
    #[read]
    fn add(&self, numbers: &str) -> Result<Number, ValueError> {
        function::add(numbers)
    }
    /// The first number minus the others.
    #[read]
    fn sub(&self, numbers: &str) -> Result<Number, ValueError> {
        function::sub(numbers)
    }
    /// The smallest of the numbers.
    #[read]
    fn min(&self, numbers: &str) -> Result<Number, ValueError> {
        function::extreme(numbers, Ordering::Less)
    }
    /// The greatest of the numbers.
    #[read]
    fn max(&self, numbers: &str) -> Result<Number, ValueError> {
        function::extreme(numbers, Ordering::Greater)
    }
    /// The product of numbers.
    #[read]
    fn mul(&self, numbers: &str) -> Result<Number, ValueError> {
        function::mul(numbers)
    }
    /// The first number divided by the others, as a real number.
    #[read]
    fn div(&self, numbers: &str) -> Result<Number, ValueError> {
        function::div(numbers)
    }
    /// The first integer divided by the others, rounded towards zero.
    #[read]
    fn idiv(&self, integers: &str) -> Result<Number, ValueError> {
        function::idiv(integers)
    }
    /// The remainder of two integers; it has the sign of the first.
    #[read(name = "mod")]
    fn modulo(&self, integers: &str) -> Result<Number, ValueError> {
        function::modulo(integers)
    }
    /// The remainder of two numbers; it has the sign of the first.
    #[read]
    fn rem(&self, numbers: &str) -> Result<Number, ValueError> {
        function::rem(numbers)
    }
    /// The number with its sign reversed.
    #[read]
    fn neg(&self, number: &str) -> Result<Number, ValueError> {
        function::neg(number)
    }
    /// The number without its sign.
    #[read]
    fn abs(&self, number: &str) -> Result<Number, ValueError> {
        function::abs(number)
    }
    /// The average of numbers, as a real number.
    #[read]
    fn avg(&self, numbers: &str) -> Result<Number, ValueError> {
        function::avg(numbers)
    }
    /// The number rounded up to a whole number.
    #[read]
    fn ceil(&self, number: &str) -> Result<Number, ValueError> {
        function::whole(number, f64::ceil)
    }
    /// The number rounded down to a whole number.
    #[read]
    fn floor(&self, number: &str) -> Result<Number, ValueError> {
        function::whole(number, f64::floor)
    }
    /// The nearest whole number; halves are rounded away from zero.
    #[read]
    fn round(&self, number: &str) -> Result<Number, ValueError> {
        function::whole(number, f64::round)
    }
    /// The number of words.
    #[read]
    fn count(&self, list: &str) -> usize {
        words(list).len()
    }
    /// The number of bits that are 1 in an integer.
    #[read]
    fn popcount(&self, integer: &str) -> Result<u32, ValueError> {
        function::popcount(integer)
    }
    /// Whether two values are equal. If both are numbers, they are compared as numbers.
    #[read]
    fn eq(&self, values: &str) -> Result<bool, ValueError> {
        function::compare(values, |o| o == Some(Ordering::Equal))
    }
    /// Whether two values differ.
    #[read]
    fn ne(&self, values: &str) -> Result<bool, ValueError> {
        function::compare(values, |o| o != Some(Ordering::Equal))
    }
    /// Whether the first value is greater than the second.
    #[read]
    fn gt(&self, values: &str) -> Result<bool, ValueError> {
        function::compare(values, |o| o == Some(Ordering::Greater))
    }
    /// Whether the first value is greater than or equal to the second.
    #[read]
    fn ge(&self, values: &str) -> Result<bool, ValueError> {
        function::compare(values, |o| o.is_some_and(Ordering::is_ge))
    }
    /// Whether the first value is less than the second.
    #[read]
    fn lt(&self, values: &str) -> Result<bool, ValueError> {
        function::compare(values, |o| o == Some(Ordering::Less))
    }
    /// Whether the first value is less than or equal to the second.
    #[read]
    fn le(&self, values: &str) -> Result<bool, ValueError> {
        function::compare(values, |o| o.is_some_and(Ordering::is_le))
    }
    /// The opposite of a truth value.
    #[read]
    fn not(&self, word: &str) -> Result<bool, ValueError> {
        function::not(word)
    }
    /// The words after the first, in the format that the first word gives.
    #[read]
    fn sprintf(&self, arguments: &str) -> Result<String, ValueError> {
        function::format(arguments)
    }
    /// The first word.
    #[read]
    fn first(&self, list: &str) -> String {
        words(list).first().map_or(String::new(), ToString::to_string)
    }
    /// A random integer: below N, or from LOW to HIGH.
    #[read]
    fn random(&mut self, range: &str) -> Result<i64, HandlerError> {
        let number = |w: &&str| value::<i64>(w).ok_or_else(|| format!("'{w}' is not an integer"));
        let numbers: Vec<i64> = words(range).iter().map(number).collect::<Result<_, _>>()?;
        let (low, high) = match *numbers {
            [] => (0, i64::from(i32::MAX)),
            [n] => (0, n.checked_sub(1).unwrap_or(-1)),
            [low, high] => (low, high),
            _ => return Err("expected no number, one or two".into()),
        };
        if high < low {
            return Err("there is no number in an empty range".into());
        }
        // The distance of two `i64` always fits in a `u64`. Adding to `low` below wraps around to the right value.
        let distance = high.wrapping_sub(low).cast_unsigned();
        let n = match distance.checked_add(1) {
            Some(count) => self.random.below(count),
            None => self.random.next_u64(),
        };
        Ok(low.wrapping_add(n.cast_signed()))
    }
    /// Whether all words are true.
    #[read]
    fn and(&self, list: &str) -> Result<bool, ValueError> {
        function::all(list)
    }
    /// Whether at least one word is true.
    #[read]
    fn or(&self, list: &str) -> Result<bool, ValueError> {
        function::any(list)
    }
    /// Whether at least one word is false.
    #[read]
    fn nand(&self, list: &str) -> Result<bool, ValueError> {
        Ok(!function::all(list)?)
    }
    /// Whether all words are false.
    #[read]
    fn nor(&self, list: &str) -> Result<bool, ValueError> {
        Ok(!function::any(list)?)
    }
    /// The second word if the first is true, else the third.
    #[read(name = "if")]
    fn choose(&self, arguments: &str) -> Result<String, ValueError> {
        function::choose(arguments).map(str::to_string)
    }
    /// Whether the first word is among the others.
    #[read(name = "in")]
    fn contains(&self, arguments: &str) -> Result<bool, ValueError> {
        function::contains(arguments)
    }
    /// The time in seconds since 1970.
    #[read]
    fn now(&self, cx: &mut Cx<'_>) -> Timestamp {
        Timestamp(cx.now())
    }
    /// The time in seconds by a clock that never goes back (FastClick).
    #[read]
    fn now_steady(&self, cx: &mut Cx<'_>) -> Timestamp {
        // The router's clock is steady: setting the machine's time does not move it.
        Timestamp(cx.now())
    }
    /// Whether all handlers with the given names can be read.
    #[read]
    fn readable(&mut self, handlers: &str, cx: &mut Cx<'_>) -> bool {
        words(handlers).iter().all(|h| self.has(h, cx).0)
    }
    /// Whether all handlers with the given names can be written.
    #[read]
    fn writable(&mut self, handlers: &str, cx: &mut Cx<'_>) -> bool {
        words(handlers).iter().all(|h| self.has(h, cx).1)
    }
    /// The length of the text in bytes.
    #[read]
    fn length(&self, arguments: &str) -> usize {
        castanet_lang::bytes::length(arguments)
    }
    /// The text without quotes and with its escapes expanded.
    #[read]
    fn unquote(&self, arguments: &str) -> String {
        text::unquote(arguments)
    }
    /// Converts a 16-bit number to network byte order.
    #[read]
    fn htons(&self, word: &str) -> Result<u16, ValueError> {
        function::swap16(word)
    }
    /// Converts a 32-bit number to network byte order.
    #[read]
    fn htonl(&self, word: &str) -> Result<u32, ValueError> {
        function::swap32(word)
    }
    /// Converts a 16-bit number from network byte order.
    #[read]
    fn ntohs(&self, word: &str) -> Result<u16, ValueError> {
        function::swap16(word)
    }
    /// Converts a 32-bit number from network byte order.
    #[read]
    fn ntohl(&self, word: &str) -> Result<u32, ValueError> {
        function::swap32(word)
    }
    /// The text of a file; private.
    #[read(private)]
    fn cat(&self, file: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        Ok(contents(file, cx)?.unwrap_or_default())
    }
    /// The text of a file, quoted; private.
    #[read(private)]
    fn catq(&self, file: &str, cx: &mut Cx<'_>) -> Result<String, HandlerError> {
        Ok(contents(file, cx)?.map_or(String::new(), |c| text::quote(&c)))
    }
    /// Sends a signal to processes; private.
    #[read(private)]
    fn kill(&self, arguments: &str) -> Result<String, HandlerError> {
        kill(&words(arguments)).map(|()| String::new())
    }
}
