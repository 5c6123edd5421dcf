package process

import (
	"cmp"
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

// Options configure a host. The zero value is usable.
type Options struct {
	// RunDir is the directory for executables and sockets of running hosts, each in a
	// subdirectory; several hosts may share it. Its path must be short, because socket
	// paths are limited, and its file system must permit execution. Default: cede-UID in
	// the system's temporary directory.
	RunDir string
	// Limits apply to calls if Load specifies none.
	Limits policy.Limits
	// Log receives the output and the life cycle of guests. Default: discard.
	Log *slog.Logger
	// StartTimeout bounds the time until a process can be called. Default: 10s.
	StartTimeout time.Duration
	// Restart configures how failed processes are restarted.
	Restart Restart
}

// Restart configures the delay between a failure and the next start. Zero fields select
// defaults.
type Restart struct {
	// FirstDelay is the delay of the second start in a row; it doubles up to MaxDelay. The
	// first restart is not delayed. Defaults: 100ms, 5s.
	FirstDelay, MaxDelay time.Duration
	// MaxFailures is the number of failures in a row, without an answered call in between,
	// after which the module starts no more processes. Default: 5.
	MaxFailures int
}

// withDefaults returns r with defaults for zero fields.
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

// A Host starts and ends processes.
type Host struct {
	options Options
	log     *slog.Logger
	dir     *runDir
	// isolation describes the sandbox of processes; "": there is none.
	isolation string
	lastDir   atomic.Int64 // number of the last process directory

	mu             sync.Mutex
	processes      map[*process]struct{} // started and not yet cleaned up
	executableRefs map[string]int        // number of modules that use the executable, by digest
	closing        bool
	done           chan struct{} // closed by Close: ends all waits
	closed         chan struct{} // closed when no process is left
}

var errBigEndian = errors.New("policies require a little-endian machine")

// NewHost returns a host after removing what killed hosts have left in RunDir. It starts no
// process.
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
	isolation, err := sandboxState()
	if err != nil {
		o.Log.Debug("policy processes are not isolated", "err", err)
	}
	return &Host{
		options: o, log: o.Log, dir: dir, isolation: isolation, processes: map[*process]struct{}{}, executableRefs: map[string]int{},
		done: make(chan struct{}), closed: make(chan struct{}),
	}, nil
}

// Isolation describes the sandbox of the processes. It is policy.NoIsolation if this system
// has none: processes then have all the access of the user of the host.
func (h *Host) Isolation() string { return cmp.Or(h.isolation, policy.NoIsolation) }

// Close kills all processes, removes the host's files, and returns when none are left.
// Running calls fail. It may be called again and concurrently.
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
	return h.dir.remove()
}

// killAll ends all existing processes. register admits no more.
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

// register adds a process. The caller must call unregister later. It returns an error if
// the host is closing.
func (h *Host) register(p *process) *policy.Error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return closedFault()
	}
	h.processes[p] = struct{}{}
	return nil
}

// unregister removes a process after its cleanup.
func (h *Host) unregister(p *process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.processes, p)
}

// isClosing reports whether Close was called.
func (h *Host) isClosing() bool {
	select {
	case <-h.done:
		return true
	default:
		return false
	}
}

// newProcessDir returns an unused path for the directory of a process.
func (h *Host) newProcessDir() string {
	return filepath.Join(h.dir.path, strconv.FormatInt(h.lastDir.Add(1), 10))
}
