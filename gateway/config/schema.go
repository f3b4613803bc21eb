package config

// Schema returns the JSON Schema (draft 2020-12) of the file, generated from the types.
func Schema() []byte { panic("skeleton") }
