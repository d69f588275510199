//! Tests of placement classifiers on streams with known properties.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use workload::classifier::{Classifier, ClassifierSettings, Midas, Sepbit, UpdateFrequency, Warcip};
use workload::{
    IoRequest, PlacementIndex, RequestOperation, RequestSource, ScaledModel, WorkloadError, WorkloadTarget,
};

const UNIT: u64 = 4096;

fn settings(text: &str) -> ClassifierSettings {
    toml::from_str(text).unwrap()
}

fn drive(units: u64, placement_count: u16) -> WorkloadTarget {
    WorkloadTarget { device_bytes: units * UNIT, placement_count, ..WorkloadTarget::default() }
}

/// Writes to a hot and a cold part of a drive, uniformly random in each.
struct TwoTemperatures {
    random: Xoshiro256PlusPlus,
    units: u64,
    /// Hot share of the units and share of the writes that go to them, in thousandths.
    hot_units: u64,
    hot_writes: u64,
}

impl TwoTemperatures {
    fn new(units: u64, hot_units: u64, hot_writes: u64) -> TwoTemperatures {
        TwoTemperatures { random: Xoshiro256PlusPlus::seed_from_u64(2022), units, hot_units, hot_writes }
    }

    /// Returns the next unit, and true if it is hot.
    fn next(&mut self) -> (u64, bool) {
        let hot = self.units * self.hot_units / 1000;
        let is_hot = self.random.next_u64() % 1000 < self.hot_writes;
        let (first, end) = if is_hot { (0, hot) } else { (hot, self.units) };
        (first + self.random.next_u64() % (end - first), is_hot)
    }
}

/// Shares of hot writes placed first and of cold writes placed last, after a warm-up.
fn accuracy(classifier: &mut dyn Classifier, stream: &mut TwoTemperatures, last: u16) -> (f64, f64) {
    for unit in 0..stream.units {
        classifier.handle(unit);
    }
    for _ in 0..4 * stream.units {
        classifier.handle(stream.next().0);
    }
    let (mut right, mut all) = ([0u64; 2], [0u64; 2]);
    for _ in 0..4 * stream.units {
        let (unit, is_hot) = stream.next();
        let index = classifier.handle(unit).unwrap();
        all[usize::from(is_hot)] += 1;
        right[usize::from(is_hot)] += u64::from(index.0 == if is_hot { 0 } else { last });
    }
    (right[1] as f64 / all[1] as f64, right[0] as f64 / all[0] as f64)
}

#[test]
fn update_frequency_separates_two_temperatures() {
    // Hot units are written 9 times per drive write, cold ones every 9 drive writes. With a half
    // life of one drive write, a hot count is around 13 and a cold one below 1 most of the time.
    // The mean is 1.44.
    let units = 1 << 16;
    let mut classifier = UpdateFrequency::new(units as usize, 2, units);
    let (hot, cold) = accuracy(&mut classifier, &mut TwoTemperatures::new(units, 100, 900), 1);
    assert!(hot > 0.99 && cold > 0.97, "hot {hot}, cold {cold}");
    let mean = classifier.measures()[0].value;
    // One write per unit and half life gives 2 before halving and 1 after it, minus rounding.
    assert!((0.99..=2.0).contains(&mean), "{mean}");
}

#[test]
fn update_frequency_has_a_class_for_each_factor_of_four() {
    // Eight groups of equal size, each written four times as often as the next. The counts have the
    // same ratios and are large enough to make chance irrelevant.
    let units = 1u64 << 10;
    let mut classifier = UpdateFrequency::new(units as usize, 4, 400 * units);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let weights: Vec<u64> = (0..8).map(|group| 4u64.pow(7 - group)).collect();
    let total: u64 = weights.iter().sum();
    let mut placed = [[0u64; 4]; 8];
    for round in 0..4000 * units {
        let mut ticket = random.next_u64() % total;
        let group = weights.iter().position(|weight| {
            let is_here = ticket < *weight;
            ticket = ticket.wrapping_sub(*weight);
            is_here
        });
        let group = group.unwrap();
        let unit = group as u64 * units / 8 + random.next_u64() % (units / 8);
        let index = classifier.handle(unit).unwrap();
        if round > 2000 * units {
            placed[group][index.index()] += 1;
        }
    }
    // The mean is total / 8 in the same unit. Group 0 has 6 times the mean, group 1 1.5 times,
    // group 2 3/8 and group 3 3/32. The boundaries are 4, 1 and 1/4.
    for (group, index) in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 3), (7, 3)] {
        let all: u64 = placed[group].iter().sum();
        let share = placed[group][index] as f64 / all as f64;
        assert!(share > 0.9, "group {group}: {:?}", placed[group]);
    }
}

