//! A delivery in a file: as `echo --save` writes it, and as `explain`, `stress` and `diff` read it.
//!
//! The file reads like the request on the wire (request line, headers, an empty line, the body byte for byte), except
//! that names of headers are in lower case and a chunked body stands there whole. A file that does not begin with a request line is a bare body.

use http::{HeaderMap, HeaderName, HeaderValue};

/// A delivery as it stands in a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Saved {
    /// Path and query; `None` for a bare body.
    pub target: Option<String>,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Saved {
    /// Reads a file's content.
    ///
    /// JSON and form bodies never begin with a request line, so nothing needs to say which of the two a file is. What
    /// merely looks similar (a line without a colon among the headers) is taken for a body.
    pub fn read(content: Vec<u8>) -> Self {
        match head(&content) {
            Some((target, headers, start)) => Self { target: Some(target), headers, body: content[start..].to_vec() },
            None => Self { target: None, headers: HeaderMap::new(), body: content },
        }
    }

    /// The content of a file that reads back as this request.
    pub fn write(method: &http::Method, target: &str, headers: &HeaderMap, body: &[u8]) -> Vec<u8> {
        let mut content = format!("{method} {target} HTTP/1.1\r\n").into_bytes();
        for (name, value) in headers {
            content.extend_from_slice(name.as_str().as_bytes());
            content.extend_from_slice(b": ");
            content.extend_from_slice(value.as_bytes());
            content.extend_from_slice(b"\r\n");
        }
        content.extend_from_slice(b"\r\n");
        content.extend_from_slice(body);
        content
    }
}

/// The target, the headers and where the body starts.
fn head(content: &[u8]) -> Option<(String, HeaderMap, usize)> {
    let mut at = 0;
    let mut next_line = || {
        let length = content[at..].iter().position(|byte| *byte == b'\n')?;
        let line = &content[at..at + length];
        at += length + 1;
        Some((line.strip_suffix(b"\r").unwrap_or(line), at))
    };

    let (request_line, _) = next_line()?;
    let mut words = std::str::from_utf8(request_line).ok()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if words.next().is_some() || !version.starts_with("HTTP/1.") || method.parse::<http::Method>().is_err() {
        return None;
    }
    let mut headers = HeaderMap::new();
    loop {
        let (line, after) = next_line()?;
        if line.is_empty() {
            return Some((target.to_owned(), headers, after));
        }
        let (name, value) = header(line)?;
        headers.append(name, value);
    }
}

/// `Name: value`, as it stands in a head or behind `--header`.
pub fn header(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let name = HeaderName::from_bytes(&line[..colon]).ok()?;
    let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?;
    Some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bare_body_is_a_body() {
        for body in ["", "{}", "{\"id\":\"evt_1\"}\n\nx", "POST /a\r\n\r\n", "POST /a HTTP/1.1\nno header\n\n{}"] {
            let saved = Saved::read(body.as_bytes().to_vec());
            assert_eq!(saved.target, None, "`{body}`");
            assert_eq!(saved.body, body.as_bytes());
        }
    }

    #[test]
    fn a_head_typed_by_hand_may_end_its_lines_with_a_bare_newline() {
        let saved = Saved::read(b"POST /a?b=c HTTP/1.1\nX-Token:  t \nX-Token: u\n\n{}\n".to_vec());
        assert_eq!(saved.target.as_deref(), Some("/a?b=c"));
        assert_eq!(saved.headers.get_all("x-token").iter().collect::<Vec<_>>(), ["t", "u"]);
        assert_eq!(saved.body, b"{}\n");
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_back(
            target in "/[a-z/?=&%0-9]{0,20}",
            values in proptest::collection::vec("[!-~]{0,12}", 0..4),
            body in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut headers = HeaderMap::new();
            for value in &values {
                headers.append("x-value", HeaderValue::from_str(value).expect("visible characters"));
            }
            let content = Saved::write(&http::Method::POST, &target, &headers, &body);
            prop_assert_eq!(Saved::read(content), Saved { target: Some(target), headers, body });
        }
    }
}
