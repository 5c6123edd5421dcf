package storage

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io/fs"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/internal/checkedfile"
	"github.com/cede-scheduler/cede/core/storage/datadir"
	"github.com/cede-scheduler/cede/core/storage/raftlog"
)

// ServerID returns the stored server ID. If the directory is new, it stores the result of
// newID, which the server then keeps for the life of the directory. It returns a
// *DamageError if the ID is missing, damaged, or not confirmed; see
// datadir.CheckServerID.
func (s *Store) ServerID(newID func() string) (string, error) {
	id, err := datadir.ReadServerID(s.layout)
	if d, ok := errors.AsType[*datadir.DamageError](err); ok {
		return "", datadir.NameMembers(d, s.configurations())
	}
	if err != nil {
		return "", err
	}
	if id.Checked && id.Value != "" {
		return id.Value, s.bindLog(id.Value)
	}
	if err := datadir.CheckServerID(s.layout, id, s.hasEntries(), s.configurations()); err != nil {
		return "", err
	}
	if id.Value == "" {
		id.Value = newID()
	} else {
		// Written by an earlier release, or by an operator as the remedy of damage.
		s.logger.Info("server ID had no checksum and was accepted", "path", s.layout.NodeID(), "id", id.Value)
	}
	owner, err := s.log.Get(raftlog.OwnerKey)
	if err == nil {
		err = datadir.CheckOwner(s.layout, id.Value, string(owner))
	}
	if err != nil {
		return "", err
	}
	if err := checkedfile.Write(s.layout.NodeID(), []byte(id.Value), 0o600); err != nil {
		return "", err
	}
	return id.Value, s.bindLog(id.Value)
}

// bindLog verifies that the log belongs to the server, and records it in a log that has no
// owner yet. The file with the ID is written before: an owner without a file would refuse
// every new ID. A full disk does not prevent the start, so that the owner is recorded later.
func (s *Store) bindLog(id string) error {
	owner, err := s.log.Get(raftlog.OwnerKey)
	if err != nil || id == "" {
		return err
	}
	if len(owner) > 0 {
		return datadir.CheckOwner(s.layout, id, string(owner))
	}
	if err := s.log.Set(raftlog.OwnerKey, []byte(id)); err != nil {
		s.logger.Warn("failed to record the server ID in the raft log", "path", s.layout.Log(), "err", err)
	}
	return nil
}

// ClusterID returns the ID of the server's cluster, or "" if it is not known. A file
// without a valid checksum counts as unknown: the server learns the ID again from its log.
func (s *Store) ClusterID() (string, error) {
	id, intact, err := datadir.ReadClusterID(s.layout)
	if err == nil && !intact {
		s.logger.Warn("cluster ID has no valid checksum; the server learns it again from its log", "path", s.layout.ClusterID())
	}
	return id, err
}

// DecisionKey returns the key that signs certificates of decisions. It is created at the
// first call. Unlike an ID, it may be replaced: delete the file, and certificates that were
// written before are verified with the public key of then.
func (s *Store) DecisionKey() (ed25519.PrivateKey, error) {
	key, err := datadir.ReadDecisionKey(s.layout)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	_, key, err = ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return key, datadir.WriteDecisionKey(s.layout, key)
}

// StoreClusterID stores the cluster ID durably. The write is atomic: a partial ID would
// name another cluster, and all members would reject this server.
func (s *Store) StoreClusterID(id string) error {
	return checkedfile.Write(s.layout.ClusterID(), []byte(id), 0o600)
}

// hasEntries reports whether other servers may rely on entries or on a snapshot of this
// directory.
func (s *Store) hasEntries() bool {
	first, floor := s.log.Bounds()
	snapshots, err := s.snapshots.List()
	return first > 0 || floor > 0 || err != nil || len(snapshots) > 0
}

// configurations returns the configurations of the log and of the snapshots, newest first.
func (s *Store) configurations() []raft.Configuration {
	first, _ := s.log.FirstIndex()
	last, _ := s.log.LastIndex()
	list := raftlog.Configurations(first, last, s.log.GetLog)
	metas, _ := s.snapshots.List() // unreadable snapshots contribute nothing
	for _, m := range metas {
		list = append(list, m.Configuration)
	}
	return list
}
