//! fio's random number generators, seeds and hashes.
//!
//! A job has one family of seeds, derived from `randseed` and the job's thread number. Each purpose
//! (block offsets, block sizes, read/write mix, zones, placement) has its own generator with a seed
//! of that family. Two runs of fio with the same file therefore make the same decisions in the same
//! order. This module makes them too. Its tests compare with values that fio itself produced.
//!
//! Sources are fio's `lib/rand.h`, `lib/rand.c`, `init.c` (`setup_random_seeds`), `fio.h` (the
//! order of purposes) and `hash.h`. The system's entropy is never read. The default seed replaces
//! it in the case in which fio reads it (`randrepeat=0` without `randseed`).

/// `randseed` of a job without one.
pub const DEFAULT_SEED: u64 = 0x89;

/// Multiplier of every step of the seed derivation.
const SEED_MULTIPLIER: u64 = 0x9e37_0001;

/// 2^64 divided by the golden ratio squared: the multiplier of fio's `__hash_u64`.
const GOLDEN_RATIO_64: u64 = 0x61C8_8646_80B5_83EB;

/// Initial state of fio's string hash.
const STRING_HASH_START: u32 = 0x61C8_8647;

/// Maximum blocks that the 32-bit generator can address. Beyond it, fio switches to the 64-bit one.
pub const MAX_BLOCKS_OF_32_BIT_GENERATOR: u64 = u32::MAX as u64;

/// fio's 32-bit generator (`random_generator=tausworthe`). It combines three shift registers with a
/// period of about 2^88.
#[derive(Debug, Clone)]
pub struct Taus88 {
    state: [u32; 3],
}

impl Taus88 {
    /// Seeds the generator. fio passes 64-bit seeds and keeps their low half.
    pub fn new(seed: u64) -> Self {
        let seed = seed as u32;
        let step = |x: u32| x.wrapping_mul(69069) ^ seed;
        // fio writes 2^31 + 2^17 + 2^7 in C, whose ^ is exclusive or.
        const START: u32 = (2 ^ 31) + (2 ^ 17) + (2 ^ 7);
        let mut state = [0; 3];
        let mut previous = START;
        for (register, minimum) in state.iter_mut().zip([1, 7, 15]) {
            let value = step(previous);
            *register = if value < minimum { value + minimum } else { value };
            previous = *register;
        }
        let mut generator = Self { state };
        for _ in 0..6 {
            generator.next();
        }
        generator
    }

    /// Returns the next 32 random bits.
    #[inline]
    #[allow(clippy::should_implement_trait)] // An endless generator is no iterator.
    pub fn next(&mut self) -> u32 {
        let [a, b, c] = self.state;
        self.state = [
            ((a & !1) << 12) ^ (((a << 13) ^ a) >> 19),
            ((b & !7) << 4) ^ (((b << 2) ^ b) >> 25),
            ((c & !15) << 17) ^ (((c << 3) ^ c) >> 11),
        ];
        self.state[0] ^ self.state[1] ^ self.state[2]
    }

    /// Draws uniformly from 0..1, in steps of 2^-32.
    #[inline]
    pub fn next_fraction(&mut self) -> f64 {
        f64::from(self.next()) * (1.0 / 4_294_967_296.0)
    }

    /// Draws uniformly from `first..=last` (fio's `rand_between`).
    #[inline]
    pub fn between(&mut self, first: u32, last: u32) -> u32 {
        let count = f64::from(last - first) + 1.0;
        first + (count * self.next_fraction()) as u32
    }
}

/// fio's 64-bit generator (`random_generator=tausworthe64`).
#[derive(Debug, Clone)]
pub struct Taus258 {
    state: [u64; 5],
}

impl Taus258 {
    /// Shifts (left, right, final left) and ignored low bits of the five registers.
    const REGISTERS: [(u32, u32, u32, u32); 5] =
        [(1, 53, 10, 1), (24, 50, 5, 9), (3, 23, 29, 12), (5, 24, 23, 17), (3, 33, 8, 23)];

    /// Seeds the generator.
    pub fn new(seed: u64) -> Self {
        const START: u64 = (2 ^ 31) + (2 ^ 17) + (2 ^ 7);
        let mut state = [0; 5];
        let mut previous = START;
        for (register, minimum) in state.iter_mut().zip([1, 7, 15, 33, 49]) {
            let value = previous.wrapping_mul(6_906_969_069) ^ seed;
            *register = if value < minimum { value + minimum } else { value };
            previous = *register;
        }
        let mut generator = Self { state };
        for _ in 0..6 {
            generator.next();
        }
        generator
    }

