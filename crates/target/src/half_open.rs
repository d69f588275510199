//! Chooses which half-open connection gives way to a new one, so that a machine that only opens
//! connections locks no other machine out.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Protected time of a half-open connection. A host that opens many connections in a burst needs
/// some time for each.
const GIVES_WAY_AFTER: Duration = Duration::from_millis(100);

/// A connection that has not identified its purpose yet.
#[derive(Clone, Copy, Debug)]
pub struct HalfOpenConnection {
    /// Increases from one connection to the next.
    pub number: u64,
    pub peer: IpAddr,
    pub since: Instant,
}

impl HalfOpenConnection {
    /// Remaining protected time of the connection.
    pub fn grace_left(&self, now: Instant) -> Duration {
        GIVES_WAY_AFTER.saturating_sub(now.saturating_duration_since(self.since))
    }
}

/// The oldest half-open connection of the machine that has most of them. Of several such machines,
/// the one with the oldest connection counts.
pub fn oldest_of_the_busiest(half_open: &[HalfOpenConnection]) -> Option<&HalfOpenConnection> {
    let mut by_machine: HashMap<IpAddr, Vec<&HalfOpenConnection>> = HashMap::new();
    for connection in half_open {
        by_machine.entry(machine(connection.peer)).or_default().push(connection);
    }
    let oldest = |its: &Vec<&HalfOpenConnection>| its.iter().map(|one| one.number).min();
    let busiest = by_machine.into_values().max_by_key(|its| (its.len(), Reverse(oldest(its))))?;
    busiest.into_iter().min_by_key(|one| one.number)
}

/// The part of an address that identifies a machine, for IPv6 the upper 64 bits.
pub fn machine(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_connection_of_the_busiest_machine_gives_way() {
        let since = Instant::now();
        let gives_way = |peers: &[&str]| {
            let peer = |peer: &&str| peer.parse().expect("an address");
            let numbered = (0..).zip(peers.iter().map(peer));
            let half_open: Vec<HalfOpenConnection> =
                numbered.map(|(number, peer)| HalfOpenConnection { number, peer, since }).collect();
            oldest_of_the_busiest(&half_open).map(|oldest| oldest.number)
        };
        let one_network = ["192.0.2.1", "2001:db8::1", "192.0.2.2", "2001:db8::2"];
        assert_eq!(gives_way(&one_network), Some(1), "a machine has 64 bits of addresses");
        assert_eq!(gives_way(&["192.0.2.3", "192.0.2.1", "192.0.2.2"]), Some(0));
        assert_eq!(gives_way(&[]), None);
    }

    #[test]
    fn only_what_is_old_gives_way() {
        let since = Instant::now();
        let peer = IpAddr::from([192, 0, 2, 1]);
        let one = HalfOpenConnection { number: 0, peer, since };
        let spared_for = |ms| one.grace_left(since + Duration::from_millis(ms)).as_millis();
        assert_eq!((spared_for(0), spared_for(70), spared_for(100), spared_for(5000)), (100, 30, 0, 0));
    }
}
