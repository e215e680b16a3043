//! What the READMEs show is what a reader gets: their commands are run as they stand, with curl and openssl, against the
//! real binary and the shipped configurations, and the answers compared with the shown ones.
//!
//! Only ports are changed (`8080`, `9090` and `3000` may be taken), in copies of the configurations and in the commands.
//! Before two texts are compared, what differs from run to run is masked: times, durations, signatures, who ran it.
//! `README.pt-BR.md` has the blocks of `README.md`, so one run covers both.

#![allow(clippy::expect_used, clippy::print_stderr, reason = "a test ends where it cannot go on, and says why")]

mod masks;
mod shown;
mod site;

use std::fs;

use masks::{assert_same, masked};
use shown::{blocks, commands_of, prose, read, root, shown_block, variables_without_default, without_comments};
use site::{Site, both, eventually, hookonce};

const READMES: [&str; 2] = ["README.md", "README.pt-BR.md"];

/// Commands of `console` and `sh` blocks that are not run here, and why.
const NOT_RUN: [(&str, &str); 3] = [
    ("make run", "builds a release and takes the fixed ports; what it starts is what `Site` starts"),
    ("--probe", "shows a handler with a race, which is not the reader's, and how many get through is chance"),
    ("docker compose", "needs Docker and a cluster; `make check-deploy` checks these files"),
];

/// A delivery of 130 bytes, as the output of `stress` says.
const INVOICE: &str = r#"{"id":"evt_1PxK2_twice","object":"event","type":"invoice.paid","data":{"object":{"id":"in_1PxK2","amount_paid":4990,"paid":true}}}"#;

#[test]
fn the_quickstart_prints_what_is_shown() {
    let site = Site::start("quickstart.yaml");
    let shown = blocks(READMES[0]);

    let answers = site.run(&shown_block(&shown, "sh", "whsec_quickstart"));
    assert_same(&without_empty_lines(&shown_block(&shown, "http", "duplicate\n")), &without_empty_lines(&answers));

    // The handler's lines and the log's come from two processes, so their order on a terminal is not looked at.
    let terminal = shown_block(&shown, "console", "#1 POST");
    let (log, handler): (Vec<&str>, Vec<&str>) = terminal.lines().partition(|line| is_of_a_delivery(line));
    assert_same(&handler.join("\n"), &site.handlers_print());
    let logged = eventually("two lines of the log", || {
        let lines: Vec<String> = site.log().lines().filter(|line| is_of_a_delivery(line)).map(str::to_owned).collect();
        (lines.len() == log.len()).then(|| lines.join("\n"))
    });
    assert_same(&log.join("\n"), &logged);
}

#[test]
fn each_providers_curl_line_is_first_and_then_a_duplicate() {
    let site = Site::start("every-provider.yaml");
    let shown = blocks(READMES[0]);
    let commands = shown_block(&shown, "sh", "$at/hotmart");

    let split = "split; first=3; duplicate=0; failed=0; open=0; unkeyed=0";
    let answers = site.run(&commands);
    assert_eq!(results(&answers), ["first", split, "first", "first", "first"], "{answers}");
    let answer = shown_block(&shown, "http", "hookonce-result: split");
    assert!(masked(&answers).contains(masked(&answer).trim_end()), "\n{answer}\nis not in\n{answers}");

    let repeated = site.run(&commands);
    assert_eq!(results(&repeated), ["duplicate"; 5], "{repeated}");
}