    /// Returns the next 64 random bits.
    #[inline]
    #[allow(clippy::should_implement_trait)] // An endless generator is no iterator.
    pub fn next(&mut self) -> u64 {
        let mut out = 0;
        for (register, (left, right, up, ignored)) in self.state.iter_mut().zip(Self::REGISTERS) {
            let carry = ((*register << left) ^ *register) >> right;
            *register = ((*register & (u64::MAX << ignored)) << up) ^ carry;
            out ^= *register;
        }
        out
    }

    /// Draws uniformly from 0..1.
    #[inline]
    pub fn next_fraction(&mut self) -> f64 {
        self.next() as f64 * (1.0 / 18_446_744_073_709_551_616.0)
    }
}

/// A generator of block offsets or sizes. 32 bits wide by default, 64 for `tausworthe64` and for
/// block numbers beyond 32 bits.
#[derive(Debug, Clone)]
pub enum OffsetGenerator {
    /// `tausworthe`
    Bits32(Taus88),
    /// `tausworthe64`
    Bits64(Taus258),
}

impl OffsetGenerator {
    /// Seeds the generator of the chosen width.
    pub fn new(seed: u64, use_64_bits: bool) -> Self {
        if use_64_bits { Self::Bits64(Taus258::new(seed)) } else { Self::Bits32(Taus88::new(seed)) }
    }

    /// Returns the next random bits in the generator's width.
    #[inline]
    pub fn next_bits(&mut self) -> u64 {
        match self {
            Self::Bits32(generator) => u64::from(generator.next()),
            Self::Bits64(generator) => generator.next(),
        }
    }

    /// Draws uniformly from `first..=last` (fio's `rand_between`). The range has fewer than 2^31
    /// values.
    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        let count = (last - first) as f64 + 1.0;
        first + (count * self.next_fraction()) as u64
    }

    /// The largest value of [`Self::next_bits`].
    pub fn max(&self) -> u64 {
        match self {
            Self::Bits32(_) => u64::from(u32::MAX),
            Self::Bits64(_) => u64::MAX,
        }
    }

    /// Draws uniformly from 0..1, with the 53 bits of a double.
    #[inline]
    pub fn next_fraction(&mut self) -> f64 {
        match self {
            Self::Bits32(generator) => generator.next_fraction(),
            Self::Bits64(generator) => generator.next_fraction(),
        }
    }

    /// Fills a slice with fractions. The state stays in registers during the loop.
    #[inline]
    pub fn next_fractions(&mut self, fractions: &mut [f64]) {
        match self {
            Self::Bits32(generator) => {
                let mut local = generator.clone();
                fractions.fill_with(|| local.next_fraction());
                *generator = local;
            }
            Self::Bits64(generator) => fractions.fill_with(|| generator.next_fraction()),
        }
    }
}

/// Purpose of a generator. The value is the position in fio's list of seeds (`FIO_RAND_*_OFF`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Block sizes of reads, writes and trims are the purposes 0, 1 and 2.
    BlockSizeRead = 0,
    /// See [`Purpose::BlockSizeRead`].
    BlockSizeWrite = 1,
    /// See [`Purpose::BlockSizeRead`].
    BlockSizeTrim = 2,
    /// Choice between read and write.
    Mix = 4,
    /// Block offsets.
    Block = 6,
    /// Choice between random and sequential (`percentage_random`).
    SequentialOrRandom = 10,
    /// Delay before the first request (`startdelay`).
    StartDelay = 13,
    /// Gaps between requests (`rate_process=poisson`).
    Arrival = 15,
    /// Choice of the zone (`random_distribution=zoned`).
    Zone = 16,
    /// Choice of the placement index (`plid_select=random`).
    Placement = 21,
    /// Choice of the command that replaces a write (`write_mode`).
    WriteMode = 23,
}

/// The seeds of one job instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seeds {
    base: u64,
    thread_number: u64,
}

impl Seeds {
    /// Seeds of the instance with this thread number under this `randseed`. The first job instance
    /// of a file has number 1.
    pub fn new(randseed: u64, thread_number: u32) -> Self {
        let base = (0..4).fold(randseed, |seed, _| seed.wrapping_mul(SEED_MULTIPLIER));
        Self { base, thread_number: u64::from(thread_number) }
    }

    pub fn seed(&self, purpose: Purpose) -> u64 {
        let place = purpose as u64;
        assert!(self.thread_number > 0, "fio numbers its threads from 1");
        let seed = (0..place).fold(self.base, |seed, _| seed.wrapping_mul(SEED_MULTIPLIER));
        seed.wrapping_mul(self.thread_number).wrapping_add(place)
    }

