// SPDX-License-Identifier: MIT OR Apache-2.0
//! Types of fields, parameters and declared results, and the layout of modules over bytes.

use super::Checker;
use crate::program::{FieldId, Host, Int, MethodId, MethodKind, ModuleId, Place, Type};
use crate::resolve::nearest;
use crate::syntax::ast::{self, TypeKind};
use castanet_diagnostic::{Diagnostic, Span};

/// The largest array, in elements.
const MAX_ARRAY: u64 = 65_536;
/// The largest offset of a field.
const MAX_OFFSET: u64 = 65_535;

/// The built-in type of a name.
fn builtin(name: &str) -> Option<Type> {
    let int = |bits, signed| Type::Int(Int { bits, signed });
    Some(match name {
        "void" => Type::Void,
        "bool" => Type::Bool,
        "string" => Type::Text,
        "bytes" => Type::Bytes,
        "seqint" => Type::Seq,
        "char" | "int8" => int(8, true),
        "uchar" | "uint8" => int(8, false),
        "short" | "int16" => int(16, true),
        "ushort" | "uint16" => int(16, false),
        "int" | "int32" => int(32, true),
        "uint" | "uint32" => int(32, false),
        "long" | "int64" => int(64, true),
        "ulong" | "uint64" => int(64, false),
        _ => return None,
    })
}

/// The number of bytes of a scalar type over a packet.
fn width(ty: &Type) -> Option<usize> {
    match ty {
        Type::Int(i) => Some(usize::from(i.bits / 8)),
        Type::Seq => Some(4),
        Type::Bool => Some(1),
        _ => None,
    }
}

/// The number of bytes of a type over a packet, if values of it are stored there.
pub(super) fn bytes_of(ty: &Type) -> Option<usize> {
    match ty {
        Type::Array(element, n) => width(element).map(|w| w * n),
        ty => width(ty),
    }
}

impl Checker {
    pub(super) fn signatures(&mut self) {
        for n in 0..self.r.field_sources.len() {
            let (decl, context) = self.r.field_sources[n].clone();
            let ty = self.ty(&context, &decl.ty);
            let ty = self.field_type(ty, decl.ty.span);
            self.r.program.fields[n].ty = ty;
        }
        for n in 0..self.r.sources.len() {
            let (params, result, context) = {
                let s = &self.r.sources[n];
                (s.decl.params.clone(), s.decl.result.clone(), s.context.clone())
            };
            let mut types = Vec::new();
            for (i, p) in params.iter().enumerate() {
                if let Some(first) = params.iter().take(i).find(|q| q.name.text == p.name.text) {
                    let d = Diagnostic::error(format!("two parameters '{}'", p.name.text), p.name.span);
                    self.report(d.at("the name is taken").label("first declared here", first.name.span));
                }
                let ty = self.ty(&context, &p.ty);
                types.push(self.value_type(ty, p.ty.span, "a parameter"));
            }
            let kind = self.program().methods[n].kind;
            let result = match result {
                Some(ty) => {
                    let (t, span) = (self.ty(&context, &ty), ty.span);
                    if t == Type::Void { t } else { self.value_type(t, span, "a result") }
                }
                None if kind == MethodKind::Constructor => Type::Void,
                None => Type::Unknown,
            };
            let m = &mut self.r.program.methods[n];
            (m.params, m.result) = (types, result);
            if kind == MethodKind::Constant && !params.is_empty() {
                let span = params.first().map_or(Span::default(), |p| p.name.span);
                let d = Diagnostic::error("a constant has no parameters", span).at("a parameter");
                self.report(d.help("write 'static' for 'const'"));
            }
        }
        self.hosts();
    }

    fn hosts(&mut self) {
        for n in 0..self.r.hosts.len() {
            let (decl, context) = (self.r.hosts[n].decl.clone(), self.r.hosts[n].context.clone());
            let mut params = Vec::new();
            for p in &decl.params {
                let ty = self.ty(&context, &p.ty);
                let ty = if ty == Type::Text { ty } else { self.value_type(ty, p.ty.span, "a parameter") };
                params.push((p.name.text.clone(), ty));
            }
            let result = match &decl.result {
                Some(t) => {
                    let ty = self.ty(&context, t);
                    if ty == Type::Void { ty } else { self.value_type(ty, t.span, "a result") }
                }
                None => Type::Void,
            };
            let name = decl.name.text.replace('-', "_");
            if let Some(first) = self.program().hosts.iter().find(|h| h.name.replace('-', "_") == name) {
                let place = first.span;
                let d =
                    Diagnostic::error(format!("host function '{name}' is declared twice"), decl.name.span);
                self.report(d.at("declared again").label("first declared here", place));
                continue;
            }
            let host = Host { name: decl.name.text.clone(), params, result, span: decl.name.span };
            self.r.program.hosts.push(host);
        }
    }