#[test]
fn update_frequency_forgets() {
    let units = 1000;
    let mut classifier = UpdateFrequency::new(units as usize, 2, units);
    // Writes all units once, then repeats the first tenth, then the second.
    for unit in 0..units {
        assert_eq!(classifier.handle(unit), Some(PlacementIndex(1)), "what is new has no history");
    }
    let mut hot = |first: u64| -> u64 {
        let places = (0..10 * units).map(|write| classifier.handle(first + write % 100).unwrap());
        places.skip(9 * units as usize).filter(|place| place.0 == 0).count() as u64
    };
    assert_eq!(hot(0), units);
    assert_eq!(hot(100), units);
    // Ten half lives later the first tenth is cold. A trim clears the count in the second.
    assert_eq!(classifier.handle(0), Some(PlacementIndex(1)));
    classifier.trim(100);
    assert_eq!(classifier.handle(100), Some(PlacementIndex(1)));
}

#[test]
fn sepbit_estimates_the_lifespan_of_its_segments() {
    // Cold data is written once, and a hot part is written in turn. Garbage is only in Class 1,
    // whose segments are filled and emptied in turn. The log of Class 1 thus holds the hot part and
    // all garbage. Its size is the number of units written between a segment's creation and its
    // reclaim, which is ℓ.
    let (units, hot, segment) = (1u64 << 16, 1u64 << 13, 512u64);
    for garbage_share in [0.05, 0.15, 0.3] {
        let mut sepbit = Sepbit::new(units as usize, segment, garbage_share);
        for unit in 0..units {
            assert_eq!(sepbit.handle(unit), Some(PlacementIndex(1)), "what is new is of Class 2");
        }
        let garbage = garbage_share / (1.0 - garbage_share) * units as f64;
        let wanted = hot as f64 + garbage;
        let mut thresholds = Vec::new();
        let mut updates = 0;
        for write in 0..100 * units {
            sepbit.handle(write % hot);
            if sepbit.threshold_updates() > updates {
                updates = sepbit.threshold_updates();
                thresholds.push(sepbit.threshold_units());
            }
        }
        assert!(updates > 100, "{updates}");
        // The first 16 may have begun before the garbage reached its limit.
        for threshold in &thresholds[2..] {
            // A segment only counts once it is full, and time advances in ticks.
            assert!(
                (threshold - wanted).abs() <= 1.1 * segment as f64,
                "garbage {garbage_share}: {threshold} units, {wanted} expected"
            );
        }
    }
}

#[test]
fn sepbit_separates_two_temperatures_as_well_as_lifespans_can() {
    // Uniformly random writes have exponentially distributed lifespans. The share of each part that
    // lives less than ℓ is therefore known. This share is placed first. With this ℓ, no rule based
    // on one lifespan does better.
    let units = 1u64 << 16;
    for (hot_units, hot_writes) in [(100, 900), (200, 800), (50, 990)] {
        let mut sepbit = Sepbit::new(units as usize, units / 256, 0.15);
        let mut stream = TwoTemperatures::new(units, hot_units, hot_writes);
        let (hot, cold) = accuracy(&mut sepbit, &mut stream, 1);
        let shorter = |part_units: u64, part_writes: u64| {
            let mean_lifespan = (units * part_units / part_writes) as f64;
            1.0 - (-sepbit.threshold_units() / mean_lifespan).exp()
        };
        let (hot_wanted, cold_wanted) =
            (shorter(hot_units, hot_writes), 1.0 - shorter(1000 - hot_units, 1000 - hot_writes));
        let what = format!("{hot_units}/{hot_writes}: hot {hot} for {hot_wanted}, cold {cold} for {cold_wanted}");
        assert!((hot - hot_wanted).abs() < 0.03 && (cold - cold_wanted).abs() < 0.02, "{what}");
        assert!(hot > 0.7 && cold > 0.9, "{what}");
        assert!(sepbit.threshold_updates() > 4, "{what}");
    }
}

