//! How a shown text is compared with a printed one: without what differs from run to run.

#[track_caller]
pub fn assert_same(shown: &str, printed: &str) {
    let (shown, printed) = (masked(shown), masked(printed));
    assert!(shown.trim_end() == printed.trim_end(), "\n--- shown\n{shown}\n--- printed\n{printed}\n---");
}

/// A text without what differs from run to run.
pub fn masked(text: &str) -> String {
    let mut text = text.replace('\r', "");
    let digit = |character: char| character.is_ascii_digit() || character == '.';
    let outside_quote = |character: char| character == '"';
    text = mask_after(&text, "Date: ", |character| character != '\n');
    text = mask_after(&text, "date: ", |character| character != '\n');
    text = mask_after(&text, "milliseconds=", digit);
    text = mask_after(&text, "t=", digit);
    text = mask_after(&text, "v1=", |character| character.is_ascii_hexdigit());
    text = mask_after(&text, "user=\"", |character| !outside_quote(character));
    text = mask_after(&text, "host=\"", |character| !outside_quote(character));
    while let Some(end) = text.find("s left)") {
        let start = text[..end].rfind('(').expect("an opening bracket");
        text.replace_range(start..end + "s left)".len(), "<left>");
    }

    let pieces = text.split_inclusive([' ', '"', '\n']).map(|piece| {
        let word = piece.trim_end_matches([' ', '"', '\n']);
        let end = &piece[word.len()..];
        let is_time = word.len() >= 20 && word.ends_with('Z') && word.as_bytes()[10] == b'T';
        let number = word.strip_suffix("ms").or_else(|| word.strip_suffix("µs")).or_else(|| word.strip_suffix('s'));
        match number {
            _ if is_time => format!("<time>{end}"),
            Some(number) if number.parse::<f64>().is_ok() => format!("<duration>{end}"),
            _ => piece.to_owned(),
        }
    });
    let text: String = pieces.collect();
    // The width of a table's columns is that of its durations.
    if text.contains("<duration>") { folded(&text) } else { text }
}

/// Puts `…` in the place of the characters of one kind that follow these words.
fn mask_after(text: &str, words: &str, kind: impl Fn(char) -> bool) -> String {
    let mut parts = text.split(words);
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(&kind);
        masked.push_str(words);
        masked.push_str(if rest.len() < part.len() { "…" } else { "" });
        masked.push_str(rest);
    }
    masked
}

fn folded(text: &str) -> String {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn what_differs_from_run_to_run_is_masked_and_nothing_else() {
    for (one, other, same) in [
        ("Date: Mon, 30 Nov 2026 17:17:15 GMT", "Date: Tue, 01 Dec 2026 00:00:00 GMT", true),
        ("at 2026-11-30T17:17:15.427247Z", "at 2026-12-01T00:00:00Z", true),
        ("t=17,v1=ab12", "t=18,v1=ffff", true),
        ("200  duplicate   49  201.1ms  1.0s", "200  duplicate  49  2ms    12.25s", true),
        ("200  duplicate   49  201.1ms", "200  duplicate   48  201.1ms", false),
        ("(6days 23h 59m 59s left)", "(7days left)", true),
        ("result=\"first\" milliseconds=1", "result=\"duplicate\" milliseconds=1", false),
        ("user=\"maria (uid 0)\" host=\"vm\"", "user=\"jo (uid 7)\" host=\"b\"", true),
        ("content-length: 34", "content-length: 35", false),
    ] {
        assert_eq!(masked(one) == masked(other), same, "{one} / {other}: {} / {}", masked(one), masked(other));
    }
}
