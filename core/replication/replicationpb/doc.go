// Package replicationpb holds the messages of log entries and snapshots, generated
// from replication.proto.
//
// Only codec and snapshot import it. They convert the messages to and from the
// types of core/model.
package replicationpb

//go:generate ./generate.sh .