#[test]
fn the_commands_print_what_is_shown() {
    let site = Site::start("quickstart.yaml");
    let shown = blocks(READMES[0]);
    site.write("invoice.json", INVOICE);
    for (name, attempt, sent_at) in [("copy-a.http", 1, "18:00"), ("copy-b.http", 2, "18:05")] {
        let body = format!(r#"{{"id":"ord_81","status":"paid","total":"49.90","sent_at":"2026-11-30T{sent_at}:00Z"}}"#);
        let head = format!("POST /webhooks/orders HTTP/1.1\r\nx-shop: 7\r\nx-attempt: {attempt}\r\n\r\n");
        site.write(name, &format!("{head}{body}"));
    }
    // The event that `keys` is asked for has been delivered, by the lines of the quickstart.
    site.run(&shown_block(&shown, "sh", "whsec_quickstart").replace("evt_1", "evt_1PxK2"));
    // Its record as JSON stands in the running text.
    let json = site.run("hookonce keys get --json --config conf/quickstart.yaml stripe evt_1PxK2");
    for name in READMES {
        assert!(masked(&read(name)).contains(masked(&json).trim_end()), "{json} is not in {name}");
    }

    let mut run = Vec::new();
    for block in shown.iter().filter(|block| block.language == "console") {
        for (command, output) in commands_of(&block.text) {
            if NOT_RUN.iter().any(|(words, _)| command.contains(words)) {
                continue;
            }
            assert_same(&format!("$ {command}\n{output}"), &format!("$ {command}\n{}", site.run(&command)));
            run.extend(command.strip_prefix("hookonce ").and_then(|rest| rest.split(' ').next()).map(str::to_owned));
        }
    }
    assert_eq!(run, ["check", "explain", "keys", "keys", "keys", "stress", "diff"]);
}

/// The words around the commands are another language's, so comments in a block may be, and nothing else of it: blocks
/// are equal when each line is cut before a `#` that stands at its beginning or after a space and before one. The picture
/// of the way (`a → b`) is words, too.
#[test]
fn both_readmes_show_the_same_commands_and_outputs() {
    let [english, portuguese] = READMES.map(blocks);
    for (one, other) in english.iter().zip(&portuguese) {
        assert_eq!(one.language, other.language, "\n{}\n{}", one.text, other.text);
        assert_eq!(without_comments(&one.text), without_comments(&other.text));
    }
    assert_eq!(english.len(), portuguese.len());
    let headings = |name: &str| -> Vec<usize> {
        let prose = prose(name);
        prose.lines().filter(|line| line.starts_with('#')).map(|line| line.find(' ').unwrap_or_default()).collect()
    };
    assert_eq!(headings(READMES[0]), headings(READMES[1]), "the sections are not the same");
    let rows = |name: &str| prose(name).lines().filter(|line| line.starts_with('|')).count();
    assert_eq!(rows(READMES[0]), rows(READMES[1]), "the tables have not as many rows");
}

#[test]
fn each_command_block_is_run_or_named_as_not_run() {
    for block in blocks(READMES[0]).iter().filter(|block| block.language == "sh") {
        let is_run = ["whsec_quickstart", "$at/hotmart"].iter().any(|words| block.text.contains(words));
        let is_named = NOT_RUN.iter().any(|(words, _)| block.text.contains(words));
        assert!(is_run != is_named, "nobody runs this block:\n{}", block.text);
    }
    let text = read(READMES[0]);
    for (words, reason) in NOT_RUN {
        assert!(text.contains(words), "`{words}` is no longer shown ({reason})");
    }
}

#[test]
fn each_whole_configuration_that_is_shown_passes_check() {
    for name in READMES {
        let mut whole = 0;
        for block in blocks(name).iter().filter(|block| block.language == "yaml") {
            let has = |section: &str| block.text.lines().any(|line| line.trim_end() == section);
            if !has("routes:") || !has("store:") {
                continue;
            }
            whole += 1;
            let folder = tempfile::tempdir().expect("a folder");
            let mut command = hookonce();
            for variable in variables_without_default(&block.text) {
                command.env(variable, "a-secret-for-trying");
            }
            fs::write(folder.path().join("shown.yaml"), &block.text).expect("written");
            let output = command.args(["check", "--config", "shown.yaml"]).current_dir(folder.path()).output();
            let output = output.expect("the binary runs");
            assert!(output.status.success(), "{name}: {}\n{}", both(&output), block.text);
        }
        assert!(whole > 0, "{name} shows no whole configuration");
    }
}

#[test]
fn each_readme_links_to_the_other_and_to_files_that_are_there() {
    for (name, other) in [(READMES[0], READMES[1]), (READMES[1], READMES[0])] {
        let prose = prose(name);
        let links: Vec<&str> = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        assert_eq!(links.first(), Some(&other), "{name} does not begin with a link to {other}");
        for link in links {
            assert!(root().join(link).exists(), "{name}: there is no {link}");
        }
    }
}

fn results(answers: &str) -> Vec<&str> {
    answers.lines().filter_map(|line| line.strip_prefix("hookonce-result: ")).map(str::trim_end).collect()
}

fn is_of_a_delivery(line: &str) -> bool {
    line.contains(" INFO delivery ")
}

fn without_empty_lines(text: &str) -> String {
    // An answer whose body ends without a line's end runs into the next one on a terminal; the README parts them.
    text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}
