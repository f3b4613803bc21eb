/*
 * The plugin ABI interlock/1 in C. README.md beside this file has the rules; here are the same
 * numbers and, in comments, the same messages, with what is needed to read and write them without
 * a C library.
 *
 * A guest includes this file in one source with INTERLOCK_IMPLEMENTATION defined and writes
 *
 *     static int il_call(uint32_t op, il_reader *in, il_writer *out);
 *
 * which appends the result of an operation to out and returns 1, or empties out with il_fail and
 * returns 0. It is built with
 *
 *     clang --target=wasm32 -O2 -nostdlib -ffreestanding -mbulk-memory -Wl,--no-entry
 *
 * Nothing kept from one call to the next may change an answer.
 */
#ifndef INTERLOCK_PLUGIN_H
#define INTERLOCK_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#define INTERLOCK_ABI (1u << 16 | 0u) /* major << 16 | minor */
#define INTERLOCK_MAX_STATE (64u << 10)

/*
 * Operations. Each input begins with `context: bytes`, which holds
 *     flags: u32 (bit 0: a stream was asked for), now: u64 (ms since 1970), endpoint: str,
 *     model: str, request_id: str
 * An operation that a guest does not have is answered with the error `unsupported`.
 */
enum il_op {
    /* config: bytes                                                   -> nothing */
    IL_CONFIGURE = 0,
    /* body: bytes -> kind: u32 = 0, method: str, path: str, headers, content_type: str,
     *                framing: u32, state: bytes, body: bytes */
    IL_REQUEST = 1,
    /* state: bytes, status: u32, headers, body: bytes
     *             -> failed: u32, body: bytes, and where failed is 1, failure */
    IL_RESPONSE = 2,
    /* state: bytes, flags: u32 (IL_ENDED), frames
     *             -> flags: u32 (IL_WHOLE, IL_FAILED), state: bytes, frames, and with IL_FAILED,
     *                failure */
    IL_EVENTS = 3,
    /* state: bytes, status: u32, headers, body: bytes                 -> failure */
    IL_CLASSIFY = 4,
    /* nothing                                                         -> manifest: bytes */
    IL_DESCRIBE = 5,
    /* subject: bytes, body: bytes                                     -> verdict, body: bytes */
    IL_GUARD_REQUEST = 6,
    /* subject: bytes, body: bytes                                     -> verdict, body: bytes */
    IL_GUARD_RESPONSE = 7,
    /* subject: bytes, state: bytes, flags: u32 (IL_ENDED), frames
     *                                             -> verdict, state: bytes, frames */
    IL_GUARD_EVENTS = 8
};

/*
 * headers = list<(name: str, value: str)>     frames = list<(name: str, data: bytes)>
 * failure = class: str, code: str, type: str, message: str, param: str, status: u32,
 *           flags: u32 (IL_RETRY_AFTER), retry_after: u64 (ms)
 * verdict = action: u32, reason: str, message: str
 * subject = key: str, labels: bytes (a JSON object), alias: str
 * error   = code: str, message: str, param: str, status: u32
 */
enum { IL_STREAM = 1 };                                      /* context.flags */
enum { IL_ENDED = 1 };                                       /* events' flags, in */
enum { IL_WHOLE = 1, IL_FAILED = 2 };                        /* events' flags, out */
enum { IL_RETRY_AFTER = 1 };                                 /* failure.flags */
enum { IL_PASS = 0, IL_USE = 1, IL_REFUSE = 2 };             /* verdict.action */
enum il_framing { IL_BY_CONTENT_TYPE, IL_SSE, IL_LINES, IL_AWS_EVENT_STREAM, IL_JSON_ARRAY };
enum il_level { IL_DEBUG, IL_INFO, IL_WARN, IL_ERROR };

#ifdef INTERLOCK_LOG /* needs the capability "log": a module that imports it without is refused */
__attribute__((import_module("interlock"), import_name("log"))) void interlock_log(
    uint32_t level, const void *line, uint32_t len);
#endif

/* Bytes that belong to somebody else. p is NULL where there is nothing at all. */
typedef struct {
    const uint8_t *p;
    uint32_t n;
} il_bytes;

#define IL_LIT(s) ((il_bytes){(const uint8_t *)(s), sizeof(s) - 1})

static inline int il_equal(il_bytes a, il_bytes b)
{
    if (a.n != b.n)
        return 0;
    for (uint32_t i = 0; i < a.n; i++)
        if (a.p[i] != b.p[i])
            return 0;
    return 1;
}

/* A reader. A read past the end gives zeros, now and from then on, and sets bad. */
typedef struct {
    const uint8_t *p;
    uint32_t n;
    int bad;
} il_reader;

static inline il_reader il_read(il_bytes b) { return (il_reader){b.p, b.n, 0}; }

static inline il_bytes il_take(il_reader *r, uint32_t n)
{
    if (r->bad || n > r->n) {
        r->bad = 1;
        r->n = 0;
        return (il_bytes){0, 0};
    }
    il_bytes b = {r->p, n};
    r->p += n;
    r->n -= n;
    return b;
}

static inline uint32_t il_u32(il_reader *r)
{
    il_bytes b = il_take(r, 4);
    if (r->bad)
        return 0;
    return (uint32_t)b.p[0] | (uint32_t)b.p[1] << 8 | (uint32_t)b.p[2] << 16 | (uint32_t)b.p[3] << 24;
}

static inline uint64_t il_u64(il_reader *r)
{
    uint64_t low = il_u32(r);
    uint64_t high = il_u32(r);
    return r->bad ? 0 : high << 32 | low;
}

static inline il_bytes il_get(il_reader *r) { return il_take(r, il_u32(r)); }

