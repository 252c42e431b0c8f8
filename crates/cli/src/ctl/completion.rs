// SPDX-License-Identifier: MIT OR Apache-2.0
//! Completion of command lines: subcommands and options by the shell alone, names of a running router by asking it.

use super::Failure;
use super::list::{elements, handlers};
use crate::load::{complain, write_out};
use castanet_control::Client;
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

/// Shells that are known.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum Named {
    /// GNU Bash.
    Bash,
    /// The Z shell.
    Zsh,
    /// Fish.
    Fish,
}

/// What a word may become.
#[derive(Args)]
pub struct Words {
    /// What the word is for: read, write, watch or list.
    pub purpose: String,
    /// The word as far as it is written.
    #[arg(default_value = "")]
    pub word: String,
}

/// Prints the script that a shell reads.
pub fn main(a: &Completion) -> ExitCode {
    let (shell, more) = match a.shell {
        Named::Bash => (Shell::Bash, BASH),
        Named::Zsh => (Shell::Zsh, ZSH),
        Named::Fish => (Shell::Fish, FISH),
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut crate::args::Castanet::command(), "castanet", &mut script);
    match write_out(None, &(String::from_utf8_lossy(&script).into_owned() + more)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            complain(&e);
            ExitCode::FAILURE
        }
    }
}

/// Prints what a word may become.
pub fn complete(client: &mut Client, w: &Words) -> Result<(), Failure> {
    let flag = if w.purpose == "write" { 'w' } else { 'r' };
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

/// Bash cuts words at `:` and `@`, and completes the last piece; so the line is cut again here, at blanks alone.
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
