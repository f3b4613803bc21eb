//! The plugin ABI `interlock/1` for Rust, without a crate: what reads and writes its encoding, and
//! the module's exports. The rules are in sdk/abi/README.md. A guest implements `call` in its root
//! module and includes this file; nothing it keeps from one call to the next may change an answer.

pub const ABI: u32 = 1 << 16;

pub mod op {
    pub const CONFIGURE: u32 = 0;
    pub const REQUEST: u32 = 1;
    pub const RESPONSE: u32 = 2;
    pub const EVENTS: u32 = 3;
    pub const CLASSIFY: u32 = 4;
    pub const DESCRIBE: u32 = 5;
    pub const GUARD_REQUEST: u32 = 6;
    pub const GUARD_RESPONSE: u32 = 7;
    pub const GUARD_EVENTS: u32 = 8;
}

/// What a guest answers instead of a result.
pub struct Error {
    pub code: &'static str,
    pub message: String,
    pub param: String,
}

pub fn error(code: &'static str, message: &str) -> Error {
    Error { code, message: message.to_string(), param: String::new() }
}

pub fn cut_short() -> Error {
    error("internal", "the input is cut short")
}

/// Reads fields one after the other. A read past the end gives zeros, now and from then on.
#[derive(Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
    bad: bool,
}

impl<'a> Reader<'a> {
    pub fn new(b: &'a [u8]) -> Self {
        Reader { rest: b, bad: false }
    }

    /// Whether every read so far found what it wanted.
    pub fn ok(&self) -> bool {
        !self.bad
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, n: u32) -> &'a [u8] {
        let n = n as usize;
        if self.bad || n > self.rest.len() {
            self.bad = true;
            self.rest = &[];
            return &[];
        }
        let (head, tail) = self.rest.split_at(n);
        self.rest = tail;
        head
    }

    pub fn u32(&mut self) -> u32 {
        let b = self.take(4);
        if b.len() < 4 {
            return 0;
        }
        u32::from_le_bytes([b[0], b[1], b[2], b[3]])
    }

    pub fn u64(&mut self) -> u64 {
        let low = u64::from(self.u32());
        let high = u64::from(self.u32());
        if self.bad {
            0
        } else {
            high << 32 | low
        }
    }

    pub fn bytes(&mut self) -> &'a [u8] {
        let n = self.u32();
        self.take(n)
    }

    /// The length of a list whose elements take at least `size` bytes each.
    pub fn count(&mut self, size: u64) -> u32 {
        let n = self.u32();
        if u64::from(n) * size > self.rest.len() as u64 {
            self.bad = true;
            self.rest = &[];
            return 0;
        }
        n
    }
}

pub fn put_u32(w: &mut Vec<u8>, n: u32) {
    w.extend_from_slice(&n.to_le_bytes());
}

pub fn put_u64(w: &mut Vec<u8>, n: u64) {
    w.extend_from_slice(&n.to_le_bytes());
}

/// A length and the bytes: `bytes` and `str`.
pub fn put_bytes(w: &mut Vec<u8>, b: &[u8]) {
    put_u32(w, b.len() as u32);
    w.extend_from_slice(b);
}

/// The first field of every input.
pub struct Context<'a> {
    pub stream: bool,
    pub now: u64,
    pub endpoint: &'a [u8],
    pub model: &'a [u8],
    pub request_id: &'a [u8],
}

impl<'a> Context<'a> {
    /// None when it is cut short.
    pub fn read(r: &mut Reader<'a>) -> Option<Self> {
        let mut c = Reader::new(r.bytes());
        let context = Context {
            stream: c.u32() & 1 != 0,
            now: c.u64(),
            endpoint: c.bytes(),
            model: c.bytes(),
            request_id: c.bytes(),
        };
        if r.ok() && c.ok() {
            Some(context)
        } else {
            None
        }
    }
}

/// The module's memory of a call. A module has one thread.
static mut INPUT: Vec<u8> = Vec::new();
static mut OUTPUT: Vec<u8> = Vec::new();

#[no_mangle]
pub extern "C" fn interlock_abi() -> u32 {
    ABI
}

#[no_mangle]
pub extern "C" fn interlock_alloc(n: u32) -> *mut u8 {
    unsafe {
        if INPUT.len() < n as usize {
            INPUT = vec![0; n as usize];
        }
        INPUT.as_mut_ptr()
    }
}

#[no_mangle]
pub extern "C" fn interlock_call(op: u32, n: u32) -> u64 {
    unsafe {
        OUTPUT.clear();
        let mut failed = 0;
        if let Err(e) = crate::call(op, &mut Reader::new(&INPUT[..n as usize]), &mut OUTPUT) {
            OUTPUT.clear();
            put_bytes(&mut OUTPUT, e.code.as_bytes());
            put_bytes(&mut OUTPUT, e.message.as_bytes());
            put_bytes(&mut OUTPUT, e.param.as_bytes());
            put_u32(&mut OUTPUT, 0);
            failed = 1 << 63;
        }
        failed | (OUTPUT.as_ptr() as u64) << 32 | OUTPUT.len() as u64
    }
}
