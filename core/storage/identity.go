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

// ServerID reads the server's id, or keeps the one that newID makes, for all time,
// where the directory is new. A log whose id is missing is refused by a *DamageError:
// under another id this server would be nobody in its own cluster.
func (s *Store) ServerID(newID func() string) (string, error) {
	path := s.layout.NodeID()
	id, err := datadir.ReadServerID(s.layout)
	if err != nil || id != "" {
		return id, err
	}
	if last, _ := s.log.LastIndex(); last > 0 {
		return "", &datadir.DamageError{Part: "server's id", Path: path, Problem: "it is missing, and its log is there", Remedy: datadir.ServerIDRemedy(s.members())}
	}
	id = newID()
	return id, atomicfile.Write(path, []byte(id+"\n"), 0o600)
}

// ClusterID reads the id of the cluster that the server belongs to; "" where that is not
// known. Bytes that a disk never got, as releases left them that did not sync the file,
// are no id: the server learns it again from its log.
func (s *Store) ClusterID() (string, error) {
	b, err := os.ReadFile(s.layout.ClusterID())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return strings.Trim(string(b), "\x00 \r\n"), nil
}

// StoreClusterID has the disk keep it. Half of an id, or what is left of one whose bytes a
// loss of power took, would be another cluster's, and everybody would be a stranger.
func (s *Store) StoreClusterID(id string) error {
	return atomicfile.Write(s.layout.ClusterID(), []byte(id+"\n"), 0o600)
}

// members are the servers that the log names last, or a snapshot.
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
