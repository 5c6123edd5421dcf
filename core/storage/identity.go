package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/internal/wholefile"
)

// ServerID reads the server's id, or keeps the one that newID makes, for all time,
// where the directory is new. A log whose id is missing is refused by a *DamageError:
// under another id this server would be nobody in its own cluster.
func (s *Store) ServerID(newID func() string) (string, error) {
	path := s.layout.NodeID()
	id, err := readID(s.layout)
	if err != nil || id != "" {
		return id, err
	}
	if last, _ := s.log.LastIndex(); last > 0 {
		return "", &DamageError{Part: "server's id", Path: path, What: "it is missing, and its log is there", Remedy: remedyID(s.members())}
	}
	id = newID()
	return id, writeWhole(path, []byte(id+"\n"))
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

// KeepClusterID has the disk keep it. Half of an id, or what is left of one whose bytes a
// loss of power took, would be another cluster's, and everybody would be a stranger.
func (s *Store) KeepClusterID(id string) error {
	return writeWhole(s.layout.ClusterID(), []byte(id+"\n"))
}

// readID reads the server's id; "" where there is none.
func readID(layout Layout) (string, error) {
	b, err := os.ReadFile(layout.NodeID())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return strings.TrimSpace(string(b)), nil
}

func remedyID(members []raft.Server) string {
	text := "write the id that the cluster knows this server by into that file"
	if len(members) == 0 {
		return text + ": cede server members, on another server, lists ids"
	}
	text += "; the servers that its log names are"
	for i, m := range members {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %s at %s", m.ID, m.Address)
	}
	return text
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

// writeWhole writes a file so that all of it is on the disk, or none.
func writeWhole(path string, b []byte) error { return wholefile.Write(path, b, 0o600) }
