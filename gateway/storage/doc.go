// Package storage owns the database handle and the small control state kept in it:
// kill switches, caller keys made at run time, isolations, investigations, and the
// record of every operator's change.
//
// It opens the file, sets its pragmas, checks it, migrates it to the format this build
// knows, and hands out one writer and a pool of readers. It knows nothing of requests
// and attempts beyond the tables it creates for them: those belong to package ledger.
// It keeps no credential of any provider and no caller's key, only digests of them.
package storage