#[test]
fn sepbit_on_a_large_drive_counts_coarser_and_finds_the_same() {
    // The same stream, with the table of a drive of 64 times the units and ticks of several units.
    let (hot, segment) = (1u64 << 13, 4096u64);
    let run = |units: usize| {
        let mut sepbit = Sepbit::new(units, segment, 0.2);
        for unit in 0..1 << 16 {
            sepbit.handle(unit);
        }
        for write in 0..(1u64 << 22) {
            sepbit.handle(write % hot);
        }
        sepbit.threshold_units()
    };
    let (fine, coarse) = (run(1 << 16), run(1 << 27));
    assert!((fine - coarse).abs() < 0.05 * fine, "{fine} {coarse}");
}

/// Writes rings of units in turn, after filling them. Each ring has a size and a number of writes
/// per round.
fn write_rings(classifier: &mut dyn Classifier, rings: &[(u64, u64)], rounds: u64, mut see: impl FnMut(usize, u16)) {
    let first = |ring: usize| rings[..ring].iter().map(|(size, _)| size).sum::<u64>();
    for unit in 0..first(rings.len()) {
        classifier.handle(unit);
    }
    let mut at = vec![0; rings.len()];
    for _ in 0..rounds {
        for (ring, (size, writes)) in rings.iter().enumerate() {
            for _ in 0..*writes {
                let index = classifier.handle(first(ring) + at[ring] % size);
                at[ring] += 1;
                see(ring, index.unwrap().0);
            }
        }
    }
}

#[test]
fn warcip_has_a_cluster_for_each_interval() {
    // Each ring's interval is its size divided by its share of the writes: 2048, 16384 and 57344
    // units.
    let rings = [(1024, 4), (4096, 2), (8192, 1)];
    let wanted = [1024.0 * 7.0 / 4.0, 4096.0 * 7.0 / 2.0, 8192.0 * 7.0];
    let mut warcip = Warcip::new(13312, 3, 256);
    let mut placed = [[0u64; 3]; 3];
    let mut writes = 0;
    write_rings(&mut warcip, &rings, 100_000, |ring, index| {
        writes += 1;
        if writes > 350_000 {
            placed[ring][usize::from(index)] += 1;
        }
    });
    let mut centres = warcip.centres_units();
    centres.sort_by(f64::total_cmp);
    for (centre, wanted) in centres.iter().zip(wanted) {
        assert!((centre - wanted).abs() < 0.01 * wanted, "{centres:?}");
    }
    let place = placed.map(|counts| counts.iter().position(|count| *count > 0).unwrap());
    for (ring, counts) in placed.iter().enumerate() {
        assert_eq!(counts[place[ring]], counts.iter().sum::<u64>(), "ring {ring} is in one cluster: {placed:?}");
    }
    assert!(place[0] != place[1] && place[1] != place[2] && place[0] != place[2]);
}

#[test]
fn warcip_splits_what_is_busy_and_closes_what_is_idle() {
    // All units have one interval. Unused clusters are closed, and the last one is split
    // repeatedly.
    let units = 1u64 << 14;
    let mut warcip = Warcip::new(units as usize, 4, 64);
    write_rings(&mut warcip, &[(units, 1)], 64 * 256 * 20, |_, _| {});
    let measures = warcip.measures();
    let value = |name: &str| measures.iter().find(|measure| measure.name == name).unwrap().value;
    assert!(value("classifier.merges") >= 3.0, "{measures:?}");
    assert!(value("classifier.splits") >= 1.0, "{measures:?}");
    assert!((1.0..=4.0).contains(&value("classifier.clusters")));
    assert!(warcip.centres_units().iter().any(|centre| (centre - units as f64).abs() < 0.02 * units as f64));
}