    /// The type that a text denotes.
    pub(super) fn ty(&mut self, context: &str, ty: &ast::Type) -> Type {
        match &ty.kind {
            TypeKind::Missing => Type::Unknown,
            TypeKind::Pointer(inner) => match &inner.kind {
                TypeKind::Name(module) if builtin(&module.path.text()).is_none() => {
                    self.r.module_view(context, module, 0).map_or(Type::Unknown, Type::Pointer)
                }
                TypeKind::Missing => Type::Unknown,
                _ => {
                    let d = Diagnostic::error("pointer to something that is no module", ty.span);
                    self.report(
                        d.at("only modules are pointed to").help("the type of packet data is 'bytes'"),
                    );
                    Type::Unknown
                }
            },
            TypeKind::Optional(inner) => match self.ty(context, inner) {
                Type::Unknown => Type::Unknown,
                inner @ (Type::Optional(_) | Type::Void | Type::Text | Type::Array(..) | Type::Object(_)) => {
                    let d = Diagnostic::error(format!("no optional {}", self.name_of(&inner)), ty.span);
                    self.report(d.at("optional are numbers, truth values, bytes and pointers"));
                    Type::Unknown
                }
                inner => Type::Optional(Box::new(inner)),
            },
            TypeKind::Array(inner, n) => match self.ty(context, inner) {
                Type::Unknown => Type::Unknown,
                element if width(&element).is_some() && (1..=MAX_ARRAY).contains(n) => {
                    Type::Array(Box::new(element), *n as usize)
                }
                _ => {
                    let d = Diagnostic::error("no type of an array", ty.span);
                    self.report(d.at(format!("arrays have 1 to {MAX_ARRAY} numbers or truth values")));
                    Type::Unknown
                }
            },
            TypeKind::Name(module) => match builtin(&module.path.text()) {
                Some(ty) if !module.path.global => ty,
                _ => match self.r.module_view(context, module, 0) {
                    Some(view) => Type::Object(view),
                    None => {
                        self.suggest_builtin(module);
                        Type::Unknown
                    }
                },
            },
        }
    }

    /// Adds the nearest built-in type to the message about an unknown module.
    fn suggest_builtin(&mut self, module: &ast::ModuleExpr) {
        let near = nearest(&module.path.text(), crate::syntax::BUILTIN.iter().copied());
        if let (Some(near), Some(d)) = (near, self.r.diagnostics.last_mut())
            && d.span == Some(module.path.span)
        {
            d.helps.clear();
            *d = d.clone().did_you_mean(near);
        }
    }

    /// Reports a type that variables cannot have.
    pub(super) fn value_type(&mut self, ty: Type, span: Span, what: &str) -> Type {
        let d = match &ty {
            Type::Object(view) => {
                let name = &self.program().module(self.program().view(*view).module).name;
                let help = format!("write '*{name}' for a pointer to it");
                Diagnostic::error(format!("{what} cannot be an object"), span).at("an object").help(help)
            }
            Type::Void | Type::Text | Type::Array(..) => {
                let name = self.name_of(&ty);
                Diagnostic::error(format!("{what} cannot be of type {name}"), span).at("no type of a value")
            }
            _ => return ty,
        };
        self.report(d);
        Type::Unknown
    }

    fn field_type(&mut self, ty: Type, span: Span) -> Type {
        match ty {
            Type::Array(..) => ty,
            ty => self.value_type(ty, span, "a field"),
        }
    }

    /// Lays out the modules that have fields at offsets, and the modules that extend them.
    pub(super) fn layouts(&mut self) {
        for n in 0..self.program().modules.len() {
            let id = ModuleId(n);
            let module = self.program().module(id);
            let inherited = module.parent.and_then(|p| self.program().module(p).punned);
            let at = module.fields.iter().any(|f| self.r.field_sources[f.0].0.at.is_some());
            if inherited.is_some() || at {
                self.layout(id, inherited);
            } else {
                self.no_byte_order(id);
            }
        }
    }

