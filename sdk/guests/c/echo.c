/*
 * The reference guest in C: what ../go/echo does, without a library. It answers the vectors in
 * sdk/abi/vectors byte for byte. See its README.md for what the provider's format is; of OpenAI's
 * it reads what that needs and refuses the rest.
 */
#define INTERLOCK_IMPLEMENTATION
#include "json.h"

static const char manifest[] =
    "{\n"
    "  \"name\": \"echo\",\n"
    "  \"version\": \"1.0.0\",\n"
    "  \"abi\": \"1.0\",\n"
    "  \"kind\": \"adapter\",\n"
    "  \"operations\": [\"request\", \"response\", \"events\", \"classify\"],\n"
    "  \"endpoints\": [\"chat_completions\"],\n"
    "  \"content_types\": {\"events\": [\"text/event-stream\"], \"whole\": [\"application/json\"]},\n"
    "  \"request_headers\": [\"echo-version\"],\n"
    "  \"response_headers\": [],\n"
    "  \"auth\": [\"bearer\"],\n"
    "  \"capabilities\": [],\n"
    "  \"model_capabilities\": [\"streaming\", \"tools\"],\n"
    "  \"limits\": {\"memory\": \"32MiB\", \"call_timeout\": \"100ms\", \"state\": \"4KiB\"},\n"
    "  \"config_schema\": {\n"
    "    \"type\": \"object\",\n"
    "    \"additionalProperties\": false,\n"
    "    \"properties\": {\"version\": {\"type\": \"string\", \"pattern\": \"^[0-9.]+$\"}}\n"
    "  }\n"
    "}";

static const il_bytes none = {0, 0};

/* IL_LIT where only a constant will do. */
#define WORD(s) {(const uint8_t *)(s), sizeof(s) - 1}

/* What configure left. It never changes afterwards. */
static int configured;
static il_writer version;

static int configure(il_reader *in, il_writer *out)
{
    il_bytes config = il_get(in), root, key, value;
    uint32_t at = 0;
    if (in->bad)
        return il_fail(out, IL_LIT("internal"), IL_LIT("the input is cut short"), none, 0);
    configured = 0;
    version.n = 0;
    IL_PUT(&version, "1");
    if (!config.n)
        config = IL_LIT("{}");
    if (!json_object(config, &root))
        return il_fail(out, IL_LIT("config"), IL_LIT("the configuration is not a JSON object"), none, 0);
    while (json_next(root, &at, &key, &value)) {
        if (!json_says(key, IL_LIT("version"))) {
            static il_writer message;
            message.n = 0;
            IL_PUT(&message, "unknown key: ");
            json_put_text(&message, key);
            return il_fail(out, IL_LIT("config"), il_written(&message), none, 0);
        }
        version.n = 0;
        json_put_text(&version, value);
        for (uint32_t i = 0; i < version.n; i++)
            if (version.p[i] != '.' && !json_digit(version.p[i]))
                version.n = 0;
        if (!version.n)
            return il_fail(out, IL_LIT("config"), IL_LIT("version must be digits and points"), none, 0);
    }
    configured = 1;
    return 1;
}

/* --- request ------------------------------------------------------------------------------- */

/* An error about a part of the caller's body: path is written as it goes. */
static il_writer path;

static int bad(il_writer *out, const char *tail, uint32_t n, il_bytes message)
{
    il_put(&path, (il_bytes){(const uint8_t *)tail, n});
    return il_fail(out, IL_LIT("bad_request"), message, il_written(&path), 0);
}
#define BAD(out, tail, message) bad((out), (tail), sizeof(tail) - 1, IL_LIT(message))

static int unsupported(il_writer *out, il_bytes param, il_bytes message)
{
    return il_fail(out, IL_LIT("unsupported_parameter"), message, param, 0);
}

static void path_of(const char *list, uint32_t n, uint32_t index)
{
    path.n = 0;
    il_put(&path, (il_bytes){(const uint8_t *)list, n});
    il_put_byte(&path, '[');
    json_put_number(&path, index);
    il_put_byte(&path, ']');
}
#define PATH_OF(list, index) path_of((list), sizeof(list) - 1, (index))

