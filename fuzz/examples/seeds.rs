//! Writes initial inputs into `corpus/`: valid commands, register accesses and PDUs. Without them
//! some targets make hardly any progress. Run `cargo run --example seeds` in `fuzz/`.

// This program uses the encoders of the module.
#[allow(dead_code)]
#[path = "../../crates/nvme/tests/simulation/mod.rs"]
mod simulation;

use std::io::Result;
use std::path::Path;

use simulation::entropy::{Entropy, Seeded};
use simulation::operation::{
    Command, Create, Directive, DirectiveReceive, FEATURES, Format, GetFeature, GetLog, LOGS, QueueCommand, Range,
    STRUCTURES, SetFeature,
};
use zerocopy::IntoBytes;

/// Number of drives in the inputs.
const DRIVES: u8 = 6;

fn main() -> Result<()> {
    for drive in 0..DRIVES {
        write("submission", drive, &submission(drive))?;
        write("log_page", drive, &log_page(drive))?;
        write("region", drive, &region(drive))?;
        write("pdu", drive, &pdu(drive))?;
        // These targets accept any bytes.
        let mut random = Seeded::new(drive.into());
        for target in ["device", "hosts", "snapshot", "state"] {
            let bytes: Vec<u8> = (0..512).map(|_| random.below(256) as u8).collect();
            write(target, drive, &bytes)?;
        }
        for (target, file) in traces() {
            // Each trace comes with each mapping, on the drive and on its scaled model.
            write(target, drive, &[&[drive * 43][..], file].concat())?;
        }
    }
    Ok(())
}

/// Returns the beginning of a trace of each family, which follows the bytes that select its reader.
fn traces() -> [(&'static str, &'static [u8]); 4] {
    [
        (
            "trace_iolog",
            b"/a add\n/a open\n/a write 4096 8192 1\n/a wait 250 0\n/b read 512 512\n9 /a trim 0 4096 -\n/a close\n",
        ),
        (
            "trace_blkparse",
            b"  8,0    3        4     0.000005000   697  D  WS 223490 + 8 [kjournald]\n\
              8,0    1        5     0.000006000   700  Q   R 16 + 256 [fio]\n\
              8,0    1        7     0.000008000   700  D  FN [fio]\nCPU0 (8,0):\n Reads Queued: 1\n",
        ),
        (
            "trace_cloud",
            b"128166372003061629,usr,0,Read,7014609920,24576,41286\n0,R,126703644672,4096,1577808000000626\n\
              1538323200,12910952,128,0,1063\n17,W,8192,65536,1577808000000627\n",
        ),
        ("trace_columns", b"\x01t;v;o;l;op\n1.5;sda;7;8;W\n1.75;sdb;9;16;read\n#\n\n1;2;3;4;D\n"),
    ]
}

fn write(target: &str, drive: u8, bytes: &[u8]) -> Result<()> {
    let directory = Path::new("corpus").join(target);
    std::fs::create_dir_all(&directory)?;
    std::fs::write(directory.join(format!("seed-{drive}")), bytes)
}

