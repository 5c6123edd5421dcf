package storage

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"strings"

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
	if err != nil || id.Checked && id.Value != "" {
		return id.Value, err
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
	return id.Value, checkedfile.Write(s.layout.NodeID(), []byte(id.Value), 0o600)
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
	path := s.layout.DecisionKey()
	content, _, err := checkedfile.Read(path)
	if err == nil {
		seed, decodeErr := hex.DecodeString(strings.TrimSpace(string(content)))
		if decodeErr != nil || len(seed) != ed25519.SeedSize {
			return nil, decisionKeyDamage(path, "not a key")
		}
		return ed25519.NewKeyFromSeed(seed), nil
	}
	switch {
	case errors.Is(err, checkedfile.ErrChecksum):
		return nil, decisionKeyDamage(path, err.Error())
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return key, checkedfile.Write(path, []byte(hex.EncodeToString(key.Seed())), 0o600)
}

func decisionKeyDamage(path, problem string) error {
	return &datadir.DamageError{
		Part: "key of decision certificates", Path: path, Problem: problem,
		Remedy: "restore it from a backup, or delete it: the server then creates another one",
	}
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