/* The text of a message as a list of strings. */
static int put_content(il_writer *b, il_writer *out, il_bytes content, int may_lack)
{
    il_bytes key, part;
    uint32_t at = 0;
    int first = 1;
    il_put_byte(b, '[');
    if (json_is(content, '"')) {
        il_put(b, content);
    } else if (json_is(content, '[')) {
        while (json_next(content, &at, &key, &part)) {
            il_bytes kind = json_get(part, IL_LIT("type")), text = json_get(part, IL_LIT("text"));
            if (json_says(kind, IL_LIT("image_url")) || json_says(kind, IL_LIT("file")) ||
                json_says(kind, IL_LIT("input_audio")))
                return unsupported(out, IL_LIT("messages"), IL_LIT("echo hears text only"));
            if (!json_says(kind, IL_LIT("text")) || !json_is(text, '"'))
                return BAD(out, ".content", "must be a list of parts of type text");
            if (!first)
                il_put_byte(b, ',');
            first = 0;
            il_put(b, text);
        }
    } else if (!json_null(content)) {
        return BAD(out, ".content", "must be a string or an array");
    } else if (!may_lack) {
        return BAD(out, ".content", "is missing");
    }
    il_put_byte(b, ']');
    return 1;
}

static int is_name(il_bytes v) { return json_is(v, '"') && v.n > 2; }

static int put_calls(il_writer *b, il_writer *out, il_bytes calls)
{
    il_bytes key, call;
    uint32_t at = 0;
    int first = 1;
    if (json_null(calls))
        return 1;
    if (!json_is(calls, '['))
        return BAD(out, ".tool_calls", "must be an array");
    while (json_next(calls, &at, &key, &call)) {
        il_bytes f = json_get(call, IL_LIT("function"));
        il_bytes id = json_get(call, IL_LIT("id")), name = json_get(f, IL_LIT("name"));
        il_bytes arguments = json_get(f, IL_LIT("arguments"));
        if (!is_name(id) || !is_name(name) || !(json_null(arguments) || json_is(arguments, '"')))
            return BAD(out, ".tool_calls", "must be calls with an id, a name and arguments");
        if (first)
            IL_PUT(b, ",\"calls\":[");
        else
            il_put_byte(b, ',');
        first = 0;
        IL_PUT(b, "{\"id\":");
        il_put(b, id);
        IL_PUT(b, ",\"name\":");
        il_put(b, name);
        IL_PUT(b, ",\"with\":");
        il_put(b, json_null(arguments) ? IL_LIT("\"\"") : arguments);
        il_put_byte(b, '}');
    }
    if (!first)
        il_put_byte(b, ']');
    return 1;
}

static int put_turn(il_writer *b, il_writer *out, il_bytes m)
{
    il_bytes role = none, content = none, id = none, calls = none, by, key, value;
    uint32_t at = 0;
    if (!json_is(m, '{'))
        return BAD(out, "", "must be an object");
    while (json_next(m, &at, &key, &value)) { /* once, and not once for each of them */
        if (json_says(key, IL_LIT("role")))
            role = value;
        else if (json_says(key, IL_LIT("content")))
            content = value;
        else if (json_says(key, IL_LIT("tool_call_id")))
            id = value;
        else if (json_says(key, IL_LIT("tool_calls")))
            calls = value;
    }
    if (json_null(role))
        return BAD(out, ".role", "is missing");
    if (json_says(role, IL_LIT("system")) || json_says(role, IL_LIT("developer")))
        by = IL_LIT("rule");
    else if (json_says(role, IL_LIT("user")))
        by = IL_LIT("user");
    else if (json_says(role, IL_LIT("assistant")))
        by = IL_LIT("echo");
    else if (json_says(role, IL_LIT("tool")))
        by = IL_LIT("tool");
    else
        return BAD(out, ".role", "must be \"system\", \"developer\", \"user\", \"assistant\" or \"tool\"");
    IL_PUT(b, "{\"by\":\"");
    il_put(b, by);
    IL_PUT(b, "\",\"text\":");
    if (!put_content(b, out, content, by.p[0] == 'e'))
        return 0;
    if (by.p[0] == 't') {
        if (!is_name(id))
            return BAD(out, ".tool_call_id", "is missing");
        IL_PUT(b, ",\"call\":");
        il_put(b, id);
    }
    if (by.p[0] == 'e' && !put_calls(b, out, calls))
        return 0;
    il_put_byte(b, '}');
    return 1;
}

