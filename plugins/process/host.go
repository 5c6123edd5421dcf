package process

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/sdk/abi"
)

// Options say how processes are run. The zero value is ready for use.
type Options struct {
	// RunDir is where hosts keep executables and sockets while they run, each in
	// a folder of its own; several hosts may share it. It must be a short path,
	// since those of sockets are limited, where programs may be executed.
	// Default: cede-UID in the system's folder for temporary files.
	RunDir string
	// Limits of calls, where Load is given none of its own.
	Limits policy.Limits
	// Log takes what guests say, and what happens to them; nil: nobody listens.
	Log *slog.Logger
	// StartTimeout is how long a process may take until it can be called.
	// Default: 10s.
	StartTimeout time.Duration
	// Restart says how processes that fail are started again.
	Restart Restart
}

// Restart says what happens between a failure and the next start. A zero field
// means the default.
type Restart struct {
	// FirstDelay is how long the second start in a row waits; every further one waits
	// twice as long, up to Most. The first waits for nothing. Defaults: 100ms, 5s.
	FirstDelay, MaxDelay time.Duration
	// MaxFailures is how many failures in a row, with no call answered between them,
	// end it: the module starts nothing any more. Default: 5.
	MaxFailures int
}

func (r Restart) withDefaults() Restart {
	if r.FirstDelay <= 0 {
		r.FirstDelay = 100 * time.Millisecond
	}
	if r.MaxDelay <= 0 {
		r.MaxDelay = 5 * time.Second
	}
	if r.MaxFailures <= 0 {
		r.MaxFailures = 5
	}
	return r
}

// Host starts processes and ends them.
type Host struct {
	options Options
	log     *slog.Logger
	dir     *runDir
	spawner spawner
	lastDir atomic.Int64 // of the folders of processes

	mu             sync.Mutex
	processes      map[*process]struct{} // whatever was started and not cleaned up
	executableRefs map[string]int        // modules that use the executable with that digest
	closing        bool
	done           chan struct{} // closed by Close: nobody waits any longer
	closed         chan struct{} // closed when nothing is left
}

var errBigEndian = errors.New("policies need a little-endian machine, and this is none")

// NewHost makes a host, after it has removed what killed hosts left in RunDir.
// It starts nothing.
func NewHost(o Options) (*Host, error) {
	if !abi.LittleEndian() {
		return nil, errBigEndian
	}
	o.Limits = o.Limits.WithDefaults(policy.DefaultLimits)
	o.Restart = o.Restart.withDefaults()
	if o.StartTimeout <= 0 {
		o.StartTimeout = 10 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	dir, err := newRunDir(o.RunDir)
	if err != nil {
		return nil, err
	}
	return &Host{
		options: o, log: o.Log, dir: dir, processes: map[*process]struct{}{}, executableRefs: map[string]int{},
		done: make(chan struct{}), closed: make(chan struct{}),
	}, nil
}

// Close kills every process, removes what the host kept, and returns when
// nothing is left. Calls under way fail. It may be called again, and by many.
func (h *Host) Close() error {
	h.mu.Lock()
	first := !h.closing
	h.closing = true
	h.mu.Unlock()
	if !first {
		<-h.closed
		return nil
	}
	defer close(h.closed)
	close(h.done)
	h.killAll()
	h.spawner.stop()
	return h.dir.remove()
}

// killAll ends the processes there are; enter admits no more.
func (h *Host) killAll() {
	h.mu.Lock()
	list := make([]*process, 0, len(h.processes))
	for p := range h.processes {
		list = append(list, p)
	}
	h.mu.Unlock()
	var all sync.WaitGroup
	for _, p := range list {
		all.Go(p.close)
	}
	all.Wait()
}

// register takes a process on; leave must follow.
func (h *Host) register(p *process) *policy.Error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return closedFault()
	}
	h.processes[p] = struct{}{}
	return nil
}

func (h *Host) unregister(p *process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.processes, p)
}

// isClosing is whether Close was called.
func (h *Host) isClosing() bool {
	select {
	case <-h.done:
		return true
	default:
		return false
	}
}

// newProcessDir is a new name for the folder of a process.
func (h *Host) newProcessDir() string {
	return filepath.Join(h.dir.path, strconv.FormatInt(h.lastDir.Add(1), 10))
}
