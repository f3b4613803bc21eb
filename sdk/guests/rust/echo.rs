//! The reference guest in Rust: what ../go/echo does, without a crate. It answers the vectors in
//! sdk/abi/vectors byte for byte. See its README.md for what the provider's format is; of OpenAI's
//! it reads what that needs and refuses the rest.

#![allow(unknown_lints)]
#![allow(static_mut_refs)] // a module has one thread

mod interlock;
mod json;

use interlock::{cut_short, error, op, put_bytes, put_u32, put_u64, Context, Error, Reader};
use json::{get, is_array, is_name, is_null, is_object, is_string, items, says, text, Value};

type Done = Result<(), Error>;

const MANIFEST: &str = r#"{
  "name": "echo",
  "version": "1.0.0",
  "abi": "1.0",
  "kind": "adapter",
  "operations": ["request", "response", "events", "classify"],
  "endpoints": ["chat_completions"],
  "content_types": {"events": ["text/event-stream"], "whole": ["application/json"]},
  "request_headers": ["echo-version"],
  "response_headers": [],
  "auth": ["bearer"],
  "capabilities": [],
  "model_capabilities": ["streaming", "tools"],
  "limits": {"memory": "32MiB", "call_timeout": "100ms", "state": "4KiB"},
  "config_schema": {
    "type": "object",
    "additionalProperties": false,
    "properties": {"version": {"type": "string", "pattern": "^[0-9.]+$"}}
  }
}"#;

/// What configure left: the provider's version. It never changes afterwards.
static mut VERSION: Option<String> = None;

fn configure(r: &mut Reader) -> Done {
    let mut config = r.bytes();
    if !r.ok() {
        return Err(cut_short());
    }
    unsafe { VERSION = None };
    if config.is_empty() {
        config = b"{}";
    }
    let root = json::object(config).ok_or_else(|| error("config", "the configuration is not a JSON object"))?;
    let mut version = "1".to_string();
    for (key, value) in items(root) {
        if !says(key, "version") {
            return Err(error("config", &format!("unknown key: {}", text(key))));
        }
        version = text(value);
        if version.is_empty() || !version.bytes().all(|c| c == b'.' || c.is_ascii_digit()) {
            return Err(error("config", "version must be digits and points"));
        }
    }
    unsafe { VERSION = Some(version) };
    Ok(())
}

// --- request --------------------------------------------------------------------------------

fn bad(param: String, message: &str) -> Error {
    Error { code: "bad_request", message: message.to_string(), param }
}

fn unsupported(param: &str, message: &str) -> Error {
    Error { code: "unsupported_parameter", message: message.to_string(), param: param.to_string() }
}

/// The text of a message as a list of strings.
fn put_content(b: &mut Vec<u8>, content: Value, at: &str, may_lack: bool) -> Done {
    let param = || format!("{}.content", at);
    b.push(b'[');
    if is_string(content) {
        b.extend_from_slice(content);
    } else if is_array(content) {
        for (i, (_, part)) in items(content).enumerate() {
            let kind = get(part, "type");
            let said = get(part, "text");
            if ["image_url", "file", "input_audio"].iter().any(|k| says(kind, k)) {
                return Err(unsupported("messages", "echo hears text only"));
            }
            if !says(kind, "text") || !is_string(said) {
                return Err(bad(param(), "must be a list of parts of type text"));
            }
            if i > 0 {
                b.push(b',');
            }
            b.extend_from_slice(said);
        }
    } else if !is_null(content) {
        return Err(bad(param(), "must be a string or an array"));
    } else if !may_lack {
        return Err(bad(param(), "is missing"));
    }
    b.push(b']');
    Ok(())
}

