/*
 * As much JSON as the reference guest needs: a validating scanner over the bytes themselves.
 * Values are il_bytes that hold one value each, without blanks around it; p is NULL where a value
 * is absent.
 */
#ifndef ECHO_JSON_H
#define ECHO_JSON_H

#include "../../abi/interlock_plugin.h"

enum { JSON_MAX_DEPTH = 128 };
#define JSON_BAD 0xffffffffu

static uint32_t json_blanks(il_bytes b, uint32_t i)
{
    while (i < b.n && (b.p[i] == ' ' || b.p[i] == '\n' || b.p[i] == '\r' || b.p[i] == '\t'))
        i++;
    return i;
}

static int json_digit(uint8_t c) { return c >= '0' && c <= '9'; }

/* Four hexadecimal digits, JSON_BAD when there are not four. */
static uint32_t json_hex4(il_bytes b, uint32_t i)
{
    uint32_t n = 0;
    if (b.n < 4 || i > b.n - 4)
        return JSON_BAD;
    for (uint32_t k = i; k < i + 4; k++) {
        uint8_t c = b.p[k];
        if (json_digit(c))
            n = n << 4 | (uint32_t)(c - '0');
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            n = n << 4 | (uint32_t)((c | 32) - 'a' + 10);
        else
            return JSON_BAD;
    }
    return n;
}

/* The length of the escape at i, 0 when it is none. */
static uint32_t json_escape(il_bytes b, uint32_t i)
{
    if (i + 1 >= b.n)
        return 0;
    switch (b.p[i + 1]) {
    case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't':
        return 2;
    case 'u':
        return json_hex4(b, i + 2) == JSON_BAD ? 0 : 6;
    }
    return 0;
}

/* The length of the UTF-8 sequence at i, 0 when it is none. */
static uint32_t json_rune(il_bytes b, uint32_t i)
{
    uint8_t c = b.p[i];
    uint8_t low = 0x80, high = 0xbf;
    uint32_t n;
    if (c < 0x80)
        return 1;
    if (c < 0xc2 || c > 0xf4)
        return 0;
    n = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    if (n > b.n - i)
        return 0;
    if (c == 0xe0)
        low = 0xa0;
    if (c == 0xed)
        high = 0x9f;
    if (c == 0xf0)
        low = 0x90;
    if (c == 0xf4)
        high = 0x8f;
    if (b.p[i + 1] < low || b.p[i + 1] > high)
        return 0;
    for (uint32_t k = 2; k < n; k++)
        if ((b.p[i + k] & 0xc0) != 0x80)
            return 0;
    return n;
}

/* The first byte at or after i that is a quote, a backslash, a control character or not ASCII; b.n
 * where there is none. Eight bytes at a time: of those that are found in a word only the first is
 * sure to be one. */
static uint32_t json_special(il_bytes b, uint32_t i)
{
    const uint64_t ones = 0x0101010101010101u;
    for (; b.n - i >= 8; i += 8) {
        uint64_t w, quotes, slashes, found;
        __builtin_memcpy(&w, b.p + i, 8);
        quotes = w ^ ones * '"';
        slashes = w ^ ones * '\\';
        found = ((quotes - ones) & ~quotes) | ((slashes - ones) & ~slashes) | (w - ones * 0x20) | w;
        if (found &= ones << 7)
            return i + (uint32_t)__builtin_ctzll(found) / 8;
    }
    while (i < b.n && b.p[i] != '"' && b.p[i] != '\\' && b.p[i] >= 0x20 && b.p[i] < 0x80)
        i++;
    return i;
}

static uint32_t json_string_end(il_bytes b, uint32_t i)
{
    for (i++; (i = json_special(b, i)) < b.n;) {
        uint32_t n;
        if (b.p[i] == '"')
            return i + 1;
        if (b.p[i] < 0x20)
            return JSON_BAD;
        n = b.p[i] == '\\' ? json_escape(b, i) : json_rune(b, i);
        if (!n)
            return JSON_BAD;
        i += n;
    }
    return JSON_BAD;
}

static uint32_t json_digits(il_bytes b, uint32_t i)
{
    while (i < b.n && json_digit(b.p[i]))
        i++;
    return i;
}

static uint32_t json_number_end(il_bytes b, uint32_t i)
{
    uint32_t end;
    if (b.p[i] == '-')
        i++;
    if (i < b.n && b.p[i] == '0') {
        i++;
    } else {
        if ((end = json_digits(b, i)) == i)
            return JSON_BAD;
        i = end;
    }
    if (i < b.n && b.p[i] == '.') {
        if ((end = json_digits(b, i + 1)) == i + 1)
            return JSON_BAD;
        i = end;
    }
    if (i < b.n && (b.p[i] | 32) == 'e') {
        i++;
        if (i < b.n && (b.p[i] == '+' || b.p[i] == '-'))
            i++;
        if ((end = json_digits(b, i)) == i)
            return JSON_BAD;
        i = end;
    }
    return i;
}

