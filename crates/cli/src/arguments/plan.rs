//! Command line of `warp plan`.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use base::size::parse as size;
use clap::{Args, Subcommand};
use experiment::Scale;
use toml::Value;
use whatif::PromptReuse;

use super::{OutputFormat, assignment, percent};

#[derive(Args)]
pub struct PlanArgs {
    #[command(subcommand)]
    pub command: PlanCommand,
}

#[derive(Subcommand)]
pub enum PlanCommand {
    /// Find the drives that the key-value cache of a language model needs
    #[command(name = "kvcache")]
    KvCache(Box<PlanKvCacheArgs>),
}

#[derive(Args)]
pub struct PlanKvCacheArgs {
    /// Language model, such as llama3-70b (a wrong name lists all)
    #[arg(long, required_unless_present = "token_bytes")]
    pub model: Option<String>,
    /// Size of the keys and values of a token, for a model that is not in the list
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with_all = ["model", "kv_bits"])]
    pub token_bytes: Option<u64>,
    /// Bits of a key or value, such as 16, 8 or 4
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub kv_bits: u32,
    /// Requests of all users, such as 50/s
    #[arg(long, value_name = "N/s", value_parser = per_second)]
    pub requests: f64,
    /// Repetition of earlier requests: chat, agent, or a trace in Mooncake's format
    #[arg(long, value_name = "chat|agent|FILE", default_value = "chat")]
    pub reuse: ReuseArg,
    /// Device profile
    #[arg(long, alias = "drive", default_value = "pm9d3a")]
    pub device: String,
    /// Number of drives [default: the smallest that suffices]
    #[arg(long)]
    pub drives: Option<u32>,
    /// Years that a drive has to last
    #[arg(long, default_value_t = 5.0)]
    pub years: f64,
    /// Inference servers that share a drive, each with a tier of its own
    #[arg(long, default_value_t = 2)]
    pub servers: u32,
    /// Tokens of a chunk, which is written and read as a whole. A trace has chunks of 512
    #[arg(long, value_name = "TOKENS", default_value_t = 256)]
    pub chunk_tokens: u32,
    /// Largest write
    #[arg(long, value_name = "SIZE", default_value = "128KiB", value_parser = size)]
    pub write_size: u64,
    /// Share of the missed chunks that is written
    #[arg(long, value_name = "PERCENT", default_value = "100%", value_parser = percent)]
    pub admit: f64,
    /// Write a missed chunk only at its second request
    #[arg(long)]
    pub admit_second_request: bool,
    /// Share of the hits that memory above the drives serves
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = percent)]
    pub memory_hits: f64,
    /// Part of the drive for the tier
    #[arg(long, value_name = "PERCENT", default_value = "90%", value_parser = percent)]
    pub used: f64,
    /// Run on a scaled model, 1/N of the drive [default: the smallest with the same behavior]
    #[arg(long, value_name = "1/N")]
    pub scale: Option<Scale>,
    /// Change a setting of the device, such as --set geometry.over_provisioning=0.28
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    pub set: Vec<(String, Value)>,
    /// Seed of the device and the requests
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Skip the uncertainty interval, which takes a run for each member of the device's ensemble
    #[arg(long)]
    pub no_uncertainty: bool,
    #[command(flatten)]
    pub output: OutputFormat,
}

/// Reuse of prompts on the command line.
#[derive(Clone)]
pub struct ReuseArg(pub PromptReuse);

impl FromStr for ReuseArg {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<ReuseArg, Infallible> {
        Ok(ReuseArg(match text {
            "chat" => PromptReuse::Chat,
            "agent" => PromptReuse::Agent,
            file => PromptReuse::Trace(PathBuf::from(file)),
        }))
    }
}

/// Parses a rate such as `50/s` or `50`.
fn per_second(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("/s").unwrap_or(text).trim().parse();
    number.ok().filter(|rate: &f64| rate.is_finite()).ok_or_else(|| "give requests per second such as 50/s".to_string())
}
