//! Registry of workload generators that the caller of the lab has written.
//!
//! ```text
//! caller -> register(name, RequestGenerator)
//! `kind = "generator"`, `name = "..."` -> GeneratorSettings -> dyn RequestSource
//! ```
//!
//! A name identifies one version of a generator's code and parameters, because results are stored
//! under the name. The registry holds weak references only. It runs no generator and is independent
//! of the language that a generator is written in.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde::{Deserialize, Serialize};
use workload::{RequestSource, WorkloadError, WorkloadTarget};

/// Makes the requests of a workload on any drive. All sources of a generator give the same
/// requests.
pub trait RequestGenerator: Send + Sync {
    /// Creates a source for a drive with mapping units of `mapping_unit_bytes`.
    fn source(
        &self,
        target: &WorkloadTarget,
        mapping_unit_bytes: u64,
        seed: u64,
    ) -> Result<Box<dyn RequestSource>, WorkloadError>;

    /// Maximum memory of a source, bytes, without the memory of the caller's own code.
    fn memory_bytes(&self) -> u64;
}

/// Separates a generator's name from the digest of its code and parameters.
const DIGEST_MARK: char = '#';

type Registered = BTreeMap<String, Weak<dyn RequestGenerator>>;

fn registered() -> MutexGuard<'static, Registered> {
    static REGISTERED: Mutex<Registered> = Mutex::new(BTreeMap::new());
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a generator under `NAME#DIGEST` while its owner keeps it alive.
///
/// # Panics
/// The name has no digest.
pub fn register(name: &str, generator: &Arc<dyn RequestGenerator>) {
    assert!(name.contains(DIGEST_MARK), "the generator name {name} has no digest of its code");
    let mut registered = registered();
    registered.retain(|_, known| known.strong_count() > 0);
    registered.insert(name.to_string(), Arc::downgrade(generator));
}

/// Looks up a generator by its full name.
fn find(name: &str) -> Option<Arc<dyn RequestGenerator>> {
    registered().get(name).and_then(Weak::upgrade)
}

/// Display name of a registered generator, without the digest. `None` if it is not registered.
pub fn label(name: &str) -> Option<&str> {
    find(name)?;
    name.split(DIGEST_MARK).next()
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GeneratorSettings {
    /// Full name in the registry.
    pub(crate) name: String,
    /// Mapping unit of the drive at full size, bytes.
    #[serde(default = "smallest_unit_bytes")]
    pub(crate) mapping_unit_bytes: u64,
}

fn smallest_unit_bytes() -> u64 {
    WorkloadTarget::default().unit_bytes()
}

impl GeneratorSettings {
    fn generator(&self) -> Result<Arc<dyn RequestGenerator>, WorkloadError> {
        find(&self.name).ok_or_else(|| {
            let problem = "is not a generator of this process. Run it in the process that defines the function";
            WorkloadError::setting(format!("workload {}", self.name), problem)
        })
    }

    pub(crate) fn source(&self, target: &WorkloadTarget, seed: u64) -> Result<Box<dyn RequestSource>, WorkloadError> {
        let unit_bytes = target.scaled_model.map_or(self.mapping_unit_bytes, |model| model.mapping_unit_bytes);
        self.generator()?.source(target, unit_bytes, seed)
    }

    pub(crate) fn memory_bytes(&self) -> Result<u64, WorkloadError> {
        Ok(self.generator()?.memory_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{drive, reread, scaled_drive};
    use crate::{JobsReference, WorkloadSpec};
    use workload::{IoRequest, RequestOperation, Workload as _};

    /// Writes each mapping unit once, in order.
    struct InOrder;

    struct Units {
        next_bytes: u64,
        end_bytes: u64,
        unit_bytes: u64,
    }

    impl RequestGenerator for InOrder {
        fn source(
            &self,
            target: &WorkloadTarget,
            unit_bytes: u64,
            _seed: u64,
        ) -> Result<Box<dyn RequestSource>, WorkloadError> {
            Ok(Box::new(Units { next_bytes: 0, end_bytes: target.capacity_bytes(), unit_bytes }))
        }

        fn memory_bytes(&self) -> u64 {
            64
        }
    }

    impl RequestSource for Units {
        fn next_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<usize, WorkloadError> {
            let before = requests.len();
            while requests.len() - before < limit && self.next_bytes < self.end_bytes {
                requests.push(IoRequest {
                    stream: 0,
                    operation: RequestOperation::Write,
                    offset_bytes: self.next_bytes,
                    bytes: self.unit_bytes as u32,
                    placement: None,
                });
                self.next_bytes += self.unit_bytes;
            }
            Ok(requests.len() - before)
        }

        fn streams(&self) -> Vec<String> {
            vec!["in order".to_string()]
        }
    }

    fn spec(name: &str) -> WorkloadSpec {
        let table = toml::from_str(&format!("kind = \"generator\"\nname = \"{name}\"\n")).expect("TOML");
        WorkloadSpec::parse("workload", &table, &|_: JobsReference<'_>| unreachable!("it has no jobs"))
            .expect("a workload")
    }

    #[test]
    fn a_generator_is_a_kind_of_workload_for_as_long_as_its_owner_keeps_it() {
        let generator: Arc<dyn RequestGenerator> = Arc::new(InOrder);
        register("in_order#1", &generator);
        assert_eq!(label("in_order#1"), Some("in_order"));
        let spec = spec("in_order#1").for_mapping_units(16 << 10);
        let units = |target: &WorkloadTarget| {
            let mut requests = Vec::new();
            let mut source = spec.source(target, 1).expect("it is registered");
            source.next_batch(&mut requests, 1000).expect("requests");
            (requests.len(), requests[0].bytes)
        };
        assert_eq!(units(&drive(1)), (64, 16 << 10), "mapping units of the drive");
        let small = scaled_drive(64, 64);
        let unit_bytes = small.scaled_model.expect("it is a scaled model").mapping_unit_bytes;
        assert_eq!(units(&small).1, unit_bytes as u32, "mapping units of the scaled model");
        assert_eq!(spec.memory_bytes(&drive(1)).expect("it is registered"), 64);
        let again = reread(&spec);
        assert_eq!(again.generator(), Some("in_order#1"));
        drop(generator);
        assert_eq!(label("in_order#1"), None);
        let error = again.source(&drive(1), 1).err().expect("nobody keeps it").to_string();
        assert!(error.contains("in_order#1") && error.contains("not a generator of this process"), "{error}");
    }
}
