//! Cores of the controller. The core that is free first takes the next command.

use crate::cast::index;
use crate::types::Nanos;

/// Time at which each core is free, as a sorted ring. The identity of a core is irrelevant.
#[derive(Clone, Debug)]
pub(super) struct ControllerCores {
    free_at: Vec<Nanos>,
    /// Position of the core that is free first.
    first: usize,
}

impl ControllerCores {
    pub(super) fn new(cores: u32) -> ControllerCores {
        assert!(cores > 0, "a controller has a core");
        ControllerCores { free_at: vec![0; index(cores)], first: 0 }
    }

    /// Occupies a core for `busy` with a command submitted at `now`. Returns the end of the work.
    #[inline(always)]
    pub(super) fn work(&mut self, now: Nanos, busy: Nanos) -> Nanos {
        let until = self.free_at[self.first].max(now) + busy;
        // The core usually becomes the last one. Move it ahead of cores that work for longer.
        let mut at = self.first;
        self.first = if at + 1 == self.free_at.len() { 0 } else { at + 1 };
        while at != self.first {
            let before = at.checked_sub(1).unwrap_or(self.free_at.len() - 1);
            if self.free_at[before] <= until {
                break;
            }
            self.free_at[at] = self.free_at[before];
            at = before;
        }
        self.free_at[at] = until;
        assert!(self.free_at[self.first] <= until, "the core that is free first comes next");
        until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    #[test]
    fn the_core_that_is_free_first_works() {
        for cores in [1, 2, 3, 8, 1024] {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(u64::from(cores));
            let (mut ring, mut searched) = (ControllerCores::new(cores), vec![0; index(cores)]);
            let mut now = 0;
            for _ in 0..5000 {
                now += random.random_range(0..3) * random.random_range(0..100);
                let busy = random.random_range(0..200) * u64::from(cores);
                let first = searched.iter_mut().min().expect("there is a core");
                *first = now.max(*first) + busy;
                assert_eq!(ring.work(now, busy), *first, "{cores} cores");
            }
        }
    }
}
