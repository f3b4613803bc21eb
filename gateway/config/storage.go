package config

import "time"

// Storage is where the ledger and the control state are kept. A change needs a restart.
type Storage struct {
	// sqlite:PATH, or postgres://user:password@host/database (not in force yet: the default
	// holds instead). After loading it is what is in force, its path resolved.
	URL string `yaml:"url" default:"sqlite:interlock.db" is:"storage"`
	// How the ledger is kept.
	Ledger Ledger `yaml:"ledger"`
}

// Ledger says how the ledger is kept.
type Ledger struct {
	// group_commit: a record survives the end of the process, and a power cut within a
	// moment; sync: a power cut at any time.
	Durability Durability `yaml:"durability" default:"group_commit" enum:"group_commit|sync"`
	// How long records are kept.
	Retention time.Duration `yaml:"retention" default:"720h" min:"1m"`
	// The size at which the oldest records go, whatever their age.
	MaxSize Size `yaml:"max_size" default:"20GiB" min:"1MiB"`
}

// Durability is what a record survives.
type Durability string

// The durabilities.
const (
	GroupCommit Durability = "group_commit"
	Sync        Durability = "sync"
)

// SharedState is what several replicas share.
type SharedState struct {
	// redis://host:6379 where several replicas share limits; with PostgreSQL only.
	URL Secret `yaml:"url" is:"redis" soon:"shared state in Redis"`
}