#[test]
fn midas_predicts_what_is_known_of_uniformly_random_writes() {
    // In order of age with r segments per valid one, v = exp(-(1 - v) r) and write amplification is
    // 1 / (1 - v). Groups gain no advantage, since age carries no information.
    let units = 1u64 << 14;
    for (garbage_share, wanted) in [(0.1, 5.18), (0.2, 2.69), (0.4, 1.49)] {
        let mut midas = Midas::new(units as usize, 5, 64, garbage_share, 4 * units);
        let mut stream = TwoTemperatures::new(units, 500, 500);
        for unit in 0..units {
            midas.handle(unit);
        }
        for _ in 0..16 * units {
            midas.handle(stream.next().0);
        }
        let predicted = midas.predicted();
        assert!((predicted / wanted - 1.0).abs() < 0.05, "{garbage_share}: {predicted} for {wanted}");
    }
}

#[test]
fn midas_separates_two_temperatures_and_keeps_hot_blocks_apart() {
    let units = 1u64 << 14;
    let mut midas = Midas::new(units as usize, 3, 64, 0.15, units);
    let mut stream = TwoTemperatures::new(units, 100, 900);
    for unit in 0..units {
        assert_eq!(midas.handle(unit), Some(PlacementIndex(1)), "one group before the first epoch");
    }
    for _ in 0..8 * units {
        midas.handle(stream.next().0);
    }
    // Hot blocks are written every 1820 units on average, cold ones every 147456. The boundary lies
    // between.
    let first = midas.ages_units()[0] as f64;
    assert!((1820.0..80_000.0).contains(&first), "{:?}", midas.ages_units());
    let (mut hot, mut cold) = ([0u64; 4], [0u64; 4]);
    for _ in 0..8 * units {
        let (unit, is_hot) = stream.next();
        let index = midas.handle(unit).unwrap().index();
        let counts = if is_hot { &mut hot } else { &mut cold };
        counts[index] += 1;
    }
    let share = |counts: [u64; 4], of: usize| counts[of] as f64 / counts.iter().sum::<u64>() as f64;
    // Lifespans are exponentially distributed, so some hot blocks outlive the first group.
    assert!(share(hot, 0) > 0.6 && share(hot, 3) < 0.05, "{hot:?} {cold:?}");
    assert!(share(cold, 0) < 0.01 && share(cold, 3) > 0.9, "{hot:?} {cold:?}");
}

/// Requests from a list.
struct RequestList(std::vec::IntoIter<IoRequest>);

impl RequestSource for RequestList {
    fn next_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<usize, WorkloadError> {
        let before = requests.len();
        requests.extend(self.0.by_ref().take(limit));
        Ok(requests.len() - before)
    }

    fn streams(&self) -> Vec<String> {
        vec!["listed".into()]
    }
}

/// Returns a builder of a source with these requests.
fn listed(requests: Vec<IoRequest>) -> impl Fn() -> Result<RequestList, WorkloadError> {
    move || Ok(RequestList(requests.clone().into_iter()))
}

fn request(operation: RequestOperation, offset_bytes: u64, bytes: u32) -> IoRequest {
    IoRequest {
        stream: 3,
        operation,
        offset_bytes,
        bytes,
        placement: Some(PlacementIndex(9)).filter(|_| operation == RequestOperation::Write),
    }
}

fn all(source: &mut dyn RequestSource, limit: usize) -> Vec<IoRequest> {
    let mut requests = Vec::new();
    while source.next_batch(&mut requests, limit).unwrap() > 0 {}
    requests
}

