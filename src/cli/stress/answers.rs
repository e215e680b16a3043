//! What came back, as a table, and whether exactly one delivery was first.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cli::{Failure, show};

/// One answer, or why there was none.
pub struct Answer {
    /// The status, or the error.
    what: Result<u16, String>,
    result: Option<String>,
    took: Duration,
}

impl Answer {
    pub fn came(status: u16, result: Option<String>, took: Duration) -> Self {
        Self { what: Ok(status), result, took }
    }

    pub fn failed(error: &str, took: Duration) -> Self {
        Self { what: Err(error.to_owned()), result: None, took }
    }

    /// How many events of this delivery were sent to the handler for the first time. A batch says how many.
    fn first(&self) -> usize {
        let Some(result) = &self.result else { return 0 };
        let mut words = result.split(';').map(str::trim);
        match words.next() {
            Some("first") => 1,
            Some("split" | "filtered") => {
                words.find_map(|word| word.strip_prefix("first=")?.parse().ok()).map_or(0, |first: usize| first.min(1))
            }
            _ => 0,
        }
    }
}

#[derive(Default)]
pub struct Answers(Vec<Answer>);

impl Answers {
    pub fn add(&mut self, answer: Answer) {
        self.0.push(answer);
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// One line for each kind of answer.
    pub fn to_table(&self, took: Duration) -> String {
        let mut kinds: BTreeMap<(String, String), Vec<Duration>> = BTreeMap::new();
        for answer in &self.0 {
            let status = match &answer.what {
                Ok(status) => status.to_string(),
                Err(error) => error.clone(),
            };
            let result = answer.result.clone().unwrap_or_else(|| "-".to_owned());
            kinds.entry((status, result)).or_default().push(answer.took);
        }
        let mut rows = vec![["answer", "hookonce-result", "count", "fastest", "median", "slowest"].map(str::to_owned)];
        for ((status, result), mut times) in kinds {
            times.sort_unstable();
            let [fastest, median, slowest] =
                [times.first(), times.get(times.len() / 2), times.last()].map(|time| milliseconds(time.copied()));
            rows.push([status, result, times.len().to_string(), fastest, median, slowest]);
        }
        let widths: [usize; 6] =
            std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default());
        let mut text = String::new();
        for row in &rows {
            for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
                // Words to the left, numbers to the right.
                text.push_str(&if column < 2 { format!("{cell:<width$}  ") } else { format!("{cell:>width$}  ") });
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        text.push_str(&format!("{} answered in {}\n", self.count(), milliseconds(Some(took))));
        text
    }

    /// Whether exactly one was first, by what the gateway says.
    pub fn judge(&self) -> Result<(), Failure> {
        if self.0.iter().all(|answer| answer.result.is_none()) {
            return Err(Failure::new("no answer has a `hookonce-result`, so which was first cannot be told")
                .hint("send to a gateway, or give --probe to judge a handler by its effect"));
        }
        match self.0.iter().map(Answer::first).sum() {
            1 => {
                show("exactly one was first\n");
                Ok(())
            }
            0 => Err(Failure::new("none was first")
                .hint("was this delivery sent before, within the window? `hookonce keys forget` frees its key")),
            many => {
                Err(Failure::new(format!("{many} were first: a handler behind this would have acted {many} times")))
            }
        }
    }
}

fn milliseconds(time: Option<Duration>) -> String {
    format!("{:.1}ms", time.unwrap_or_default().as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(results: &[Option<&str>]) -> Answers {
        let answer = |result: &Option<&str>| Answer::came(200, result.map(str::to_owned), Duration::from_millis(2));
        Answers(results.iter().map(answer).collect())
    }

    #[test]
    fn exactly_one_must_be_first() {
        for (results, good) in [
            (vec![Some("first"), Some("duplicate"), Some("in-flight")], true),
            (vec![Some("split; first=3; duplicate=0"), Some("duplicate")], true),
            (vec![Some("first"), Some("first")], false),
            (vec![Some("first"), Some("filtered; first=1; duplicate=1")], false),
            (vec![Some("split; first=0; open=2"), Some("duplicate")], false),
            (vec![Some("duplicate")], false),
            (vec![None, None], false),
            (vec![], false),
        ] {
            assert_eq!(answers(&results).judge().is_ok(), good, "{results:?}");
        }
    }

    #[test]
    fn the_table_has_a_line_for_each_kind_of_answer() {
        let mut answers = answers(&[Some("first"), Some("duplicate"), Some("duplicate")]);
        answers.add(Answer::failed("refused", Duration::from_millis(1)));
        let expected = "answer   hookonce-result  count  fastest  median  slowest\n\
                        200      duplicate            2    2.0ms   2.0ms    2.0ms\n\
                        200      first                1    2.0ms   2.0ms    2.0ms\n\
                        refused  -                    1    1.0ms   1.0ms    1.0ms\n\
                        4 answered in 3.0ms\n";
        assert_eq!(answers.to_table(Duration::from_millis(3)), expected);
    }
}
