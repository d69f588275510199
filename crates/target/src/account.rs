//! Limits how much address space, mappings and file descriptors peers may use. The rest is reserved
//! for storing the drive's state and for new peers.
//!
//! A caller takes a [`Share`] before it allocates the resource and drops it together with the
//! resource.

use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A limited amount of a resource that several owners share.
#[derive(Debug)]
pub struct Account {
    most: u64,
    taken: AtomicU64,
    /// The parent account, in which its shares count as well.
    whole: Option<Arc<Account>>,
}

/// An amount taken from an account, returned on drop.
#[derive(Debug)]
pub struct Share {
    account: Arc<Account>,
    amount: u64,
}

impl Account {
    fn of(most: u64) -> Arc<Account> {
        Arc::new(Account {
            most,
            taken: AtomicU64::new(0),
            whole: None,
        })
    }

    /// A child account with a limit of `most`. Its shares also count in this account.
    fn part(self: &Arc<Account>, most: u64) -> Arc<Account> {
        assert!(
            most <= self.most,
            "an account of {most} is a part of one of {}",
            self.most
        );
        Arc::new(Account {
            most,
            taken: AtomicU64::new(0),
            whole: Some(Arc::clone(self)),
        })
    }

    /// Takes `amount`, or returns `None` if less is left.
    pub fn take(self: &Arc<Account>, amount: u64) -> Option<Share> {
        self.count(amount).then(|| Share {
            account: Arc::clone(self),
            amount,
        })
    }

    fn count(&self, amount: u64) -> bool {
        let more = |taken: u64| taken.checked_add(amount).filter(|taken| *taken <= self.most);
        let counted = self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        if counted.is_err() {
            return false;
        }
        let is_there = self.whole.as_ref().is_none_or(|whole| whole.count(amount));
        if !is_there {
            let before = self.taken.fetch_sub(amount, Ordering::AcqRel);
            assert!(before >= amount, "{amount} of {before} was taken just before");
        }
        is_there
    }

    fn give_back(&self, amount: u64) {
        let before = self.taken.fetch_sub(amount, Ordering::AcqRel);
        assert!(before >= amount, "no more is released than was taken");
        if let Some(whole) = &self.whole {
            whole.give_back(amount);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.account.give_back(self.amount);
    }
}

/// Address space in bytes for the memory of all guests: half of a 47-bit address space.
const ADDRESS_SPACE_MAX: u64 = 64 << 40;
const GUEST_ADDRESS_SPACE_MAX: u64 = 8 << 40;
const GUEST_RANGES_MAX: u64 = 4096;
/// Fallback for `vm.max_map_count`, Linux's default.
const MAPPINGS_MAX: u64 = 65530;
/// Descriptors reserved for the server itself, if the limit is high enough.
const DESCRIPTORS_RESERVED: u64 = 256;

static ADDRESS_SPACE: LazyLock<Arc<Account>> = LazyLock::new(|| {
    let allowed = getrlimit(Resource::As).current.unwrap_or(u64::MAX);
    Account::of(ADDRESS_SPACE_MAX.min(allowed / 2))
});

static RANGES: LazyLock<Arc<Account>> = LazyLock::new(|| {
    let system = std::fs::read_to_string("/proc/sys/vm/max_map_count");
    let system = system.ok().and_then(|text| text.trim().parse().ok());
    Account::of(system.unwrap_or(MAPPINGS_MAX) / 2)
});

static DESCRIPTORS: LazyLock<Arc<Account>> = LazyLock::new(|| {
    let limits = getrlimit(Resource::Nofile);
    // The soft limit of 1024 protects programs that use `select`. If raising it fails, fewer peers
    // fit.
    let raised = Rlimit {
        current: limits.maximum,
        maximum: limits.maximum,
    };
    let _ = setrlimit(Resource::Nofile, raised);
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    Account::of(allowed - DESCRIPTORS_RESERVED.min(allowed / 2))
});

/// File descriptors of peers, both their connections and those that they pass to the server.
pub fn descriptors() -> &'static Arc<Account> {
    &DESCRIPTORS
}

/// Limits of the memory that one guest may map, within the limits of all guests.
pub struct GuestAccount {
    address_space: Arc<Account>,
    ranges: Arc<Account>,
}

impl GuestAccount {
    /// Account of a guest without mappings.
    pub fn new() -> GuestAccount {
        // At most half of the total, so that a second guest fits on a small system.
        let part = |whole: &Arc<Account>, most: u64| whole.part(most.min(whole.most / 2));
        GuestAccount {
            address_space: part(&ADDRESS_SPACE, GUEST_ADDRESS_SPACE_MAX),
            ranges: part(&RANGES, GUEST_RANGES_MAX),
        }
    }

    /// Takes one range and `bytes` of address space.
    ///
    /// # Errors
    /// A message that names the exhausted limit.
    pub fn take(&self, bytes: u64) -> Result<[Share; 2], String> {
        let range = self.ranges.take(1).ok_or_else(|| {
            let (most, all) = (self.ranges.most, RANGES.most);
            format!(
                "a guest may map {most} memory ranges, and all guests together {all}. Give the guest its memory in \
                 fewer ranges"
            )
        })?;
        let space = self.address_space.take(bytes).ok_or_else(|| {
            let (most, all) = (self.address_space.most >> 30, ADDRESS_SPACE.most >> 30);
            format!("a guest may map {most} GiB, and all guests together {all} GiB. Give the guest less memory")
        })?;
        Ok([range, space])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_takes_no_more_than_it_may_nor_than_there_is() {
        let whole = Account::of(10);
        let (one, other) = (whole.part(6), whole.part(6));
        let five = one.take(5).expect("it is there");
        assert!(one.take(2).is_none(), "more than its part");
        assert!(one.take(u64::MAX).is_none());
        assert!(other.take(6).is_none(), "more than is left");
        let rest = other.take(5).expect("it is left");
        assert!(one.take(1).is_none(), "nothing is left");
        drop(five);
        drop(rest);
        assert!(whole.take(11).is_none());
        drop(whole.take(10).expect("all was given back"));
    }
}