#[test]
fn a_write_is_split_where_its_units_part() {
    let target = drive(40, 4);
    let classifier = settings("kind = \"lba_range\"");
    let source = listed(vec![
        request(RequestOperation::Write, 0, 40 * 4096),
        request(RequestOperation::Read, 0, 40 * 4096),
        request(RequestOperation::Write, 9 * UNIT + 512, 4096),
        request(RequestOperation::Write, 39 * UNIT, 512),
        request(RequestOperation::Trim, 0, 40 * 4096),
    ]);
    let mut classified = classifier.classify(source, &target).unwrap();
    let requests = all(&mut classified, 2);
    let places: Vec<(u64, u32, Option<u16>)> = requests
        .iter()
        .map(|request| (request.offset_bytes, request.bytes, request.placement.map(|index| index.0)))
        .collect();
    let ten = 10 * 4096;
    assert_eq!(
        places,
        [
            (0, ten, Some(0)),
            (10 * UNIT, ten, Some(1)),
            (20 * UNIT, ten, Some(2)),
            (30 * UNIT, ten, Some(3)),
            (0, 40 * 4096, None),
            (9 * UNIT + 512, 3584, Some(0)),
            (10 * UNIT, 512, Some(1)),
            (39 * UNIT, 512, Some(3)),
            (0, 40 * 4096, None),
        ]
    );
    assert!(requests.iter().all(|request| request.stream == 3));
    let share = |name: &str| {
        let measures = classified.measures();
        measures.iter().find(|measure| measure.name == name).unwrap().value
    };
    let total = (40 * 4096 + 4096 + 512) as f64;
    assert_eq!(share("classifier.share.0"), f64::from(ten + 3584) / total);
    assert_eq!(share("classifier.share.3"), f64::from(ten + 512) / total);
    assert_eq!(share("classifier.share.none"), 0.0);
}

fn random_requests(units: u64) -> Vec<IoRequest> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(77);
    let mut below = |limit: u64| random.next_u64() % limit;
    (0..20_000)
        .map(|_| {
            let operation = RequestOperation::ALL[[0, 1, 1, 1, 1, 2][below(6) as usize]];
            let (offset, bytes) = match below(3) {
                0 => (below((units - 8) * 8) * 512, (below(60) + 1) * 512),
                1 => (below(units / 16) * UNIT, UNIT),
                _ => (below(units - 8) * UNIT, (below(8) + 1) * UNIT),
            };
            request(operation, offset, bytes as u32)
        })
        .collect()
}

#[test]
fn every_byte_is_written_once_whatever_the_classifier_and_the_batches() {
    let target = drive(1000, 5);
    let wanted = random_requests(1000);
    for kind in [
        "kind = \"none\"",
        "kind = \"lba_range\"\nplacement_count = 3",
        "kind = \"update_frequency\"",
        "kind = \"sepbit\"\nsegment_bytes = \"32KiB\"",
        "kind = \"midas\"\nsegment_bytes = \"32KiB\"",
        "kind = \"warcip\"\nsegment_bytes = \"32KiB\"",
        "kind = \"oracle\"",
        "kind = \"oracle\"\nhorizon_percent = 1.0",
    ] {
        let classified = |limit| {
            let source = listed(wanted.clone());
            all(&mut settings(kind).classify(source, &target).unwrap(), limit)
        };
        let requests = classified(4096);
        assert!(requests == classified(1) && requests == classified(7), "{kind}");
        // The joined parts equal the original requests.
        let mut parts = requests.iter();
        let mut placements = [0u64; 6];
        for request in &wanted {
            let (mut at, end) = (request.offset_bytes, request.offset_bytes + u64::from(request.bytes));
            let mut before = None;
            while at < end {
                let part = parts.next().unwrap();
                assert_eq!((part.offset_bytes, part.operation), (at, request.operation), "{kind}");
                at += u64::from(part.bytes);
                match request.operation {
                    RequestOperation::Write => {
                        assert_ne!(Some(part.placement), before, "{kind}: split for nothing");
                        before = Some(part.placement);
                        placements[part.placement.map_or(5, PlacementIndex::index)] += 1;
                    }
                    _ => assert_eq!(part.placement, None),
                }
            }
            assert_eq!(at, end, "{kind}");
        }
        assert_eq!(parts.next(), None);
        let used = placements.iter().filter(|count| **count > 0).count();
        let expected = match kind {
            "kind = \"none\"" => 1,
            _ if kind.contains("lba_range") => 3,
            _ if kind.contains("sepbit") => 2,
            _ => 5,
        };
        let is_adaptive = kind.contains("midas") || kind.contains("warcip");
        assert!(used == expected || is_adaptive && (2..=5).contains(&used), "{kind}: {placements:?}");
    }
}

