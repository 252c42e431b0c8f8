// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shell completion. The shell completes subcommands and options itself, and reads the names of elements and
//! handlers from the running router.

use super::Failure;
use super::list::{elements, handlers};
use crate::load::{complain, write_out};
use castanet_control::Client;
use castanet_spec::HandlerFlags;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use std::process::ExitCode;

/// `castanet completion`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  source <(castanet completion bash)\n  source <(castanet completion zsh)\n  \
    castanet completion fish | source"
)]
pub struct Completion {
    /// The shell.
    #[arg(value_enum)]
    pub shell: Named,
}

/// Supported shells.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Named {
    /// GNU Bash.
    Bash,
    /// The Z shell.
    Zsh,
    /// Fish.
    Fish,
}

/// A word to complete.
#[derive(Args)]
pub struct Words {
    /// The command that the word belongs to: read, write, watch or list.
    pub purpose: String,
    /// The beginning of the word.
    #[arg(default_value = "")]
    pub word: String,
}

/// Copies a command without its hidden subcommands and arguments, which clap_complete would otherwise offer.
fn visible(command: &clap::Command) -> clap::Command {
    let mut out = clap::Command::new(command.get_name().to_string())
        .disable_help_flag(command.is_disable_help_flag_set());
    if let Some(about) = command.get_about() {
        out = out.about(about.clone());
    }
    if let Some(version) = command.get_version() {
        out = out.version(version.to_string());
    }
    out = out.args(command.get_arguments().filter(|a| !a.is_hide_set()).cloned());
    out.subcommands(command.get_subcommands().filter(|c| !c.is_hide_set()).map(visible))
}

/// Prints the completion script of a shell.
pub fn main(a: &Completion) -> ExitCode {
    let (shell, more) = match a.shell {
        Named::Bash => (Shell::Bash, BASH),
        Named::Zsh => (Shell::Zsh, ZSH),
        Named::Fish => (Shell::Fish, FISH),
    };
    let mut script = Vec::new();
    let mut command = visible(&crate::args::Castanet::command()).propagate_version(true);
    clap_complete::generate(shell, &mut command, "castanet", &mut script);
    match write_out(None, &(String::from_utf8_lossy(&script).into_owned() + more)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            complain(&e);
            ExitCode::FAILURE
        }
    }
}

/// Prints the completions of a word, one per line.
pub fn complete(client: &mut Client, w: &Words) -> Result<(), Failure> {
    let flag = if w.purpose == "write" { HandlerFlags::WRITE } else { HandlerFlags::READ };
    let mut out = Vec::new();
    if w.purpose == "list" {
        out.extend(elements(client)?);
    } else if let Some((element, _)) = w.word.split_once('.') {
        let all = handlers(client, Some(element))?.into_iter().filter(|h| h.0 != "*" && h.1.contains(flag));
        out.extend(all.map(|h| format!("{element}.{}", h.0)));
    } else {
        out.extend(handlers(client, None)?.into_iter().filter(|h| h.1.contains(flag)).map(|h| h.0));
        out.extend(elements(client)?.into_iter().map(|e| e + "."));
    }
    out.retain(|o| o.starts_with(&w.word));
    out.sort();
    Ok(write_out(None, &out.iter().map(|o| format!("{o}\n")).collect::<String>())?)
}

/// Bash also splits words at `:` and `@`, and completes only the last piece. So this script splits the line
/// again, at blanks only.
const BASH: &str = r#"
_castanet_running() {
    local line="${COMP_LINE:0:COMP_POINT}" words word="" head c
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] || { word="${words[-1]}"; unset 'words[-1]'; }
    if [[ ${words[1]} == ctl && ${words[3]} =~ ^(read|write|watch|list)$ && $word != -* ]] &&
        [[ ${words[3]} == watch || ${#words[@]} -eq 4 ]]; then
        head="${word%"${word##*[$COMP_WORDBREAKS]}"}"
        COMPREPLY=()
        while read -r c; do
            [[ $c != *. ]] || compopt -o nospace 2>/dev/null
            COMPREPLY+=("${c#"$head"}")
        done < <("${words[0]}" ctl --timeout 2 "${words[2]}" complete "${words[3]}" "$word" 2>/dev/null)
        return 0
    fi
    _castanet "$@"
}
complete -F _castanet_running -o bashdefault -o default castanet
"#;

const ZSH: &str = r#"
_castanet_running() {
    local word="${words[CURRENT]}"
    if [[ ${words[2]} == ctl && ${words[4]} == (read|write|watch|list) && $word != -* ]] &&
        [[ $CURRENT -eq 5 || (${words[4]} == watch && $CURRENT -gt 5) ]]; then
        local -a whole parts
        local c
        for c in ${(f)"$(${words[1]} ctl --timeout 2 ${words[3]} complete ${words[4]} "$word" 2>/dev/null)"}; do
            if [[ $c == *. ]]; then parts+=("$c"); else whole+=("$c"); fi
        done
        compadd -a whole
        compadd -S '' -a parts
        return 0
    fi
    _castanet "$@"
}
compdef _castanet_running castanet
"#;

const FISH: &str = r#"
function __castanet_running
    set -l words (commandline -opc)
    test (count $words) -ge 4; and contains -- $words[4] read write watch list
    and test (count $words) -eq 4 -o $words[4] = watch
end
function __castanet_names
    set -l words (commandline -opc)
    $words[1] ctl --timeout 2 $words[3] complete $words[4] (commandline -ct) 2>/dev/null
end
complete -c castanet -n "test (count (commandline -opc)) -ge 2; and test (commandline -opc)[2] = ctl; and __castanet_running" -f -a "(__castanet_names)"
"#;
