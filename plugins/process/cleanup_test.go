//go:build unix

package process

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/policy"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

func skipUnlessLinux(t testing.TB) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("requires Linux")
	}
}

// nothingLeft checks that the host has no process, socket or process directory. The end of
// a process may take a moment.
func nothingLeft(t testing.TB, h *Host) {
	t.Helper()
	eventually(t, "the host is clean", func() bool {
		h.mu.Lock()
		n := len(h.processes)
		h.mu.Unlock()
		return n == 0
	})
	entries, err := os.ReadDir(h.dir.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			t.Errorf("directory %s remains", e.Name())
		}
	}
}

// isRunning reports whether a process runs. A zombie does not, although it can receive
// signals.
func isRunning(t testing.TB, pid int) bool {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	rest := stat[bytes.LastIndexByte(stat, ')')+1:] // the name may contain any character
	return !bytes.HasPrefix(rest, []byte(" Z")) && !bytes.HasPrefix(rest, []byte(" X"))
}

func pidOf(t testing.TB, i policy.Instance) int {
	t.Helper()
	pid, err := strconv.Atoi(i.(*instance).p.runner.ID())
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestInstance_DiesBetweenCalls(t *testing.T) {
	h := newHost(t, Options{})
	m := load(t, h, "honest", policy.Limits{})
	i := start(t, m)
	if err := callSelect(i); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pidOf(t, i), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "Alive is false", func() bool { return !i.Alive() })
	wantFault(t, callSelect(i), policy.FaultGuest, "died between two calls", "signal: killed")
	nothingLeft(t, h) // without a call of Close
	if err := callSelect(start(t, m)); err != nil {
		t.Error(err)
	}
}

