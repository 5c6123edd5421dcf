// Package blob owns the policy modules of a server, stored in chunks under the
// SHA-256 digest of their bytes.
//
// It never interprets a module. Replication stores chunks as it applies log entries,
// and policy hosts read finished modules. A Store is safe for concurrent use.
package blob
