//! `warp plan`: finds the drives that a service needs.

use experiment::LabError;
use report::rows;
use whatif::{KvCacheFactor, KvCacheQuestion, LanguageModel};

use crate::arguments::{PlanArgs, PlanCommand, PlanKvCacheArgs};
use crate::output::print_error;
use crate::{ExitOutcome, execute, print};

pub fn plan(command: &PlanArgs) -> Result<ExitOutcome, LabError> {
    match &command.command {
        PlanCommand::KvCache(command) => plan_kvcache(command),
    }
}

fn plan_kvcache(command: &PlanKvCacheArgs) -> Result<ExitOutcome, LabError> {
    execute::listen();
    let model = match (&command.model, command.token_bytes) {
        (Some(name), _) => LanguageModel::find(name, command.kv_bits)?,
        (None, Some(bytes)) => LanguageModel::with_token_bytes(bytes),
        (None, None) => unreachable!("the command line needs a model or its size"),
    };
    let question = KvCacheQuestion {
        model,
        requests_per_second: command.requests,
        reuse: command.reuse.0.clone(),
        device: command.device.clone(),
        drives: command.drives,
        years: command.years,
        chunk_tokens: command.chunk_tokens,
        servers: command.servers,
        used_percent: command.used * 100.0,
        admit_percent: command.admit * 100.0,
        admit_second_request: command.admit_second_request,
        write_bytes: command.write_size,
        memory_hits: command.memory_hits,
        overrides: command.set.iter().cloned().collect(),
        scale: command.scale,
        seed: command.seed,
    };
    let plan = question.plan()?;
    let progress = execute::stoppable();
    let answered = execute::with_bar(&progress, 1, || plan.answer(!command.no_uncertainty, &*progress))?;
    let Some(answer) = answered else {
        print_error("stopped before the last run, so there is no plan");
        return Ok(ExitOutcome::Stopped);
    };
    if command.output.is_json() {
        print(&format!("{}\n", serde_json::to_string_pretty(&answer).expect("an answer is JSON")));
        return Ok(ExitOutcome::Done);
    }
    let format = command.output.tables();
    let headline = format.words(&format!("{}\n", rows::wrapped(&answer.headline)));
    let notes: String = answer.notes.iter().map(|note| rows::wrapped(note)).collect();
    let factor = |factor: &KvCacheFactor| {
        rows::wrapped(&format!("  {}: {}. Source: {}", factor.name, factor.value, factor.source))
    };
    let factors: String = answer.factors.iter().map(factor).collect();
    let table = answer.table().render(format);
    print(&format!("{headline}{table}\n{}", format.words(&format!("Factors and their sources:\n{factors}\n{notes}"))));
    Ok(ExitOutcome::Done)
}
