//! The discovery log (70h), with the target's only subsystem at the address that the host connected
//! to.

use std::net::{IpAddr, SocketAddr};

use nvme_spec::fabrics::{AddressFamily, CNTLID_DYNAMIC, SubsystemType, TransportRequirements, TransportType};
use nvme_spec::log::{DiscoveryEntry, DiscoveryHeader};
use zerocopy::IntoBytes;

use super::TargetContext;

/// Generation counter. The log does not change while the server runs.
const GENERATION: u64 = 1;
/// Largest admin submission queue that the log offers. Linux creates 32 entries.
const ADMIN_QUEUE_ENTRIES: u16 = 128;
/// TREQ value: a secure channel is not required.
const SECURE_CHANNEL_NOT_REQUIRED: u8 = 2;

/// The log for a host that connected to `local`.
pub fn log(context: &TargetContext, local: SocketAddr) -> Vec<u8> {
    let address = context.options.advertised.unwrap_or(local);
    let header = DiscoveryHeader { genctr: GENERATION.into(), numrec: 1.into(), ..DiscoveryHeader::default() };
    let ip = address.ip().to_canonical();
    let mut entry = DiscoveryEntry {
        trtype: TransportType::Tcp.code(),
        adrfam: match ip {
            IpAddr::V4(_) => AddressFamily::Ipv4.code(),
            IpAddr::V6(_) => AddressFamily::Ipv6.code(),
        },
        subtype: SubsystemType::Nvm.code(),
        treq: TransportRequirements::new().with_sc(SECURE_CHANNEL_NOT_REQUIRED).with_dsqfc(true),
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
    assert!(text.len() <= field.len(), "a text of {} bytes fits into a field of {}", text.len(), field.len());
    field[..text.len()].copy_from_slice(text.as_bytes());
}
