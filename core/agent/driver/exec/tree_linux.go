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

// processTree is a short memory of who is whose child and what each holds: one
// look at /proc serves all tasks.
type processTree struct {
	mu       sync.Mutex
	at       time.Time
	children map[int][]int
	rss      map[int]int64 // bytes
}

// treeAge is for how long a look serves.
const treeAge = time.Second

// memory is what the descendants of a supervisor hold, in bytes.
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

// eachProcess reads every process's number, its parent's, and the memory it holds
// in bytes. Who ends meanwhile is left out.
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
		// The name in brackets may hold anything; what follows it is numbers: state,
		// parent, ..., and the pages held as the 22nd.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 22 || fields[0] == "Z" {
			continue
		}
		parent, _ := strconv.Atoi(fields[1])
		pages, _ := strconv.ParseInt(fields[21], 10, 64)
		f(pid, parent, pages*page)
	}
}

// cookie is a variable that every process of a task inherits; it is how they are
// found when their supervisor is gone.
func cookie(dir string) string { return "CEDE_TASK_FOLDER=" + filepath.Clean(dir) }

// sweepFor is how long the last processes of a task may take to die.
const sweepFor = 5 * time.Second

// sweep kills every process that bears the cookie, and returns when there is none.
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

// processesWith lists the processes that bear the cookie.
func processesWith(cookie string) (pids []int) {
	eachProcess(func(pid, _ int, _ int64) {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && pid != os.Getpid() && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+cookie+"\x00")) {
			pids = append(pids, pid)
		}
	})
	return pids
}
