//! Results of `guest::boot`. A shell script replaces QEMU, so no kernel boots.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use host_tools::guest::{Accelerator, GuestError, GuestExit, GuestFiles, GuestStream, Machine, Task, boot};
use tempfile::TempDir;

/// Machine whose QEMU is a shell script.
fn machine(folder: &TempDir, qemu: &str) -> Machine {
    let system = folder.path().join("system");
    let loader = system.join("usr/lib64/ld-linux-x86-64.so.2");
    fs::create_dir_all(loader.parent().expect("a folder")).expect("it is made");
    fs::write(&loader, format!("#!/bin/sh\n{qemu}\n")).expect("it is written");
    fs::set_permissions(&loader, fs::Permissions::from_mode(0o755)).expect("it is ours");
    Machine {
        built: GuestFiles {
            kernel: system.join("vmlinux"),
            initramfs: system.join("initramfs"),
            system,
            tree: folder.path().to_path_buf(),
        },
        attached: Vec::new(),
        share: folder.path().to_path_buf(),
        program: None,
        task: Task::Command(vec!["true".into()]),
        accelerator: Accelerator::Emulation,
        memory_bytes: 1 << 30,
        network: false,
        limit: None,
        kernel: String::new(),
        qemu: Vec::new(),
        console: Some(folder.path().join("console")),
    }
}

fn run(machine: &Machine) -> Result<GuestExit, GuestError> {
    boot(machine, &|| false, &mut |_| {}, &mut |_, _| Ok(()))
}

#[test]
fn what_qemu_says_is_handed_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = run(&machine(&folder, "echo 'no such device' >&2; exit 1")).expect_err("QEMU refuses");
    let text = error.to_string();
    assert!(text.contains("exit status: 1") && text.contains("no such device"), "{text}");
}

#[test]
fn a_kernel_that_dies_leaves_its_last_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let machine = machine(&folder, &format!("echo 'Kernel panic' >{}/console", folder.path().display()));
    let text = run(&machine).expect_err("it died").to_string();
    assert!(text.contains("ended before its command") && text.contains("Kernel panic"), "{text}");
}

#[test]
fn a_guest_that_hangs_is_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!("echo $$ >{}/process; exec sleep 1000", folder.path().display());
    let limited = Machine { limit: Some(Duration::from_millis(300)), ..machine(&folder, &script) };
    assert_eq!(run(&limited).expect("it is ended"), GuestExit::TimedOut);
    let process = fs::read_to_string(folder.path().join("process")).expect("it ran");
    assert!(!Path::new("/proc").join(process.trim()).exists(), "{process} is still there");
    let begun = Instant::now();
    let stopped =
        boot(&machine(&folder, &script), &|| begun.elapsed().as_millis() > 200, &mut |_| {}, &mut |_, _| Ok(()));
    assert_eq!(stopped.expect("it is stopped"), GuestExit::Stopped);
}

