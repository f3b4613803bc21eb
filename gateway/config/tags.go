package config

import (
	"fmt"
	"net"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// tags is what a field's tags demand of its value.
type tags struct {
	is, keys string
	enum     []string
	min, max string
	def      string
	soon     string
	required bool
	literal  bool // a secret may be written out
	item     bool // of a list or a mapping: may not be empty where it must be something
}

// keyField is one field of a struct of the configuration.
type keyField struct {
	index int
	name  string
	tags  tags
}

var fieldCache sync.Map // of reflect.Type to []keyField

func fieldsOf(t reflect.Type) []keyField {
	if known, ok := fieldCache.Load(t); ok {
		return known.([]keyField)
	}
	var list []keyField
	for i := range t.NumField() {
		f := t.Field(i)
		name, ok := f.Tag.Lookup("yaml")
		if !ok {
			continue
		}
		tag := f.Tag.Get
		k := keyField{index: i, name: name, tags: tags{
			is: tag("is"), keys: tag("keys"), min: tag("min"), max: tag("max"), def: tag("default"),
			soon: tag("soon"), required: tag("required") == "true", literal: tag("literal") == "ok",
		}}
		if e := tag("enum"); e != "" {
			k.tags.enum = strings.Split(e, "|")
		}
		list = append(list, k)
	}
	fieldCache.Store(t, list)
	return list
}

// fill sets the defaults of what p points to, all the way down.
func fill(p any) {
	v := reflect.ValueOf(p).Elem()
	if v.Kind() != reflect.Struct {
		return
	}
	for _, f := range fieldsOf(v.Type()) {
		target := v.Field(f.index)
		if f.tags.def == "" {
			fill(target.Addr().Interface())
			continue
		}
		if err := setDefault(target, f.tags.def); err != nil {
			panic(fmt.Sprintf("config: default of %s.%s: %v", v.Type(), f.name, err))
		}
	}
}

func setDefault(v reflect.Value, text string) error {
	if s, ok := v.Addr().Interface().(scalar); ok {
		return s.parse(text)
	}
	switch {
	case v.Type() == durationType:
		d, err := parseDuration(text)
		v.SetInt(int64(d))
		return err
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(text)
		v.SetBool(b)
		return err
	case v.Kind() == reflect.Int:
		i, err := strconv.ParseInt(text, 10, 64)
		v.SetInt(i)
		return err
	case v.Kind() == reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		v.SetFloat(f)
		return err
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return setDefault(v.Index(0), text)
	default:
		return fmt.Errorf("no reader for %s", v.Type())
	}
	return nil
}

// refuse says why a text is not allowed, or "".
func (t tags) refuse(value string) string {
	if len(t.enum) > 0 {
		for _, e := range t.enum {
			if e == value {
				return ""
			}
		}
		return "allowed: " + strings.Join(t.enum, ", ")
	}
	if value == "" && !t.item && t.def == "" {
		return "" // as if left out
	}
	if f, ok := formats[t.is]; ok && !f.ok(value) {
		return f.allowed + " is expected"
	}
	return ""
}

func (t tags) outside(f float64) string {
	low, high := parseBound(t.min), parseBound(t.max)
	if low != nil && f < *low || high != nil && f > *high {
		return t.bounds()
	}
	return ""
}

func parseBound(s string) *float64 {
	if s == "" {
		return nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic("config: bound " + s)
	}
	return &f
}

func (t tags) outsideDuration(d time.Duration) string {
	low, _ := parseDuration(t.min)
	high, _ := parseDuration(t.max)
	if d < low || t.max != "" && d > high {
		return t.bounds()
	}
	return ""
}

func (t tags) outsideSize(s Size) string {
	low, _ := parseSize(t.min)
	high, _ := parseSize(t.max)
	if s < low || t.max != "" && s > high {
		return t.bounds()
	}
	return ""
}

func (t tags) bounds() string {
	switch {
	case t.max == "":
		return "at least " + t.min + " is allowed"
	case t.min == t.max:
		return "only " + t.min + " is allowed"
	case t.min == "":
		return "at most " + t.max + " is allowed"
	default:
		return t.min + " to " + t.max + " is allowed"
	}
}

// format is what a text must be. The pattern and the length are for the JSON Schema, and never
// stricter than ok.
type format struct {
	pattern string
	longest int
	allowed string
	ok      func(string) bool
}

var formats = map[string]format{
	"name":         byPattern(`^[A-Za-z0-9][A-Za-z0-9._:@+-]*$`, 128, "a name of 1 to 128 letters, digits and . _ - : @ +, beginning with a letter or digit,"),
	"model":        byPattern(`^[!-)+-~]+$`, 256, "a model's name of 1 to 256 visible ASCII characters without *"),
	"served":       byPattern(`^([!-)+-~]+|\*)$`, 256, `a model's name of 1 to 256 visible ASCII characters without *, or "*"`),
	"header":       byPattern("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", 128, "the name of an HTTP header"),
	"header_value": byPattern(`^[ -~]+$`, 8192, "1 to 8192 printable ASCII characters"),
	"key":          byPattern(`^[!-~]{8,}$`, 1024, "a key of 8 to 1024 printable characters without blanks"),
	"token":        byPattern(`^[!-~]+$`, 1024, "a token of 1 to 1024 printable characters without blanks"),
	"sha256":       byPattern(`^[0-9a-fA-F]{64}$`, 64, "a SHA-256 of 64 hex digits"),
	"path":         {`^[^\x00]+$`, 4096, "a path", func(s string) bool { return s != "" && len(s) <= 4096 && !strings.Contains(s, "\x00") }},
	"address":      {`^.*:[0-9]{1,5}$`, 512, "host:port, such as 127.0.0.1:8080, [::1]:8080 or :8080,", isAddress},
	"http":         {`^https?://.+$`, 4096, "an http or https URL with a host and without user or fragment", isHTTP},
	"proxy":        {`^(http|socks5h?)://.+$`, 4096, "http://[user:password@]host[:port] or socks5://[user:password@]host[:port]", isProxy},
	"redis":        {`^rediss?://.+$`, 4096, "redis://host:port or rediss://host:port", isRedis},
	"storage":      {`^(sqlite:.+|postgres(ql)?://.+)$`, 4096, "sqlite:PATH or postgres://user:password@host/database", isStorage},
	"source":       {`^(builtin:|file:|https://).+$`, 4096, "builtin:NAME, file:PATH or an https URL", isSource},
}

// IsName says whether a text may name a group, a channel, a key, a budget and the like: 1 to
// 128 letters, digits and . _ - : @ +, beginning with a letter or digit.
func IsName(s string) bool { return formats["name"].ok(s) }

func byPattern(pattern string, longest int, allowed string) format {
	re := regexp.MustCompile(pattern)
	return format{pattern, longest, allowed, func(s string) bool { return len(s) <= longest && re.MatchString(s) }}
}

var hostForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,252}[A-Za-z0-9])?$`)

func isAddress(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return false
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 0 || n > 65535 || strings.HasPrefix(port, "+") {
		return false
	}
	ip, _, _ := strings.Cut(host, "%") // a zone
	return host == "" || net.ParseIP(ip) != nil || hostForm.MatchString(host)
}

func parseURL(s string, schemes ...string) (*url.URL, bool) {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || strings.ContainsAny(s, " \t#") {
		return nil, false
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return nil, false
		}
	}
	for _, scheme := range schemes {
		if u.Scheme == scheme {
			return u, true
		}
	}
	return nil, false
}

func isHTTP(s string) bool {
	u, ok := parseURL(s, "http", "https")
	return ok && u.User == nil
}

func isProxy(s string) bool {
	_, ok := parseURL(s, "http", "socks5", "socks5h")
	return ok
}

func isRedis(s string) bool {
	_, ok := parseURL(s, "redis", "rediss")
	return ok
}

func isStorage(s string) bool {
	if path, ok := strings.CutPrefix(s, "sqlite:"); ok {
		return path != "" && !strings.Contains(path, "\x00")
	}
	_, ok := parseURL(s, "postgres", "postgresql")
	return ok
}

var builtinForm = regexp.MustCompile(`^builtin:[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

func isSource(s string) bool {
	if strings.HasPrefix(s, "builtin:") {
		return builtinForm.MatchString(s)
	}
	if path, ok := strings.CutPrefix(s, "file:"); ok {
		return path != ""
	}
	_, ok := parseURL(s, "https")
	return ok
}
