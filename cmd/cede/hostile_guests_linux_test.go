package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/plugins/wasm/wasmtest"
	"github.com/cede-scheduler/cede/sdk/client"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// hostileGuests returns the modules of all hostile guests by kind and name.
func hostileGuests(t testing.TB) map[string][]byte {
	t.Helper()
	guests := map[string][]byte{}
	for name, bomb := range wasmtest.Bombs {
		guests["bomb/"+name] = bomb()
	}
	files, err := filepath.Glob("../../plugins/wasm/testdata/hostile/*.wasm")
	must(t, err)
	for _, file := range files {
		code, err := os.ReadFile(file)
		must(t, err)
		guests["hostile/"+strings.TrimSuffix(filepath.Base(file), ".wasm")] = code
	}
	return guests
}

// A usageMeter measures a process and its children until it is stopped.
type usageMeter struct {
	pid    int
	before int // resident memory at the start
	peak   int
	stop   chan struct{}
	done   chan struct{}
	cpu    time.Duration // at the start
}

func startMeter(pid int) *usageMeter {
	m := &usageMeter{pid: pid, before: familyMemory(pid), stop: make(chan struct{}), done: make(chan struct{}), cpu: processorTime(pid)}
	go func() {
		defer close(m.done)
		for {
			m.peak = max(m.peak, familyMemory(pid))
			select {
			case <-m.stop:
				return
			case <-time.After(20 * time.Millisecond): // between two samples
			}
		}
	}()
	return m
}

// end returns the growth of the memory in bytes and the processor time since the start.
func (m *usageMeter) end() (memory int, cpu time.Duration) {
	close(m.stop)
	<-m.done
	return max(0, m.peak-m.before), processorTime(m.pid) - m.cpu
}

// familyMemory returns the resident memory of a process and of its children. A child that
// has not executed its program yet shares the memory of its parent and does not count.
func familyMemory(pid int) int {
	sum, own := residentMemory(pid), commandLine(pid)
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range lists {
		text, _ := os.ReadFile(file) // the thread may have ended
		for word := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				if commandLine(child) != own { // first: it may execute its program in between
					sum += residentMemory(child)
				}
			}
		}
	}
	return sum
}

// commandLine returns the arguments of a process, or "" if it has ended.
func commandLine(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return string(text)
}

// processorTime returns the time that a process and its children that have ended used.
func processorTime(pid int) (sum time.Duration) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime, in ticks of 10 ms
		ticks, _ := strconv.Atoi(field)
		sum += time.Duration(ticks) * 10 * time.Millisecond
	}
	return sum
}

// A jobStream registers plain jobs one after another and waits until each is placed.
type jobStream struct {
	stop   chan struct{}
	done   sync.WaitGroup
	delays []time.Duration // from the registration of a job until its placement was visible
	failed error
}

// p99 returns the 99th percentile of the delays.
func (s *jobStream) p99() time.Duration {
	sorted := slices.Sorted(slices.Values(s.delays))
	return sorted[len(sorted)*99/100]
}

// maxPlacementP99 bounds the 99th percentile of the delays on a machine that has processor
// time to spare. Elsewhere the limit is a multiple of the delays of a server that shares the
// machine and has no hostile guests, or its slowest placement.
const (
	maxPlacementP99   = 50 * time.Millisecond
	maxPlacementRatio = 3
)

func startStream(t *testing.T, c *client.Client) *jobStream {
	s := &jobStream{stop: make(chan struct{})}
	s.done.Go(func() {
		for i := 0; s.failed == nil; i++ {
			select {
			case <-s.stop:
				return
			case <-time.After(20 * time.Millisecond): // leave processor time to the guests
				s.failed = s.place(t, c, fmt.Sprint("plain-", i))
			}
		}
	})
	return s
}

// place registers a job, waits for its allocation, and stops it.
func (s *jobStream) place(t testing.TB, c *client.Client, id string) error {
	begin := time.Now()
	if _, err := c.Jobs().Register(t.Context(), guestJob(id, 50, 1), nil); err != nil {
		return err
	}
	for placed := false; !placed; time.Sleep(time.Millisecond) {
		list, _, err := c.Jobs().Allocations(t.Context(), id, nil)
		if err != nil {
			return err
		}
		if placed = len(list) > 0; !placed && time.Since(begin) > testTimeout {
			return fmt.Errorf("%s is not placed after %v", id, testTimeout)
		}
	}
	s.delays = append(s.delays, time.Since(begin))
	_, err := c.Jobs().Stop(t.Context(), id, nil)
	return err
}

// guestJob returns a job of one simulated task.
func guestJob(id string, priority, memory int) *client.Job {
	cpu := 1
	j := minimalJob(id)
	j.Priority = &priority
	j.TaskGroups[0].Tasks[0].Resources = &client.Resources{CPU: &cpu, MemoryMB: &memory}
	return j
}

// guestServer starts a server and a node on which a job of low priority runs, so that others
// of its size fit only if a policy evicts it.
func guestServer(t testing.TB) (*serverProcess, *client.Client) {
	t.Helper()
	server := newServer(t, "", fullLogConfig)
	server.start()
	node := newClientNode(t, server)
	node.env = []string{"CEDE_CLIENT__DRIVERS__SIM__ENABLED=true"}
	node.start()
	c := server.client()
	all := client.PreemptionConfig{SystemSchedulerEnabled: true, BatchSchedulerEnabled: true, ServiceSchedulerEnabled: true}
	_, err := c.Scheduler().Set(t.Context(), &client.SchedulerConfiguration{SchedulerAlgorithm: "binpack", PreemptionConfig: all}, nil)
	must(t, err)
	_, err = c.Jobs().Register(t.Context(), guestJob("low", 10, 800), nil)
	must(t, err)
	awaitRunning(t, c, "low", 1)
	return server, c
}

