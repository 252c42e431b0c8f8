// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages about names that are not found or not accessible.

use super::Checker;
use super::scope::Scope;
use crate::program::{FeatureKind, FieldId, ViewId};
use crate::resolve::nearest;
use crate::syntax::ast::Name;
use castanet_diagnostic::{Diagnostic, Span};

impl Checker {
    /// Reports a name that denotes nothing, with where it was looked up.
    pub(super) fn unknown_name(
        &mut self,
        scope: &Scope,
        name: &Name,
        fields: &[(String, FieldId, ViewId)],
        hidden: Vec<(Span, FeatureKind)>,
    ) {
        let text = &name.text;
        if !hidden.is_empty() {
            self.report_hidden(text, name.span, &hidden);
            return;
        }
        let d = Diagnostic::error(format!("unknown name '{text}'"), name.span).at("not found");
        let module = self.program().module(scope.module);
        if module.incomplete || fields.iter().any(|(_, _, view)| self.incomplete(*view)) {
            return;
        }
        let module = &module.name;
        let fields_text: Vec<_> = fields
            .iter()
            .map(|(n, id, _)| format!("'{n}' ({})", self.name_of(&self.program().field(*id).ty)))
            .collect();
        let searched = match fields_text.is_empty() {
            true if scope.is_static => format!("searched: module '{module}'; a static method has no fields"),
            true => format!("searched: module '{module}', which has no field marked 'using'"),
            false => format!(
                "searched: module '{module}', and the fields marked 'using': {}",
                fields_text.join(", ")
            ),
        };
        let d = d.note(searched, None);
        let known =
            |part: &str| scope.find(part).is_some() || self.program().view(scope.view).find(part).is_some();
        if let Some((a, b)) = text
            .match_indices('-')
            .map(|(i, _)| text.split_at(i))
            .find(|(a, b)| known(a) && b.get(1..).is_some_and(known))
        {
            let d = d.help(format!("a hyphen belongs to the name; to subtract, write '{a} - {}'", &b[1..]));
            self.report(d);
            return;
        }
        let mut names: Vec<&str> = scope.names().collect();
        names.extend(self.program().view(scope.view).features.keys().map(String::as_str));
        for (_, _, view) in fields {
            names.extend(self.program().view(*view).features.keys().map(String::as_str));
        }
        let near = nearest(text, names.into_iter()).map(str::to_string);
        let d = match near {
            Some(near) => d.did_you_mean(&near),
            None => d.help(format!("define it: {text} ::= …;")),
        };
        self.report(d);
    }

    /// Whether names of the module may be missing because of an error that has been reported.
    pub(super) fn incomplete(&self, view: ViewId) -> bool {
        self.program().module(self.program().view(view).module).incomplete
    }

    /// Reports a name that operators hide.
    pub(super) fn report_hidden(&mut self, name: &str, span: Span, hidden: &[(Span, FeatureKind)]) {
        let mut d = Diagnostic::error(format!("'{name}' is hidden"), span).at("not accessible here");
        for (by, kind) in hidden {
            let (module, place) = self.r.declared_by(*kind);
            let owner = self.program().module(module).name.clone();
            d = d
                .label(self.r.hidden_by(*by), *by)
                .label(format!("the hidden '{name}', of '{owner}'"), place);
        }
        self.report(
            d.help(format!("write 'show {name}' after the name of the module to make it accessible")),
        );
    }
}
