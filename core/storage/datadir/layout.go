package datadir

import "path/filepath"

// What lies where in a data directory.
const (
	lockName      = "LOCK"
	nodeIDName    = "node-id"
	clusterIDName = "cluster-id"
	raftName      = "raft"
	logName       = "log"
	tailName      = "tail"
	snapshotsName = "snapshots"
	storeName     = "store"
	compiledName  = "compiled" // of plugins/wasm, for compiled modules
)

// Layout gives the places in one data directory.
type Layout struct{ Dir string }

// Lock is the file that the server locks.
func (l Layout) Lock() string { return filepath.Join(l.Dir, lockName) }

// NodeID is the file with the server's id. Others write it.
func (l Layout) NodeID() string { return filepath.Join(l.Dir, nodeIDName) }

// ClusterID is the file with the id of the cluster that the server belongs to.
func (l Layout) ClusterID() string { return filepath.Join(l.Dir, clusterIDName) }

// Raft is the folder of all that Raft needs.
func (l Layout) Raft() string { return filepath.Join(l.Dir, raftName) }

// Log is the Badger directory of the Raft log and the votes.
func (l Layout) Log() string { return filepath.Join(l.Raft(), logName) }

// RollbackGuard is the side file that remembers how far the log was.
func (l Layout) RollbackGuard() string { return filepath.Join(l.Raft(), tailName) }

// Snapshots is the folder of snapshots.
func (l Layout) Snapshots() string { return filepath.Join(l.Raft(), snapshotsName) }

// Store is the Badger directory of policy modules and history.
func (l Layout) Store() string { return filepath.Join(l.Dir, storeName) }

// Owns reports whether the server itself creates name in the top folder of a data directory.
func (l Layout) Owns(name string) bool {
	switch name {
	case lockName, nodeIDName, clusterIDName, raftName, storeName, compiledName:
		return true
	}
	return false
}
