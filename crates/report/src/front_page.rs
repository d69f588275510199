//! The first screen of an answer's page: sentence, chart, and steps to take.
//!
//! The chart is plain HTML. It fits the screen's width, prints as displayed and needs no library.

use maud::{Markup, display, html};

use super::html::prose;
use crate::rows::{CellValue, ReportTable};

/// Content of the first screen.
#[derive(Clone, Debug)]
pub struct FrontPage {
    pub headline: String,
    /// Write amplification, a bar for each placement.
    pub bars: Vec<Bar>,
    pub remedy: Option<(String, Vec<String>)>,
    pub table: (&'static str, ReportTable),
    pub notes: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Bar {
    pub name: String,
    pub value: f64,
    pub interval: Option<[f64; 2]>,
    /// True if a warning makes the value doubtful.
    pub is_doubtful: bool,
    /// True for the subject of the headline.
    pub is_best: bool,
}

impl FrontPage {
    pub(super) fn chart(&self) -> Markup {
        let ends = self.bars.iter().map(|bar| bar.interval.map_or(bar.value, |[_, high]| high.max(bar.value)));
        let longest = ends.fold(1.0, f64::max);
        let percent = |value: f64| format!("{:.2}%", value / longest * 100.0);
        html! {
            @if !self.bars.is_empty() {
                p.note {
                    "Bytes of flash for each byte of the host (WAF). The line is 1, the minimum"
                    @if self.bars.iter().any(|bar| bar.interval.is_some()) { ". Whiskers show the drives of the \
                                                                              ensemble" }
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
                        span class=[class] { (display(CellValue::Amplification(bar.value).mark_doubtful(bar.is_doubtful))) }
                    }
                }
            }
        }
    }

    pub(super) fn remedy(&self) -> Markup {
        html! {
            @if let Some((what, lines)) = &self.remedy {
                p { (prose(what)) }
                ul { @for line in lines { li { (prose(line)) } } }
            }
        }
    }

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
        let front = FrontPage {
            headline: String::new(),
            bars: vec![bar("a<b", 1.0, None), bar("none", 2.5, Some([2.0, 4.0]))],
            remedy: Some(("By volume:".to_string(), vec!["`--fill` <x>".to_string()])),
            table: ("Placements", ReportTable::default()),
            notes: Vec::new(),
        };
        let chart = front.chart().into_string();
        assert!(
            chart.contains("a&lt;b</span>") && chart.contains("<i class=\"best\" style=\"width: 25.00%\">"),
            "{chart}"
        );
        assert!(chart.contains("<b style=\"left: 50.00%; width: 50.00%\">") && chart.contains("2.500*"), "{chart}");
        assert!(front.remedy().into_string().contains("<li><code>--fill</code> &lt;x&gt;</li>"));
    }
}
