//! As much JSON as the reference guest needs: a validating scanner over the bytes themselves. A
//! value is the slice that holds it, without blanks around it; the empty slice is an absent one.

pub type Value<'a> = &'a [u8];

const MAX_DEPTH: usize = 128;

fn blanks(b: &[u8], mut i: usize) -> usize {
    while matches!(b.get(i), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        i += 1;
    }
    i
}

fn hex4(b: &[u8]) -> Option<u32> {
    let mut n = 0;
    for c in b.get(..4)? {
        n = n << 4 | (*c as char).to_digit(16)?;
    }
    Some(n)
}

/// The length of the escape that b starts with.
fn escape(b: &[u8]) -> Option<usize> {
    match b.get(1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => hex4(&b[2..]).map(|_| 6),
        _ => None,
    }
}

fn string_end(b: &[u8], start: usize) -> Option<usize> {
    let mut i = start + 1;
    loop {
        match *b.get(i)? {
            b'"' => break,
            b'\\' => i += escape(&b[i..])?,
            c if c < 0x20 => return None,
            _ => i += 1,
        }
    }
    std::str::from_utf8(&b[start..i]).ok()?;
    Some(i + 1)
}

fn digits(b: &[u8], from: usize) -> Option<usize> {
    let mut i = from;
    while b.get(i).map_or(false, u8::is_ascii_digit) {
        i += 1;
    }
    if i == from {
        None
    } else {
        Some(i)
    }
}

fn number_end(b: &[u8], mut i: usize) -> Option<usize> {
    if b[i] == b'-' {
        i += 1;
    }
    i = if b.get(i) == Some(&b'0') { i + 1 } else { digits(b, i)? };
    if b.get(i) == Some(&b'.') {
        i = digits(b, i + 1)?;
    }
    if matches!(b.get(i), Some(b'e' | b'E')) {
        i += 1;
        if matches!(b.get(i), Some(b'+' | b'-')) {
            i += 1;
        }
        i = digits(b, i)?;
    }
    Some(i)
}

fn word_end(b: &[u8], i: usize, word: &str) -> Option<usize> {
    if b[i..].starts_with(word.as_bytes()) {
        Some(i + word.len())
    } else {
        None
    }
}

/// The offset behind the value at i, if it is valid.
fn end(b: &[u8], mut i: usize, depth: usize) -> Option<usize> {
    let open = *b.get(i)?;
    match open {
        b'"' => return string_end(b, i),
        b't' => return word_end(b, i, "true"),
        b'f' => return word_end(b, i, "false"),
        b'n' => return word_end(b, i, "null"),
        b'-' | b'0'..=b'9' => return number_end(b, i),
        b'{' | b'[' if depth < MAX_DEPTH => {}
        _ => return None,
    }
    let close = open + 2;
    i = blanks(b, i + 1);
    if b.get(i) == Some(&close) {
        return Some(i + 1);
    }
    loop {
        if open == b'{' {
            if b.get(i) != Some(&b'"') {
                return None;
            }
            i = blanks(b, string_end(b, i)?);
            if b.get(i) != Some(&b':') {
                return None;
            }
            i = blanks(b, i + 1);
        }
        i = blanks(b, end(b, i, depth + 1)?);
        match *b.get(i)? {
            b',' => i = blanks(b, i + 1),
            c if c == close => return Some(i + 1),
            _ => return None,
        }
    }
}

/// Reads a document that has to be an object.
pub fn object(b: &[u8]) -> Option<Value> {
    let from = blanks(b, 0);
    let to = end(b, from, 0)?;
    if blanks(b, to) == b.len() && b[from] == b'{' {
        Some(&b[from..to])
    } else {
        None
    }
}

pub fn is_object(v: Value) -> bool {
    v.first() == Some(&b'{')
}

pub fn is_array(v: Value) -> bool {
    v.first() == Some(&b'[')
}

pub fn is_string(v: Value) -> bool {
    v.first() == Some(&b'"')
}

/// Whether the value is a string that is not empty.
pub fn is_name(v: Value) -> bool {
    is_string(v) && v.len() > 2
}

/// Whether the value is absent or null.
pub fn is_null(v: Value) -> bool {
    matches!(v.first(), None | Some(b'n'))
}

/// The members of an object, or the elements of an array with an empty key, of what is valid.
pub struct Items<'a> {
    v: Value<'a>,
    at: usize,
}

