package agent

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"

	"github.com/cede-scheduler/cede/core/agent/driver"
	"github.com/cede-scheduler/cede/core/internal/atomicfile"
	"github.com/cede-scheduler/cede/core/internal/checkedfile"
)

// disk is the agent's data directory.
//
//	node.json                the node's id and secret
//	lock                     held while an agent runs
//	allocs/ID/state.json     the record of an allocation
//	allocs/ID/TASK/          the task's folder: its output and its driver's files
type disk struct{ dir string }

func openDisk(dir string) (*disk, error) {
	// Tasks run as other users: they may traverse these folders, but not list them.
	for _, d := range []string{dir, filepath.Join(dir, "allocs")} {
		if err := os.MkdirAll(d, 0o711); err != nil {
			return nil, fmt.Errorf("agent's data directory: %w", err)
		}
	}
	return &disk{dir}, nil
}

// identity identifies the node.
type identity struct{ ID, Secret string }

// identity reads the node's identity, or creates one. Without the file, allocations of the
// earlier node may still run; the servers do not want them on the new one, so that they are
// stopped.
func (d *disk) identity(log *slog.Logger) (identity, error) {
	var id identity
	path := filepath.Join(d.dir, "node.json")
	b, checked, err := checkedfile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		id = identity{ID: newUUID(), Secret: newUUID()}
		if old, err := os.ReadDir(filepath.Join(d.dir, "allocs")); err == nil && len(old) > 0 {
			log.Warn("identity of the node is missing; a new node is registered, and the tasks of the earlier one are stopped",
				"path", path, "node_id", id.ID, "allocations", len(old))
		}
		return id, writeJSON(path, id)
	}
	if err == nil {
		err = json.Unmarshal(b, &id)
	}
	if err == nil && (!uuid.MatchString(id.ID) || !uuid.MatchString(id.Secret)) {
		err = errors.New("ID or secret is missing")
	}
	if err != nil {
		return id, fmt.Errorf("%s: %w; to register as a new node, remove the file", path, err)
	}
	if !checked { // written by an earlier release
		err = writeJSON(path, id)
	}
	return id, err
}

// uuid matches the results of newUUID.
var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// newUUID returns a random UUID (version 4).
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

var safeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// folderName converts any name into a valid name of a folder.
func folderName(name string) string {
	if safeName.MatchString(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "x" + hex.EncodeToString(sum[:16])
}

func (d *disk) alloc(id string) string { return filepath.Join(d.dir, "allocs", folderName(id)) }

func (d *disk) task(allocID, task string) string {
	return filepath.Join(d.alloc(allocID), folderName(task))
}

// record is the part of an allocation that outlives an agent.
type record struct {
	Allocation *Allocation
	Phase      phase
	Status     Status
	Text       string    `json:",omitempty"`
	EvictedBy  string    `json:",omitempty"`
	Started    timestamp `json:",omitzero"`
	Stopping   timestamp `json:",omitzero"` // since when it has been stopping
	Ended      timestamp `json:",omitzero"`
	Tasks      map[string]taskRecord
}

// taskRecord is the part of a task that outlives an agent.
type taskRecord struct {
	State json.RawMessage `json:",omitempty"` // of the driver
	Exit  *driver.Exit    `json:",omitempty"`
}

// save writes a record atomically: after a crash, either the old or the new one exists.
func (d *disk) save(r *record) error {
	dir := d.alloc(r.Allocation.ID)
	err := os.Mkdir(dir, 0o711)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err == nil {
		if err := atomicfile.SyncDir(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	return writeJSON(filepath.Join(dir, "state.json"), r)
}

// records reads every record. It calls bad for a folder without a readable record and
// skips it.
func (d *disk) records(bad func(dir string, err error)) ([]*record, error) {
	entries, err := os.ReadDir(filepath.Join(d.dir, "allocs"))
	if err != nil {
		return nil, err
	}
	var list []*record
	for _, e := range entries {
		dir := filepath.Join(d.dir, "allocs", e.Name())
		r := &record{}
		b, _, err := checkedfile.Read(filepath.Join(dir, "state.json"))
		if err == nil {
			err = json.Unmarshal(b, r)
		}
		if err == nil && (r.Allocation == nil || d.alloc(r.Allocation.ID) != dir) {
			err = errors.New("state.json belongs to another allocation")
		}
		if err != nil {
			bad(dir, err)
			continue
		}
		list = append(list, r)
	}
	return list, nil
}

// drop removes all files of an allocation.
func (d *disk) drop(id string) error { return os.RemoveAll(d.alloc(id)) }

// writeJSON writes a file atomically, with a checksum, and syncs it, because an agent that
// starts after a power failure relies on its content.
func writeJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return checkedfile.Write(path, b, 0o600)
}
