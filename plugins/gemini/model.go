package gemini

// family is the model's name without a collection.
func family(model string) string {
	for i := len(model) - 1; i >= 0; i-- {
		if model[i] == '/' {
			return model[i+1:]
		}
	}
	return model
}

// generation reads the number in a name such as gemini-2.5-flash, 205. A name without one, such
// as gemini-flash-latest, stands for the newest: 9900. ok is false for what is no Gemini model.
func generation(model string) (n int, ok bool) {
	m := family(model)
	const prefix = "gemini-"
	if !hasPrefix(m, prefix) {
		return 0, false
	}
	m = m[len(prefix):]
	i := 0
	for ; i < len(m) && i < 3 && isDigit(m[i]); i++ {
		n = n*10 + int(m[i]-'0')
	}
	if i == 0 {
		return 9900, true
	}
	n *= 100
	if i+1 < len(m) && m[i] == '.' && isDigit(m[i+1]) {
		n += int(m[i+1] - '0')
	}
	return n, true
}

// modern says whether the model is of the third generation or later: it takes media inside the
// results of tools and wants a signature on its first function call of a step.
func modern(model string) bool {
	n, ok := generation(model)
	return ok && n >= 300
}

// systemless says whether the model takes no system instruction.
func systemless(model string) bool {
	m := family(model)
	return hasPrefix(m, "gemma-2") || hasPrefix(m, "gemma-3")
}

// isPro says whether the name says "pro".
func isPro(model string) bool {
	m := family(model)
	for i := 0; i+4 <= len(m); i++ {
		if m[i:i+4] == "-pro" {
			return true
		}
	}
	return false
}
