// Package replicationpb owns how log entries and snapshots are written down:
// the messages of replication.proto, generated.
//
// It knows nothing of what they mean. core/replication translates between them
// and the nouns of core/model, and nobody else imports it.
package replicationpb

//go:generate ./generate.sh .