/// Returns commands of all kinds, in an order in which they succeed on most drives.
fn commands() -> Vec<Command> {
    let (nsid, range) = (1, Range { first: 8, count: 8 });
    let placement = Directive { kind: 2, specific: 1 };
    let none = Directive { kind: 0, specific: 0 };
    let mut all = vec![
        Command::Write { nsid, range, placement, fua: true },
        Command::Write { nsid, range, placement: none, fua: false },
        Command::Read { nsid, range },
        Command::Verify { nsid, range },
        Command::Copy { nsid, to: 64, ranges: vec![range], format: 0, placement: none, fua: false },
        Command::DatasetManagement { nsid, ranges: vec![range], deallocate: true },
        Command::WriteZeroes { nsid, range, placement: none, fua: false, deallocate: true },
        Command::WriteUncorrectable { nsid, range },
        Command::HandleStatus { nsid, operation: 1, dwords: 100 },
        Command::HandleUpdate { nsid, operation: 1, identifiers: vec![0, 1] },
        Command::Flush { nsid },
        Command::AsyncEvent,
        Command::Abort { queue: 0, cid: 1 },
        Command::SelfTest { nsid: 0, code: 1 },
        Command::DirectiveReceive(DirectiveReceive { nsid, operation: 1, kind: 0, dwords: 1024 }),
    ];
    let identify = |&cns: &u8| Command::Identify { cns, nsid, controller: 0, command_set: 0, specific: 0 };
    all.extend(STRUCTURES.iter().map(identify));
    all.extend(LOGS.iter().map(|&log| get_log(log)));
    all.extend(
        FEATURES.iter().map(|&feature| Command::GetFeature(GetFeature { feature, select: 0, nsid, dword11: 1 })),
    );
    let events = vec![0x00, 0x03, 0x80];
    all.push(Command::SetFeature(SetFeature {
        feature: 0x1e,
        save: true,
        nsid,
        dword11: 3 << 16,
        dword12: 1,
        data: events,
    }));
    all.push(Command::Format(Format { nsid, format: 1, extended: true, erase: 0, protection: 0 }));
    all.push(Command::Manage { nsid: u32::MAX, operation: 1 });
    all.push(Command::SetFeature(SetFeature {
        feature: 0x1d,
        save: true,
        nsid: 0,
        dword11: 1,
        dword12: 1,
        data: Vec::new(),
    }));
    all.push(Command::Create(Create {
        blocks: 1000,
        capacity: 1000,
        format: 0,
        extended: false,
        protection: 0,
        shared: true,
        ana_group: 0,
        nvm_set: 0,
        endurance_group: 1,
        command_set: 0,
        handles: 1,
        handle_list: vec![0],
    }));
    all.push(Command::Attach { nsid, operation: 0, controllers: vec![1], count: 1 });
    all.push(Command::Sanitize { action: 2, unrestricted: true, no_deallocate: false, verify: false });
    all
}

fn get_log(log: u8) -> Command {
    Command::GetLog(GetLog {
        log,
        nsid: 0,
        parameter: 1,
        retain: false,
        group: 1,
        dwords: 128,
        offset: 0,
        by_index: false,
    })
}

/// A step has one byte and an entry of 64 bytes. Data of the host follows its length in dwords.
fn submission(drive: u8) -> Vec<u8> {
    let mut input = vec![drive];
    for (cid, command) in (0..).zip(commands()) {
        input.push(u8::from(!command.is_admin()));
        input.extend(command.wire().entry(cid).as_bytes());
        let data = match command {
            Command::Write { .. } => vec![0xa5; 16],
            ref other => other.fixed_data(),
        };
        if !data.is_empty() {
            let dwords = data.len().div_ceil(4).min(255);
            input.push(dwords as u8);
            input.extend(&data[..data.len().min(dwords * 4)]);
        }
    }
    input
}

/// A read has 16 bytes: page, parameter, group and namespace, dword 14, length, offset.
fn log_page(drive: u8) -> Vec<u8> {
    let mut input = vec![drive, 60 + drive];
    for log in LOGS {
        for offset in [0u8, 64] {
            input.extend([log, 1, 0, 0]);
            input.extend([0; 4]);
            input.extend([15, 0]);
            input.extend([offset, 0, 0, 0, 0, 0]);
        }
    }
    input
}

/// A host enables the controller, creates queues and uses them.
fn region(drive: u8) -> Vec<u8> {
    const QUEUES: [(u64, u64); 2] = [(0x1000, 0x2000), (0x3000, 0x4000)];
    let mut input = vec![drive];
    let register = |input: &mut Vec<u8>, offset: u16, value: u32| {
        // A register write of 4 bytes. The format always has 16.
        input.extend([0, 2]);
        input.extend(offset.to_le_bytes());
        input.extend(value.to_le_bytes());
        input.extend([0; 12]);
    };
    let put = |input: &mut Vec<u8>, address: u64, bytes: &[u8]| {
        input.push(7);
        input.extend(((address / 4) as u16).to_le_bytes());
        input.push(bytes.len() as u8);
        input.extend(bytes);
    };
    register(&mut input, 0x24, 15 << 16 | 15);
    register(&mut input, 0x28, QUEUES[0].0 as u32);
    register(&mut input, 0x30, QUEUES[0].1 as u32);
    register(&mut input, 0x14, 0x0046_0001);
    let (contiguous, misaligned) = (true, false);
    let completion =
        QueueCommand::CreateCompletion { id: 1, entries: 16, vector: 1, interrupts: true, contiguous, misaligned };
    let queue = QueueCommand::CreateSubmission { id: 1, entries: 16, completion: 1, contiguous, misaligned };
    let (nsid, range) = (1, Range { first: 0, count: 1 });
    let identify = Command::Identify { cns: 1, nsid: 0, controller: 0, command_set: 0, specific: 0 };
    let placement = Directive { kind: 0, specific: 0 };
    let steps = [
        (0, Command::Queue(completion), QUEUES[1].1),
        (0, Command::Queue(queue), QUEUES[1].0),
        (0, identify, 0x6000),
        (0, Command::AsyncEvent, 0),
        (1, Command::Write { nsid, range, placement, fua: true }, 0x8000),
        (1, Command::Read { nsid, range }, 0x9004),
        (1, Command::Flush { nsid }, 0),
        (0, Command::Queue(QueueCommand::DeleteSubmission { id: 1 }), 0),
    ];
    let mut tails = [0u16; 2];
    for (cid, (queue, command, address)) in (0..).zip(steps) {
        let mut entry = command.wire().entry(cid);
        entry.set_prps(address, 0xa000);
        let tail = &mut tails[usize::from(queue == 1)];
        put(&mut input, QUEUES[usize::from(queue == 1)].0 + u64::from(*tail) * 64, entry.as_bytes());
        *tail += 1;
        register(&mut input, 0x1000 + 8 * queue, (*tail).into());
        // The controller processes commands, then makes them durable.
        input.extend([11, 14]);
    }
    input
}