pub fn items(v: Value) -> Items {
    Items { v: if is_object(v) || is_array(v) { v } else { b"" }, at: 0 }
}

impl<'a> Iterator for Items<'a> {
    type Item = (Value<'a>, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let v = self.v;
        let mut i = blanks(v, self.at.max(1));
        if v.get(i) == Some(&b',') {
            i = blanks(v, i + 1);
        }
        if matches!(v.get(i), None | Some(b'}' | b']')) {
            return None;
        }
        let mut key: Value = b"";
        if v[0] == b'{' {
            let to = string_end(v, i)?;
            key = &v[i..to];
            i = blanks(v, blanks(v, to) + 1);
        }
        self.at = end(v, i, 0)?;
        Some((key, &v[i..self.at]))
    }
}

/// The member with that key, the last one where there are several.
pub fn get<'a>(v: Value<'a>, name: &str) -> Value<'a> {
    if !is_object(v) {
        return b"";
    }
    items(v).filter(|(key, _)| says(key, name)).last().map_or(b"", |(_, value)| value)
}

/// What stands between a string's quotes.
fn contents(v: Value) -> &[u8] {
    if is_string(v) && v.len() > 1 {
        &v[1..v.len() - 1]
    } else {
        b""
    }
}

/// What the escape that b starts with stands for, and its length: None for half a pair of
/// surrogates.
fn decode(b: &[u8]) -> (Option<char>, usize) {
    let c = match b[1] {
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => {
            let r = hex4(&b[2..]).unwrap_or(0xfffd);
            if (0xd800..0xdc00).contains(&r) && b.len() >= 12 && b[6] == b'\\' && b[7] == b'u' {
                let low = hex4(&b[8..]).unwrap_or(0);
                if (0xdc00..0xe000).contains(&low) {
                    return (char::from_u32(((r - 0xd800) << 10 | (low - 0xdc00)) + 0x10000), 12);
                }
            }
            return (char::from_u32(r), 6);
        }
        c => c,
    };
    (Some(c as char), 2)
}

/// The text of a string; empty when the value is none.
pub fn text(v: Value) -> String {
    let mut out = Vec::new();
    let mut s = contents(v);
    while let Some(k) = s.iter().position(|c| *c == b'\\') {
        out.extend_from_slice(&s[..k]);
        let (c, n) = decode(&s[k..]);
        let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        s = &s[k + n..];
    }
    out.extend_from_slice(s);
    String::from_utf8(out).unwrap_or_default()
}

/// Whether the value is a string that says that.
pub fn says(v: Value, what: &str) -> bool {
    is_string(v) && text(v) == what
}

/// The contents of a string as they are, but for halves of surrogate pairs.
pub fn put_contents(w: &mut Vec<u8>, v: Value) {
    let mut s = contents(v);
    while let Some(k) = s.iter().position(|c| *c == b'\\') {
        w.extend_from_slice(&s[..k]);
        let (c, n) = decode(&s[k..]);
        w.extend_from_slice(if c.is_some() { &s[k..k + n] } else { b"\\ufffd" });
        s = &s[k + n..];
    }
    w.extend_from_slice(s);
}

/// Text as the contents of a string.
pub fn put_escaped(w: &mut Vec<u8>, text: &[u8]) {
    for c in String::from_utf8_lossy(text).chars() {
        match c {
            '"' | '\\' => w.extend_from_slice(&[b'\\', c as u8]),
            '\n' => w.extend_from_slice(b"\\n"),
            '\r' => w.extend_from_slice(b"\\r"),
            '\t' => w.extend_from_slice(b"\\t"),
            c if c < ' ' => w.extend_from_slice(format!("\\u{:04x}", c as u32).as_bytes()),
            c => w.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

/// A value without blanks between its parts.
pub fn compact(v: Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(v.len());
    let mut i = 0;
    while i < v.len() {
        match v[i] {
            b'"' => {
                let to = string_end(v, i).unwrap_or(v.len());
                out.extend_from_slice(&v[i..to]);
                i = to;
                continue;
            }
            b' ' | b'\n' | b'\r' | b'\t' => {}
            c => out.push(c),
        }
        i += 1;
    }
    out
}

/// A whole number written in digits only.
pub fn whole(v: Value) -> Option<u64> {
    if v.is_empty() || !v.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(v).ok()?.parse().ok()
}
