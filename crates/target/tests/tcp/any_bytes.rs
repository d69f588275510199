//! Random streams of bytes and PDUs against a session without a socket.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use initiator::tcp::{HostOptions, connect_command};
use nvme::Subsystem;
use nvme_spec::command::PSDT_SGL_MPTR_CONTIGUOUS;
use nvme_spec::fabrics::{CNTLID_DYNAMIC, OPCODE};
use nvme_spec::register::{Cc, Property};
use nvme_spec::tcp::{CapsuleCmd, CommonHeader, DigestFlags, H2cData, PduFlags, PduType, R2t};
use nvme_spec::{AdminOpcode, SubmissionEntry};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use target::storage::backend::MemoryBackend;
use target::tcp::session::{ConnectionInfo, DisconnectReason, SessionTask, TcpSession};
use target::tcp::{TargetContext, TcpOptions};
use target::{ServerClock, lock};
use zerocopy::{FromBytes, IntoBytes};

use crate::small_drive::CAPACITY_BYTES;
use crate::{NQN, PATIENCE, as_entry, header, initialize, loopback, random_bytes, sgl, small_drive};

/// A session without a socket, fed with a host's bytes.
struct Feed {
    session: TcpSession,
    random: Xoshiro256PlusPlus,
    /// Number of calls of [`TcpSession::advance`].
    steps: usize,
    /// Bytes fed to the session.
    bytes: usize,
    sent: Vec<u8>,
}

impl Feed {
    /// Feeds bytes in pieces of random sizes.
    fn feed(&mut self, mut bytes: &[u8]) -> Result<(), DisconnectReason> {
        loop {
            self.steps += 1;
            match self.session.advance() {
                Ok(SessionTask::Send) => {
                    let slices = self.session.output().slices();
                    self.sent.extend(slices.iter().flat_map(|slice| slice.iter().copied()));
                    self.session.sent();
                }
                Ok(SessionTask::Sync) => self.session.sync(),
                Ok(SessionTask::Compute) => self.session.run_dh(Instant::now() + PATIENCE),
                Ok(SessionTask::Wait { input, until }) => {
                    assert!(input && until.is_none(), "there is room, and nothing is held");
                    if bytes.is_empty() {
                        return Ok(());
                    }
                    let mut taken = 0;
                    let most = self.random.random_range(1..=bytes.len());
                    for slice in &mut self.session.input() {
                        let length = slice.len().min(most - taken);
                        slice[..length].copy_from_slice(&bytes[taken..taken + length]);
                        taken += length;
                    }
                    self.session.received(taken);
                    self.bytes += taken;
                    bytes = &bytes[taken..];
                }
                Err(closing) => return Err(closing),
            }
        }
    }

    /// Answers the data requests in the output, as far as they are valid.
    fn answers(&mut self) -> Vec<u8> {
        let mut answers = Vec::new();
        let sent = std::mem::take(&mut self.sent);
        let mut rest = sent.as_slice();
        while let Ok((common, _)) = CommonHeader::read_from_prefix(rest) {
            if let (Ok((request, _)), Some(PduType::R2t)) = (R2t::read_from_prefix(rest), PduType::from_u8(rest[0])) {
                let bytes = request.r2tl.get() as usize;
                let data = H2cData {
                    ch: header(PduType::H2cData, PduFlags::new().with_last_pdu(true), 24, 24 + bytes),
                    cccid: request.cccid,
                    ttag: request.ttag,
                    datal: request.r2tl,
                    ..H2cData::default()
                };
                answers.extend_from_slice(data.as_bytes());
                answers.resize(answers.len() + bytes, 9);
            }
            rest = &rest[common.plen.get() as usize..];
        }
        answers
    }
}

