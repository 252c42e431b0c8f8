// SPDX-License-Identifier: MIT OR Apache-2.0
//! The thread that makes machine code.

use crate::Code;
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::{JoinHandle, Thread};

/// A program, and its machine code when it is ready.
#[derive(Debug)]
pub struct Job<P, C = Code> {
    program: P,
    code: OnceLock<C>,
    wanted: AtomicBool,
    /// The thread that makes the code. None if nobody makes it.
    thread: Option<Thread>,
}

impl<P, C> Job<P, C> {
    /// A program that stays without machine code.
    pub fn interpreted(program: P) -> Job<P, C> {
        Job { program, code: OnceLock::new(), wanted: AtomicBool::new(false), thread: None }
    }

    /// The program.
    #[inline(always)]
    pub fn program(&self) -> &P {
        &self.program
    }

    /// The machine code, if it is ready.
    #[inline(always)]
    pub fn code(&self) -> Option<&C> {
        self.code.get()
    }

    /// Asks for the machine code. The call neither waits nor allocates memory.
    #[cold]
    pub fn want(&self) {
        if let Some(thread) = &self.thread
            && !self.wanted.swap(true, Ordering::Release)
        {
            thread.unpark();
        }
    }
}

/// The state that the thread and the compiler share.
struct Shared<P, C> {
    /// The jobs without code. A job disappears with the last element that uses it.
    open: Mutex<Vec<Weak<Job<P, C>>>>,
    ended: AtomicBool,
}

impl<P, C> Shared<P, C> {
    /// Takes out a job whose code is wanted.
    fn next(&self) -> Option<Arc<Job<P, C>>> {
        let mut open = self.open.lock();
        open.retain(|job| job.strong_count() > 0);
        let wanted = |job: &Weak<Job<P, C>>| job.upgrade().filter(|j| j.wanted.load(Ordering::Acquire));
        let (at, job) = open.iter().enumerate().find_map(|(at, job)| Some((at, wanted(job)?)))?;
        open.swap_remove(at);
        Some(job)
    }

    fn run(&self, compile: fn(&P) -> Option<C>) {
        while !self.ended.load(Ordering::Acquire) {
            match self.next() {
                Some(job) => {
                    // If the compiler cannot do it, the program is interpreted for ever.
                    if let Ok(Some(code)) = catch_unwind(AssertUnwindSafe(|| compile(&job.program))) {
                        let _ = job.code.set(code);
                    }
                }
                None => std::thread::park(),
            }
        }
    }
}

/// When machine code is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// When the job says that it is wanted, on another thread.
    Wanted,
    /// With the job, which is ready only then.
    AtOnce,
}

/// Makes the machine code of all jobs of a router. A thread of its own makes what is wanted, one after the other. This thread
/// starts with the first job, sleeps until code is wanted, and ends with the compiler.
pub struct Compiler<P, C = Code> {
    compile: fn(&P) -> Option<C>,
    when: When,
    shared: Arc<Shared<P, C>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl<P: Send + Sync + 'static, C: Send + Sync + 'static> Compiler<P, C> {
    /// A compiler that makes machine code with `compile`, which returns None if it cannot.
    pub fn new(compile: fn(&P) -> Option<C>, when: When) -> Compiler<P, C> {
        let shared = Shared { open: Mutex::default(), ended: AtomicBool::new(false) };
        Compiler { compile, when, shared: Arc::new(shared), thread: Mutex::default() }
    }

    /// When this compiler makes code.
    pub fn when(&self) -> When {
        self.when
    }

    /// A job for a program.
    pub fn job(&self, program: P) -> Arc<Job<P, C>> {
        if self.when == When::AtOnce {
            let code = (self.compile)(&program).map(OnceLock::from).unwrap_or_default();
            return Arc::new(Job { code, ..Job::interpreted(program) });
        }
        let job = Arc::new(Job { thread: self.thread(), ..Job::interpreted(program) });
        if job.thread.is_some() {
            self.shared.open.lock().push(Arc::downgrade(&job));
        }
        job
    }

    /// The thread. None if the system starts no more threads; then programs are interpreted.
    fn thread(&self) -> Option<Thread> {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let (shared, compile) = (self.shared.clone(), self.compile);
            *thread =
                std::thread::Builder::new().name("compiler".into()).spawn(move || shared.run(compile)).ok();
        }
        thread.as_ref().map(|t| t.thread().clone())
    }
}

impl<P, C> Drop for Compiler<P, C> {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Release);
        let thread = self.thread.get_mut().take();
        if let Some(thread) = thread {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    unsafe extern "C" fn seven(_: *const u8, _: usize) -> u32 {
        7
    }

    /// Programs are numbers: an odd one has code, and 4 makes the compiler panic.
    fn compile(program: &u32) -> Option<Code> {
        assert_ne!(*program, 4, "a panic that the test wants");
        // SAFETY: `seven` reads nothing.
        (program % 2 == 1).then(|| unsafe { Code::new(seven, Box::new(())) })
    }

    /// Waits until a job has code.
    fn wait(job: &Job<u32>) {
        while job.code().is_none() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn code_is_made_when_it_is_wanted() {
        let compiler = Compiler::new(compile, When::Wanted);
        let jobs: Vec<_> = (0..7).map(|n| compiler.job(n)).collect();
        // The last job is done after the others that were wanted before.
        for n in [0, 1, 4, 3] {
            jobs[n].want();
        }
        wait(&jobs[1]);
        wait(&jobs[3]);
        jobs[6].want();
        jobs[5].want();
        wait(&jobs[5]);
        assert_eq!(jobs[5].code().unwrap().run(&[]), Some(7));
        drop(compiler);
        let ready: Vec<u32> = jobs.iter().filter(|j| j.code().is_some()).map(|j| *j.program()).collect();
        assert_eq!(ready, [1, 3, 5]);
        jobs[2].want();
    }

    #[test]
    fn jobs_end_with_their_elements_and_the_compiler() {
        let compiler = Compiler::new(compile, When::Wanted);
        let first = compiler.job(1);
        drop(compiler.job(3));
        first.want();
        wait(&first);
        let last = compiler.job(5);
        last.want();
        wait(&last);
        assert_eq!(compiler.shared.open.lock().len(), 0);
        let ready = Compiler::new(compile, When::AtOnce);
        assert!(ready.job(1).code().is_some() && ready.job(2).code().is_none());
        let alone: Job<u32> = Job::interpreted(1);
        alone.want();
        assert!(alone.code().is_none());
    }
}