static int put_turns(il_writer *b, il_writer *out, il_bytes messages)
{
    il_bytes key, m;
    uint32_t at = 0, n = 0;
    path.n = 0;
    if (json_null(messages))
        return BAD(out, "messages", "is missing");
    if (!json_is(messages, '['))
        return BAD(out, "messages", "must be an array");
    IL_PUT(b, ",\"turns\":[");
    while (json_next(messages, &at, &key, &m)) {
        if (n)
            il_put_byte(b, ',');
        PATH_OF("messages", n);
        if (!put_turn(b, out, m))
            return 0;
        n++;
    }
    if (!n)
        return BAD(out, "messages", "must not be empty");
    il_put_byte(b, ']');
    return 1;
}

static int put_tools(il_writer *b, il_writer *out, il_bytes tools)
{
    il_bytes key, tool;
    uint32_t at = 0, n = 0;
    path.n = 0;
    if (json_null(tools))
        return 1;
    if (!json_is(tools, '['))
        return BAD(out, "tools", "must be an array");
    while (json_next(tools, &at, &key, &tool)) {
        il_bytes name = json_get(json_get(tool, IL_LIT("function")), IL_LIT("name"));
        PATH_OF("tools", n);
        if (!is_name(name))
            return BAD(out, ".function.name", "is missing");
        if (n++)
            il_put_byte(b, ',');
        else
            IL_PUT(b, ",\"tools\":[");
        il_put(b, name);
    }
    if (n)
        il_put_byte(b, ']');
    return 1;
}