/// PDUs of a correct host: it connects, enables the controller, and sends commands of all kinds.
fn stream_of_pdus(host: &HostOptions, random: &mut Xoshiro256PlusPlus) -> Vec<Vec<u8>> {
    let capsule = |mut entry: SubmissionEntry, data: &[u8], transport_bytes: usize| {
        entry.flags.set_psdt(PSDT_SGL_MPTR_CONTIGUOUS);
        entry.set_sgl1(match data.len() {
            0 => sgl(transport_bytes, false),
            bytes => sgl(bytes, true),
        });
        let offset = if data.is_empty() { 0 } else { 72 };
        let ch = header(PduType::CapsuleCmd, PduFlags::new(), offset, 72 + data.len());
        let capsule = CapsuleCmd { ch, ccsqe: entry };
        [capsule.as_bytes(), data].concat()
    };
    let (command, data) = connect_command(host, CNTLID_DYNAMIC, 0, 32);
    let mut enable = SubmissionEntry {
        opcode: OPCODE,
        cdw11: Property::Cc.code().into(),
        cdw12: Cc::new().with_en(true).with_iosqes(6).with_iocqes(4).into_bits().into(),
        ..SubmissionEntry::default()
    };
    enable.cid = 1.into();
    let mut pdus = vec![
        initialize(DigestFlags::new()).as_bytes().to_vec(),
        capsule(as_entry(&command), data.as_bytes(), 0),
        capsule(enable, &[], 0),
    ];
    for cid in 2..30u16 {
        let opcodes = [
            AdminOpcode::Identify,
            AdminOpcode::GetLogPage,
            AdminOpcode::SetFeatures,
            AdminOpcode::GetFeatures,
            AdminOpcode::Abort,
            AdminOpcode::KeepAlive,
            AdminOpcode::NamespaceAttachment,
            AdminOpcode::Fabrics,
        ];
        let mut entry = SubmissionEntry {
            opcode: opcodes[random.random_range(0..opcodes.len())].code(),
            nsid: random.random_range(0..3u32).into(),
            cdw10: random.random_range(0..0x20u32).into(),
            cdw11: random.random_range(0..4u32).into(),
            ..SubmissionEntry::default()
        };
        entry.cid = cid.into();
        let in_capsule = random_bytes(cid.into(), [0, 512, 4096, 8192][random.random_range(0..4)]);
        pdus.push(capsule(entry, &in_capsule, 4096));
    }
    pdus
}

/// Streams of PDUs with random damage, in pieces of random sizes. The session neither panics nor
/// loops, and leaves no controller behind. Undamaged streams are served completely.
#[test]
fn any_stream_of_bytes_is_survived() {
    let shared = {
        let memory = MemoryBackend::new(nvme::media::bytes_for(CAPACITY_BYTES));
        Arc::new(Mutex::new(Subsystem::new(small_drive::config(0), Box::new(memory)).unwrap()))
    };
    let clock = ServerClock::start();
    let host = HostOptions::new(loopback(), NQN);
    let context = TargetContext::new(TcpOptions::new(loopback()), Arc::clone(&shared), clock);
    let mut completed = 0;
    for seed in 0..1500u64 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let damage = random.random_range(0..4);
        let mut pdus = stream_of_pdus(&host, &mut random);
        for _ in 0..damage {
            let index = random.random_range(0..pdus.len());
            match random.random_range(0..5) {
                0 => {
                    pdus.remove(index);
                }
                1 => pdus.swap(0, index),
                2 => {
                    let length = random.random_range(0..pdus[index].len());
                    pdus[index].truncate(length);
                }
                _ => {
                    // Usually in the header, the most sensitive part.
                    let most = if random.random_bool(0.8) { 72 } else { pdus[index].len() };
                    let at = random.random_range(0..most.min(pdus[index].len()));
                    pdus[index][at] = random.random();
                }
            }
            if pdus.is_empty() || pdus.iter().any(Vec::is_empty) {
                break;
            }
        }
        let surroundings = ConnectionInfo {
            local: loopback(),
            peer: Ipv4Addr::LOCALHOST.into(),
            connection: Arc::new(()),
            waker: Arc::new(|| {}),
        };
        let mut feed = Feed {
            session: TcpSession::new(Arc::clone(&context), surroundings),
            random,
            steps: 0,
            bytes: 0,
            sent: Vec::new(),
        };
        let mut alive = feed.feed(&pdus.concat());
        while alive.is_ok() {
            let answers = feed.answers();
            if answers.is_empty() {
                break;
            }
            alive = feed.feed(&answers);
        }
        assert!(damage > 0 || alive.is_ok(), "seed {seed}: a good stream was refused: {alive:?}");
        completed += usize::from(alive.is_ok());
        assert!(feed.steps <= 10 + 4 * feed.bytes, "seed {seed}: {} steps for {} bytes", feed.steps, feed.bytes);
        feed.session.close();
        assert_eq!(lock(&shared).controllers().count(), 0, "seed {seed}");
    }
    assert!((400..1400).contains(&completed), "{completed} streams were served to the end");
}
