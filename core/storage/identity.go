package storage

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/internal/atomicfile"
	"github.com/cede-scheduler/cede/core/storage/datadir"
)

// ServerID returns the stored server ID. If the directory is new, it stores the result of
// newID, which the server then keeps for the life of the directory. If there is a log but
// no ID, it returns a *DamageError: under another ID, this server would not be a member of
// its own cluster.
func (s *Store) ServerID(newID func() string) (string, error) {
	path := s.layout.NodeID()
	id, err := datadir.ReadServerID(s.layout)
	if err != nil || id != "" {
		return id, err
	}
	if last, _ := s.log.LastIndex(); last > 0 {
		return "", &datadir.DamageError{Part: "server ID", Path: path, Problem: "missing, although its log exists", Remedy: datadir.ServerIDRemedy(s.members())}
	}
	id = newID()
	return id, atomicfile.Write(path, []byte(id+"\n"), 0o600)
}

// ClusterID returns the ID of the server's cluster, or "" if it is not known. Releases that
// did not sync the file could leave NUL bytes after a power failure; they count as unknown,
// and the server learns the ID again from its log.
func (s *Store) ClusterID() (string, error) {
	b, err := os.ReadFile(s.layout.ClusterID())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return strings.Trim(string(b), "\x00 \r\n"), nil
}

// StoreClusterID stores the cluster ID durably. The write is atomic: a partial ID would
// name another cluster, and all members would reject this server.
func (s *Store) StoreClusterID(id string) error {
	return atomicfile.Write(s.layout.ClusterID(), []byte(id+"\n"), 0o600)
}

// members returns the servers of the last configuration in the log, or of the newest
// snapshot if the log holds none.
func (s *Store) members() []raft.Server {
	first, _ := s.log.FirstIndex()
	last, _ := s.log.LastIndex()
	for index := last; index >= first && index > 0; index-- {
		var l raft.Log
		if s.log.GetLog(index, &l) == nil && l.Type == raft.LogConfiguration {
			return raft.DecodeConfiguration(l.Data).Servers
		}
	}
	if metas, err := s.snapshots.List(); err == nil && len(metas) > 0 {
		return metas[0].Configuration.Servers
	}
	return nil
}
