package datadir

import (
	"os"
	"path/filepath"
)

// Names of the files and directories in a data directory. They are part of the on-disk
// format.
const (
	lockName      = "LOCK"
	nodeIDName    = "node-id"
	clusterIDName = "cluster-id"
	versionName   = "version"
	decisionName  = "decision-key"
	raftName      = "raft"
	logName       = "log"
	tailName      = "tail"
	snapshotsName = "snapshots"
	damagedName   = "damaged"
	storeName     = "store"
	compiledName  = "compiled" // owned by plugins/wasm: compiled modules
)

// A Layout returns the paths inside one data directory.
type Layout struct{ Dir string }

// Lock returns the path of the lock file.
func (l Layout) Lock() string { return filepath.Join(l.Dir, lockName) }

// NodeID returns the path of the file that holds the server ID.
func (l Layout) NodeID() string { return filepath.Join(l.Dir, nodeIDName) }

// ClusterID returns the path of the file that holds the ID of the server's cluster.
func (l Layout) ClusterID() string { return filepath.Join(l.Dir, clusterIDName) }

// Version returns the path of the file that holds the formats of the directory.
func (l Layout) Version() string { return filepath.Join(l.Dir, versionName) }

// DecisionKey returns the path of the file that holds the key that signs certificates of
// decisions.
func (l Layout) DecisionKey() string { return filepath.Join(l.Dir, decisionName) }

// Raft returns the directory of everything that Raft needs.
func (l Layout) Raft() string { return filepath.Join(l.Dir, raftName) }

// Log returns the Badger directory of the Raft log and the stable store.
func (l Layout) Log() string { return filepath.Join(l.Raft(), logName) }

// RollbackGuard returns the path of the file that records the progress of the log outside
// Badger.
func (l Layout) RollbackGuard() string { return filepath.Join(l.Raft(), tailName) }

// Snapshots returns the directory of Raft snapshots.
func (l Layout) Snapshots() string { return filepath.Join(l.Raft(), snapshotsName) }

// DamagedSnapshots returns the directory of snapshots that a start has moved aside
// because they are damaged.
func (l Layout) DamagedSnapshots() string { return filepath.Join(l.Raft(), damagedName) }

// Store returns the Badger directory of policy modules and history.
func (l Layout) Store() string { return filepath.Join(l.Dir, storeName) }

// StoreGuard returns the path of the file that records the progress of the store outside
// Badger. It is in the directory of the store, so that both are moved aside together.
func (l Layout) StoreGuard() string { return filepath.Join(l.Store(), tailName) }

// Exists reports whether the directory holds data of a server. A lock and compiled policies
// alone are not data.
func (l Layout) Exists() bool {
	for _, name := range []string{nodeIDName, clusterIDName, versionName, decisionName, raftName, storeName} {
		if _, err := os.Lstat(filepath.Join(l.Dir, name)); err == nil {
			return true
		}
	}
	return false
}

// Owns reports whether the server itself creates an entry called name at the top of a data
// directory.
func (l Layout) Owns(name string) bool {
	switch name {
	case lockName, nodeIDName, clusterIDName, versionName, decisionName, raftName, storeName, compiledName:
		return true
	}
	return false
}
