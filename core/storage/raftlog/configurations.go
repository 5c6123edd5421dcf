package raftlog

import "github.com/hashicorp/raft"

// Configurations returns the configurations in the entries from first to last, newest
// first. get reads an entry; entries that it cannot read are skipped. It reads every
// entry, so callers use it only if the server ID is in doubt.
func Configurations(first, last uint64, get func(index uint64, into *raft.Log) error) []raft.Configuration {
	var list []raft.Configuration
	for index := last; index >= first && index > 0; index-- {
		var l raft.Log
		if get(index, &l) == nil && l.Type == raft.LogConfiguration {
			list = append(list, raft.DecodeConfiguration(l.Data))
		}
	}
	return list
}