#[test]
fn without_placement_identifiers_nothing_is_placed() {
    for kind in ["none", "lba_range", "update_frequency", "sepbit", "midas", "warcip", "oracle"] {
        let source = listed(random_requests(1000));
        let mut classified = settings(&format!("kind = {kind:?}")).classify(source, &drive(1000, 0)).unwrap();
        assert!(all(&mut classified, 100).iter().all(|request| request.placement.is_none()), "{kind}");
    }
}

#[test]
fn ranges_shrink_with_a_scaled_model() {
    let target = WorkloadTarget {
        scaled_model: Some(ScaledModel {
            denominator: 10,
            device_bytes: 100 * UNIT,
            mapping_unit_bytes: UNIT,
            keep_requests: false,
        }),
        ..drive(1000, 3)
    };
    let ranges = "kind = \"lba_range\"\nranges = [\n\
                  { start_bytes = \"0B\", end_bytes = 2048000, placement = 2 },\n\
                  { start_bytes = 2048000, end_bytes = 3072000, placement = 0 },\n]";
    let writes: Vec<IoRequest> = (0..100).map(|unit| request(RequestOperation::Write, unit * UNIT, 4096)).collect();
    let mut classified = settings(ranges).classify(listed(writes), &target).unwrap();
    let placed: Vec<Option<PlacementIndex>> =
        all(&mut classified, 10).iter().map(|request| request.placement).collect();
    // 500 and 750 units of the drive are 50 and 75 of the scaled model.
    assert!(placed[..50].iter().all(|placement| *placement == Some(PlacementIndex(2))));
    assert!(placed[50..75].iter().all(|placement| *placement == Some(PlacementIndex(0))));
    assert!(placed[75..].iter().all(|placement| placement.is_none()));
}

#[test]
fn impossible_settings_are_refused_in_one_sentence() {
    for (text, wanted) in [
        ("kind = \"lba_range\"\nplacement_count = 5", "placement_count = 5 is not possible on a drive with 4"),
        ("kind = \"update_frequency\"\nplacement_count = 0", "placement_count = 0 is not possible on a drive with 4"),
        ("kind = \"update_frequency\"\nhalf_life_percent = 0.0", "half_life_percent = 0"),
        ("kind = \"sepbit\"\ngarbage_percent = 95.0", "garbage_percent = 95"),
        ("kind = \"sepbit\"\nsegment_bytes = \"1TiB\"", "must be from 16 to 4096000"),
        ("kind = \"sepbit\"\nsegment_bytes = 15", "must be from 16 to 4096000"),
        ("kind = \"lba_range\"\nranges = [{ start_bytes = 0, end_bytes = 9, placement = 4 }]", "0 to 3"),
        ("kind = \"lba_range\"\nranges = [{ start_bytes = 9, end_bytes = 9, placement = 0 }]", "above start_bytes"),
    ] {
        let error = settings(text).classify(listed(Vec::new()), &drive(1000, 4));
        let error = error.err().unwrap().to_string();
        assert!(error.starts_with("classifier.") && error.contains(wanted), "{text:?} gave {error:?}");
    }
    let error = settings("kind = \"sepbit\"\nsegment_bytes = 4096").classify(listed(Vec::new()), &drive(9, 1));
    assert!(error.err().unwrap().to_string().contains("two placement indices"));
    for text in ["kind = \"none\"\nx = 1", "kind = \"sepbit\"\nsegments = 1", "kind = \"sepbits\"", ""] {
        assert!(toml::from_str::<ClassifierSettings>(text).is_err(), "{text:?}");
    }
}
