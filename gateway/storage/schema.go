package storage

// Format is the version of the tables that this build reads and writes. It is kept in
// the file's user_version.
const Format = 1

// fileMark is kept in the file's application_id: "ILK1". A database with tables and
// without it belongs to somebody else.
const fileMark = 0x494c4b31

// migrations[n] takes the tables from format n to n+1. An entry that was released is
// never edited.
var migrations = [Format]string{
	// Rows of requests are compact binary (package ledger says how), so that a request
	// costs one cell of one B-tree; what would be an index on every row is a table of
	// its own here, written only for the rows that need it.
	`
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;

CREATE TABLE words (id INTEGER PRIMARY KEY, word TEXT NOT NULL UNIQUE);
CREATE TABLE texts (id INTEGER PRIMARY KEY, sha256 BLOB NOT NULL UNIQUE, used INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE requests (seq INTEGER PRIMARY KEY, state INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE attempts (seq INTEGER NOT NULL, number INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (seq, number)) WITHOUT ROWID;
CREATE TABLE troubled (seq INTEGER PRIMARY KEY);
CREATE TABLE actions (action TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (action, seq)) WITHOUT ROWID;
CREATE TABLE names (id TEXT NOT NULL PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE outcomes (seq INTEGER PRIMARY KEY, task TEXT NOT NULL, score REAL, label TEXT NOT NULL, at INTEGER NOT NULL);

CREATE TABLE switches (kind TEXT NOT NULL, name TEXT NOT NULL, reason TEXT NOT NULL, until INTEGER NOT NULL, who TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (kind, name)) WITHOUT ROWID;
CREATE TABLE caller_keys (id TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL UNIQUE, sha256 BLOB NOT NULL UNIQUE, spec TEXT NOT NULL, who TEXT NOT NULL, created INTEGER NOT NULL);
CREATE TABLE isolations (scope TEXT NOT NULL PRIMARY KEY, reason TEXT NOT NULL, since INTEGER NOT NULL, fingerprint TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE investigations (id TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, scope TEXT NOT NULL, cause TEXT NOT NULL, opened INTEGER NOT NULL, closed INTEGER NOT NULL, closed_by TEXT NOT NULL, note TEXT NOT NULL);
CREATE UNIQUE INDEX investigations_open ON investigations (cause, scope) WHERE closed = 0;
CREATE TABLE changes (id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, who TEXT NOT NULL, what TEXT NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL, reason TEXT NOT NULL);
`,
}