/// Socket of a port, once QEMU's arguments are known.
fn port(arguments: &Path, name: &str) -> UnixStream {
    let begun = Instant::now();
    loop {
        let text = fs::read_to_string(arguments).unwrap_or_default();
        let begins = format!("socket,id={name},path=");
        if let Some(path) = text.lines().find_map(|line| line.strip_prefix(&begins)) {
            return UnixStream::connect(PathBuf::from(path)).expect("somebody listens");
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "no port {name} in {text}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn output_and_exit_code_come_through() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = folder.path().join("arguments");
    // The script ends when the test removes the file.
    let script = format!(
        "printf '%s\\n' \"$@\" >{0}.partial; mv {0}.partial {0}; while [ -e {0} ]; do sleep 0.05; done",
        arguments.display()
    );
    let machine = machine(&folder, &script);
    let guest = thread::spawn(move || {
        let [mut control, mut output, mut error] = ["control", "output", "error"].map(|name| port(&arguments, name));
        control.write_all(b"up 1.5\n").expect("it is read");
        output.write_all(&vec![b'x'; 300_000]).expect("it is read");
        error.write_all(b"careful\n").expect("it is read");
        control.write_all(b"exit 7\n").expect("it is read");
        fs::remove_file(&arguments).expect("it is there");
    });
    let (mut output, mut error) = (Vec::new(), Vec::new());
    let ended = boot(&machine, &|| false, &mut |_| {}, &mut |stream, bytes| {
        let kept = if stream == GuestStream::Output { &mut output } else { &mut error };
        kept.extend_from_slice(bytes);
        Ok(())
    });
    guest.join().expect("it did all of it");
    assert_eq!(ended.expect("it ended"), GuestExit::Exited(7));
    assert_eq!((output.len(), error.as_slice()), (300_000, &b"careful\n"[..]));
}

#[test]
fn what_the_guest_misses_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = folder.path().join("arguments");
    let script = format!("printf '%s\\n' \"$@\" >{0}.partial; mv {0}.partial {0}; sleep 1000", arguments.display());
    let machine = machine(&folder, &script);
    let guest = thread::spawn(move || {
        let mut control = port(&arguments, "control");
        control.write_all(b"problem /dev/nvme0n1 did not appear within 30 s\n").expect("it is read");
    });
    let text = run(&machine).expect_err("it is incomplete").to_string();
    assert!(text.contains("the guest started, but /dev/nvme0n1 did not appear"), "{text}");
    guest.join().expect("it said so");
}

/// Returns the notices and the error if QEMU runs `does` with KVM, and ends with exit status 3
/// without KVM.
fn with_kvm_that(does: &str) -> (Vec<String>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!("case \"$*\" in *'-accel kvm'*) {does} ;; esac; echo 'it is emulated' >&2; exit 3");
    let machine = Machine {
        accelerator: Accelerator::Kvm { up_within: Duration::from_millis(300) },
        ..machine(&folder, &script)
    };
    let mut notices = Vec::new();
    let mut notice = |sentence: &str| notices.push(sentence.to_string());
    let ended = boot(&machine, &|| false, &mut notice, &mut |_, _| Ok(()));
    (notices, ended.expect_err("it ends with exit status 3").to_string())
}

#[test]
fn a_guest_that_does_not_come_up_with_kvm_is_emulated() {
    let ways = [
        ("echo 'failed to initialize kvm' >&2; exit 1", "failed to initialize kvm"),
        ("exit 0", "ended before its command ended"),
        ("exec sleep 1000", "was not up after"),
    ];
    for (does, words) in ways {
        let begun = Instant::now();
        let (notices, error) = with_kvm_that(does);
        assert!(notices.len() == 1 && notices[0].contains(words), "{notices:?}");
        assert!(notices[0].contains("with KVM") && notices[0].contains("with emulation"), "{notices:?}");
        assert!(error.contains("it is emulated"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(20), "{does}");
    }
}

#[test]
fn a_guest_that_was_up_with_kvm_runs_its_command_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = folder.path().join("arguments");
    let script = format!(
        "printf '%s\\n' \"$@\" >{0}.partial; mv {0}.partial {0}; while [ -e {0} ]; do sleep 0.05; done; exit 1",
        arguments.display()
    );
    let machine =
        Machine { accelerator: Accelerator::Kvm { up_within: Duration::from_secs(60) }, ..machine(&folder, &script) };
    let guest = thread::spawn(move || {
        port(&arguments, "control").write_all(b"up 1.5\n").expect("it is read");
        // The message is read before the end of the process is noticed.
        thread::sleep(Duration::from_millis(300));
        fs::remove_file(&arguments).expect("it is there");
    });
    let mut notices = 0;
    let ended = boot(&machine, &|| false, &mut |_| notices += 1, &mut |_, _| Ok(()));
    guest.join().expect("it did all of it");
    assert!(ended.is_err() && notices == 0, "{ended:?}");
}
