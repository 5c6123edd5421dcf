package exec

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxProcesses is the maximum number of processes and threads of a task.
const maxProcesses = 4096

// errNoCgroups means that the kernel or the host does not let this process limit tasks.
var errNoCgroups = errors.New("no cgroup with the controllers memory and pids is writable")

// A hierarchy is the part of the cgroup tree in which this process may create groups of
// tasks.
type hierarchy struct {
	unified bool     // cgroup version 2
	dirs    []string // parents of the groups: one, or with version 1 one per controller
}

// findHierarchy returns the hierarchy of this process. It returns errNoCgroups if there is
// none.
func findHierarchy() (*hierarchy, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	unified, legacy := cgroupDirs(string(mounts), string(own))
	if h := unifiedHierarchy(unified); h != nil {
		return h, nil
	}
	h := &hierarchy{dirs: []string{legacy["memory"], legacy["pids"]}}
	for _, dir := range h.dirs {
		if dir == "" || unix.Access(dir, unix.W_OK) != nil {
			return nil, errNoCgroups
		}
	}
	return h, nil
}

// Limits returns an error with the reason if memory and processes of tasks cannot be
// limited.
func Limits() error {
	_, err := findHierarchy()
	return err
}

// unifiedHierarchy returns the hierarchy of version 2 for a process in the group dir, or
// nil if its controllers cannot be used. A group with processes cannot limit its
// children, except the root; so the agent must run in a group of its own, called agent,
// below one that is delegated to it.
func unifiedHierarchy(dir string) *hierarchy {
	if dir == "" {
		return nil
	}
	if filepath.Base(dir) == "agent" {
		dir = filepath.Dir(dir)
	}
	available, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return nil
	}
	names := strings.Fields(string(available))
	if !slices.Contains(names, "memory") || !slices.Contains(names, "pids") {
		return nil
	}
	if os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+memory +pids"), 0) != nil {
		return nil
	}
	return &hierarchy{unified: true, dirs: []string{dir}}
}

// cgroupDirs returns the directories of the groups of this process, from the content of
// /proc/self/mountinfo and /proc/self/cgroup: that of version 2, and those of version 1
// by controller.
func cgroupDirs(mounts, own string) (unified string, legacy map[string]string) {
	groups := map[string]string{} // by controller; "" is version 2
	for own != "" {
		var line string
		line, own = cutLine(own)
		if parts := strings.SplitN(line, ":", 3); len(parts) == 3 {
			for controller := range strings.SplitSeq(parts[1], ",") {
				groups[controller] = parts[2]
			}
		}
	}
	legacy = map[string]string{}
	for mounts != "" {
		var line string
		line, mounts = cutLine(mounts)
		head, tail, _ := strings.Cut(line, " - ")
		fields, kind := strings.Fields(head), strings.Fields(tail)
		if len(fields) < 5 || len(kind) < 3 {
			continue
		}
		dir := func(controller string) string {
			group, ok := groups[controller]
			below, err := filepath.Rel(fields[3], group)
			if !ok || err != nil || strings.HasPrefix(below, "..") {
				return ""
			}
			return filepath.Join(fields[4], below)
		}
		switch kind[0] {
		case "cgroup2":
			unified = dir("")
		case "cgroup":
			for controller := range strings.SplitSeq(kind[2], ",") {
				if controller == "memory" || controller == "pids" {
					legacy[controller] = dir(controller)
				}
			}
		}
	}
	return unified, legacy
}

func cutLine(text string) (line, rest string) {
	line, rest, _ = strings.Cut(text, "\n")
	return line, rest
}

// groupDirs returns the directories of the group of a task.
func (h *hierarchy) groupDirs(taskDir string) []string {
	sum := sha256.Sum256([]byte(filepath.Clean(taskDir)))
	name := "cede-" + hex.EncodeToString(sum[:8])
	var dirs []string
	for _, d := range h.dirs {
		dirs = append(dirs, filepath.Join(d, name))
	}
	return dirs
}

// create creates the group of a task with its limits. memory is in bytes; 0: no limit.
func (h *hierarchy) create(taskDir string, memory int64) ([]string, error) {
	dirs := h.groupDirs(taskDir)
	limits := map[string]string{"pids.max": strconv.Itoa(maxProcesses)}
	file := "memory.limit_in_bytes"
	if h.unified {
		file = "memory.max"
	}
	if memory > 0 {
		limits[file] = strconv.FormatInt(memory, 10)
	}
	for _, dir := range dirs {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		for name, value := range limits {
			path := filepath.Join(dir, name)
			if _, err := os.Stat(path); err != nil {
				continue // with version 1, the file of another controller
			}
			if err := os.WriteFile(path, []byte(value), 0); err != nil {
				return nil, err
			}
		}
	}
	return dirs, nil
}

// start runs start so that the process that it starts with attr belongs to the group. It
// must be called on a locked thread. With version 1, the thread itself joins the group
// meanwhile, because a new process belongs to the group of the thread that created it.
func (h *hierarchy) start(dirs []string, attr *syscall.SysProcAttr, start func() error) error {
	if h.unified {
		group, err := os.Open(dirs[0])
		if err != nil {
			return err
		}
		defer func() { _ = group.Close() }()
		attr.UseCgroupFD, attr.CgroupFD = true, int(group.Fd())
		return start()
	}
	thread := []byte(strconv.Itoa(unix.Gettid()))
	defer func() {
		for _, parent := range h.dirs {
			_ = os.WriteFile(filepath.Join(parent, "tasks"), thread, 0) // otherwise the group stays until this process ends
		}
	}()
	for _, dir := range dirs {
		if err := os.WriteFile(filepath.Join(dir, "tasks"), thread, 0); err != nil {
			return fmt.Errorf("join cgroup: %w", err)
		}
	}
	return start()
}

// remove removes the group of a task, which must have no processes.
func (h *hierarchy) remove(taskDir string) {
	for _, dir := range h.groupDirs(taskDir) {
		_ = unix.Rmdir(dir) // it does not exist if the task has no group
	}
}

// removeGroup removes the group of a task whose supervisor was killed.
func removeGroup(taskDir string) {
	if h, err := findHierarchy(); err == nil {
		h.remove(taskDir)
	}
}
