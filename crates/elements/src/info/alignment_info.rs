// SPDX-License-Identifier: MIT OR Apache-2.0
//! AlignmentInfo: declares how packet data is aligned.

use super::{Definition, each_argument, no_element};
use castanet_element::prelude::*;

/// Declares how packet data is aligned on the inputs of elements.
///
/// The arguments are checked but have no effect, because every class accepts data at any address. Each
/// argument is the name of an element, and a modulus and an offset for each of its inputs.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// AlignmentInfo(c 4 2);
/// InfiniteSource(LIMIT 5, STOP true) -> c :: Counter -> Discard;
/// ```
#[derive(Class)]
#[class(name = "AlignmentInfo", ports = "0/0", processing = "a/a", packets = "/", workers = replicate, information)]
pub struct AlignmentInfo {
    args: Args,
}

/// Arguments of AlignmentInfo.
#[derive(Args)]
pub struct Args {
    /// The name of an element, and modulus and offset for each input.
    #[arg(rest)]
    pub def: Vec<Definition>,
}

impl Element for AlignmentInfo {}

impl Information for AlignmentInfo {
    fn inform(config: &str, scope: &str, names: &mut Names) -> Result<(), ConfigError> {
        each_argument(config, |words| {
            let (name, pairs) = words.split_first().ok_or("expected 'ELEMENT [MODULUS OFFSET]...'")?;
            if names.element(scope, name).is_none() {
                return Err(no_element(name, names).into());
            }
            let cx = ArgCx { scope, names, origin: Origin::Operator };
            for pair in pairs.chunks(2) {
                let [modulus, offset] = pair else {
                    return Err(format!("an offset is missing behind '{}'", pair.concat()).into());
                };
                let m = u32::parse(modulus, &cx).map_err(|e| format!("modulus '{modulus}': {e}"))?;
                let o = u32::parse(offset, &cx).map_err(|e| format!("offset '{offset}': {e}"))?;
                if m == 0 || o >= m {
                    return Err(
                        format!("bad alignment '{m} {o}': the offset must be less than the modulus").into()
                    );
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::messages;
    use super::*;

    #[test]
    fn is_checked() {
        let mut names = Names::new();
        names.define_element("c", 1, "Counter");
        AlignmentInfo::inform("c, c 4 2, c  4 0 8 7,", "", &mut names).unwrap();
        let bad = AlignmentInfo::inform("d 4 2, c 4, c 4 4, c 0 0, c x 1, c 4 -1", "", &mut names);
        assert_eq!(
            messages(bad),
            [
                "'d' does not name an element",
                "an offset is missing behind '4'",
                "bad alignment '4 4': the offset must be less than the modulus",
                "bad alignment '0 0': the offset must be less than the modulus",
                "modulus 'x': invalid number",
                "offset '-1': must be positive",
            ]
        );
    }
}