static uint32_t json_word_end(il_bytes b, uint32_t i, il_bytes word)
{
    if (word.n > b.n - i || !il_equal((il_bytes){b.p + i, word.n}, word))
        return JSON_BAD;
    return i + word.n;
}

/* The offset behind the value at i, JSON_BAD when it is not valid. */
static uint32_t json_end(il_bytes b, uint32_t i, int depth)
{
    uint8_t open, close;
    if (i >= b.n)
        return JSON_BAD;
    open = b.p[i];
    switch (open) {
    case '"':
        return json_string_end(b, i);
    case 't':
        return json_word_end(b, i, IL_LIT("true"));
    case 'f':
        return json_word_end(b, i, IL_LIT("false"));
    case 'n':
        return json_word_end(b, i, IL_LIT("null"));
    case '{': case '[':
        break;
    default:
        return open == '-' || json_digit(open) ? json_number_end(b, i) : JSON_BAD;
    }
    if (depth >= JSON_MAX_DEPTH)
        return JSON_BAD;
    close = open == '{' ? '}' : ']';
    i = json_blanks(b, i + 1);
    if (i < b.n && b.p[i] == close)
        return i + 1;
    for (;;) {
        if (open == '{') {
            if (i >= b.n || b.p[i] != '"' || (i = json_string_end(b, i)) == JSON_BAD)
                return JSON_BAD;
            i = json_blanks(b, i);
            if (i >= b.n || b.p[i] != ':')
                return JSON_BAD;
            i = json_blanks(b, i + 1);
        }
        if ((i = json_end(b, i, depth + 1)) == JSON_BAD)
            return JSON_BAD;
        i = json_blanks(b, i);
        if (i >= b.n)
            return JSON_BAD;
        if (b.p[i] == close)
            return i + 1;
        if (b.p[i] != ',')
            return JSON_BAD;
        i = json_blanks(b, i + 1);
    }
}

static int json_is(il_bytes v, uint8_t first) { return v.n && v.p[0] == first; }

static int json_null(il_bytes v) { return !v.n || v.p[0] == 'n'; }

/* Reads a document that has to be an object; 0 when it is none. */
static int json_object(il_bytes b, il_bytes *object)
{
    uint32_t from = json_blanks(b, 0);
    uint32_t to = json_end(b, from, 0);
    if (to == JSON_BAD || json_blanks(b, to) != b.n)
        return 0;
    *object = (il_bytes){b.p + from, to - from};
    return json_is(*object, '{');
}

/* The next member of an object or element of an array that is valid; *at begins as 0. key is the
 * string with its quotes. */
static int json_next(il_bytes v, uint32_t *at, il_bytes *key, il_bytes *value)
{
    uint32_t i, end;
    if (!json_is(v, '{') && !json_is(v, '['))
        return 0;
    i = json_blanks(v, *at ? *at : 1);
    if (*at && i < v.n && v.p[i] == ',')
        i = json_blanks(v, i + 1);
    if (i >= v.n || v.p[i] == '}' || v.p[i] == ']')
        return 0;
    if (v.p[0] == '{') {
        end = json_string_end(v, i);
        *key = (il_bytes){v.p + i, end - i};
        i = json_blanks(v, json_blanks(v, end) + 1);
    }
    end = json_end(v, i, 0);
    *value = (il_bytes){v.p + i, end - i};
    *at = end;
    return 1;
}

static void json_put_rune(il_writer *w, uint32_t r)
{
    if (r < 0x80) {
        il_put_byte(w, (uint8_t)r);
    } else if (r < 0x800) {
        il_put_byte(w, (uint8_t)(0xc0 | r >> 6));
        il_put_byte(w, (uint8_t)(0x80 | (r & 63)));
    } else if (r < 0x10000) {
        il_put_byte(w, (uint8_t)(0xe0 | r >> 12));
        il_put_byte(w, (uint8_t)(0x80 | (r >> 6 & 63)));
        il_put_byte(w, (uint8_t)(0x80 | (r & 63)));
    } else {
        il_put_byte(w, (uint8_t)(0xf0 | r >> 18));
        il_put_byte(w, (uint8_t)(0x80 | (r >> 12 & 63)));
        il_put_byte(w, (uint8_t)(0x80 | (r >> 6 & 63)));
        il_put_byte(w, (uint8_t)(0x80 | (r & 63)));
    }
}

/* What stands between a string's quotes. */
static il_bytes json_contents(il_bytes v)
{
    if (v.n < 2 || v.p[0] != '"')
        return (il_bytes){0, 0};
    return (il_bytes){v.p + 1, v.n - 2};
}

/* The character that the escape at i stands for, and its length; a pair of surrogates as one, half
 * a pair as U+FFFD with *half set. */