// Hostile guests, and modules with an expensive compilation, are loaded into a live
// server and decide there. Each stays below its own ceiling of memory and processor time, and
// the server places every plain job meanwhile, about as fast as a server without them.
func TestHostileGuests_StayBelowCeilingsWhileJobsArePlaced(t *testing.T) {
	if soak.Race {
		t.Skip("the race detector exceeds the memory of the ceilings")
	}
	server, c := guestServer(t)
	guests := hostileGuests(t)
	names := slices.Sorted(maps.Keys(guests))
	if rows := slices.Sorted(maps.Keys(guestCosts)); len(names) < 60 || !slices.Equal(names, rows) {
		t.Fatalf("%d hostile guests, want at least 60, each with a ceiling: %v have one", len(names), rows)
	}
	_, beside := guestServer(t)
	control, stream := startStream(t, beside), startStream(t, server.client())
	played, loaded := 0, 0
	for i, name := range names {
		if !guestCosts[name].isPlayed(i) {
			continue
		}
		played++
		if tryGuest(t, server, c, fmt.Sprint("guest-", i), name, guests[name]) {
			loaded++
		}
	}
	close(stream.stop)
	close(control.stop)
	stream.done.Wait()
	control.done.Wait()
	must(t, control.failed)
	if stream.failed != nil || len(stream.delays) < 10 {
		t.Fatalf("%d plain jobs were placed meanwhile: %v", len(stream.delays), stream.failed)
	}
	p99, usual, slowest := stream.p99(), control.p99(), slices.Max(control.delays)
	if p99 > max(maxPlacementP99, maxPlacementRatio*usual, slowest) {
		t.Errorf("p99 of the placement of a plain job: %v; on a server without hostile guests %v, and %v at most", p99, usual, slowest)
	}
	if loaded == 0 {
		t.Error("no guest was loaded, so that none decided")
	}
	t.Logf("%d guests were loaded, %d decided; %d plain jobs were placed, p99 %v, the slowest after %v; on the other server p99 %v, the slowest %v",
		played, loaded, len(stream.delays), p99, slices.Max(stream.delays), usual, slowest)
}

// tryGuest loads a module, lets it decide if it is accepted, and checks its ceiling.
func tryGuest(t *testing.T, server *serverProcess, c *client.Client, policy, name string, code []byte) (loaded bool) {
	t.Helper()
	delay := machineDelay()
	meter := startMeter(server.cmd.Process.Pid)
	v, err := c.Policies().Load(t.Context(), &client.PolicyLoad{Name: policy, Module: code})
	if err == nil {
		_, err = c.Policies().Activate(t.Context(), policy, v.ID)
	}
	if loaded = err == nil; loaded {
		decide(t, c, policy)
	}
	memory, cpu := meter.end()
	delay = max(delay, machineDelay())
	t.Logf("%s: %d MiB, %v, machine %.1f, loaded %v, %.120v", name, memory>>20, cpu, delay, loaded, err)
	if ceiling := guestCosts[name].ceiling(delay); memory > ceiling.memory<<20 || cpu > ceiling.cpu {
		t.Errorf("%s: %d MiB and %v, allowed are %d MiB and %v", name, memory>>20, cpu, ceiling.memory, ceiling.cpu)
	}
	if server.hasExited() {
		t.Fatalf("%s: the server has exited: %v", name, server.result)
	}
	return loaded
}

// decide registers a job that fits only if the policy evicts, and waits for the decision.
func decide(t *testing.T, c *client.Client, policy string) {
	t.Helper()
	j := guestJob("urgent-"+policy, 90, 600)
	j.Policy = policy
	_, err := c.Jobs().Register(t.Context(), j, nil)
	must(t, err)
	eventually(t, "the evaluation has ended or is blocked", func() bool {
		evals, _, err := c.Jobs().Evaluations(t.Context(), j.ID, nil)
		return err == nil && slices.ContainsFunc(evals, func(e *client.Evaluation) bool { return e.Status != "pending" })
	})
	_, err = c.Jobs().Stop(t.Context(), j.ID, nil)
	must(t, err)
}

// BenchmarkPlainJobs_BesideHostileGuests measures from the registration of a plain job over
// HTTP until its allocation is visible, while hostile modules are loaded one after another.
func BenchmarkPlainJobs_BesideHostileGuests(b *testing.B) {
	server, c := guestServer(b)
	guests := hostileGuests(b)
	names := slices.Sorted(maps.Keys(guests))
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default: // a refusal is the usual result
				_, _ = c.Policies().Load(b.Context(), &client.PolicyLoad{Name: fmt.Sprint("guest-", i), Module: guests[names[i%len(names)]]})
			}
		}
	}()
	stream, plain := &jobStream{}, server.client()
	for b.Loop() {
		must(b, stream.place(b, plain, fmt.Sprint("plain-", len(stream.delays))))
	}
	close(stop)
	<-done
	b.ReportMetric(float64(stream.p99().Microseconds())/1000, "p99-ms")
}
