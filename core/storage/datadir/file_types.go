package datadir

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// CheckTypes returns damage for each entry of the directory that has the wrong type, such as
// a directory in the place of a journal. Later checks would skip such an entry, or return an
// error of the system without a remedy. Entries that the server does not create are ignored:
// a file system may keep folders of its own where it is mounted.
func CheckTypes(layout Layout) (damage []*DamageError) {
	const lock = "move it aside and start: the server creates the file again"
	const learned = "move it aside and start: the server learns the ID from its log again"
	guard := strings.Replace(RemedyGuard, "truncate that file to zero bytes", "replace it by an empty file", 1)
	for _, e := range []struct {
		part, path, remedy string
		isDir              bool
	}{
		{"lock", layout.Lock(), lock, false},
		{"server ID", layout.NodeID(), RemedyRejoin, false},
		{"cluster ID", layout.ClusterID(), learned, false},
		{"version", layout.Version(), RemedyVersion, false},
		{keyPart, layout.DecisionKey(), remedyKey, false},
		{"raft log", layout.Raft(), RemedyRejoin, true},
		{"raft log", layout.Log(), RemedyRejoin, true},
		{"rollback guard", layout.RollbackGuard(), guard, false},
		{"snapshots", layout.Snapshots(), RemedyRejoin, true},
		{storePart, layout.Store(), RemedyStore, true},
	} {
		damage = append(damage, checkType(e.part, e.path, e.remedy, e.isDir)...)
	}
	for _, db := range []struct{ part, dir, remedy string }{
		{"raft log", layout.Log(), RemedyRejoin},
		{storePart, layout.Store(), RemedyStore},
	} {
		entries, err := os.ReadDir(db.dir)
		if err != nil {
			continue // missing, or reported above
		}
		for _, e := range entries {
			if isDatabaseFile(e.Name()) {
				damage = append(damage, checkType(db.part, filepath.Join(db.dir, e.Name()), db.remedy, false)...)
			}
		}
	}
	return damage
}

// storePart names the database of modules and history in messages.
const storePart = "policy modules and history"

// isDatabaseFile reports whether Badger or the rollback guard of the store creates a file of
// this name.
func isDatabaseFile(name string) bool {
	return slices.Contains([]string{"DISCARD", "KEYREGISTRY", "MANIFEST", tailName}, name) ||
		slices.Contains([]string{".mem", ".sst", ".vlog"}, filepath.Ext(name))
}

// checkType returns damage if path exists and has another type. Links are followed. An entry
// that cannot be read is left to the check of its content.
func checkType(part, path, remedy string, isDir bool) []*DamageError {
	info, err := os.Stat(path)
	if err != nil || isDir && info.IsDir() || !isDir && info.Mode().IsRegular() {
		return nil
	}
	problem := "not a regular file"
	switch {
	case isDir:
		problem = "not a directory"
	case info.IsDir():
		problem = "a directory, expected a file"
	}
	return []*DamageError{{Part: part, Path: path, Problem: problem, Remedy: remedy}}
}