fn put_calls(b: &mut Vec<u8>, calls: Value, at: &str) -> Done {
    let param = || format!("{}.tool_calls", at);
    if is_null(calls) {
        return Ok(());
    }
    if !is_array(calls) {
        return Err(bad(param(), "must be an array"));
    }
    for (i, (_, call)) in items(calls).enumerate() {
        let function = get(call, "function");
        let (id, name, arguments) = (get(call, "id"), get(function, "name"), get(function, "arguments"));
        if !is_name(id) || !is_name(name) || !(is_null(arguments) || is_string(arguments)) {
            return Err(bad(param(), "must be calls with an id, a name and arguments"));
        }
        b.extend_from_slice(if i == 0 { b",\"calls\":[" } else { b"," });
        b.extend_from_slice(b"{\"id\":");
        b.extend_from_slice(id);
        b.extend_from_slice(b",\"name\":");
        b.extend_from_slice(name);
        b.extend_from_slice(b",\"with\":");
        b.extend_from_slice(if is_null(arguments) { b"\"\"" } else { arguments });
        b.push(b'}');
    }
    if items(calls).next().is_some() {
        b.push(b']');
    }
    Ok(())
}

fn put_turn(b: &mut Vec<u8>, m: Value, at: &str) -> Done {
    if !is_object(m) {
        return Err(bad(at.to_string(), "must be an object"));
    }
    let role = get(m, "role");
    if is_null(role) {
        return Err(bad(format!("{}.role", at), "is missing"));
    }
    let by = match text(role).as_str() {
        "system" | "developer" => "rule",
        "user" => "user",
        "assistant" => "echo",
        "tool" => "tool",
        _ => {
            let words = "must be \"system\", \"developer\", \"user\", \"assistant\" or \"tool\"";
            return Err(bad(format!("{}.role", at), words));
        }
    };
    b.extend_from_slice(format!("{{\"by\":\"{}\",\"text\":", by).as_bytes());
    put_content(b, get(m, "content"), at, by == "echo")?;
    if by == "tool" {
        let id = get(m, "tool_call_id");
        if !is_name(id) {
            return Err(bad(format!("{}.tool_call_id", at), "is missing"));
        }
        b.extend_from_slice(b",\"call\":");
        b.extend_from_slice(id);
    }
    if by == "echo" {
        put_calls(b, get(m, "tool_calls"), at)?;
    }
    b.push(b'}');
    Ok(())
}

fn put_turns(b: &mut Vec<u8>, messages: Value) -> Done {
    let param = || "messages".to_string();
    if is_null(messages) {
        return Err(bad(param(), "is missing"));
    }
    if !is_array(messages) {
        return Err(bad(param(), "must be an array"));
    }
    if items(messages).next().is_none() {
        return Err(bad(param(), "must not be empty"));
    }
    b.extend_from_slice(b",\"turns\":[");
    for (i, (_, m)) in items(messages).enumerate() {
        if i > 0 {
            b.push(b',');
        }
        put_turn(b, m, &format!("messages[{}]", i))?;
    }
    b.push(b']');
    Ok(())
}

fn put_tools(b: &mut Vec<u8>, tools: Value) -> Done {
    if is_null(tools) {
        return Ok(());
    }
    if !is_array(tools) {
        return Err(bad("tools".to_string(), "must be an array"));
    }
    for (i, (_, tool)) in items(tools).enumerate() {
        let name = get(get(tool, "function"), "name");
        if !is_name(name) {
            return Err(bad(format!("tools[{}].function.name", i), "is missing"));
        }
        b.extend_from_slice(if i == 0 { b",\"tools\":[" } else { b"," });
        b.extend_from_slice(name);
    }
    if items(tools).next().is_some() {
        b.push(b']');
    }
    Ok(())
}

const KNOWN: [&str; 21] = [
    "tool_choice", "parallel_tool_calls", "response_format", "n", "stop", "temperature", "top_p",
    "presence_penalty", "frequency_penalty", "seed", "logprobs", "top_logprobs", "logit_bias",
    "reasoning_effort", "service_tier", "verbosity", "modalities", "audio", "prediction",
    "web_search_options", "store",
];

