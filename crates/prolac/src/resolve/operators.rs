// SPDX-License-Identifier: MIT OR Apache-2.0
//! Module operators: from a view of a module to another view.

use super::{Resolver, nearest};
use crate::program::{Hint, View, ViewId};
use crate::syntax::ast::{Name, Operator, OperatorKind, Path};
use castanet_diagnostic::Diagnostic;

impl Resolver {
    /// Applies operators, from left to right.
    pub(super) fn with_operators(&mut self, view: ViewId, ops: &[Operator]) -> ViewId {
        if ops.is_empty() {
            return view;
        }
        let mut view = self.program.view(view).clone();
        for op in ops {
            self.apply(&mut view, op);
        }
        self.add_view(view)
    }

    fn apply(&mut self, view: &mut View, op: &Operator) {
        let Some(names) = &op.names else {
            let all: Vec<String> = view.features.keys().cloned().collect();
            self.change(view, op, &all, None);
            return;
        };
        for (path, new) in names {
            let name = path.text();
            let answering = format!("{name}.{}", path.parts.last().map_or("", |n| n.text.as_str()));
            let inside = format!("{name}.");
            let keys: Vec<String> =
                view.features.keys().filter(|k| **k == name || k.starts_with(&inside)).cloned().collect();
            if keys.is_empty() {
                self.unknown_feature(view, path, op);
                continue;
            }
            // An operator on a namespace that answers for a method concerns the method, except that `hide` and `show`
            // concern the whole namespace, and `rename` moves it.
            let whole = matches!(op.kind, OperatorKind::Hide | OperatorKind::Show | OperatorKind::Rename);
            match view.features.contains_key(&answering) && !whole {
                true => self.change(view, op, &[answering], Some((path, new))),
                false => self.change(view, op, &keys, Some((path, new))),
            }
        }
    }

    fn unknown_feature(&mut self, view: &View, path: &Path, op: &Operator) {
        let module = self.program.module(view.module);
        if module.incomplete {
            return;
        }
        let (module, name) = (module.name.clone(), path.text());
        let d = Diagnostic::error(format!("module '{module}' has no '{name}'"), path.span);
        let d = d.at(format!("named by '{}'", word(op.kind)));
        let d = match nearest(&name, view.features.keys().map(String::as_str)) {
            Some(near) => d.did_you_mean(near),
            None => d,
        };
        self.report(d);
    }

    fn change(
        &mut self,
        view: &mut View,
        op: &Operator,
        keys: &[String],
        named: Option<(&Path, &Option<Name>)>,
    ) {
        for key in keys {
            if op.kind == OperatorKind::Rename {
                self.rename(view, key, named);
                continue;
            }
            let Some(feature) = view.features.get_mut(key) else { continue };
            match op.kind {
                OperatorKind::Hide => feature.hidden = Some(op.span),
                OperatorKind::Show => feature.hidden = None,
                OperatorKind::Using => {
                    let is_field = matches!(feature.kind, crate::program::FeatureKind::Field(_));
                    feature.using |= is_field;
                    if let (false, Some((path, _))) = (is_field, named) {
                        let d = Diagnostic::error(format!("'{key}' is no field"), path.span);
                        self.report(
                            d.at("named by 'using'").help("'using' marks fields that point to modules"),
                        );
                    }
                }
                OperatorKind::Inline => feature.hint = Some(Hint::Inline),
                OperatorKind::PathInline => feature.hint = Some(Hint::PathInline),
                OperatorKind::NoInline => feature.hint = Some(Hint::NoInline),
                OperatorKind::Outline => feature.hint = Some(Hint::Outline),
                OperatorKind::Rename => {}
            }
        }
    }

    fn rename(&mut self, view: &mut View, key: &str, named: Option<(&Path, &Option<Name>)>) {
        let Some((path, Some(new))) = named else { return };
        let old = path.text();
        let parent = old.rsplit_once('.').map_or(String::new(), |(p, _)| format!("{p}."));
        let rest = key.get(old.len()..).unwrap_or("");
        // The method that answers for its namespace follows the namespace's new name.
        let last = old.rsplit('.').next().unwrap_or("");
        let rest = if rest == format!(".{last}") { format!(".{}", new.text) } else { rest.to_string() };
        let to = format!("{parent}{}{rest}", new.text);
        if to == key {
            return;
        }
        if view.features.contains_key(&to) {
            let module = self.program.module(view.module).name.clone();
            let d = Diagnostic::error(format!("module '{module}' has a '{to}' already"), new.span);
            self.report(d.at("the new name is taken").help("choose another name, or rename that one first"));
            return;
        }
        if let Some(feature) = view.features.remove(key) {
            view.features.insert(to, feature);
        }
    }
}

fn word(kind: OperatorKind) -> &'static str {
    match kind {
        OperatorKind::Hide => "hide",
        OperatorKind::Show => "show",
        OperatorKind::Using => "using",
        OperatorKind::Rename => "rename",
        OperatorKind::Inline => "inline",
        OperatorKind::NoInline => "noinline",
        OperatorKind::PathInline => "pathinline",
        OperatorKind::Outline => "outline",
    }
}