/* The length of a list whose elements take at least size bytes each. */
static inline uint32_t il_count(il_reader *r, uint32_t size)
{
    uint32_t n = il_u32(r);
    if ((uint64_t)n * size > r->n) {
        r->bad = 1;
        r->n = 0;
        return 0;
    }
    return n;
}

typedef struct {
    int stream;
    uint64_t now;
    il_bytes endpoint, model, request_id;
} il_context;

/* Reads the context, the first field of every input; 0 when it is cut short. */
static inline int il_get_context(il_reader *r, il_context *c)
{
    il_reader in = il_read(il_get(r));
    c->stream = (int)(il_u32(&in) & IL_STREAM);
    c->now = il_u64(&in);
    c->endpoint = il_get(&in);
    c->model = il_get(&in);
    c->request_id = il_get(&in);
    return !r->bad && !in.bad;
}

/* A buffer that grows. All zero is empty. Its memory is kept for the next call. */
typedef struct {
    uint8_t *p;
    uint32_t n, cap;
} il_writer;

/* Memory from the end of the module's own; it is never given back. Traps when there is none. */
void *il_memory(uint32_t n);

static inline void il_room(il_writer *w, uint32_t n)
{
    if (n <= w->cap - w->n)
        return;
    if (n > 0x40000000u - w->n)
        __builtin_trap();
    uint32_t cap = (w->n + n) * 2 + 4096;
    uint8_t *p = il_memory(cap);
    if (w->n)
        __builtin_memcpy(p, w->p, w->n);
    w->p = p;
    w->cap = cap;
}

static inline void il_put(il_writer *w, il_bytes b)
{
    il_room(w, b.n);
    if (b.n)
        __builtin_memcpy(w->p + w->n, b.p, b.n);
    w->n += b.n;
}

static inline void il_put_byte(il_writer *w, uint8_t c)
{
    il_room(w, 1);
    w->p[w->n++] = c;
}

#define IL_PUT(w, s) il_put((w), IL_LIT(s))

static inline void il_set_u32(uint8_t *p, uint32_t n)
{
    p[0] = (uint8_t)n;
    p[1] = (uint8_t)(n >> 8);
    p[2] = (uint8_t)(n >> 16);
    p[3] = (uint8_t)(n >> 24);
}

static inline void il_put_u32(il_writer *w, uint32_t n)
{
    il_room(w, 4);
    il_set_u32(w->p + w->n, n);
    w->n += 4;
}

static inline void il_put_u64(il_writer *w, uint64_t n)
{
    il_put_u32(w, (uint32_t)n);
    il_put_u32(w, (uint32_t)(n >> 32));
}

/* A length and the bytes: `bytes` and `str`. */
static inline void il_put_bytes(il_writer *w, il_bytes b)
{
    il_put_u32(w, b.n);
    il_put(w, b);
}

/* `bytes` whose length is not known yet: il_open, then what is in it, then il_close. */
static inline uint32_t il_open(il_writer *w)
{
    il_put_u32(w, 0);
    return w->n;
}

static inline void il_close(il_writer *w, uint32_t at) { il_set_u32(w->p + at - 4, w->n - at); }

static inline il_bytes il_written(const il_writer *w) { return (il_bytes){w->p, w->n}; }

/* Makes an error of out and returns 0. code is one of bad_request, unsupported_parameter,
 * unsupported, upstream_malformed, config, internal. status 0 is the code's own. */
static inline int il_fail(il_writer *out, il_bytes code, il_bytes message, il_bytes param, uint32_t status)
{
    out->n = 0;
    il_put_bytes(out, code);
    il_put_bytes(out, message);
    il_put_bytes(out, param);
    il_put_u32(out, status);
    return 0;
}

#ifdef INTERLOCK_IMPLEMENTATION

static int il_call(uint32_t op, il_reader *in, il_writer *out);

static il_writer il_input, il_output;

__attribute__((export_name("interlock_abi"))) uint32_t interlock_abi(void) { return INTERLOCK_ABI; }

__attribute__((export_name("interlock_alloc"))) uint8_t *interlock_alloc(uint32_t n)
{
    il_input.n = 0;
    il_room(&il_input, n ? n : 1);
    return il_input.p;
}

__attribute__((export_name("interlock_call"))) uint64_t interlock_call(uint32_t op, uint32_t n)
{
    if (n > il_input.cap)
        __builtin_trap();
    il_reader in = {il_input.p, n, 0};
    il_output.n = 0;
    uint64_t failed = il_call(op, &in, &il_output) ? 0 : (uint64_t)1 << 63;
    return failed | (uint64_t)(uint32_t)(uintptr_t)il_output.p << 32 | il_output.n;
}

extern uint8_t __heap_base;

void *il_memory(uint32_t n)
{
    static uint32_t end;
    if (!end)
        end = (uint32_t)(uintptr_t)&__heap_base;
    uint32_t at = (end + 15) & ~15u;
    if (n > 0x7fffffffu - at)
        __builtin_trap();
    uint32_t have = (uint32_t)__builtin_wasm_memory_size(0) << 16;
    if (at + n > have && __builtin_wasm_memory_grow(0, (at + n - have + 65535) >> 16) == (size_t)-1)
        __builtin_trap();
    end = at + n;
    return (void *)(uintptr_t)at;
}

/* The compiler calls these by itself. */
void *memcpy(void *to, const void *from, size_t n)
{
    uint8_t *t = to;
    const uint8_t *f = from;
    while (n--)
        *t++ = *f++;
    return to;
}

void *memset(void *to, int c, size_t n)
{
    uint8_t *t = to;
    while (n--)
        *t++ = (uint8_t)c;
    return to;
}

#endif /* INTERLOCK_IMPLEMENTATION */
#endif /* INTERLOCK_PLUGIN_H */