/// Refuses a parameter that echo's provider does not have and that asks for something.
fn may_drop(key: Value, value: Value) -> Done {
    let name = text(key);
    match name.as_str() {
        _ if is_null(value) => Ok(()),
        "model" | "messages" | "tools" | "max_tokens" | "max_completion_tokens" | "stream"
        | "stream_options" | "user" | "metadata" | "prompt_cache_key" | "safety_identifier" => Ok(()),
        "n" if value == b"1" => Ok(()),
        "store" if value == b"false" => Ok(()),
        _ if KNOWN.contains(&name.as_str()) => {
            Err(unsupported(&name, &format!("this model's provider has no equivalent for {}", name)))
        }
        _ => Err(unsupported(&name, &format!("unknown parameter: {}", name))),
    }
}

fn request(c: &Context, version: &str, r: &mut Reader, out: &mut Vec<u8>) -> Done {
    let body = r.bytes();
    if !r.ok() {
        return Err(cut_short());
    }
    let root = json::object(body).ok_or_else(|| error("bad_request", "the body is not a JSON object"))?;
    let mut b = b"{\"model\":\"".to_vec();
    json::put_escaped(&mut b, c.model);
    b.push(b'"');
    let mut limit = get(root, "max_completion_tokens");
    if is_null(limit) {
        limit = get(root, "max_tokens");
    }
    if !is_null(limit) {
        if json::whole(limit).map_or(true, |n| n == 0) {
            return Err(bad("max_tokens".to_string(), "must be a whole number above 0"));
        }
        b.extend_from_slice(b",\"limit\":");
        b.extend_from_slice(limit);
    }
    put_turns(&mut b, get(root, "messages"))?;
    put_tools(&mut b, get(root, "tools"))?;
    b.push(b'}');
    for (key, value) in items(root) {
        may_drop(key, value)?;
    }
    put_u32(out, 0); // kind
    put_bytes(out, b"POST");
    put_bytes(out, if c.stream { b"/v1/echo?stream=1" } else { b"/v1/echo" });
    put_u32(out, 1);
    put_bytes(out, b"echo-version");
    put_bytes(out, version.as_bytes());
    put_bytes(out, b"application/json");
    put_u32(out, if c.stream { 1 } else { 0 }); // framing: server-sent events, or by content type
    put_bytes(out, b""); // state
    put_bytes(out, &b);
    Ok(())
}

// --- answers --------------------------------------------------------------------------------

const SEEN: u32 = 1;
const TEXT: u32 = 2;
const SPOKE: u32 = 4;
const OPEN: u32 = 8;
const FILLED: u32 = 16;

const REASONS: [&str; 5] = ["", "stop", "length", "tool_calls", "content_filter"];

/// What has been said so far, and the events that say it.
struct Answer<'a> {
    c: &'a Context<'a>,
    list: Vec<u8>, // frames without their count
    frames: u32,
    begun: bool,
    counted: bool,
    id: Vec<u8>, // contents of a string
    created: u64,
    flags: u32,
    reason: u32,
    calls: u32,
}

/// Why a choice ended, 0 when that is not known.
fn reason_of(v: Value, calls: u32) -> u32 {
    match text(get(v, "end")).as_str() {
        "done" if calls > 0 => 3,
        "done" => 1,
        "limit" => 2,
        "blocked" => 4,
        _ => 0,
    }
}

fn usage(v: Value) -> String {
    let number = |key| json::whole(get(v, key)).unwrap_or(0);
    let (prompt, completion) = (number("in"), number("out"));
    format!(
        concat!(
            "{{\"prompt_tokens\":{},\"completion_tokens\":{},\"total_tokens\":{},",
            "\"prompt_tokens_details\":{{\"cached_tokens\":{}}},\"completion_tokens_details\":{{\"reasoning_tokens\":0}}}}"
        ),
        prompt,
        completion,
        prompt.saturating_add(completion),
        number("known").min(prompt)
    )
}

