// SPDX-License-Identifier: MIT OR Apache-2.0
//! Executable memory with compiled code.

use cranelift_codegen::Context;
use cranelift_codegen::ir::{AbiParam, Signature, types};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Linkage, Module, default_libcall_names};
use parking_lot::Mutex;

/// The memory of a compiled function. It is freed when this value is dropped, so nobody may call the function afterwards.
pub(crate) struct Memory(Mutex<Option<JITModule>>);

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(module) = self.0.get_mut().take() {
            // SAFETY: `Code` keeps this value as long as it calls the function, and there is no other pointer to it.
            unsafe { module.free_memory() }
        }
    }
}

/// The signature of [`castanet_native::Entry`].
pub(crate) fn signature(module: &JITModule) -> Signature {
    let pointer = module.target_config().pointer_type();
    let mut signature = module.make_signature();
    signature.params = vec![AbiParam::new(pointer), AbiParam::new(pointer)];
    signature.returns = vec![AbiParam::new(types::I32)];
    signature
}

/// Compiles the function that `make` returns. Returns its address, which is not null. None if the machine does not allow it.
pub(crate) fn load(make: impl FnOnce(&JITModule) -> Context) -> Option<(*const u8, Memory)> {
    let builder = JITBuilder::with_flags(&[("opt_level", "speed")], default_libcall_names()).ok()?;
    let module = Memory(Mutex::new(Some(JITModule::new(builder))));
    let address = {
        let mut module = module.0.lock();
        let module = module.as_mut()?;
        let mut context = make(module);
        let function = module.declare_function("code", Linkage::Local, &context.func.signature).ok()?;
        module.define_function(function, &mut context).ok()?;
        module.finalize_definitions().ok()?;
        module.get_finalized_function(function)
    };
    (!address.is_null()).then_some((address, module))
}
