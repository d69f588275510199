//! The SIGBUS handler, and the address range that the thread is accessing on purpose.
//!
//! The handler ends an access by jumping behind its call, like `longjmp`. The jump needs no memory
//! and no system call, so it cannot fail. The handler may interrupt any code. Therefore it takes no
//! lock, allocates no memory, and reads only thread-local memory and a value that is set once.

#![expect(unsafe_code, reason = "signal handlers, and leaving an access in its middle")]

use std::io;
use std::mem::{ManuallyDrop, needs_drop};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};

/// Access in progress of a thread. The fields are atomic because the handler interrupts the same
/// thread, so the compiler must not cache them. Other threads never see them.
struct AccessGuard {
    /// First byte. `end` is behind the last byte, or 0 without an access.
    start: AtomicUsize,
    end: AtomicUsize,
    stack: AtomicUsize,
    failed: AtomicBool,
}

thread_local! {
    // Constant and without a destructor, so that the handler can use it without initialization.
    static CURRENT_ACCESS: AccessGuard = const {
        AccessGuard {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            stack: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
        }
    };
}

/// Previous handler of the signal, set before ours is installed.
static PREVIOUS_HANDLER: OnceLock<libc::sigaction> = OnceLock::new();

/// Calls `access`. Returns true if all bytes from `start` to `end` that it touched exist. If a byte
/// is missing, the access ends there.
///
/// # Safety
/// `access` may be abandoned at any access to these bytes. It must hold no lock, and its changes
/// need not be complete. It must not call this function.
#[inline]
pub(crate) unsafe fn survive<F: FnOnce()>(start: usize, end: usize, access: F) -> bool {
    const {
        assert!(!needs_drop::<F>(), "an aborted access drops nothing");
    }
    let mut access = ManuallyDrop::new(access);
    CURRENT_ACCESS.with(|current| {
        assert!(current.end.load(Ordering::Relaxed) == 0, "accesses do not nest");
        current.start.store(start, Ordering::Relaxed);
        current.end.store(end, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        // SAFETY: `run` matches the closure passed here, and is called once. It returns, or the
        // handler abandons it and restores the callee-saved registers. By the caller's promise an
        // abandoned access is harmless.
        unsafe { attempt(run::<F>, (&raw mut access).cast(), current.stack.as_ptr()) };
        compiler_fence(Ordering::SeqCst);
        current.end.store(0, Ordering::Relaxed);
        !(current.failed.load(Ordering::Relaxed) && current.failed.swap(false, Ordering::Relaxed))
    })
}

/// Calls the closure at `access`. A panic in it ends the process, because unwinding cannot cross
/// [`attempt`].
extern "C" fn run<F: FnOnce()>(access: *mut u8) {
    // SAFETY: `survive` passes its own closure, and only this call takes it.
    let access = unsafe { ManuallyDrop::take(&mut *access.cast::<ManuallyDrop<F>>()) };
    access();
}

/// Saves the callee-saved registers, stores the stack pointer at `stack`, and calls `function` with
/// `argument`.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn attempt(function: extern "C" fn(*mut u8), argument: *mut u8, stack: *mut usize) {
    std::arch::naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "sub rsp, 8", // A call's stack is a multiple of 16.
        "mov [rdx], rsp",
        "mov rax, rdi",
        "mov rdi, rsi",
        "call rax",
        "jmp {leave}",
        leave = sym leave,
    )
}

/// Returns from [`attempt`]. Needs the stack pointer that `attempt` has stored.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn leave() {
    std::arch::naked_asm!(
        "cld", // A copy that goes down may have been left.
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
    )
}

#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn attempt(function: extern "C" fn(*mut u8), argument: *mut u8, stack: *mut usize) {
    std::arch::naked_asm!(
        "stp x29, x30, [sp, #-160]!",
        "mov x29, sp",
        "stp x19, x20, [sp, #16]",
        "stp x21, x22, [sp, #32]",
        "stp x23, x24, [sp, #48]",
        "stp x25, x26, [sp, #64]",
        "stp x27, x28, [sp, #80]",
        "stp d8, d9, [sp, #96]",
        "stp d10, d11, [sp, #112]",
        "stp d12, d13, [sp, #128]",
        "stp d14, d15, [sp, #144]",
        "mov x3, sp",
        "str x3, [x2]",
        "mov x4, x0",
        "mov x0, x1",
        "blr x4",
        "b {leave}",
        leave = sym leave,
    )
}