/* Whether a parameter is read, or may be left out. */
static int may_drop(il_bytes key, il_bytes value)
{
    static const il_bytes harmless[] = {
        WORD("model"), WORD("messages"), WORD("tools"), WORD("max_tokens"), WORD("max_completion_tokens"), WORD("stream"), WORD("stream_options"),
        WORD("user"), WORD("metadata"), WORD("prompt_cache_key"), WORD("safety_identifier"),
    };
    if (json_null(value))
        return 1;
    for (uint32_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (json_says(key, harmless[i]))
            return 1;
    if (json_says(key, IL_LIT("n")) && value.n == 1 && value.p[0] == '1')
        return 1;
    return json_says(key, IL_LIT("store")) && json_is(value, 'f');
}

/* Refuses a parameter that echo's provider does not have. */
static int refuse(il_writer *out, il_bytes key)
{
    static const il_bytes known[] = {
        WORD("tool_choice"), WORD("parallel_tool_calls"), WORD("response_format"), WORD("n"), WORD("stop"), WORD("temperature"), WORD("top_p"),
        WORD("presence_penalty"), WORD("frequency_penalty"), WORD("seed"), WORD("logprobs"), WORD("top_logprobs"), WORD("logit_bias"),
        WORD("reasoning_effort"), WORD("service_tier"), WORD("verbosity"), WORD("modalities"), WORD("audio"), WORD("prediction"),
        WORD("web_search_options"), WORD("store"),
    };
    static il_writer name, message;
    name.n = message.n = 0;
    json_put_text(&name, key);
    for (uint32_t i = 0; i < sizeof known / sizeof *known; i++)
        if (il_equal(il_written(&name), known[i])) {
            IL_PUT(&message, "this model's provider has no equivalent for ");
            il_put(&message, il_written(&name));
            return unsupported(out, il_written(&name), il_written(&message));
        }
    IL_PUT(&message, "unknown parameter: ");
    il_put(&message, il_written(&name));
    return unsupported(out, il_written(&name), il_written(&message));
}

static int request(il_context *c, il_reader *in, il_writer *out)
{
    static il_writer body;
    il_writer *b = &body;
    il_bytes text = il_get(in), root, key, value, strange = none;
    il_bytes messages = none, tools = none, limit = none, old_limit = none;
    uint32_t at = 0;
    uint64_t n;
    if (in->bad)
        return il_fail(out, IL_LIT("internal"), IL_LIT("the input is cut short"), none, 0);
    if (!json_object(text, &root))
        return il_fail(out, IL_LIT("bad_request"), IL_LIT("the body is not a JSON object"), none, 0);
    b->n = 0;
    path.n = 0;
    IL_PUT(b, "{\"model\":\"");
    json_put_escaped(b, c->model);
    il_put_byte(b, '"');
    while (json_next(root, &at, &key, &value)) {
        if (json_says(key, IL_LIT("messages")))
            messages = value;
        else if (json_says(key, IL_LIT("tools")))
            tools = value;
        else if (json_says(key, IL_LIT("max_completion_tokens")))
            limit = value;
        else if (json_says(key, IL_LIT("max_tokens")))
            old_limit = value;
        else if (!strange.n && !may_drop(key, value))
            strange = key;
    }
    if (json_null(limit))
        limit = old_limit;
    if (!json_null(limit)) {
        if (!json_whole(limit, &n) || !n)
            return BAD(out, "max_tokens", "must be a whole number above 0");
        IL_PUT(b, ",\"limit\":");
        il_put(b, limit);
    }
    if (!put_turns(b, out, messages) || !put_tools(b, out, tools))
        return 0;
    il_put_byte(b, '}');
    if (strange.n)
        return refuse(out, strange);

    il_put_u32(out, 0); /* kind */
    il_put_bytes(out, IL_LIT("POST"));
    il_put_bytes(out, c->stream ? IL_LIT("/v1/echo?stream=1") : IL_LIT("/v1/echo"));
    il_put_u32(out, 1);
    il_put_bytes(out, IL_LIT("echo-version"));
    il_put_bytes(out, il_written(&version));
    il_put_bytes(out, IL_LIT("application/json"));
    il_put_u32(out, c->stream ? IL_SSE : IL_BY_CONTENT_TYPE);
    il_put_bytes(out, none); /* state */
    il_put_bytes(out, il_written(b));
    return 1;
}

/* --- answers ------------------------------------------------------------------------------- */

enum { SEEN = 1, TEXT = 2, SPOKE = 4, OPEN = 8, FILLED = 16 };
enum { STOP = 1, LENGTH, TOOL_CALLS, CONTENT_FILTER };

static const il_bytes reasons[] = {{0, 0}, WORD("stop"), WORD("length"), WORD("tool_calls"), WORD("content_filter")};

/* What has been said so far, and where it goes. */
typedef struct {
    il_context *c;
    il_writer *w;    /* events: a list of frames without its count */
    uint32_t frames; /* and that */
    uint32_t open;   /* where the open frame's data begins */
    int begun, counted;
    il_writer *id; /* contents of a string */
    uint64_t created;
    uint32_t flags, reason, calls;
} answer;

static void begin(answer *a, il_bytes v)
{
    uint64_t at = 0;
    il_bytes id = json_get(v, IL_LIT("id"));
    if (a->begun)
        return;
    a->begun = 1;
    json_whole(json_get(v, IL_LIT("at")), &at);
    a->created = at ? at : a->c->now / 1000;
    a->id->n = 0;
    if (is_name(id)) {
        json_put_contents(a->id, id);
    } else {
        IL_PUT(a->id, "chatcmpl-");
        json_put_escaped(a->id, a->c->request_id);
    }
}

/* An answer's members up to the value of choices. */
static void put_head(answer *a, il_writer *w, il_bytes object)
{
    begin(a, none);
    IL_PUT(w, "{\"id\":\"");
    il_put(w, il_written(a->id));
    IL_PUT(w, "\",\"object\":\"");
    il_put(w, object);
    IL_PUT(w, "\",\"created\":");
    json_put_number(w, a->created);
    IL_PUT(w, ",\"model\":\"");
    json_put_escaped(w, a->c->model);
    IL_PUT(w, "\",\"choices\":[");
}

static void put_call(answer *a, il_writer *w, uint32_t n, il_bytes id, il_bytes name)
{
    IL_PUT(w, "\"id\":\"");
    if (is_name(id)) {
        json_put_contents(w, id);
    } else {
        IL_PUT(w, "call_");
        json_put_escaped(w, a->c->request_id);
        il_put_byte(w, '_');
        json_put_number(w, n);
    }
    IL_PUT(w, "\",\"type\":\"function\",\"function\":{\"name\":\"");
    json_put_contents(w, name);
    IL_PUT(w, "\",\"arguments\":\"");
}

/* Why a choice ended, 0 when that is not known. */
static uint32_t reason_of(il_bytes v, uint32_t calls)
{
    il_bytes why = json_get(v, IL_LIT("end"));
    if (json_says(why, IL_LIT("done")))
        return calls ? TOOL_CALLS : STOP;
    if (json_says(why, IL_LIT("limit")))
        return LENGTH;
    if (json_says(why, IL_LIT("blocked")))
        return CONTENT_FILTER;
    return 0;
}

static void put_usage(il_writer *w, il_bytes v)
{
    uint64_t in, out, known, total;
    json_whole(json_get(v, IL_LIT("in")), &in);
    json_whole(json_get(v, IL_LIT("out")), &out);
    json_whole(json_get(v, IL_LIT("known")), &known);
    total = in + out < in ? UINT64_MAX : in + out;
    IL_PUT(w, "{\"prompt_tokens\":");
    json_put_number(w, in);
    IL_PUT(w, ",\"completion_tokens\":");
    json_put_number(w, out);
    IL_PUT(w, ",\"total_tokens\":");
    json_put_number(w, total);
    IL_PUT(w, ",\"prompt_tokens_details\":{\"cached_tokens\":");
    json_put_number(w, known < in ? known : in);
    IL_PUT(w, "},\"completion_tokens_details\":{\"reasoning_tokens\":0}}");
}

/* Writes the failure that {"kind", "text"} stands for. */
static void put_failure(il_writer *out, il_bytes v, int known_after, uint64_t after)
{
    static il_writer text;
    il_bytes kind = json_get(v, IL_LIT("kind")), class = none;
    if (json_says(kind, IL_LIT("busy")))
        class = IL_LIT("overloaded");
    else if (json_says(kind, IL_LIT("slow")))
        class = IL_LIT("rate_limited");
    else if (json_says(kind, IL_LIT("long")))
        class = IL_LIT("context_overflow");
    else if (json_says(kind, IL_LIT("key")))
        class = IL_LIT("upstream_auth");
    il_put_bytes(out, class);
    il_put_bytes(out, none); /* code */
    text.n = 0;
    json_put_text(&text, kind);
    il_put_bytes(out, il_written(&text));
    text.n = 0;
    json_put_text(&text, json_get(v, IL_LIT("text")));
    il_put_bytes(out, il_written(&text));
    il_put_bytes(out, none); /* param */
    il_put_u32(out, 0);      /* status */
    il_put_u32(out, known_after ? IL_RETRY_AFTER : 0);
    il_put_u64(out, after);
}

/* state, status, headers, body; after is what retry-after says, in milliseconds, where it says
 * something in digits. */
static int get_answer(il_reader *in, il_bytes *body, int *known, uint64_t *after)
{
    int in_ms = 0;
    il_get(in);
    il_u32(in);
    *known = 0;
    *after = 0;
    for (uint32_t n = il_count(in, 8); n; n--) {
        il_bytes name = il_get(in), value = il_get(in);
        uint64_t number;
        if (!json_whole(value, &number) || number > (uint64_t)1 << 40)
            continue;
        if (il_equal(name, IL_LIT("retry-after-ms"))) {
            in_ms = *known = 1;
            *after = number;
        } else if (il_equal(name, IL_LIT("retry-after")) && !in_ms) {
            *known = 1;
            *after = number * 1000;
        }
    }
    *body = il_get(in);
    return !in->bad;
}

static int response(il_context *c, il_reader *in, il_writer *out)
{
    static il_writer id;
    answer a = {.c = c, .id = &id};
    il_bytes body, root, key, call, say, calls, error;
    uint64_t after;
    uint32_t at = 0, n = 0, length, reason;
    int known;
    if (!get_answer(in, &body, &known, &after))
        return il_fail(out, IL_LIT("internal"), IL_LIT("the input is cut short"), none, 0);
    if (!json_object(body, &root))
        return il_fail(out, IL_LIT("upstream_malformed"), IL_LIT("the answer is not a JSON object"), none, 0);
    error = json_get(root, IL_LIT("error"));
    if (json_is(error, '{')) {
        il_put_u32(out, 1);
        il_put_bytes(out, none);
        put_failure(out, error, 0, 0);
        return 1;
    }
    begin(&a, root);
    say = json_get(root, IL_LIT("say"));
    calls = json_get(root, IL_LIT("calls"));
    if (!json_is(calls, '['))
        calls = none;
    il_put_u32(out, 0);
    length = il_open(out);
    put_head(&a, out, IL_LIT("chat.completion"));
    IL_PUT(out, "{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":");
    if (is_name(say) || !json_next(calls, &at, &key, &call)) {
        il_put_byte(out, '"');
        json_put_contents(out, say);
        il_put_byte(out, '"');
    } else {
        IL_PUT(out, "null");
    }
    IL_PUT(out, ",\"refusal\":null");
    for (at = 0; json_next(calls, &at, &key, &call); n++) {
        il_bytes with = json_get(call, IL_LIT("with"));
        if (n)
            IL_PUT(out, ",{");
        else
            IL_PUT(out, ",\"tool_calls\":[{");
        put_call(&a, out, n, json_get(call, IL_LIT("id")), json_get(call, IL_LIT("name")));
        if (json_null(with)) {
            IL_PUT(out, "{}");
        } else {
            static il_writer compact;
            compact.n = 0;
            json_put_compact(&compact, with);
            json_put_escaped(out, il_written(&compact));
        }
        IL_PUT(out, "\"}}");
    }
    if (n)
        il_put_byte(out, ']');
    if (!(reason = reason_of(root, n)))
        return il_fail(out, IL_LIT("upstream_malformed"), IL_LIT("the answer has no known end"), none, 0);
    IL_PUT(out, "},\"logprobs\":null,\"finish_reason\":\"");
    il_put(out, reasons[reason]);
    IL_PUT(out, "\"}],\"usage\":");
    put_usage(out, root);
    il_put_byte(out, '}');
    il_close(out, length);
    return 1;
}

/* --- events -------------------------------------------------------------------------------- */

static void open_frame(answer *a)
{
    a->frames++;
    il_put_bytes(a->w, none); /* name */
    a->open = il_open(a->w);
    put_head(a, a->w, IL_LIT("chat.completion.chunk"));
}

static void close_frame(answer *a)
{
    il_put_byte(a->w, '}');
    il_close(a->w, a->open);
}

static void open_delta(answer *a)
{
    open_frame(a);
    IL_PUT(a->w, "{\"index\":0,\"delta\":{");
    if (!(a->flags & SEEN))
        IL_PUT(a->w, "\"role\":\"assistant\",");
    a->flags |= SEEN;
}

static void close_delta(answer *a)
{
    IL_PUT(a->w, "},\"finish_reason\":null}]");
    close_frame(a);
}

static void open_arguments(answer *a)
{
    a->flags |= FILLED;
    open_delta(a);
    IL_PUT(a->w, "\"tool_calls\":[{\"index\":");
    json_put_number(a->w, a->calls - 1);
    IL_PUT(a->w, ",\"function\":{\"arguments\":\"");
}

static void close_arguments(answer *a)
{
    IL_PUT(a->w, "\"}}]");
    close_delta(a);
}

static void end_call(answer *a)
{
    if ((a->flags & (OPEN | FILLED)) == OPEN) {
        open_arguments(a);
        IL_PUT(a->w, "{}");
        close_arguments(a);
    }
    a->flags &= ~(uint32_t)OPEN;
}

static void say(answer *a, il_bytes text)
{
    if (!is_name(text) || a->reason)
        return;
    a->flags |= TEXT;
    open_delta(a);
    IL_PUT(a->w, "\"content\":\"");
    json_put_contents(a->w, text);
    il_put_byte(a->w, '"');
    close_delta(a);
}

static void call_tool(answer *a, il_bytes id, il_bytes name)
{
    if (a->reason)
        return;
    end_call(a);
    open_delta(a);
    IL_PUT(a->w, "\"tool_calls\":[{\"index\":");
    json_put_number(a->w, a->calls);
    il_put_byte(a->w, ',');
    put_call(a, a->w, a->calls, id, name);
    IL_PUT(a->w, "\"}}]");
    close_delta(a);
    a->calls++;
    a->flags = (a->flags | OPEN | SPOKE) & ~(uint32_t)FILLED;
}

static void finish(answer *a, uint32_t reason)
{
    if (a->reason)
        return;
    end_call(a);
    if (!(a->flags & (TEXT | SPOKE))) {
        open_delta(a);
        IL_PUT(a->w, "\"content\":\"\"");
        close_delta(a);
    }
    a->reason = reason;
    open_frame(a);
    IL_PUT(a->w, "{\"index\":0,\"delta\":{},\"finish_reason\":\"");
    il_put(a->w, reasons[reason]);
    IL_PUT(a->w, "\"}]");
    close_frame(a);
}

static void count(answer *a, il_bytes v)
{
    if (a->counted)
        return;
    a->counted = 1;
    open_frame(a);
    IL_PUT(a->w, "],\"usage\":");
    put_usage(a->w, v);
    close_frame(a);
}

/* The state is that of the Go SDK's chat.Out: bytes that hold
 *     counted: u32, created: u64, id: bytes, list<(flags: u32, calls: u32, opaque: bytes)>
 * or nothing. */
static void load(answer *a, il_bytes state)
{
    il_reader r = il_read(state);
    il_reader s = il_read(il_get(&r));
    if (!s.n)
        return;
    a->begun = 1;
    a->counted = il_u32(&s) != 0;
    a->created = il_u64(&s);
    a->id->n = 0;
    il_put(a->id, il_get(&s));
    if (!il_count(&s, 12))
        return;
    a->flags = il_u32(&s);
    a->reason = a->flags >> 8;
    a->flags &= 31;
    a->calls = il_u32(&s);
    if (a->reason > CONTENT_FILTER)
        a->reason = 0;
    if (!a->calls)
        a->flags &= ~(uint32_t)OPEN;
}

static void save(answer *a, il_writer *out)
{
    uint32_t whole = il_open(out), part = il_open(out);
    if (a->begun) {
        int used = (a->flags & SEEN) || a->reason || a->calls;
        il_put_u32(out, a->counted ? 1 : 0);
        il_put_u64(out, a->created);
        il_put_bytes(out, il_written(a->id));
        il_put_u32(out, used ? 1 : 0);
        if (used) {
            il_put_u32(out, a->flags | a->reason << 8);
            il_put_u32(out, a->calls);
            il_put_bytes(out, none);
        }
    }
    il_close(out, part);
    il_close(out, whole);
}

static int events(il_context *c, il_reader *in, il_writer *out)
{
    static il_writer id, list, failure;
    answer a = {.c = c, .w = &list, .id = &id};
    il_bytes state = il_get(in);
    il_reader check = il_read(state), frames;
    uint32_t done = 0;
    il_u32(in); /* whether the body has ended */
    frames = *in;
    for (uint32_t n = il_count(in, 8); n; n--) {
        il_get(in);
        il_get(in);
    }
    if (in->bad)
        return il_fail(out, IL_LIT("internal"), IL_LIT("the input is cut short"), none, 0);
    il_get(&check);
    if (state.n && check.bad)
        return il_fail(out, IL_LIT("internal"), IL_LIT("the state is not one of echo's"), none, 0);
    list.n = failure.n = 0;
    load(&a, state);
    for (uint32_t n = il_count(&frames, 8); n && !done && !failure.n; n--) {
        il_bytes v, kind, reason = none;
        il_get(&frames);
        if (!json_object(il_get(&frames), &v)) {
            reason = IL_LIT("an event is not a JSON object");
        } else {
            kind = json_get(v, IL_LIT("t"));
            if (json_says(kind, IL_LIT("start"))) {
                begin(&a, v);
            } else if (json_says(kind, IL_LIT("say"))) {
                say(&a, json_get(v, IL_LIT("text")));
            } else if (json_says(kind, IL_LIT("call"))) {
                call_tool(&a, json_get(v, IL_LIT("id")), json_get(v, IL_LIT("name")));
            } else if (json_says(kind, IL_LIT("with"))) {
                il_bytes part = json_get(v, IL_LIT("part"));
                if (is_name(part) && (a.flags & OPEN) && !a.reason) {
                    open_arguments(&a);
                    json_put_contents(&list, part);
                    close_arguments(&a);
                }
            } else if (json_says(kind, IL_LIT("end"))) {
                uint32_t why = reason_of(v, a.calls);
                if (why) {
                    finish(&a, why);
                    count(&a, v);
                    done = 1;
                } else {
                    reason = IL_LIT("the answer has no known end");
                }
            } else if (json_says(kind, IL_LIT("error"))) {
                put_failure(&failure, v, 0, 0);
            }
        }
        if (reason.n) {
            il_put_bytes(&failure, IL_LIT("malformed_answer"));
            il_put_bytes(&failure, none);
            il_put_bytes(&failure, none);
            il_put_bytes(&failure, reason);
            il_put_bytes(&failure, none);
            il_put_u32(&failure, 0);
            il_put_u32(&failure, 0);
            il_put_u64(&failure, 0);
        }
    }
    il_put_u32(out, failure.n ? IL_FAILED : done ? IL_WHOLE : 0);
    save(&a, out);
    il_put_u32(out, a.frames);
    il_put(out, il_written(&list));
    il_put(out, il_written(&failure));
    return 1;
}

static int classify(il_reader *in, il_writer *out)
{
    il_bytes body, root, error = none;
    uint64_t after;
    int known;
    if (!get_answer(in, &body, &known, &after))
        return il_fail(out, IL_LIT("internal"), IL_LIT("the input is cut short"), none, 0);
    if (json_object(body, &root))
        error = json_get(root, IL_LIT("error"));
    put_failure(out, error, known, after);
    return 1;
}

/* --- guards -------------------------------------------------------------------------------- */

static int holds(il_bytes text, il_bytes word, uint32_t from, uint32_t *at)
{
    for (uint32_t i = from; word.n <= text.n && i <= text.n - word.n; i++)
        if (il_equal((il_bytes){text.p + i, word.n}, word)) {
            *at = i;
            return 1;
        }
    return 0;
}

static void put_respelt(il_writer *w, il_bytes text)
{
    uint32_t from = 0, at;
    while (holds(text, IL_LIT("colour"), from, &at)) {
        il_put(w, (il_bytes){text.p + from, at - from});
        IL_PUT(w, "color");
        from = at + 6;
    }
    il_put(w, (il_bytes){text.p + from, text.n - from});
}

static int judge(int root, il_bytes text)
{
    uint32_t at;
    if (!root && holds(text, IL_LIT("forbidden"), 0, &at))
        return IL_REFUSE;
    return holds(text, IL_LIT("colour"), 0, &at) ? IL_USE : IL_PASS;
}

static void put_verdict(il_writer *out, int action)
{
    il_put_u32(out, (uint32_t)action);
    il_put_bytes(out, action == IL_REFUSE ? IL_LIT("forbidden_word") : none);
    il_put_bytes(out, action == IL_REFUSE ? IL_LIT("that word is not said here") : none);
}

static int get_subject(il_reader *in, int *root)
{
    il_reader s = il_read(il_get(in));
    *root = il_equal(il_get(&s), IL_LIT("root"));
    il_get(&s);
    il_get(&s);
    return !s.bad;
}

static int guard(il_reader *in, il_writer *out)
{
    int root, ok = get_subject(in, &root), action;
    il_bytes body = il_get(in);
    uint32_t at;
    if (!ok || in->bad)
        return il_fail(out, IL_LIT("internal"), IL_LIT("the input is cut short"), none, 0);
    action = judge(root, body);
    put_verdict(out, action);
    at = il_open(out);
    if (action == IL_USE)
        put_respelt(out, body);
    il_close(out, at);
    return 1;
}

static int guard_events(il_reader *in, il_writer *out)
{
    int root, ok = get_subject(in, &root), action = IL_PASS;
    il_reader state = il_read(il_get(in)), frames;
    uint32_t n, total;
    il_u32(in); /* whether the answer has ended */
    frames = *in;
    total = n = il_count(in, 8);
    for (uint32_t i = 0; i < n; i++) {
        il_bytes data;
        int now;
        il_get(in);
        data = il_get(in);
        if (action != IL_REFUSE && (now = judge(root, data)) > action)
            action = now;
    }
    if (!ok || in->bad)
        return il_fail(out, IL_LIT("internal"), IL_LIT("the input is cut short"), none, 0);
    put_verdict(out, action);
    il_put_u32(out, 4);
    il_put_u32(out, il_u32(&state) + total);
    if (action != IL_USE) {
        il_put_u32(out, 0);
        return 1;
    }
    il_put_u32(out, n);
    for (il_u32(&frames); n; n--) {
        uint32_t at;
        il_put_bytes(out, il_get(&frames));
        at = il_open(out);
        put_respelt(out, il_get(&frames));
        il_close(out, at);
    }
    return 1;
}

static int il_call(uint32_t op, il_reader *in, il_writer *out)
{
    il_context c;
    if (!il_get_context(in, &c))
        return il_fail(out, IL_LIT("internal"), IL_LIT("the input is cut short"), none, 0);
    switch (op) {
    case IL_CONFIGURE:
        return configure(in, out);
    case IL_DESCRIBE:
        il_put_bytes(out, IL_LIT(manifest));
        return 1;
    }
    if (op > IL_GUARD_EVENTS)
        return il_fail(out, IL_LIT("unsupported"), IL_LIT("no such operation"), none, 0);
    if (!configured)
        return il_fail(out, IL_LIT("internal"), IL_LIT("not configured"), none, 0);
    switch (op) {
    case IL_REQUEST:
        return request(&c, in, out);
    case IL_RESPONSE:
        return response(&c, in, out);
    case IL_EVENTS:
        return events(&c, in, out);
    case IL_CLASSIFY:
        return classify(in, out);
    case IL_GUARD_EVENTS:
        return guard_events(in, out);
    default:
        return guard(in, out);
    }
}
