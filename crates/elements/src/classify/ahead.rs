// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles classifiers ahead of time, for tools: to a decision tree that is the same on every machine.

use super::classifier::{self, Classifier};
use super::ip_classifier::{self, IpClassifier};
use super::ip_filter::{self, IpFilter};
use super::patterns::{Compiled, ConfigNames};
use super::rule_file;
use castanet_classify::Program;
use castanet_element::prelude::{ArgCx, Class as _};
use castanet_element::spec::{Args, ClassSpec};

/// Returns the decision tree of a classifier with this configuration string and number of outputs, or why it has none before the
/// router runs. None if the class is not a classifier. Names of devices and of the machine's services have no meaning here.
pub fn program(
    class: &'static ClassSpec,
    config: &str,
    outputs: usize,
    cx: ArgCx<'_>,
) -> Option<Result<Program, String>> {
    // A class of a package may have the same name.
    let is = |spec: &ClassSpec| (spec.name, spec.module) == (class.name, class.module);
    let names = ConfigNames::portable(cx);
    Some(if is(Classifier::SPEC) {
        let compile = |a: classifier::Args| (Some(a.texts().len()), Program::from_classifier(&a.texts()));
        compiled(config, outputs, cx, compile)
    } else if is(IpClassifier::SPEC) {
        let compile =
            |a: ip_classifier::Args| (Some(a.texts().len()), Program::from_ip_classifier(&a.texts(), &names));
        compiled(config, outputs, cx, compile)
    } else if is(IpFilter::SPEC) {
        let from_file =
            |a: &ip_filter::Args| a.texts().iter().any(|rule| rule_file::file_name(rule).is_some());
        if let (Some(args), _) = ip_filter::Args::parse(config, cx)
            && from_file(&args)
        {
            return Some(Err("its rules are in a file".into()));
        }
        let compile = |a: ip_filter::Args| (None, Program::from_ip_filter(&a.texts(), &names, outputs));
        compiled(config, outputs, cx, compile)
    } else {
        return None;
    })
}

/// Parses the arguments and compiles them. `compile` also returns how many outputs there must be.
fn compiled<A: Args>(
    config: &str,
    outputs: usize,
    cx: ArgCx<'_>,
    compile: impl Fn(A) -> (Option<usize>, Compiled),
) -> Result<Program, String> {
    let (args, errors) = A::parse(config, cx);
    let (Some(args), None) = (args, errors.iter().find(|e| !e.warning)) else {
        let message = errors.into_iter().find(|e| !e.warning).map(|e| e.message);
        return Err(message.unwrap_or_else(|| "its arguments are wrong".into()));
    };
    let (wanted, compiled) = compile(args);
    if let Some(wanted) = wanted.filter(|&wanted| wanted != outputs) {
        return Err(format!("it has {wanted} patterns for {outputs} outputs"));
    }
    let first = |errors: Vec<castanet_classify::PatternError>| errors.first().map(ToString::to_string);
    compiled.map(|c| c.0).map_err(|errors| first(errors).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::fast_classifier::FastClassifier;
    use super::*;
    use castanet_element::spec::{Names, Origin};

    #[test]
    fn what_has_a_tree() {
        let mut names = Names::new();
        names.define_addresses("", "alpha").ip = Some([1, 2, 3, 4]);
        names.define_port("", "game", 17, 777);
        let cx = ArgCx { scope: "", names: &names, origin: Origin::Operator };
        for (class, config, outputs, want) in [
            (Classifier::SPEC, "12/0800, -", 2, Some(Ok("data 2\n12/08000000%ffff0000 14 [0] [1]"))),
            (Classifier::SPEC, "\"0/45\"", 1, Some(Ok("data 1\n0/45000000%ff000000 1 [0] [X]"))),
            (Classifier::SPEC, "12/0800, -", 3, Some(Err("it has 2 patterns for 3 outputs"))),
            (Classifier::SPEC, "12/080, -", 2, Some(Err("pattern 0: odd number of digits in value"))),
            (IpClassifier::SPEC, "src host alpha, -", 2, Some(Ok("ip 2\n268/01020304%ffffffff 272 [0] [1]"))),
            (IpClassifier::SPEC, "src host nobody", 1, Some(Err("pattern 0: unknown name 'nobody'"))),
            (
                IpFilter::SPEC,
                "1 ip proto 6, deny all",
                2,
                Some(Ok("ip 2\n264/00060000%00ff0000 266 [1] [X]")),
            ),
            (IpFilter::SPEC, "allow tcp, file rules", 1, Some(Err("its rules are in a file"))),
            (FastClassifier::SPEC, "data 1, [0]", 1, None),
        ] {
            let got = program(class, config, outputs, cx);
            let text = got.map(|p| p.map(|p| p.disassemble().join("\n")));
            let want = want.map(|w| w.map(String::from).map_err(String::from));
            assert_eq!(text, want, "{config}");
        }
        // A name of the machine's services database is unknown.
        let services = ["tcp dst port bgp", "tcp dst port ldap"];
        for expression in services {
            assert!(program(IpClassifier::SPEC, expression, 1, cx).unwrap().is_err(), "{expression}");
        }
        assert!(program(IpClassifier::SPEC, "udp dst port game or dst port www", 1, cx).unwrap().is_ok());
    }
}
