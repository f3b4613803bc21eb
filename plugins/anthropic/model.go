package anthropic

// claude is the version of a Claude model as major*100 + minor: 405 for claude-sonnet-4-5-20250929,
// whatever stands before the name and behind it. ok is false when the model is none. A name
// without a version is one of a line that always means the newest.
func claude(model string) (version int, ok bool) {
	rest, ok := behind(model, "claude-")
	if !ok {
		return 0, false
	}
	major := -1
	for rest != "" {
		n, tail := number(rest)
		switch {
		case n >= 0 && major < 0:
			major = n
		case n >= 0:
			return major*100 + n, true
		case major >= 0:
			return major * 100, true
		}
		rest = tail
	}
	if major >= 0 {
		return major * 100, true
	}
	return 9900, true
}

// behind returns what follows the first occurrence of word.
func behind(s, word string) (rest string, ok bool) {
	for i := 0; i+len(word) <= len(s); i++ {
		if s[i:i+len(word)] == word {
			return s[i+len(word):], true
		}
	}
	return "", false
}

// number reads the word that s begins with: one of two digits at most, or -1. rest is what follows
// the mark that ends it.
func number(s string) (n int, rest string) {
	i := 0
	for ; i < len(s) && isWord(s[i]); i++ {
		if s[i]-'0' > 9 || i > 1 {
			n = -1
		}
		if n >= 0 {
			n = n*10 + int(s[i]-'0')
		}
	}
	if i == 0 {
		n = -1
	}
	return n, s[min(i+1, len(s)):]
}

// defaultTokens is the max_tokens that is sent where neither the caller nor the operator says one:
// the first models with a 3 take no more than 4096.
func defaultTokens(model string) uint64 {
	if version, ok := claude(model); ok && version < 305 {
		return 4096
	}
	return 8192
}
