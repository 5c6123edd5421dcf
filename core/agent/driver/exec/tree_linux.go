package exec

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A processTree caches the parent and memory of every process, so that one scan of
// /proc serves all tasks.
type processTree struct {
	mu       sync.Mutex
	at       time.Time
	children map[int][]int
	rss      map[int]int64 // bytes
}

// treeAge is how long a scan remains valid.
const treeAge = time.Second

// memory returns the memory of the descendants of a supervisor, in bytes.
func (t *processTree) memory(supervisor int) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.at) > treeAge {
		t.children, t.rss = map[int][]int{}, map[int]int64{}
		eachProcess(func(pid, parent int, rss int64) {
			t.children[parent] = append(t.children[parent], pid)
			t.rss[pid] = rss
		})
		t.at = time.Now()
	}
	var sum int64
	for todo := slices.Clone(t.children[supervisor]); len(todo) > 0; {
		pid := todo[len(todo)-1]
		todo = append(todo[:len(todo)-1], t.children[pid]...)
		sum += t.rss[pid]
	}
	return sum
}

// eachProcess calls f with the process id, parent and memory in bytes of every
// process. Processes that end during the scan are omitted.
func eachProcess(f func(pid, parent int, rss int64)) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	page := int64(os.Getpagesize())
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		// The name in parentheses may contain any character. The numbers after it
		// are the state, the parent and others; the resident pages are field 22
		// of them.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 22 || fields[0] == "Z" {
			continue
		}
		parent, _ := strconv.Atoi(fields[1])
		pages, _ := strconv.ParseInt(fields[21], 10, 64)
		f(pid, parent, pages*page)
	}
}

// cookie returns an environment variable that every process of a task inherits. It
// identifies them if their supervisor has ended.
func cookie(dir string) string { return "CEDE_TASK_FOLDER=" + filepath.Clean(dir) }

// sweepFor bounds the time in which the last processes of a task must end.
const sweepFor = 5 * time.Second

// sweep kills every process with the cookie and returns when none is left. It returns
// an error if one remains after sweepFor.
func sweep(cookie string) error {
	for end := time.Now().Add(sweepFor); ; time.Sleep(5 * time.Millisecond) {
		found := processesWith(cookie)
		if len(found) == 0 {
			return nil
		}
		for _, pid := range found {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("process %d of the task was not killed: %w", pid, err)
			}
		}
		if time.Now().After(end) {
			return fmt.Errorf("processes %v of the task did not exit", found)
		}
	}
}

// rootOf returns the process with a parent that is not one of the processes, or 0 if
// there is none.
func rootOf(pids []int) (root int) {
	eachProcess(func(pid, parent int, _ int64) {
		if slices.Contains(pids, pid) && !slices.Contains(pids, parent) {
			root = pid
		}
	})
	return root
}

// processesWith returns the ids of the processes that have the cookie.
func processesWith(cookie string) (pids []int) {
	eachProcess(func(pid, _ int, _ int64) {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && pid != os.Getpid() && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+cookie+"\x00")) {
			pids = append(pids, pid)
		}
	})
	return pids
}
