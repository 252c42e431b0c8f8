// SPDX-License-Identifier: MIT OR Apache-2.0
//! Executable memory with compiled code.

use cranelift_codegen::Context;
use cranelift_codegen::ir::{AbiParam, Block, Signature, Type};
use cranelift_frontend::FunctionBuilder;
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

/// The signature of a function with so many arguments, each as large as a pointer, and these results.
pub(crate) fn signature(module: &JITModule, arguments: usize, results: &[Type]) -> Signature {
    let pointer = module.target_config().pointer_type();
    let mut signature = module.make_signature();
    signature.params = vec![AbiParam::new(pointer); arguments];
    signature.returns = results.iter().map(|kind| AbiParam::new(*kind)).collect();
    signature
}

/// Begins a function with its first block, which has the arguments as its parameters.
pub(crate) fn entry(builder: &mut FunctionBuilder<'_>) -> Block {
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    entry
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