    fn no_byte_order(&mut self, id: ModuleId) {
        for f in self.program().module(id).fields.clone() {
            if let Some((_, span)) = self.r.field_sources[f.0].0.big {
                let d = Diagnostic::error("byte order of a field without a place", span).at("no effect");
                self.report(d.help("give the field an offset in bytes: field NAME :> TYPE at OFFSET big;"));
            }
        }
    }

    fn layout(&mut self, id: ModuleId, inherited: Option<usize>) {
        let parent = self.program().module(id).parent;
        let ancestors: Vec<ModuleId> =
            std::iter::successors(parent, |m| self.program().module(*m).parent).collect();
        let parent_has_fields = ancestors.iter().any(|m| !self.program().module(*m).fields.is_empty());
        if inherited.is_none() && parent_has_fields {
            let d = Diagnostic::error(
                "a module over bytes extends a module with fields",
                self.program().module(id).span,
            );
            self.report(
                d.at("its fields have offsets").help("give the fields of the parent offsets as well"),
            );
            return;
        }
        let mut end = inherited.unwrap_or(0);
        let mut size = end;
        // Ranges that are taken, with the fields that have them.
        let mut taken: Vec<(usize, usize, FieldId)> = Vec::new();
        for f in ancestors.iter().flat_map(|m| self.program().module(*m).fields.clone()) {
            if let (Some(place), Some(n)) = (self.program().field(f).place, self.field_width(f)) {
                taken.push((place.offset, place.offset + n, f));
            }
        }
        for f in self.program().module(id).fields.clone() {
            let decl = self.r.field_sources[f.0].0.clone();
            let ty = self.program().field(f).ty.clone();
            let (Some(n), Some(align)) = (self.field_width(f), self.alignment(&ty)) else {
                if ty != Type::Unknown {
                    let name = self.name_of(&ty);
                    let d = Diagnostic::error(
                        format!("a field over bytes cannot be of type {name}"),
                        decl.ty.span,
                    );
                    self.report(
                        d.at("not stored in bytes").help("such fields are numbers, truth values and arrays"),
                    );
                }
                continue;
            };
            let offset = match decl.at {
                Some((at, span)) if at > MAX_OFFSET => {
                    let d = Diagnostic::error(format!("offset {at} is too large"), span);
                    self.report(d.at(format!("at most {MAX_OFFSET}")));
                    continue;
                }
                Some((at, _)) => at as usize,
                None => end.next_multiple_of(align),
            };
            for (start, stop, other) in &taken {
                if offset < *stop && *start < offset + n {
                    let (o, p) = (self.program().field(*other), self.program().field(f));
                    let d = Diagnostic::warning(format!("'{}' overlaps '{}'", p.name, o.name), p.span);
                    let d = d.at(format!("bytes {offset} to {}", offset + n - 1));
                    let d = d.label(format!("bytes {start} to {}", stop - 1), o.span);
                    self.report(d.help("a write to one of them changes the other"));
                    break;
                }
            }
            taken.push((offset, offset + n, f));
            end = offset + n;
            size = size.max(end);
            // Packets are big-endian, as network protocols are.
            let big = decl.big.is_none_or(|(big, _)| big);
            self.r.program.fields[f.0].place = Some(Place { offset, big });
        }
        self.r.program.modules[id.0].punned = Some(size);
    }

    fn field_width(&self, f: FieldId) -> Option<usize> {
        bytes_of(&self.program().field(f).ty)
    }

    fn alignment(&self, ty: &Type) -> Option<usize> {
        match ty {
            Type::Array(element, _) => width(element),
            ty => width(ty),
        }
    }

    /// The parameters of a method with their names, for messages.
    pub(super) fn signature(&self, id: MethodId) -> String {
        let (m, source) = (self.program().method(id), &self.r.sources[id.0]);
        let params = source.decl.params.iter().zip(&m.params);
        let params: Vec<_> =
            params.map(|(p, ty)| format!("{} :> {}", p.name.text, self.name_of(ty))).collect();
        format!("{}({})", m.name, params.join(", "))
    }
}
