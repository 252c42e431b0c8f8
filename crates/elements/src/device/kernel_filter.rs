// SPDX-License-Identifier: MIT OR Apache-2.0
//! KernelFilter: hides the frames that devices receive from the host's own network stack.

use super::args::DeviceName;
use castanet_element::prelude::*;
use castanet_io::device::Shield;
use castanet_spec::Show;

/// Keeps the host's own network stack from seeing what devices receive, so that only the router answers.
///
/// Each argument is `drop dev NAME`. While the router runs, a filter at the ingress of the device drops all frames,
/// after the packet sockets of FromDevice have received them. If the kernel has TCX links (Linux 6.6, in the initial
/// user namespace), it removes the filter when the program ends. Without TCX links, the filter needs sch_ingress
/// and cls_bpf. In that case, if the program is killed, the filter stays until another program sets such a filter on
/// the device, or until `castanet doctor --mend` removes it. FromDevice with SNIFFER false does the same as this class.
///
/// # Ports
/// None.
///
/// # Example
/// ```click
/// KernelTap(10.81.0.1/24, DEVNAME tapfilter) -> Discard;
/// KernelFilter(drop dev tapfilter);
/// DriverManager(wait 0.1s, stop);
/// ```
#[derive(Class)]
#[class(name = "KernelFilter", ports = "0/0", processing = "a/a", packets = "/", workers = exclusive, build, lifecycle)]
#[class(takes_state = "the filters", host(Hides))]
pub struct KernelFilter {
    args: Args,
    shields: Vec<Shield>,
}

/// Arguments of KernelFilter.
#[derive(Args)]
pub struct Args {
    /// `drop dev NAME`.
    #[arg(rest)]
    spec: Vec<Spec>,
    /// Accepted for old configurations and ignored; no command is needed.
    #[arg(keyword)]
    iptables_command: Option<String>,
}

/// A device whose frames the host is not to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec(DeviceName);

impl ArgValue for Spec {
    const TYPE: &'static str = "'drop dev DEVICE'";
    fn parse(text: &str, cx: &ArgCx<'_>) -> Result<Spec, ValueError> {
        let words: Vec<&str> =
            castanet_lang::args::words(text).into_iter().filter_map(|r| text.get(r)).collect();
        match words[..] {
            ["drop", "dev", name] => DeviceName::parse(name, cx).map(Spec),
            _ => Err("expected 'drop dev DEVICE'".into()),
        }
    }
}

impl Show for Spec {
    fn show(&self) -> String {
        format!("drop dev {}", self.0.0)
    }
}

impl Build for KernelFilter {
    fn build(args: Args, cx: &mut BuildCx<'_>) -> Result<Self, ConfigError> {
        if args.iptables_command.is_some() {
            cx.warn(ArgError::warning("IPTABLES_COMMAND: no command is needed to filter", 0..usize::MAX));
        }
        Ok(KernelFilter { args, shields: Vec::new() })
    }
}

impl Element for KernelFilter {}

impl Lifecycle for KernelFilter {
    fn initialise(&mut self, cx: &mut InitCx<'_>) -> Result<(), ElementError> {
        if cx.inherits() {
            return Ok(());
        }
        for Spec(name) in &self.args.spec {
            self.shields.push(Shield::raise(&name.0).map_err(ElementError::refused)?);
        }
        Ok(())
    }
    fn holds(&self) -> Option<String> {
        let mut names: Vec<&str> = self.args.spec.iter().map(|s| s.0.0.as_str()).collect();
        names.sort_unstable();
        Some(format!("shields {}", names.join(" ")))
    }
    fn take_over(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.shields.append(&mut old.shields);
        Ok(())
    }
    /// For each device that both routers filter, keeps the filter (`Shield`) of the old router. Only that `Shield`
    /// records whether the clsact qdisc was created together with the filter. If it was, the qdisc must be removed
    /// together with the filter.
    fn take_state(&mut self, old: &mut Self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        for theirs in &mut old.shields {
            if let Some(mine) = self.shields.iter_mut().find(|s| s.name() == theirs.name()) {
                std::mem::swap(mine, theirs);
            }
        }
        Ok(())
    }
    fn cleanup(&mut self, _: &mut Cx<'_>) -> Result<(), ElementError> {
        self.shields.clear();
        Ok(())
    }
}
