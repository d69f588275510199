//! Limits how much address space, mappings and file descriptors peers may use. The rest is reserved
//! for storing the drive's state and for new peers.
//!
//! A caller takes a [`BudgetShare`] before it allocates the resource and drops it together with the
//! resource.

use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// A limited amount of a resource that several owners share.
#[derive(Debug)]
pub struct ResourceBudget {
    most: u64,
    taken: AtomicU64,
    /// The parent account, in which its shares count as well.
    whole: Option<Arc<ResourceBudget>>,
}

/// An amount taken from an account, returned on drop.
#[derive(Debug)]
pub struct BudgetShare {
    account: Arc<ResourceBudget>,
    amount: u64,
}

impl ResourceBudget {
    fn with_limit(most: u64) -> Arc<ResourceBudget> {
        Arc::new(ResourceBudget { most, taken: AtomicU64::new(0), whole: None })
    }

    /// A child account with a limit of `most`. Its shares also count in this account.
    fn part(self: &Arc<ResourceBudget>, most: u64) -> Arc<ResourceBudget> {
        assert!(most <= self.most, "an account of {most} is a part of one of {}", self.most);
        Arc::new(ResourceBudget { most, taken: AtomicU64::new(0), whole: Some(Arc::clone(self)) })
    }

    /// Takes `amount`, or returns `None` if less is left.
    pub fn take(self: &Arc<ResourceBudget>, amount: u64) -> Option<BudgetShare> {
        self.count(amount).then(|| BudgetShare { account: Arc::clone(self), amount })
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

impl Drop for BudgetShare {
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

static ADDRESS_SPACE: LazyLock<Arc<ResourceBudget>> = LazyLock::new(|| {
    let allowed = getrlimit(Resource::As).current.unwrap_or(u64::MAX);
    ResourceBudget::with_limit(ADDRESS_SPACE_MAX.min(allowed / 2))
});

static RANGES: LazyLock<Arc<ResourceBudget>> = LazyLock::new(|| {
    let system = std::fs::read_to_string("/proc/sys/vm/max_map_count");
    let system = system.ok().and_then(|text| text.trim().parse().ok());
    ResourceBudget::with_limit(system.unwrap_or(MAPPINGS_MAX) / 2)
});

static DESCRIPTORS: LazyLock<Arc<ResourceBudget>> = LazyLock::new(|| {
    let limits = getrlimit(Resource::Nofile);
    // The soft limit of 1024 protects programs that use `select`. If raising it fails, fewer peers
    // fit.
    let raised = Rlimit { current: limits.maximum, maximum: limits.maximum };
    let _ = setrlimit(Resource::Nofile, raised);
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    ResourceBudget::with_limit(allowed - DESCRIPTORS_RESERVED.min(allowed / 2))
});

/// File descriptors of peers, both their connections and those that they pass to the server.
pub fn descriptors() -> &'static Arc<ResourceBudget> {
    &DESCRIPTORS
}

/// Limits of the memory that one guest may map, within the limits of all guests.
pub struct GuestBudget {
    address_space: Arc<ResourceBudget>,
    ranges: Arc<ResourceBudget>,
}

impl GuestBudget {
    pub fn new() -> GuestBudget {
        // At most half of the total, so that a second guest fits on a small system.
        let part = |whole: &Arc<ResourceBudget>, most: u64| whole.part(most.min(whole.most / 2));
        GuestBudget {
            address_space: part(&ADDRESS_SPACE, GUEST_ADDRESS_SPACE_MAX),
            ranges: part(&RANGES, GUEST_RANGES_MAX),
        }
    }

    /// Takes one range and `bytes` of address space.
    ///
    /// # Errors
    /// A message that names the exhausted limit.
    pub fn take(&self, bytes: u64) -> Result<[BudgetShare; 2], String> {
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
        let whole = ResourceBudget::with_limit(10);
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