// A pool of instances must not return a dead one.
func TestVersion_ReplacesProcessThatDiedIdle(t *testing.T) {
	h := newHost(t, Options{})
	v, err := policy.NewVersion(policy.Source{Name: "default", Module: load(t, h, "honest", policy.Limits{})})
	if err != nil {
		t.Fatal(err)
	}
	v.AddRef()
	defer v.ReleaseRef()
	for range 3 {
		i, err := v.Acquire()
		if err != nil {
			t.Fatal(err)
		}
		if err := callSelect(i); err != nil {
			t.Error(err)
		}
		v.Release(i)
		if err := syscall.Kill(pidOf(t, i), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the process is dead", func() bool { return !i.Alive() })
	}
	if _, faults := v.Stats(); faults > 0 {
		t.Errorf("%d faults", faults)
	}
}

func TestInstance_CloseEndsChildren(t *testing.T) {
	skipUnlessLinux(t)
	log, out := logged(t)
	h := newHost(t, Options{Log: log})
	for _, end := range []string{"close", "kill"} {
		i := start(t, load(t, h, "has a child", policy.Limits{}))
		if err := callSelect(i); err != nil {
			t.Fatal(err)
		}
		child := 0
		eventually(t, "the child has written its ID", func() bool {
			_, after, ok := cutLast(out.String(), `text="child `)
			_, _ = fmt.Sscan(strings.TrimRight(after, "\""), &child)
			return ok && child != 0
		})
		began := time.Now()
		if end == "close" {
			i.Close()
		} else if err := syscall.Kill(pidOf(t, i), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the child is gone", func() bool { return !isRunning(t, child) })
		nothingLeft(t, h)
		if d := time.Since(began); d > 15*time.Second { // the child would run for a thousand seconds
			t.Errorf("ending it by %s took %v", end, d)
		}
	}
}

func cutLast(s, sep string) (before, after string, ok bool) {
	at := strings.LastIndex(s, sep)
	if at < 0 {
		return s, "", false
	}
	after, _, _ = strings.Cut(s[at+len(sep):], `"`)
	return s[:at], after, true
}

func TestHost_CloseEndsRunningCallsAndStarts(t *testing.T) {
	h := newHost(t, Options{})
	calling := start(t, load(t, h, "hangs", policy.Limits{Time: time.Minute}))
	other := load(t, h, "honest", policy.Limits{})
	var all sync.WaitGroup
	errs := make(chan error, 20)
	all.Go(func() { errs <- callSelect(calling) })
	for range 8 {
		all.Go(func() {
			for {
				i, err := other.Start(sdk.NewConfig(nil, nil))
				if err != nil {
					errs <- err
					return
				}
				i.Close()
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	for range 3 {
		all.Go(func() { _ = h.Close() })
	}
	all.Wait()
	close(errs)
	for err := range errs {
		wantFault(t, err, policy.FaultHost, "closed")
	}
	if _, err := self(h, "honest", policy.Limits{}); err == nil {
		t.Error("a closed host loaded a module")
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

func TestModule_CloseKeepsInstances(t *testing.T) {
	h := newHost(t, Options{})
	a, b := load(t, h, "honest", policy.Limits{}), load(t, h, "honest", policy.Limits{})
	i := start(t, a)
	a.Close()
	a.Close()
	if err := callSelect(i); err != nil {
		t.Error(err)
	}
	_, err := a.Start(sdk.NewConfig(nil, nil))
	wantFault(t, err, policy.FaultHost)
	start(t, b).Close() // the same executable, which must still exist
	if err := callSelect(start(t, b)); err != nil {
		t.Error(err)
	}
	b.Close()
	files, err := filepath.Glob(filepath.Join(h.dir.path, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if len(filepath.Base(file)) > 32 {
			t.Errorf("%s remains", file)
		}
	}
}

func TestLoad_CanBeCanceled(t *testing.T) {
	h := newHost(t, Options{})
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, until := range []int{0, 1} { // while it is copied, and while it starts
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			defer cancel()
			for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
				h.mu.Lock()
				n := len(h.processes)
				h.mu.Unlock()
				if n >= until {
					return
				}
			}
		}()
		_, err = h.Load(ctx, exe, LoadOptions{Env: []string{modeEnv + "=silent"}})
		wantFault(t, err, policy.FaultHost, context.Canceled.Error())
	}
	nothingLeft(t, h)
}

// The kernel kills a process when the thread that started it ends. Here many threads end
// that have started no process.
func TestInstance_OutlivesThreads(t *testing.T) {
	h := newHost(t, Options{})
	m := load(t, h, "honest", policy.Limits{})
	var list []policy.Instance
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			i, err := m.Start(sdk.NewConfig(nil, nil))
			if err != nil {
				t.Error(err)
				return
			}
			h.mu.Lock()
			list = append(list, i)
			h.mu.Unlock()
		})
	}
	all.Wait()
	for range 20 {
		all.Go(func() {
			runtime.LockOSThread()
			time.Sleep(time.Millisecond)
		})
	}
	all.Wait()
	time.Sleep(20 * time.Millisecond)
	for _, i := range list {
		if err := callSelect(i); err != nil {
			t.Error(err)
		}
		i.Close()
	}
}

func TestModule_IsConcurrent(t *testing.T) {
	h := newHost(t, Options{})
	m := load(t, h, "every third call", policy.Limits{})
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			for range soak.Count(3, 200) {
				i, err := m.Start(sdk.NewConfig(nil, nil))
				if err != nil {
					t.Error(err)
					return
				}
				for n := range 3 {
					if err := callSelect(i); (err != nil) != (n == 2) {
						t.Errorf("call %d: %v", n, err)
					}
				}
				i.Close()
			}
		})
	}
	all.Wait()
	nothingLeft(t, h)
}

// victimEnv makes the test binary a host that starts policies and waits to be killed.
const victimEnv = "CEDE_TEST_VICTIM"

func runVictim(dir string) {
	h, err := NewHost(Options{RunDir: dir})
	if err != nil {
		die(err.Error())
	}
	for _, mode := range []string{"honest", "hangs", "spins"} {
		m, err := self(h, mode, policy.Limits{Time: time.Hour})
		if err != nil {
			die(err.Error())
		}
		i, err := m.Start(sdk.NewConfig(nil, nil))
		if err != nil {
			die(err.Error())
		}
		fmt.Println(i.(*instance).p.runner.ID())
		if mode != "honest" {
			go callSelect(i) //nolint:errcheck // it is killed in mid-call
		}
	}
	time.Sleep(50 * time.Millisecond)
	fmt.Println("ready")
	forever()
}

// A killed host cannot clean up: the kernel ends its processes, and the next host removes
// its directory, but not that of a live host.
func TestHost_KilledHostIsCleanedUpByNext(t *testing.T) {
	skipUnlessLinux(t)
	dir := shortDir(t)
	neighbour := newHost(t, Options{RunDir: dir})
	i := start(t, load(t, neighbour, "honest", policy.Limits{}))
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = []string{victimEnv + "=" + dir}
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for s := bufio.NewScanner(stdout); s.Scan() && s.Text() != "ready"; {
		pid, err := strconv.Atoi(s.Text())
		if err != nil || !isRunning(t, pid) {
			t.Fatalf("victim printed %q", s.Text())
		}
		pids = append(pids, pid)
	}
	if len(pids) != 3 {
		t.Fatalf("victim has %d processes", len(pids))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for _, pid := range pids {
		eventually(t, "the orphan is gone", func() bool { return !isRunning(t, pid) })
	}
	if n := len(hostsIn(t, dir)); n != 2 {
		t.Fatalf("%d directories before the cleanup, want those of the victim and the live host", n)
	}
	newHost(t, Options{RunDir: dir})
	if n := len(hostsIn(t, dir)); n != 2 {
		t.Errorf("%d directories after the cleanup, want those of the live hosts", n)
	}
	if err := callSelect(i); err != nil {
		t.Error("live host was disturbed: ", err)
	}
}

// Each round starts a process and ends it in one of many ways. No resource may accumulate.
func TestHost_LeaksNothing(t *testing.T) {
	h := newHost(t, Options{Restart: Restart{FirstDelay: time.Nanosecond, MaxDelay: time.Nanosecond, MaxFailures: 1 << 30}})
	modes := map[string]*Module{}
	for _, mode := range []string{"honest", "kills itself", "panics", "garbage", "much larger", "has a child", "every third call"} {
		modes[mode] = load(t, h, mode, policy.Limits{Time: time.Minute})
	}
	hung := load(t, h, "hangs", policy.Limits{Time: 5 * time.Second})
	r := rand.New(rand.NewPCG(3, 4))
	round := func() {
		for mode, m := range modes {
			i := start(t, m)
			_ = callSelect(i)
			if mode == "honest" && r.IntN(2) == 0 {
				_ = syscall.Kill(pidOf(t, i), syscall.SIGKILL)
			}
			i.Close()
		}
	}
	round()
	start(t, hung).Close()
	nothingLeft(t, h)
	fds, goroutines, children := openFiles(t), runtime.NumGoroutine(), childrenOf(t)
	for n := 0; n < soak.Count(35, 10_000); n += len(modes) {
		round()
		if n%(100*len(modes)) == 0 {
			wantFault(t, callSelect(start(t, hung)), policy.FaultTimeout)
		}
	}
	nothingLeft(t, h)
	eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= goroutines+2 })
	eventually(t, "files are closed", func() bool { return openFiles(t) <= fds+2 })
	eventually(t, "processes are reaped", func() bool { return childrenOf(t) <= children })
}

func openFiles(t testing.TB) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// childrenOf returns the number of child processes, zombies included.
func childrenOf(t testing.TB) int {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range files {
		text, _ := os.ReadFile(file) // the thread may have ended
		n += len(strings.Fields(string(text)))
	}
	return n
}