/// Writes the failure that {"kind", "text"} stands for.
fn put_failure(out: &mut Vec<u8>, v: Value, after: Option<u64>) {
    let kind = text(get(v, "kind"));
    let class = match kind.as_str() {
        "busy" => "overloaded",
        "slow" => "rate_limited",
        "long" => "context_overflow",
        "key" => "upstream_auth",
        _ => "",
    };
    put_bytes(out, class.as_bytes());
    put_bytes(out, b""); // code
    put_bytes(out, kind.as_bytes());
    put_bytes(out, text(get(v, "text")).as_bytes());
    put_bytes(out, b""); // param
    put_u32(out, 0); // status
    put_u32(out, if after.is_some() { 1 } else { 0 });
    put_u64(out, after.unwrap_or(0));
}

impl<'a> Answer<'a> {
    fn new(c: &'a Context<'a>) -> Self {
        Answer {
            c,
            list: Vec::new(),
            frames: 0,
            begun: false,
            counted: false,
            id: Vec::new(),
            created: 0,
            flags: 0,
            reason: 0,
            calls: 0,
        }
    }

    fn begin(&mut self, v: Value) {
        if self.begun {
            return;
        }
        self.begun = true;
        self.created = match json::whole(get(v, "at")) {
            None | Some(0) => self.c.now / 1000,
            Some(at) => at,
        };
        let id = get(v, "id");
        self.id.clear();
        if is_name(id) {
            json::put_contents(&mut self.id, id);
        } else {
            self.id.extend_from_slice(b"chatcmpl-");
            json::put_escaped(&mut self.id, self.c.request_id);
        }
    }

    /// An answer's members up to the elements of choices.
    fn head(&mut self, object: &str) -> Vec<u8> {
        self.begin(b"");
        let mut w = b"{\"id\":\"".to_vec();
        w.extend_from_slice(&self.id);
        w.extend_from_slice(format!("\",\"object\":\"{}\",\"created\":{},\"model\":\"", object, self.created).as_bytes());
        json::put_escaped(&mut w, self.c.model);
        w.extend_from_slice(b"\",\"choices\":[");
        w
    }

    /// A call's members from its ID to the contents of its arguments.
    fn call(&self, n: u32, id: Value, name: Value) -> Vec<u8> {
        let mut w = b"\"id\":\"".to_vec();
        if is_name(id) {
            json::put_contents(&mut w, id);
        } else {
            w.extend_from_slice(b"call_");
            json::put_escaped(&mut w, self.c.request_id);
            w.extend_from_slice(format!("_{}", n).as_bytes());
        }
        w.extend_from_slice(b"\",\"type\":\"function\",\"function\":{\"name\":\"");
        json::put_contents(&mut w, name);
        w.extend_from_slice(b"\",\"arguments\":\"");
        w
    }

    fn emit(&mut self, choices: &[u8]) {
        let mut chunk = self.head("chat.completion.chunk");
        chunk.extend_from_slice(choices);
        chunk.push(b'}');
        self.frames += 1;
        put_bytes(&mut self.list, b""); // name
        put_bytes(&mut self.list, &chunk);
    }

    /// Emits a delta with one member; the first has the role too.
    fn delta(&mut self, member: &[u8]) {
        let mut w = b"{\"index\":0,\"delta\":{".to_vec();
        if self.flags & SEEN == 0 {
            w.extend_from_slice(b"\"role\":\"assistant\",");
        }
        self.flags |= SEEN;
        w.extend_from_slice(member);
        w.extend_from_slice(b"},\"finish_reason\":null}]");
        self.emit(&w);
    }

    fn arguments(&mut self, contents: &[u8]) {
        self.flags |= FILLED;
        let mut w = format!("\"tool_calls\":[{{\"index\":{},\"function\":{{\"arguments\":\"", self.calls - 1).into_bytes();
        w.extend_from_slice(contents);
        w.extend_from_slice(b"\"}}]");
        self.delta(&w);
    }

    fn end_call(&mut self) {
        if self.flags & (OPEN | FILLED) == OPEN {
            self.arguments(b"{}");
        }
        self.flags &= !OPEN;
    }

    fn say(&mut self, said: Value) {
        if !is_name(said) || self.reason != 0 {
            return;
        }
        self.flags |= TEXT;
        let mut w = b"\"content\":\"".to_vec();
        json::put_contents(&mut w, said);
        w.push(b'"');
        self.delta(&w);
    }

