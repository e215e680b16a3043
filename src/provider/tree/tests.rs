//! What a tree tells of a body is what its outline tells.

use super::super::outline::Document;
use super::*;
use proptest::prelude::*;

const PATHS: [&str; 6] = ["$.a", "$.a.b", "$.b", "$.a.a", "$.type", "$.c"];

/// The reason why a body is not read, or the part of a key at each of the paths, `None` where nothing stands there.
type Told = Result<Vec<Option<Option<String>>>, Unkeyed>;

fn by_tree(body: &[u8]) -> Told {
    let document = parse(body)?;
    let told = PATHS.iter().map(|path| match Path::compile(path).all(&document)[..] {
        [] => None,
        [value] => Some(text(value).map(Cow::into_owned)),
        _ => Some(None),
    });
    Ok(told.collect())
}

fn by_outline(body: &[u8]) -> Told {
    let document = Document::read(body)?;
    Ok(PATHS.iter().map(|path| Some(document.root().at(path)?.key_part().map(Cow::into_owned))).collect())
}

#[test]
fn odd_bodies_are_read_alike() {
    for body in [
        r#"{"a":"x","b":{"c":12345678901234567890123,"x":[1,{"a":2}]},"type":true}"#,
        r#" {"x":{"a":1},"\u0061":"esc\u0061ped","b":[{"a":1}]} "#,
        r#"{"a":1,"a":2,"b":{"b":1,"b":1}}"#,
        r#"{"a":{"b":1},"a":{"b":1}}"#,
        r#"{"a":{"b":1,"\u0062":1,"a":7}}"#,
        r#"{"x":1,"x":2,"a":1E5,"b":-1.5E300,"c":2e-07}"#,
        r#"{"a":-0,"b":0.10,"c":-0.0}"#,
        r#"{"a":null,"b":5,"type":"\ud83d"}"#,
        r#"{"a":"x\ud83d","b":"\ud83d\ude00","c":"\\ud83d","type":"\ude00\ud83d"}"#,
        r#"{"a":"","b":"\/\n\"","c":[]}"#,
        r#"{"a":{"$serde_json::private::RawValue":"no number"}}"#,
        r#"[{"a":1}]"#,
        r#""a""#,
        "7",
        "null",
        "",
        " \r\n",
        "{",
        "{} {}",
        "a=1&b=2",
        r#"{"a":1}x"#,
        r#"{"a":1,"x":nul}"#,
        r#"{"a":1,}"#,
        "\u{feff}{}",
    ] {
        assert_eq!(by_outline(body.as_bytes()), by_tree(body.as_bytes()), "{body}");
    }
    let no_utf8 = b"{\"a\":1,\"x\":\"\xff\"}";
    assert_eq!(by_outline(no_utf8), by_tree(no_utf8));
    assert_eq!(by_tree(no_utf8), Err(Unkeyed::NotJson));
}

#[test]
fn only_a_tree_can_be_nested_too_deep() {
    let deep = format!(r#"{{"a":1,"b":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(by_tree(deep.as_bytes()), Err(Unkeyed::NotJson));
    assert!(by_outline(deep.as_bytes()).is_ok());
}

#[test]
fn a_path_is_names_or_more() {
    for (path, names) in [("$.id", &["id"][..]), ("$.data.order_2.uuid", &["data", "order_2", "uuid"])] {
        assert_eq!(Path::compile(path).names().unwrap(), names, "{path}");
    }
    for path in ["$", "id", "$.items[0]", "$..id", "$['id']", "$.a.*", "$.a b", "$.", "$.1a", "$.a\u{e9}"] {
        assert!(Path::compile(path).names().is_none(), "{path}");
    }
}

proptest! {
    #[test]
    fn any_body_is_read_alike(
        body in r#"[\{\}\[\]",:a0\\ ]{0,24}|\{"a":("[a\\]{0,3}"|"(\\ud83d|\\ude00|\\u0062){1,3}"|-?[0-9]{1,3}([eE]-?[0-9])?|\{"b":[0-9](,"(b|a|\\u0062)":"x")?\}|\[\])(,"a":(1|\{\}))?\}"#,
    ) {
        prop_assert_eq!(by_outline(body.as_bytes()), by_tree(body.as_bytes()));
    }
}
