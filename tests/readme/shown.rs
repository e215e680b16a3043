//! What a README shows: its fenced blocks, and the prose around them.

use std::fs;
use std::path::Path;

/// A fenced block of a README.
pub struct Block {
    pub language: String,
    pub text: String,
}

pub fn blocks(name: &str) -> Vec<Block> {
    let text = read(name);
    let fenced = text.split("```").skip(1).step_by(2);
    let blocks = fenced.map(|fenced| fenced.split_once('\n').expect("a language and its lines"));
    blocks.map(|(language, text)| Block { language: language.to_owned(), text: text.to_owned() }).collect()
}

/// A README without its blocks.
pub fn prose(name: &str) -> String {
    read(name).split("```").step_by(2).collect()
}

/// The one block of this language with these words.
pub fn shown_block(blocks: &[Block], language: &str, words: &str) -> String {
    let mut found = blocks.iter().filter(|block| block.language == language && block.text.contains(words));
    let block = found.next().unwrap_or_else(|| panic!("no `{language}` block has `{words}`"));
    assert!(found.next().is_none(), "more than one `{language}` block has `{words}`");
    block.text.clone()
}

/// Each `$ command` of a terminal, and the lines below it.
pub fn commands_of(terminal: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in terminal.lines() {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push((command.to_owned(), String::new())),
            (None, Some((_, output))) => output.push_str(&format!("{line}\n")),
            (None, None) => {}
        }
    }
    found
}

pub fn without_comments(text: &str) -> String {
    let code = text.lines().filter(|line| !line.contains(" → ")).map(|line| {
        let comment = line.match_indices("# ").map(|(at, _)| at).find(|at| *at == 0 || line[..*at].ends_with(' '));
        comment.map_or(line, |at| &line[..at]).trim_end()
    });
    code.collect::<Vec<_>>().join("\n")
}

pub fn variables_without_default(text: &str) -> impl Iterator<Item = &str> {
    let inside = text.split("${").skip(1).filter_map(|rest| rest.split('}').next());
    inside.filter(|variable| !variable.contains(":-"))
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}