    fn call_tool(&mut self, id: Value, name: Value) {
        if self.reason != 0 {
            return;
        }
        self.end_call();
        let mut w = format!("\"tool_calls\":[{{\"index\":{},", self.calls).into_bytes();
        w.extend_from_slice(&self.call(self.calls, id, name));
        w.extend_from_slice(b"\"}}]");
        self.delta(&w);
        self.calls = self.calls.saturating_add(1);
        self.flags = (self.flags | OPEN | SPOKE) & !FILLED;
    }

    fn finish(&mut self, reason: u32) {
        if self.reason != 0 {
            return;
        }
        self.end_call();
        if self.flags & (TEXT | SPOKE) == 0 {
            self.delta(b"\"content\":\"\"");
        }
        self.reason = reason;
        let w = format!("{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{}\"}}]", REASONS[reason as usize]);
        self.emit(w.as_bytes());
    }

    fn count(&mut self, v: Value) {
        if !self.counted {
            self.counted = true;
            self.emit(format!("],\"usage\":{}", usage(v)).as_bytes());
        }
    }

    /// The state is that of the Go SDK's chat.Out: bytes that hold
    ///     counted: u32, created: u64, id: bytes, list<(flags: u32, calls: u32, opaque: bytes)>
    /// or nothing.
    fn load(&mut self, state: &[u8]) {
        let mut s = Reader::new(Reader::new(state).bytes());
        if s.is_empty() {
            return;
        }
        self.begun = true;
        self.counted = s.u32() != 0;
        self.created = s.u64();
        self.id = s.bytes().to_vec();
        if s.count(12) == 0 {
            return;
        }
        let flags = s.u32();
        self.calls = s.u32();
        self.flags = flags & (SEEN | TEXT | SPOKE | OPEN | FILLED);
        if flags >> 8 < REASONS.len() as u32 {
            self.reason = flags >> 8;
        }
        if self.calls == 0 {
            self.flags &= !OPEN;
        }
    }

    fn save(&self, out: &mut Vec<u8>) {
        let mut s = Vec::new();
        if self.begun {
            let used = self.flags & SEEN != 0 || self.reason != 0 || self.calls != 0;
            put_u32(&mut s, u32::from(self.counted));
            put_u64(&mut s, self.created);
            put_bytes(&mut s, &self.id);
            put_u32(&mut s, u32::from(used));
            if used {
                put_u32(&mut s, self.flags | self.reason << 8);
                put_u32(&mut s, self.calls);
                put_bytes(&mut s, b"");
            }
        }
        put_u32(out, s.len() as u32 + 4);
        put_bytes(out, &s);
    }
}

/// state, status, headers, body: returns the body, and what retry-after says where it says
/// something in digits, in milliseconds.
fn read_answer<'a>(r: &mut Reader<'a>) -> Result<(&'a [u8], Option<u64>), Error> {
    r.bytes();
    r.u32();
    let (mut seconds, mut milliseconds) = (None, None);
    for _ in 0..r.count(8) {
        let (name, value) = (r.bytes(), r.bytes());
        let number = json::whole(value).filter(|n| *n <= 1 << 40);
        match name {
            b"retry-after" => seconds = number.map(|n| n * 1000),
            b"retry-after-ms" => milliseconds = number,
            _ => {}
        }
    }
    let body = r.bytes();
    if r.ok() {
        Ok((body, milliseconds.or(seconds)))
    } else {
        Err(cut_short())
    }
}

fn malformed(message: &str) -> Error {
    error("upstream_malformed", message)
}

