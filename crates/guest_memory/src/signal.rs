//! The handler of SIGBUS, and what it has to know: the bytes that the thread is touching on purpose.
//!
//! The handler ends an access: the thread goes on behind the call of it, as after `longjmp`. That takes no memory and no
//! system call, so there is nothing that could fail. It may interrupt anything, so it takes no lock, allocates nothing, and
//! reaches only memory of the thread and a value that is set once.

#![expect(unsafe_code, reason = "signal handlers, and leaving an access in its middle")]

use std::io;
use std::mem::{ManuallyDrop, needs_drop};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};

/// What a thread is doing. Atomic numbers because the handler interrupts the same thread: the compiler must not keep them
/// elsewhere. Other threads never see them.
struct Touching {
    /// First byte; `end` is behind the last one. Nothing, if that is 0.
    start: AtomicUsize,
    end: AtomicUsize,
    /// The stack pointer to go back to.
    stack: AtomicUsize,
    /// The handler has ended the access.
    gone: AtomicBool,
}

thread_local! {
    // Constant and without a destructor, so that the handler finds it without anything being made.
    static TOUCHING: Touching = const {
        Touching {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            stack: AtomicUsize::new(0),
            gone: AtomicBool::new(false),
        }
    };
}

/// What handled the signal before; set before the handler is installed.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Calls `access`. Returns whether all of the bytes from `start` to `end` that it touched were there; if not, it was ended
/// at the first that was not.
///
/// # Safety
/// `access` may be left at any access to these bytes: it holds no lock, and nothing of what it changes has to be whole.
/// It does not call this.
#[inline]
pub(crate) unsafe fn survive<F: FnOnce()>(start: usize, end: usize, access: F) -> bool {
    const {
        assert!(!needs_drop::<F>(), "nothing is lost with an access that is left");
    }
    let mut access = ManuallyDrop::new(access);
    TOUCHING.with(|touching| {
        assert!(touching.end.load(Ordering::Relaxed) == 0, "accesses do not nest");
        touching.start.store(start, Ordering::Relaxed);
        touching.end.store(end, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        // SAFETY: `run` takes what it is called with here, and is called once. It ends, or is left by the handler, which
        // restores what a called function keeps; the caller has promised that this harms nothing.
        unsafe { attempt(run::<F>, (&raw mut access).cast(), touching.stack.as_ptr()) };
        compiler_fence(Ordering::SeqCst);
        touching.end.store(0, Ordering::Relaxed);
        !(touching.gone.load(Ordering::Relaxed) && touching.gone.swap(false, Ordering::Relaxed))
    })
}

/// Calls the closure at `access`. A panic in it ends the process: nothing unwinds through [`attempt`].
extern "C" fn run<F: FnOnce()>(access: *mut u8) {
    // SAFETY: `survive` gives its own closure, which nobody takes but this call.
    let access = unsafe { ManuallyDrop::take(&mut *access.cast::<ManuallyDrop<F>>()) };
    access();
}

/// Calls `function` with `argument`, after it has put aside what a called function keeps, and the stack pointer at `stack`.
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

/// Returns from [`attempt`], whose stack pointer it needs.
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

/// See the other one.
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

/// See the other one.
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

/// Makes SIGBUS come here, once for the process.
///
/// # Errors
/// The system refuses.
pub(crate) fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    INSTALLED
        .get_or_init(|| install_now().map_err(|error| error.raw_os_error().unwrap_or(libc::EINVAL)))
        .map_err(io::Error::from_raw_os_error)
}

fn install_now() -> io::Result<()> {
    // SAFETY: `sigaction` reads and writes structures of this function's; all zeroes is a value of them. The handler has
    // the signature that SA_SIGINFO asks for.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut before) != 0 {
            return Err(io::Error::last_os_error());
        }
        let _ = BEFORE.set(before);
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
    // SAFETY: the kernel gives a handler with SA_SIGINFO a valid structure; for SIGBUS it has an address.
    let (address, code) = unsafe { ((*information).si_addr() as usize, (*information).si_code) };
    // What somebody sends (code 0 or less) says nothing about memory.
    if code > 0
        && let Some(stack) = end_access(address)
    {
        // SAFETY: the kernel gives a handler with SA_SIGINFO the state of the thread, and takes it over afterwards.
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

/// Ends the thread's access, if the address is in it. Returns the stack pointer to go back to.
fn end_access(address: usize) -> Option<usize> {
    TOUCHING.with(|touching| {
        let (start, end) = (
            touching.start.load(Ordering::Relaxed),
            touching.end.load(Ordering::Relaxed),
        );
        if !(start..end).contains(&address) {
            return None;
        }
        touching.gone.store(true, Ordering::Relaxed);
        Some(touching.stack.load(Ordering::Relaxed))
    })
}

/// As if we were not there.
fn pass_on(signal: libc::c_int, information: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = BEFORE.get();
    let handler = before.map_or(libc::SIG_DFL, |before| before.sa_sigaction);
    let with_information = before.is_some_and(|before| before.sa_flags & libc::SA_SIGINFO != 0);
    // SAFETY: what was a handler before is called as the kernel would have called it; the default action is restored and
    // then taken when the access is tried again, or when the signal is sent again.
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