    /// Seed of a job's skewed distribution. It also depends on the target's name (fio's
    /// `__init_rand_distribution`).
    pub fn of_distribution(&self, target_name: &str) -> u64 {
        u64::from(hash_text(target_name).wrapping_mul(self.thread_number as u32))
            .wrapping_mul(self.seed(Purpose::Block))
    }
}

/// fio's hash of a 64-bit value, which scatters the hot blocks of a skewed distribution. It is no
/// permutation once reduced modulo n.
#[inline]
pub fn hash_u64(value: u64) -> u64 {
    value.wrapping_mul(GOLDEN_RATIO_64)
}

/// Bob Jenkins' lookup3 hash (2006, public domain) of a text, with fio's start value (`jhash` with
/// an initial value of 0).
pub fn hash_text(text: &str) -> u32 {
    let bytes = text.as_bytes();
    let start = STRING_HASH_START.wrapping_add(bytes.len() as u32);
    if bytes.is_empty() {
        return start;
    }
    let (mut a, mut b, mut c) = (start, start, start);
    let last_block = (bytes.len() - 1) / 12;
    for (index, block) in bytes.chunks(12).enumerate() {
        let mut padded = [0; 12];
        padded[..block.len()].copy_from_slice(block);
        let word = |at: usize| u32::from_le_bytes([padded[at], padded[at + 1], padded[at + 2], padded[at + 3]]);
        if index < last_block {
            // fio adds only the lowest byte of each word of a block, except in the last block.
            a = a.wrapping_add(word(0) & 0xff);
            b = b.wrapping_add(word(4) & 0xff);
            c = c.wrapping_add(word(8) & 0xff);
            for [x, y, z] in [[4, 6, 8], [16, 19, 4]] {
                a = a.wrapping_sub(c) ^ c.rotate_left(x);
                c = c.wrapping_add(b);
                b = b.wrapping_sub(a) ^ a.rotate_left(y);
                a = a.wrapping_add(c);
                c = c.wrapping_sub(b) ^ b.rotate_left(z);
                b = b.wrapping_add(a);
            }
        } else {
            a = a.wrapping_add(word(0));
            b = b.wrapping_add(word(4));
            c = c.wrapping_add(word(8));
        }
    }
    for [x, y, z] in [[14, 11, 25], [16, 4, 14]] {
        c = (c ^ b).wrapping_sub(b.rotate_left(x));
        a = (a ^ c).wrapping_sub(c.rotate_left(y));
        b = (b ^ a).wrapping_sub(a.rotate_left(z));
    }
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taus88_is_fios() {
        let mut generator = Taus88::new(1234);
        let drawn = [(); 5].map(|()| generator.next());
        assert_eq!(drawn, [35906943, 2961270707, 4225321822, 2268203568, 3167560439]);
    }

    #[test]
    fn between_reaches_both_ends_and_nothing_else() {
        let mut generator = Taus88::new(1);
        let mut hits = [0; 12];
        for _ in 0..100_000 {
            hits[generator.between(1, 10) as usize] += 1;
        }
        assert_eq!([hits[0], hits[11]], [0, 0]);
        assert!(hits[1..=10].iter().all(|count| (9_500..10_500).contains(count)), "{hits:?}");
    }

    #[test]
    fn fractions_taken_together_are_those_taken_one_by_one() {
        for use_64_bits in [false, true] {
            let mut one_by_one = OffsetGenerator::new(5, use_64_bits);
            let mut together = one_by_one.clone();
            let mut taken = [0.0; 10];
            together.next_fractions(&mut taken);
            assert_eq!(taken, [(); 10].map(|()| one_by_one.next_fraction()));
            assert_eq!(together.next_bits(), one_by_one.next_bits());
        }
    }

    #[test]
    fn instances_and_purposes_have_seeds_of_their_own() {
        let purposes = [Purpose::BlockSizeRead, Purpose::Block, Purpose::Zone, Purpose::Placement];
        let seeds: Vec<u64> =
            (1..5).flat_map(|thread| purposes.map(|purpose| Seeds::new(DEFAULT_SEED, thread).seed(purpose))).collect();
        for (index, seed) in seeds.iter().enumerate() {
            assert!(!seeds[..index].contains(seed), "seed {index} stands there twice");
        }
    }

    #[test]
    fn the_hash_of_a_name_depends_on_every_letter_that_fio_reads() {
        assert_ne!(hash_text("job.0.0"), hash_text("job.1.0"));
        assert_eq!(hash_text(""), STRING_HASH_START);
        // fio reads only the first, fifth and ninth letter of each group of twelve, except in the
        // last group.
        assert_eq!(hash_text("abcdefghijkl-tail"), hash_text("aXcdefghijkl-tail"));
        assert_ne!(hash_text("abcdefghijkl-tail"), hash_text("abcdXfghijkl-tail"));
    }
}
