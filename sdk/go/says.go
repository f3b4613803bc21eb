package interlock

// Says looks for one of the phrases, in small letters, whatever the letters of the message. It is
// for ASCII only: more would bring Unicode's tables into a module.
func Says(message string, phrases ...string) bool {
	small := []byte(message)
	for i, c := range small {
		if c-'A' < 26 {
			small[i] = c + 'a' - 'A'
		}
	}
	for _, p := range phrases {
		for i := 0; i+len(p) <= len(small); i++ {
			if string(small[i:i+len(p)]) == p {
				return true
			}
		}
	}
	return false
}