fn response(c: &Context, r: &mut Reader, out: &mut Vec<u8>) -> Done {
    let (body, _) = read_answer(r)?;
    let root = json::object(body).ok_or_else(|| malformed("the answer is not a JSON object"))?;
    let failure = get(root, "error");
    if is_object(failure) {
        put_u32(out, 1);
        put_bytes(out, b"");
        put_failure(out, failure, None);
        return Ok(());
    }
    let mut a = Answer::new(c);
    a.begin(root);
    let said = get(root, "say");
    let calls = if is_array(get(root, "calls")) { get(root, "calls") } else { b"" };
    let mut w = a.head("chat.completion");
    w.extend_from_slice(b"{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":");
    if is_name(said) || items(calls).next().is_none() {
        w.push(b'"');
        json::put_contents(&mut w, said);
        w.push(b'"');
    } else {
        w.extend_from_slice(b"null");
    }
    w.extend_from_slice(b",\"refusal\":null");
    for (_, call) in items(calls) {
        w.extend_from_slice(if a.calls == 0 { b",\"tool_calls\":[{" } else { b",{" });
        w.extend_from_slice(&a.call(a.calls, get(call, "id"), get(call, "name")));
        let with = get(call, "with");
        if is_null(with) {
            w.extend_from_slice(b"{}");
        } else {
            json::put_escaped(&mut w, &json::compact(with));
        }
        w.extend_from_slice(b"\"}}");
        a.calls += 1;
    }
    if a.calls > 0 {
        w.push(b']');
    }
    let reason = reason_of(root, a.calls);
    if reason == 0 {
        return Err(malformed("the answer has no known end"));
    }
    let tail = format!("}},\"logprobs\":null,\"finish_reason\":\"{}\"}}],\"usage\":{}}}", REASONS[reason as usize], usage(root));
    w.extend_from_slice(tail.as_bytes());
    put_u32(out, 0);
    put_bytes(out, &w);
    Ok(())
}

// --- events ---------------------------------------------------------------------------------

enum Step {
    On,
    Done,
    Malformed(&'static str),
    Failed,
}

fn step(a: &mut Answer, v: Value) -> Step {
    match text(get(v, "t")).as_str() {
        "start" => a.begin(v),
        "say" => a.say(get(v, "text")),
        "call" => a.call_tool(get(v, "id"), get(v, "name")),
        "with" => {
            let part = get(v, "part");
            if is_name(part) && a.flags & OPEN != 0 && a.reason == 0 {
                let mut contents = Vec::new();
                json::put_contents(&mut contents, part);
                a.arguments(&contents);
            }
        }
        "end" => match reason_of(v, a.calls) {
            0 => return Step::Malformed("the answer has no known end"),
            reason => {
                a.finish(reason);
                a.count(v);
                return Step::Done;
            }
        },
        "error" => return Step::Failed,
        _ => {}
    }
    Step::On
}

fn events(c: &Context, r: &mut Reader, out: &mut Vec<u8>) -> Done {
    let state = r.bytes();
    r.u32(); // whether the body has ended
    let mut frames = Vec::new();
    for _ in 0..r.count(8) {
        r.bytes(); // name
        frames.push(r.bytes());
    }
    if !r.ok() {
        return Err(cut_short());
    }
    let mut whole = Reader::new(state);
    whole.bytes();
    if !state.is_empty() && !whole.ok() {
        return Err(error("internal", "the state is not one of echo's"));
    }
    let mut a = Answer::new(c);
    a.load(state);
    let mut flags = 0;
    let mut failure = Vec::new();
    for data in frames {
        let object = json::object(data);
        let next = object.map_or(Step::Malformed("an event is not a JSON object"), |v| step(&mut a, v));
        match next {
            Step::On => continue,
            Step::Done => flags = 1,
            Step::Failed => {
                flags = 2;
                put_failure(&mut failure, object.unwrap_or(b""), None);
            }
            Step::Malformed(message) => {
                flags = 2;
                for field in ["malformed_answer", "", "", message, ""] {
                    put_bytes(&mut failure, field.as_bytes());
                }
                put_u32(&mut failure, 0);
                put_u32(&mut failure, 0);
                put_u64(&mut failure, 0);
            }
        }
        break;
    }
    put_u32(out, flags);
    a.save(out);
    put_u32(out, a.frames);
    out.extend_from_slice(&a.list);
    out.extend_from_slice(&failure);
    Ok(())
}

fn classify(r: &mut Reader, out: &mut Vec<u8>) -> Done {
    let (body, after) = read_answer(r)?;
    put_failure(out, json::object(body).map_or(b"", |root| get(root, "error")), after);
    Ok(())
}

// --- guards ---------------------------------------------------------------------------------

#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Action {
    Pass,
    Use,
    Refuse,
}

fn holds(b: &[u8], word: &[u8]) -> bool {
    b.windows(word.len()).any(|w| w == word)
}

fn judge(root: bool, b: &[u8]) -> Action {
    if !root && holds(b, b"forbidden") {
        Action::Refuse
    } else if holds(b, b"colour") {
        Action::Use
    } else {
        Action::Pass
    }
}

fn respelt(mut b: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(b.len());
    while let Some(k) = b.windows(6).position(|w| w == b"colour") {
        out.extend_from_slice(&b[..k]);
        out.extend_from_slice(b"color");
        b = &b[k + 6..];
    }
    out.extend_from_slice(b);
    out
}

fn put_verdict(out: &mut Vec<u8>, action: Action) {
    put_u32(out, action as u32);
    let (reason, message) = match action {
        Action::Refuse => ("forbidden_word", "that word is not said here"),
        _ => ("", ""),
    };
    put_bytes(out, reason.as_bytes());
    put_bytes(out, message.as_bytes());
}

/// Whether the subject's key is root; None when the subject is cut short.
fn read_root(r: &mut Reader) -> Option<bool> {
    let mut s = Reader::new(r.bytes());
    let root = s.bytes() == b"root";
    s.bytes();
    s.bytes();
    if s.ok() {
        Some(root)
    } else {
        None
    }
}

fn guard(r: &mut Reader, out: &mut Vec<u8>) -> Done {
    let root = read_root(r);
    let body = r.bytes();
    let root = root.filter(|_| r.ok()).ok_or_else(cut_short)?;
    let action = judge(root, body);
    put_verdict(out, action);
    put_bytes(out, &if action == Action::Use { respelt(body) } else { Vec::new() });
    Ok(())
}

fn guard_events(r: &mut Reader, out: &mut Vec<u8>) -> Done {
    let root = read_root(r);
    let mut state = Reader::new(r.bytes());
    r.u32(); // whether the answer has ended
    let mut frames = Vec::new();
    for _ in 0..r.count(8) {
        frames.push((r.bytes(), r.bytes()));
    }
    let root = root.filter(|_| r.ok()).ok_or_else(cut_short)?;
    let mut action = Action::Pass;
    for (_, data) in &frames {
        let now = judge(root, data);
        if now > action {
            action = now;
        }
    }
    put_verdict(out, action);
    put_u32(out, 4);
    put_u32(out, state.u32().wrapping_add(frames.len() as u32));
    if action != Action::Use {
        put_u32(out, 0);
        return Ok(());
    }
    put_u32(out, frames.len() as u32);
    for (name, data) in frames {
        put_bytes(out, name);
        put_bytes(out, &respelt(data));
    }
    Ok(())
}

fn call(operation: u32, r: &mut Reader, out: &mut Vec<u8>) -> Done {
    let c = Context::read(r).ok_or_else(cut_short)?;
    match operation {
        op::CONFIGURE => return configure(r),
        op::DESCRIBE => {
            put_bytes(out, MANIFEST.as_bytes());
            return Ok(());
        }
        _ => {}
    }
    let version = unsafe { VERSION.as_deref() }.ok_or_else(|| error("internal", "not configured"))?;
    match operation {
        op::REQUEST => request(&c, version, r, out),
        op::RESPONSE => response(&c, r, out),
        op::EVENTS => events(&c, r, out),
        op::CLASSIFY => classify(r, out),
        op::GUARD_EVENTS => guard_events(r, out),
        op::GUARD_REQUEST | op::GUARD_RESPONSE => guard(r, out),
        _ => Err(error("unsupported", "no such operation")),
    }
}
