// SPDX-License-Identifier: MIT OR Apache-2.0
//! An outline of a program: its modules with their fields, exceptions and methods, with the types that were inferred.

use crate::counted;
use crate::program::{FeatureKind, FieldId, Method, MethodId, MethodKind, Module, ModuleId, Program, Type};
use std::fmt::Write;

/// The outline of a program, as text.
pub fn outline(program: &Program) -> String {
    let mut out = String::new();
    for (name, on) in &program.extensions {
        let _ = writeln!(out, "extension {name}: {}", if *on { "on" } else { "off" });
    }
    for (i, m) in program.modules.iter().enumerate() {
        if !out.is_empty() {
            out.push('\n');
        }
        module(program, &mut out, ModuleId(i), m);
    }
    out
}

fn module(p: &Program, out: &mut String, id: ModuleId, m: &Module) {
    let _ = write!(out, "module {}", m.name);
    if let Some(parent) = m.parent {
        let _ = write!(out, " :> {}", p.module(parent).name);
    }
    if let Some(size) = m.punned {
        let _ = write!(out, ", {}", counted(size, "byte"));
    }
    out.push('\n');
    fields(p, out, m);
    let view = p.view(m.outer);
    for (name, f) in &view.features {
        let hidden = if f.hidden.is_some() { ", hidden" } else { "" };
        match f.kind {
            FeatureKind::Exception(e) if p.exceptions[e.0].module == id => {
                let _ = writeln!(out, "    exception {name}{hidden}");
            }
            FeatureKind::Method(m) if p.method(m).module == id => {
                let _ = writeln!(out, "    {}{hidden}", signature(p, p.method(m)));
            }
            _ => {}
        }
    }
    let own = |c: &MethodId| p.method(*c).module == id;
    if let Some(c) = m.constructor.filter(own) {
        let _ = writeln!(out, "    {}", signature(p, p.method(c)));
    }
}

/// The fields, with their bytes and the padding before them.
fn fields(p: &Program, out: &mut String, m: &Module) {
    let marks = |id: FieldId| {
        let view = p.view(m.outer);
        let feature = view.features.values().find(|f| f.kind == FeatureKind::Field(id));
        feature.map_or(String::new(), |f| {
            let hidden = if f.hidden.is_some() { ", hidden" } else { "" };
            format!("{}{hidden}", if f.using { " using" } else { "" })
        })
    };
    let mut order: Vec<FieldId> = m.fields.clone();
    order.sort_by_key(|f| p.field(*f).place.map(|place| place.offset));
    let mut end = m.parent.and_then(|parent| p.module(parent).punned).unwrap_or(0);
    for id in order {
        let f = p.field(id);
        let ty = p.type_name(&f.ty);
        let Some(place) = f.place else {
            let _ = writeln!(out, "    field {} :> {ty}{}", f.name, marks(id));
            continue;
        };
        if place.offset > end {
            let _ = writeln!(out, "    {end:>4}: {} of padding", counted(place.offset - end, "byte"));
        }
        let bytes = match &f.ty {
            Type::Array(element, n) => crate::interp::width(element) * n,
            ty => crate::interp::width(ty),
        };
        let order = if bytes == 1 || place.big { "" } else { " little" };
        let _ = writeln!(out, "    {:>4}: field {} :> {ty}{order}{}", place.offset, f.name, marks(id));
        end = end.max(place.offset + bytes);
    }
}

fn signature(p: &Program, m: &Method) -> String {
    let kind = match m.kind {
        MethodKind::Static => "static ",
        MethodKind::Constant => "const ",
        _ => "",
    };
    let params: Vec<String> =
        m.locals.iter().zip(&m.params).map(|(l, ty)| format!("{} :> {}", l.name, p.type_name(ty))).collect();
    let params = if params.is_empty() { String::new() } else { format!("({})", params.join(", ")) };
    let result = match (m.kind, &m.result) {
        (MethodKind::Constructor, _) => String::new(),
        (_, Type::Never) => ", raises an exception".into(),
        (_, ty) => format!(" :> {}", p.type_name(ty)),
    };
    let overrides = m.overrides.filter(|_| m.kind == MethodKind::Method);
    let overrides = overrides.map_or(String::new(), |o| format!(", replaces {}", p.full_name(o)));
    format!("{kind}{}{params}{result}{overrides}", m.name)
}
