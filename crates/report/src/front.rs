//! The first screen of an answer's page: the sentence, a chart, what to do.
//!
//! The chart is HTML alone, so that it is as wide as the screen, is printed as it is seen, and needs no library.

use maud::{Markup, display, html};

use super::html::prose;
use crate::rows::{Rows, Value};

/// See the module.
#[derive(Clone, Debug)]
pub struct Front {
    /// What came out, in a sentence.
    pub headline: String,
    /// Write amplification, a bar each.
    pub bars: Vec<Bar>,
    /// What to do, in what words and how.
    pub remedy: Option<(String, Vec<String>)>,
    /// The numbers, with a heading.
    pub table: (&'static str, Rows),
    /// What was chosen and what is doubtful.
    pub notes: Vec<String>,
}

/// A bar of the chart.
#[derive(Clone, Debug)]
pub struct Bar {
    /// What it is of.
    pub name: String,
    pub value: f64,
    /// Least and greatest that the device's ensemble says.
    pub interval: Option<[f64; 2]>,
    /// Whether a finding makes it doubtful.
    pub is_doubtful: bool,
    /// Whether it is the one that the sentence is about.
    pub is_best: bool,
}

impl Front {
    /// The chart; empty without bars.
    pub(super) fn chart(&self) -> Markup {
        let ends = self
            .bars
            .iter()
            .map(|bar| bar.interval.map_or(bar.value, |[_, high]| high.max(bar.value)));
        let longest = ends.fold(1.0, f64::max);
        let percent = |value: f64| format!("{:.2}%", value / longest * 100.0);
        html! {
            @if !self.bars.is_empty() {
                p.note {
                    "Bytes of flash for each byte of the host (WAF). The line is 1, the least there is"
                    @if self.bars.iter().any(|bar| bar.interval.is_some()) { "; whiskers: the drives of the ensemble" }
                    "."
                }
                div.bars {
                    @for bar in &self.bars {
                        @let class = bar.is_best.then_some("best");
                        span class=[class] { (bar.name) }
                        span.track {
                            i class=[class] style={ "width: " (percent(bar.value)) } {}
                            @if let Some([low, high]) = bar.interval {
                                b style={ "left: " (percent(low)) "; width: " (percent(high - low)) } {}
                            }
                            u style={ "left: " (percent(1.0)) } {}
                        }
                        span class=[class] { (display(Value::Amplification(bar.value).doubtful_if(bar.is_doubtful))) }
                    }
                }
            }
        }
    }

    /// What to do; empty if there is nothing.
    pub(super) fn remedy(&self) -> Markup {
        html! {
            @if let Some((what, lines)) = &self.remedy {
                p { (prose(what)) }
                ul { @for line in lines { li { (prose(line)) } } }
            }
        }
    }

    /// What was chosen and what is doubtful.
    pub(super) fn notes(&self) -> Markup {
        html! { @for note in &self.notes { p { (prose(note)) } } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion_and_text_is_escaped() {
        let bar = |name: &str, value: f64, interval| Bar {
            name: name.to_string(),
            value,
            interval,
            is_doubtful: value > 2.0,
            is_best: value < 2.0,
        };
        let front = Front {
            headline: String::new(),
            bars: vec![bar("a<b", 1.0, None), bar("none", 2.5, Some([2.0, 4.0]))],
            remedy: Some(("By volume:".to_string(), vec!["`--fill` <x>".to_string()])),
            table: ("Placements", Rows::default()),
            notes: Vec::new(),
        };
        let chart = front.chart().into_string();
        assert!(
            chart.contains("a&lt;b</span>") && chart.contains("<i class=\"best\" style=\"width: 25.00%\">"),
            "{chart}"
        );
        assert!(
            chart.contains("<b style=\"left: 50.00%; width: 50.00%\">") && chart.contains("2.500*"),
            "{chart}"
        );
        assert!(
            front
                .remedy()
                .into_string()
                .contains("<li><code>--fill</code> &lt;x&gt;</li>")
        );
    }
}
