package exec

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/cede-scheduler/cede/core/internal/checkedfile"
)

// A uidTable assigns a user ID to each namespace and stores it in a file, because tasks
// and their files outlive the agent. IDs are never reused.
type uidTable struct {
	uids UIDRange
	file string

	mu sync.Mutex
	// assigned holds the ID of each namespace. Invariant: IDs differ and are in uids.
	assigned map[string]uint32
}

// openUIDTable reads the table from a file. The file may be missing if no task in allocDir
// has used an ID: otherwise a namespace could get the ID of another one, and its files.
func openUIDTable(uids UIDRange, file, allocDir string) (*uidTable, error) {
	t := &uidTable{uids: uids, file: file, assigned: map[string]uint32{}}
	if !uids.Available() {
		return nil, fmt.Errorf("exec: user IDs %d to %d do not exist in the user namespace of the agent: set client.drivers.exec.uid_first, or client.drivers.exec.user", uids.First, uids.First+uids.Count-1)
	}
	b, _, err := checkedfile.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		dir, used := uids.ownedFolder(allocDir)
		if !used {
			return t, nil
		}
		err = fmt.Errorf("the file is missing, and %s belongs to one of the IDs", dir)
	}
	if err == nil {
		err = json.Unmarshal(b, &t.assigned)
	}
	seen := map[uint32]string{}
	for namespace, uid := range t.assigned {
		if other, ok := seen[uid]; ok {
			err = errors.Join(err, fmt.Errorf("namespaces %q and %q have the ID %d", namespace, other, uid))
		}
		seen[uid] = namespace
	}
	if err != nil {
		return nil, fmt.Errorf("exec: user IDs of namespaces in %s: %w; restore the file, or stop all tasks of this node and remove it and %s", file, err, allocDir)
	}
	return t, nil
}

// ownedFolder returns a working directory of a task that belongs to an ID of the range.
func (r UIDRange) ownedFolder(allocDir string) (dir string, ok bool) {
	if allocDir == "" {
		return "", false
	}
	list, _ := fs.Glob(os.DirFS(allocDir), "*/*/"+dirWork) // the pattern is valid
	for _, name := range list {
		dir := filepath.Join(allocDir, name)
		info, err := os.Lstat(dir)
		if err != nil {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid >= r.First && stat.Uid-r.First < r.Count {
			return dir, true
		}
	}
	return "", false
}

// of returns the ID of a namespace, and assigns one if it has none.
func (t *uidTable) of(namespace string) (uint32, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if uid, ok := t.assigned[namespace]; ok {
		return uid, nil
	}
	used := map[uint32]bool{}
	for _, uid := range t.assigned {
		used[uid] = true
	}
	for uid := t.uids.First; uid-t.uids.First < t.uids.Count; uid++ {
		if used[uid] {
			continue
		}
		t.assigned[namespace] = uid
		if err := storeJSON(t.file, t.assigned); err != nil {
			delete(t.assigned, namespace)
			return 0, fmt.Errorf("exec: user ID of namespace %s: %w", namespace, err)
		}
		return uid, nil
	}
	return 0, fmt.Errorf("exec: no user ID is free for namespace %s: all %d of client.drivers.exec.uid_count are in use", namespace, t.uids.Count)
}

// storeJSON writes a file durably, with a checksum.
func storeJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return checkedfile.Write(path, b, 0o600)
}

// Available reports whether the IDs exist in the user namespace of this process. In a
// container, often only the first 65,536 do.
func (r UIDRange) Available() bool {
	b, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return true // without user namespaces every ID exists
	}
	for text := string(b); text != ""; {
		var inside, outside, count uint64
		var line string
		line, text = cutLine(text)
		if n, _ := fmt.Sscan(line, &inside, &outside, &count); n == 3 && uint64(r.First) >= inside && uint64(r.First)+uint64(r.Count) <= inside+count {
			return true
		}
	}
	return false
}
