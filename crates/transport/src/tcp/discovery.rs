//! The discovery log (70h): the one subsystem there is, at the address where this host reached us.

use std::net::{IpAddr, SocketAddr};

use nvme::{Failure, Parameter};
use nvme_spec::command::{GetLogPageCdw10, GetLogPageCdw11};
use nvme_spec::fabrics::{AddressFamily, CNTLID_DYNAMIC, SubsystemType, TransportRequirements, TransportType};
use nvme_spec::log::{DiscoveryEntry, DiscoveryHeader};
use nvme_spec::{Status, SubmissionEntry};
use zerocopy::IntoBytes;

use super::Context;

/// Generation counter: what the log says does not change while the server runs.
const GENERATION: u64 = 1;
/// Largest admin submission queue that the log offers; Linux makes one of 32 entries.
const ADMIN_QUEUE_ENTRIES: u16 = 128;
/// TREQ: a secure channel is not required.
const SECURE_CHANNEL_NOT_REQUIRED: u8 = 2;

/// The log for a host that connected to `local`.
pub fn log(context: &Context, local: SocketAddr) -> Vec<u8> {
    let address = context.options.advertised.unwrap_or(local);
    let header = DiscoveryHeader {
        genctr: GENERATION.into(),
        numrec: 1.into(),
        ..DiscoveryHeader::default()
    };
    let ip = address.ip().to_canonical();
    let mut entry = DiscoveryEntry {
        trtype: TransportType::Tcp.code(),
        adrfam: match ip {
            IpAddr::V4(_) => AddressFamily::Ipv4.code(),
            IpAddr::V6(_) => AddressFamily::Ipv6.code(),
        },
        subtype: SubsystemType::Nvm.code(),
        treq: TransportRequirements::new()
            .with_sc(SECURE_CHANNEL_NOT_REQUIRED)
            .with_dsqfc(true),
        portid: 1.into(),
        cntlid: CNTLID_DYNAMIC.into(),
        asqsz: ADMIN_QUEUE_ENTRIES.into(),
        trsvcid: [b' '; 32],
        traddr: [b' '; 256],
        ..DiscoveryEntry::default()
    };
    put(&mut entry.trsvcid, &address.port().to_string());
    put(&mut entry.traddr, &ip.to_string());
    put(&mut entry.subnqn, &context.subsystem_nqn);
    [header.as_bytes(), entry.as_bytes()].concat()
}

fn put(field: &mut [u8], text: &str) {
    field[..text.len()].copy_from_slice(text.as_bytes());
}

/// The piece of the log that a Get Log Page asks for, filled up with zeroes.
///
/// # Errors
/// It begins beyond the end.
pub fn read(log: &[u8], entry: &SubmissionEntry, data: &mut Vec<u8>) -> Result<(), Failure> {
    let dword10 = GetLogPageCdw10::from_bits(entry.cdw10.get());
    let dword11 = GetLogPageCdw11::from_bits(entry.cdw11.get());
    let dwords = u64::from(dword11.numdu()) << 16 | u64::from(dword10.numdl());
    let bytes = (dwords + 1) as usize * 4;
    let offset = u64::from(entry.cdw13.get()) << 32 | u64::from(entry.cdw12.get());
    data.clear();
    if offset > log.len() as u64 {
        let cause = format!("offset {offset} is beyond the {} bytes of the discovery log", log.len());
        return Err(Failure::new(Status::INVALID_FIELD, cause).at(Parameter::dword(12, 0)));
    }
    let rest = &log[offset as usize..];
    data.extend_from_slice(&rest[..rest.len().min(bytes)]);
    data.resize(bytes, 0);
    Ok(())
}
