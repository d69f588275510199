//! Requests that violate the vfio-user protocol.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::{BLOCK, Raw, Setup, words, write_and_read};

const EINVAL: u32 = 22;

const ENOTSUP: u32 = 95;

#[test]
fn impossible_requests_are_errors_and_the_connection_goes_on() {
    let setup = Setup::new();
    let mut raw = Raw::connect(&setup.socket());
    assert_eq!(raw.ask(4, &[0; 16]).0, EINVAL, "nothing before the version");
    assert_eq!(raw.ask(1, &[]).0, EINVAL, "a version without one");
    assert_eq!(raw.ask(1, &[9, 0, 0, 0]).0, EINVAL, "version 9");
    assert_eq!(raw.ask(1, b"\0\0\x01\0not even text\xff").0, 0, "the capabilities do not matter");
    for command in [0, 6, 11, 12, 14, 15, 0xffff] {
        assert_eq!(raw.ask(command, &[1; 40]).0, ENOTSUP, "command {command}");
    }
    for command in [2, 3, 4, 5, 7, 8, 9, 10] {
        assert_eq!(raw.ask(command, &[0; 3]).0, EINVAL, "command {command} cut off");
    }
    let cases = [
        (9, Raw::access(0, 1, 4, &[]), "a region that is not there"),
        (9, Raw::access(0, 0xffff_ffff, 4, &[]), "a region that cannot be"),
        (9, Raw::access(0x4000, 0, 1, &[]), "behind BAR0"),
        (9, Raw::access(u64::MAX, 0, 2, &[]), "behind all addresses"),
        (9, Raw::access(0, 0, u32::MAX, &[]), "4 GiB of it"),
        (9, Raw::access(4095, 7, 2, &[]), "behind configuration space"),
        (10, Raw::access(0, 0, 4, &[1]), "a write without its data"),
        (10, Raw::access(0, 0, u32::MAX, &[1]), "a write of 4 GiB"),
        (5, words(&[32, 0, 9, 0, 0, 0, 0, 0]), "region 9"),
        (7, words(&[16, 0, 5, 0]), "interrupts of a sixth kind"),
        (8, words(&[20, 32 | 4, 2, 5, 1]), "a sixth vector"),
        (8, words(&[20, 32 | 4, 2, u32::MAX, u32::MAX]), "vectors beyond counting"),
        (8, words(&[20, 32 | 4, 0, 0, 1]), "INTx"),
        (8, words(&[20, 32, 2, 0, 1]), "no kind of data"),
        (8, words(&[20, 32 | 2, 2, 0, 5]), "booleans that are not there"),
        (3, [words(&[24, 0]), vec![0xff; 16]].concat(), "the end of addresses"),
    ];
    for (command, body, what) in cases {
        assert_eq!(raw.ask(command, &body).0, EINVAL, "{what}");
    }
    let unusual = [
        (2, [words(&[32, 3]), vec![0; 24]].concat(), "a map without a file is ignored"),
        (3, [words(&[24, 4]), vec![0; 16]].concat(), "unmap everything"),
        (8, words(&[20, 32 | 1, 2, 0, 0]), "all vectors off"),
        (8, words(&[20, 32 | 1, 0, 0, 0]), "INTx off"),
        (8, [words(&[20, 32 | 2, 2, 0, 3]), vec![1, 0, 1]].concat(), "booleans"),
    ];
    for (command, body, what) in unusual {
        assert_eq!(raw.ask(command, &body).0, 0, "{what}");
    }
    // Without a request for a reply, errors get none either.
    raw.send(10, 16 + 20, 0x10, &Raw::access(0x14, 0, 4, &[0; 4]));
    raw.send(10, 16 + 20, 0x10, &Raw::access(0x14, 3, 4, &[0; 4]));
    let (error, body) = raw.ask(9, &Raw::access(8, 0, 4, &[]));
    assert_eq!((error, &body[16..]), (0, &[0, 1, 2, 0][..]), "the version register");
    drop(raw);
    write_and_read(&mut setup.driver_with_queue(), 0, BLOCK, 1);
}

#[test]
fn what_is_no_message_ends_the_connection_and_only_that() {
    let setup = Setup::new();
    for (bytes, what) in [(0, "nothing"), (15, "less than a header"), (u32::MAX, "4 GiB"), (2 << 20, "2 MiB")] {
        let mut raw = Raw::negotiated(&setup.socket());
        raw.send(9, bytes, 0, &[]);
        let mut rest = Vec::new();
        raw.0.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty(), "{what}");
    }
    // Clients that die in the middle of a header, and of a body.
    UnixStream::connect(setup.socket()).unwrap().write_all(&[1; 5]).unwrap();
    let mut raw = Raw::negotiated(&setup.socket());
    raw.send(10, 4096, 0, &[0; 100]);
    drop(raw);
    write_and_read(&mut setup.driver_with_queue(), 0, BLOCK, 1);
}

/// Random but well-formed requests. Each gets an answer, and none ends the server.
#[test]
fn random_requests_are_answered() {
    let setup = Setup::new();
    for seed in 1..=8 {
        println!("seed {seed}");
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut raw = Raw::negotiated(&setup.socket());
        for _ in 0..2000 {
            let command = [2, 3, 4, 5, 7, 8, 9, 9, 9, 10, 10, 10, 10, 13][random.next_u32() as usize % 14];
            let mut body = vec![0; random.next_u32() as usize % 64];
            random.fill_bytes(&mut body);
            if matches!(command, 9 | 10) && random.next_u32() % 8 != 0 {
                let region = [0, 0, 0, 7][random.next_u32() as usize % 4];
                let count = [1, 2, 4, 4, 4, 8, 8, 64][random.next_u32() as usize % 8];
                let offset = random.next_u32() % if region == 7 { 256 } else { 0x4000 };
                let mut data = vec![0; count as usize];
                random.fill_bytes(&mut data);
                body = Raw::access(u64::from(offset), region, count, &data);
            }
            let (_, _) = raw.ask(command, &body);
        }
        drop(raw);
        write_and_read(&mut setup.driver_with_queue(), 0, BLOCK, seed as u8);
    }
}