#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn leave() {
    std::arch::naked_asm!(
        "ldp x19, x20, [sp, #16]",
        "ldp x21, x22, [sp, #32]",
        "ldp x23, x24, [sp, #48]",
        "ldp x25, x26, [sp, #64]",
        "ldp x27, x28, [sp, #80]",
        "ldp d8, d9, [sp, #96]",
        "ldp d10, d11, [sp, #112]",
        "ldp d12, d13, [sp, #128]",
        "ldp d14, d15, [sp, #144]",
        "ldp x29, x30, [sp], #160",
        "ret",
    )
}

/// Installs the SIGBUS handler once per process.
pub(crate) fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    INSTALLED
        .get_or_init(|| install_now().map_err(|error| error.raw_os_error().unwrap_or(libc::EINVAL)))
        .map_err(io::Error::from_raw_os_error)
}

fn install_now() -> io::Result<()> {
    // SAFETY: `sigaction` reads and writes local structures, for which all zeroes is a valid value.
    // The handler has the signature required by SA_SIGINFO.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut before) != 0 {
            return Err(io::Error::last_os_error());
        }
        let _ = PREVIOUS_HANDLER.set(before);
        let mut ours: libc::sigaction = std::mem::zeroed();
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_sigbus;
        ours.sa_sigaction = handler as libc::sighandler_t;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&mut ours.sa_mask);
        if libc::sigaction(libc::SIGBUS, &ours, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

extern "C" fn on_sigbus(signal: libc::c_int, information: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a valid structure. For SIGBUS it contains an
    // address.
    let (address, code) = unsafe { ((*information).si_addr() as usize, (*information).si_code) };
    // A signal sent by a process (code 0 or less) is unrelated to memory.
    if code > 0
        && let Some(stack) = end_access(address)
    {
        // SAFETY: with SA_SIGINFO the kernel passes the thread's state, and restores it after the
        // handler.
        let machine = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext };
        #[cfg(target_arch = "x86_64")]
        {
            machine.gregs[libc::REG_RSP as usize] = stack as i64;
            machine.gregs[libc::REG_RIP as usize] = leave as *const () as i64;
        }
        #[cfg(target_arch = "aarch64")]
        {
            machine.sp = stack as u64;
            machine.pc = leave as *const () as u64;
        }
        return;
    }
    pass_on(signal, information, context);
}

/// Ends the thread's access if it contains the address. Returns the stack pointer to restore.
fn end_access(address: usize) -> Option<usize> {
    CURRENT_ACCESS.with(|current| {
        let (start, end) = (current.start.load(Ordering::Relaxed), current.end.load(Ordering::Relaxed));
        if !(start..end).contains(&address) {
            return None;
        }
        current.failed.store(true, Ordering::Relaxed);
        Some(current.stack.load(Ordering::Relaxed))
    })
}

/// Handles the signal as if our handler were absent.
fn pass_on(signal: libc::c_int, information: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = PREVIOUS_HANDLER.get();
    let handler = before.map_or(libc::SIG_DFL, |before| before.sa_sigaction);
    let with_information = before.is_some_and(|before| before.sa_flags & libc::SA_SIGINFO != 0);
    // SAFETY: a previous handler is called as the kernel would have called it. The default action
    // is restored. It takes effect when the access is repeated or the signal is raised again.
    unsafe {
        match handler {
            libc::SIG_IGN | libc::SIG_DFL => {
                libc::signal(signal, libc::SIG_DFL);
                if (*information).si_code <= 0 {
                    libc::raise(signal);
                }
            }
            handler if with_information => {
                type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
                std::mem::transmute::<libc::sighandler_t, Handler>(handler)(signal, information, context);
            }
            handler => std::mem::transmute::<libc::sighandler_t, extern "C" fn(libc::c_int)>(handler)(signal),
        }
    }
}
