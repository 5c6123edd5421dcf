package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/cede-scheduler/cede/core/internal/checkedfile"
)

// An ID is the content of an identity file.
type ID struct {
	Value string // "" if the file does not exist or is empty
	// Checked is false if the file has no checksum: an earlier release or an operator
	// wrote it. Other data must confirm the value then.
	Checked bool
}

// ReadID reads an identity file. It returns checkedfile.ErrChecksum if the content was
// altered, and errNotID if it is not one word.
func ReadID(path string) (ID, error) {
	b, checked, err := checkedfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ID{}, nil
	}
	if err != nil {
		return ID{}, err
	}
	id := ID{strings.TrimSpace(string(b)), checked}
	if strings.ContainsFunc(id.Value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ID{}, errNotID
	}
	return id, nil
}

var errNotID = errors.New("not one word of printable characters")

// ReadServerID returns the stored server ID. An ID never changes: Raft identifies a vote
// by it. It returns a *DamageError if the file was altered.
func ReadServerID(layout Layout) (ID, error) {
	id, err := ReadID(layout.NodeID())
	if errors.Is(err, checkedfile.ErrChecksum) || errors.Is(err, errNotID) {
		return id, serverIDDamage(layout, "damaged", nil, err)
	}
	return id, err
}

// CheckServerID returns a *DamageError if id cannot be the ID of this directory: if it is
// missing although there are entries, or if it has no checksum and is not a member of any
// of the given configurations, newest first. Under another ID, the server would not be a
// member of its own cluster, or would vote twice.
func CheckServerID(layout Layout, id ID, hasEntries bool, configurations []raft.Configuration) error {
	var members []raft.Server
	if len(configurations) > 0 {
		members = configurations[0].Servers
	}
	switch {
	case !hasEntries:
		return nil // no other server relies on this one
	case id.Value == "":
		return serverIDDamage(layout, "missing, although its log exists", members, nil)
	case !id.Checked && !isMember(id.Value, configurations):
		return serverIDDamage(layout, fmt.Sprintf("%q has no checksum and is not a member in the log", id.Value), members, nil)
	}
	return nil
}

// CheckOwner returns a *DamageError if the log was written by another server than id: the
// identity file or the log was copied from another directory. With a log of another server,
// this one would vote twice in a term, or lose entries that it has acknowledged. owner is ""
// if an earlier release wrote the log.
func CheckOwner(layout Layout, id, owner string) error {
	if owner == "" || id == "" || owner == id {
		return nil
	}
	return &DamageError{
		Part: "raft log", Path: layout.Raft(), Problem: "written by server " + owner + ", and " + nodeIDName + " holds " + id,
		Remedy: "return " + nodeIDName + " or the log to the directory that it was copied from; otherwise " + RemedyRejoin,
	}
}

// isMember reports whether any configuration contains the server.
func isMember(id string, configurations []raft.Configuration) bool {
	return slices.ContainsFunc(configurations, func(c raft.Configuration) bool {
		return slices.ContainsFunc(c.Servers, func(s raft.Server) bool { return string(s.ID) == id })
	})
}

// NameMembers returns err, a damaged server ID, with a remedy that lists the members of the
// newest of the given configurations.
func NameMembers(err *DamageError, configurations []raft.Configuration) error {
	named := *err
	if len(configurations) > 0 {
		named.Remedy = serverIDRemedy(configurations[0].Servers)
	}
	return &named
}

func serverIDDamage(layout Layout, problem string, members []raft.Server, err error) error {
	return &DamageError{Part: "server ID", Path: layout.NodeID(), Problem: problem, Remedy: serverIDRemedy(members), Err: err}
}

// serverIDRemedy returns the remedy for an unusable server ID. It lists the given members,
// the candidates for the ID, or refers to the command that does.
func serverIDRemedy(members []raft.Server) string {
	text := "write this server's ID in the cluster into that file, and nothing else"
	if len(members) == 0 {
		return text + "; run `cede server members` on another server to list IDs"
	}
	text += "; the last known members are"
	for i, m := range members {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %s at %s", m.ID, m.Address)
	}
	return text
}

// ReadClusterID returns the stored ID of the cluster, or "" if there is none. intact is
// false if the file exists without a valid checksum; the ID is "" then.
func ReadClusterID(layout Layout) (id string, intact bool, err error) {
	stored, err := ReadID(layout.ClusterID())
	switch {
	case errors.Is(err, checkedfile.ErrChecksum), errors.Is(err, errNotID):
		return "", false, nil
	case err != nil:
		return "", false, err
	case stored.Value != "" && !stored.Checked:
		return "", false, nil
	}
	return stored.Value, true, nil
}
