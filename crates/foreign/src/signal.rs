//! The handler of SIGBUS, and what it has to know: the bytes that the thread is touching on purpose.
//!
//! What happens here happens in a signal handler: it may interrupt anything, so it takes no lock, allocates nothing, and
//! reaches only memory of the thread and a value that is set once. Its one system call, `mmap`, is made without the C
//! library's error number.

#![expect(unsafe_code, reason = "signal handlers, and replacing memory that is not there")]

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

/// What a thread is doing. Atomic numbers because the handler interrupts the same thread: the compiler must not keep them
/// elsewhere. Other threads never see them.
struct Touching {
    /// First byte, a page's first; `end` is behind the last page. Nothing, if they are the same.
    start: AtomicUsize,
    end: AtomicUsize,
    /// The handler has put anonymous memory between `start` and `end`.
    gone: AtomicBool,
}

thread_local! {
    // Constant and without a destructor, so that the handler finds it without anything being made.
    static TOUCHING: Touching = const {
        Touching { start: AtomicUsize::new(0), end: AtomicUsize::new(0), gone: AtomicBool::new(false) }
    };
}

/// What handled the signal before; set before the handler is installed.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Calls `access`. Returns whether all of the pages from `start` to `end` that it touched were there; if not, all of them
/// are anonymous memory now.
///
/// # Safety
/// The pages belong to a mapping of the caller's that nobody else touches, on any thread, until the caller has mapped
/// them again. `access` does not call this.
#[inline]
pub(crate) unsafe fn survive(start: usize, end: usize, access: impl FnOnce()) -> bool {
    TOUCHING.with(|touching| {
        assert!(touching.end.load(Ordering::Relaxed) == 0, "accesses do not nest");
        touching.start.store(start, Ordering::Relaxed);
        touching.end.store(end, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        access();
        compiler_fence(Ordering::SeqCst);
        touching.end.store(0, Ordering::Relaxed);
        !(touching.gone.load(Ordering::Relaxed) && touching.gone.swap(false, Ordering::Relaxed))
    })
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
    if code > 0 && replace(address) {
        return;
    }
    pass_on(signal, information, context);
}

/// Puts anonymous memory where the thread is touching, if the address is there.
fn replace(address: usize) -> bool {
    TOUCHING.with(|touching| {
        let (start, end) = (
            touching.start.load(Ordering::Relaxed),
            touching.end.load(Ordering::Relaxed),
        );
        if !(start..end).contains(&address) {
            return false;
        }
        let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
        // SAFETY: whoever called `survive` owns these pages, and nobody else touches them.
        let mapped = unsafe {
            let place = std::ptr::with_exposed_provenance_mut(start);
            mmap_anonymous(place, end - start, ProtFlags::READ | ProtFlags::WRITE, flags)
        };
        touching.gone.store(mapped.is_ok(), Ordering::Relaxed);
        mapped.is_ok()
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
