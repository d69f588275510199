//! Language models and the size of their keys and values.

use std::collections::BTreeMap;

use experiment::LabError;
use serde::Deserialize;

const MODELS: &str = include_str!("language_models.toml");

/// Shape of the keys and values of a token.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelShape {
    layers: u64,
    kv_heads: Option<u64>,
    head_dim: Option<u64>,
    latent_dim: Option<u64>,
    source: String,
}

/// A language model.
#[derive(Clone, Debug)]
pub struct LanguageModel {
    pub name: String,
    /// Keys and values of a token over all layers, bytes.
    pub token_bytes: u64,
    /// Calculation of `token_bytes` with its source, in one sentence.
    pub source: String,
}

impl LanguageModel {
    /// The model with this name, whose keys and values have `bits` bits each.
    ///
    /// # Errors
    /// The name is unknown. The message lists similar names.
    pub fn find(name: &str, bits: u32) -> Result<LanguageModel, LabError> {
        let mut models = LanguageModel::shapes();
        let Some(shape) = models.remove(name) else {
            return Err(LabError::unknown("language model", name, models.keys().map(String::as_str)));
        };
        let (numbers, words) = match (shape.kv_heads, shape.head_dim, shape.latent_dim) {
            (Some(heads), Some(dim), None) => {
                (2 * shape.layers * heads * dim, format!("2 x {} layers x {heads} heads x {dim}", shape.layers))
            }
            (None, None, Some(dim)) => (shape.layers * dim, format!("{} layers x {dim}", shape.layers)),
            _ => panic!("{name} has heads or a latent dimension"),
        };
        Ok(LanguageModel {
            name: name.to_string(),
            token_bytes: numbers * u64::from(bits) / 8,
            source: format!("{words} x {bits} bits ({})", shape.source),
        })
    }

    /// A model that is not in the list.
    pub fn with_token_bytes(token_bytes: u64) -> LanguageModel {
        LanguageModel { name: "your model".to_string(), token_bytes, source: "given".to_string() }
    }

    /// Names of all models.
    pub fn names() -> Vec<String> {
        LanguageModel::shapes().into_keys().collect()
    }

    fn shapes() -> BTreeMap<String, ModelShape> {
        toml::from_str(MODELS).expect("the list of models is TOML")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_have_the_published_sizes() {
        let bytes = |name: &str, bits: u32| LanguageModel::find(name, bits).expect("a known model").token_bytes;
        assert_eq!((bytes("llama3-8b", 16), bytes("llama3-70b", 16)), (131_072, 327_680));
        assert_eq!((bytes("llama3-70b", 8), bytes("deepseek-v3", 16)), (163_840, 70_272));
        let refused = LanguageModel::find("llama3-7b", 16).expect_err("it is unknown").to_string();
        assert!(refused.contains("llama3-70b"), "{refused}");
        LanguageModel::names().iter().for_each(|name| assert!(bytes(name, 16) > 10_000));
    }
}