/// PDU of the host: type, flags, header length, data offset and length, then the rest of the header
/// and the data.
fn capsule(entry: &[u8], data: &[u8]) -> Vec<u8> {
    let offset = if data.is_empty() { 0 } else { 72 };
    let mut pdu = vec![0x04, 0, 72, offset];
    pdu.extend((72 + data.len() as u32).to_le_bytes());
    pdu.extend(entry);
    pdu.extend(data);
    pdu
}

/// Puts an SGL descriptor into an entry, for data in the capsule (01h) or in PDUs (5Ah).
fn with_sgl(entry: &mut [u8], bytes: u32, kind: u8) {
    entry[1] = 0x40;
    entry[32..36].copy_from_slice(&bytes.to_le_bytes());
    entry[39] = kind;
}

/// Fabrics command with its type and dwords 10 to 13.
fn fabrics(kind: u8, fields: &[u8]) -> [u8; 64] {
    let mut entry = [0; 64];
    (entry[0], entry[1], entry[4]) = (0x7f, 0x40, kind);
    entry[40..40 + fields.len()].copy_from_slice(fields);
    entry
}

/// Two connections, one of the admin queue and one of an I/O queue of the same controller.
fn pdu(drive: u8) -> Vec<u8> {
    let mut icreq = vec![0x00, 0, 128, 0, 128, 0, 0, 0];
    icreq.resize(128, 0);
    let connect = |queue: u8, controller: u16| {
        // RECFMT, QID, SQSIZE, CATTR, KATO.
        let mut entry = fabrics(0x01, &[0, 0, queue, 0, 31, 0, 0, 0, 0, 0, 0, 0]);
        with_sgl(&mut entry, 1024, 0x01);
        let mut data = vec![7; 16];
        data.extend(controller.to_le_bytes());
        data.resize(256, 0);
        data.extend(b"nqn.2026-01.org.example:simulation");
        data.resize(512, 0);
        data.extend(b"nqn.2026-01.org.example:host");
        data.resize(1024, 0);
        capsule(&entry, &data)
    };
    // CC at 14h.
    let enable = capsule(&fabrics(0x00, &[0, 0, 0, 0, 0x14, 0, 0, 0, 0x01, 0, 0x46, 0]), &[]);
    let mut streams = [[icreq.clone(), connect(0, 0xffff), enable].concat(), [icreq, connect(1, 1)].concat()];
    for (cid, command) in (10..).zip(commands()) {
        let mut entry = command.wire().entry(cid).as_bytes().to_vec();
        let data = command.fixed_data();
        match &command {
            Command::Write { .. } => with_sgl(&mut entry, 8 * 4096, 0x5a),
            _ if data.is_empty() => with_sgl(&mut entry, 4096, 0x5a),
            _ => with_sgl(&mut entry, data.len() as u32, 0x01),
        }
        streams[usize::from(!command.is_admin())].extend(capsule(&entry, &data));
    }
    let mut input = vec![drive];
    for (connection, stream) in [0, 0x80].into_iter().zip(streams) {
        for piece in stream.chunks(256) {
            // A piece has an even number of bytes, as all PDUs do.
            input.push(connection | (piece.len() / 2 - 1) as u8);
            input.extend(piece);
        }
    }
    input
}