static uint32_t json_decode(il_bytes b, uint32_t i, uint32_t *length, int *half)
{
    uint32_t r;
    *half = 0;
    *length = 2;
    switch (b.p[i + 1]) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'u': break;
    default: return b.p[i + 1];
    }
    *length = 6;
    r = json_hex4(b, i + 2);
    if (r < 0xd800 || r > 0xdfff)
        return r;
    if (r < 0xdc00 && b.n - i >= 12 && b.p[i + 6] == '\\' && b.p[i + 7] == 'u') {
        uint32_t low = json_hex4(b, i + 8);
        if (low >= 0xdc00 && low <= 0xdfff) {
            *length = 12;
            return ((r - 0xd800) << 10 | (low - 0xdc00)) + 0x10000;
        }
    }
    *half = 1;
    return 0xfffd;
}

/* The text of a string. */
static void json_put_text(il_writer *w, il_bytes v)
{
    il_bytes s = json_contents(v);
    for (uint32_t i = 0; i < s.n;) {
        uint32_t length;
        int half;
        if (s.p[i] != '\\') {
            il_put_byte(w, s.p[i++]);
            continue;
        }
        json_put_rune(w, json_decode(s, i, &length, &half));
        i += length;
    }
}

/* The contents of a string as they are, but for halves of surrogate pairs. */
static void json_put_contents(il_writer *w, il_bytes v)
{
    il_bytes s = json_contents(v);
    for (uint32_t i = 0; i < s.n;) {
        uint32_t length, end = json_special(s, i);
        int half;
        if (end > i || s.p[i] != '\\') {
            end += end == i;
            il_put(w, (il_bytes){s.p + i, end - i});
            i = end;
            continue;
        }
        json_decode(s, i, &length, &half);
        if (half)
            IL_PUT(w, "\\ufffd");
        else
            il_put(w, (il_bytes){s.p + i, length});
        i += length;
    }
}

/* Text as the contents of a string. */
static void json_put_escaped(il_writer *w, il_bytes text)
{
    static const char digits[] = "0123456789abcdef";
    for (uint32_t i = 0; i < text.n;) {
        uint32_t end = json_special(text, i), n;
        uint8_t c;
        if (end > i) {
            il_put(w, (il_bytes){text.p + i, end - i});
            i = end;
            continue;
        }
        c = text.p[i];
        n = json_rune(text, i);
        if (!n) {
            IL_PUT(w, "\xef\xbf\xbd");
            i++;
            continue;
        }
        if (c == '"' || c == '\\') {
            il_put_byte(w, '\\');
            il_put_byte(w, c);
        } else if (c == '\n') {
            IL_PUT(w, "\\n");
        } else if (c == '\r') {
            IL_PUT(w, "\\r");
        } else if (c == '\t') {
            IL_PUT(w, "\\t");
        } else if (c < 0x20) {
            IL_PUT(w, "\\u00");
            il_put_byte(w, (uint8_t)digits[c >> 4]);
            il_put_byte(w, (uint8_t)digits[c & 15]);
        } else {
            il_put(w, (il_bytes){text.p + i, n});
        }
        i += n;
    }
}

/* A value without blanks between its parts. */
static void json_put_compact(il_writer *w, il_bytes v)
{
    for (uint32_t i = 0; i < v.n;) {
        if (v.p[i] == '"') {
            uint32_t end = json_string_end(v, i);
            il_put(w, (il_bytes){v.p + i, end - i});
            i = end;
        } else {
            if (json_blanks(v, i) == i)
                il_put_byte(w, v.p[i]);
            i++;
        }
    }
}

static void json_put_number(il_writer *w, uint64_t n)
{
    uint8_t digits[20];
    uint32_t i = sizeof digits;
    do
        digits[--i] = (uint8_t)('0' + n % 10);
    while (n /= 10);
    il_put(w, (il_bytes){digits + i, (uint32_t)sizeof digits - i});
}

/* Whether a string says that. */
static int json_says(il_bytes v, il_bytes text)
{
    il_bytes s = json_contents(v);
    uint32_t k = 0;
    if (!json_is(v, '"'))
        return 0;
    for (uint32_t i = 0; i < s.n;) {
        uint32_t length = 1;
        uint32_t r = s.p[i];
        int half;
        if (r == '\\')
            r = json_decode(s, i, &length, &half);
        if (k >= text.n || r != text.p[k]) /* what is asked for is ASCII */
            return 0;
        k++;
        i += length;
    }
    return k == text.n;
}

/* The member with that key, the last one where there are several. */
static il_bytes json_get(il_bytes object, il_bytes name)
{
    il_bytes key, value, found = {0, 0};
    uint32_t at = 0;
    if (!json_is(object, '{'))
        return found;
    while (json_next(object, &at, &key, &value))
        if (json_says(key, name))
            found = value;
    return found;
}

/* A whole number written in digits only, 0 when it is something else. */
static int json_whole(il_bytes v, uint64_t *n)
{
    *n = 0;
    for (uint32_t i = 0; i < v.n; i++) {
        uint64_t d = (uint64_t)(v.p[i] - '0');
        if (!json_digit(v.p[i]) || *n > (UINT64_MAX - d) / 10) {
            *n = 0;
            return 0;
        }
        *n = *n * 10 + d;
    }
    return v.n > 0;
}

#endif
