// Package operator holds the cede operator commands: scheduler settings, the broker,
// Raft and gossip membership, snapshots, and the tools that examine a stopped server.
package operator
