// SPDX-License-Identifier: MIT OR Apache-2.0
//! `castanet pretty`: shows a configuration as an HTML page.

use crate::args::{Configuration, any_text};
use crate::load::{Loaded, Source, complain, exit, load, show, write_out};
use castanet_graph::pretty::{Settings, TEMPLATE, page};
use castanet_lang::{Unknown, bytes, read};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `castanet pretty`.
#[derive(clap::Args)]
pub struct Pretty {
    #[command(flatten)]
    configuration: Configuration,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    template: TemplateOptions,
    #[command(flatten)]
    docs: DocsOptions,
    /// Print the template instead of a page.
    #[arg(long)]
    write_template: bool,
}

/// The template of a page.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct TemplateOptions {
    /// Use this file as the template.
    #[arg(short, long, value_name = "FILE", value_parser = any_text())]
    pub template: Option<String>,
    /// Use this text as the template.
    #[arg(short = 'T', long, value_name = "TEXT", conflicts_with = "template", value_parser = any_text())]
    pub template_text: Option<String>,
    /// Define a tag of the template: `<? NAME ?>` stands for this HTML.
    #[arg(short = 'd', long = "define", value_name = "NAME=TEXT", value_parser = any_text())]
    pub defines: Vec<String>,
}

/// Where classes are documented.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct DocsOptions {
    /// Link classes to their documentation at this address; `%s` stands for the class, which else is appended.
    #[arg(short = 'u', long, value_name = "URL", value_parser = any_text())]
    pub class_docs: Option<String>,
    /// The same for classes that are not built in, if the configuration requires this package.
    #[arg(long, value_name = "PACKAGE=URL", value_parser = any_text())]
    pub package_docs: Vec<String>,
}

impl TemplateOptions {
    /// Returns the text of the template.
    pub fn text(&self) -> Result<String, String> {
        match (&self.template_text, &self.template) {
            (Some(text), _) => Ok(text.clone()),
            (None, Some(file)) if file == "-" => {
                let all = read::stream(std::io::stdin().lock(), read::MAX_CONFIGURATION);
                all.map(bytes::decode_vec).map_err(|e| format!("<stdin>: {}", crate::load::reason(&e)))
            }
            (None, Some(file)) => {
                let path = Path::new(OsStr::from_bytes(&bytes::encode(file))).to_path_buf();
                let all = read::file(&path, read::MAX_CONFIGURATION);
                all.map(bytes::decode_vec).map_err(|e| format!("{file}: {}", crate::load::reason(&e)))
            }
            (None, None) => Ok(TEMPLATE.to_string()),
        }
    }
}

/// Splits `NAME=TEXT`. `option` is the name of the option in the error.
fn pairs(words: &[String], option: &str) -> Result<Vec<(String, String)>, String> {
    let pair = |w: &String| {
        let pair = w.split_once('=').filter(|p| !p.0.is_empty());
        pair.map(|(n, t)| (n.to_string(), t.to_string()))
            .ok_or_else(|| format!("{option}: '{w}' is not NAME=TEXT"))
    };
    words.iter().map(pair).collect()
}

/// The address of the documentation of a class.
fn address(url: &str, class: &str) -> String {
    if url.contains("%s") { url.replace("%s", class) } else { format!("{url}{class}") }
}

/// Returns the page of a configuration, and the tags of the template that nothing defines.
///
/// # Errors
/// An option is wrong, or the template cannot be read.
pub fn html(
    loaded: &Loaded,
    template: &TemplateOptions,
    docs: &DocsOptions,
) -> Result<(String, Vec<String>), String> {
    let (defines, packages) =
        (pairs(&template.defines, "--define")?, pairs(&docs.package_docs, "--package-docs")?);
    let text = template.text()?;
    let built_in = castanet_classes::Registry::new();
    let required: Vec<&str> = loaded.graph.flat.requirements.iter().map(|r| r.1.as_str()).collect();
    let package = packages.iter().find(|p| required.contains(&p.0.as_str()));
    let address = |class: &str| match package {
        Some((_, url)) if castanet_spec::ClassSpecs::spec(&built_in, class).is_none() => {
            Some(address(url, class))
        }
        _ => docs.class_docs.as_ref().map(|url| address(url, class)),
    };
    Ok(page(&loaded.graph, &loaded.sources, &Settings { template: &text, defines: &defines, docs: &address }))
}

/// Prints the page. A configuration with errors is shown as far as possible, and the errors are printed.
pub fn main(args: &Pretty) -> ExitCode {
    exit(pretty(args))
}

/// Returns false if the configuration has errors, which have been printed.
fn pretty(args: &Pretty) -> Result<bool, String> {
    if args.write_template {
        write_out(args.output.as_deref(), &args.template.text()?)?;
        return Ok(true);
    }
    let source = Source::read(&args.configuration)?;
    let loaded = load(&source, args.configuration.clickpath.as_deref(), Unknown::Opaque);
    show(&loaded.sources, &loaded.diagnostics, args.configuration.json);
    let (html, unknown) = html(&loaded, &args.template, &args.docs)?;
    unknown
        .iter()
        .for_each(|tag| complain(&format!("warning: the template's tag '<? {tag} ?>' is not defined")));
    write_out(args.output.as_deref(), &html)?;
    Ok(!loaded.failed())
}
