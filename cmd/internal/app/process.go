package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/core/agent"
	"github.com/cede-scheduler/cede/sdk/client"
)

// Options say what a process is started with.
type Options struct {
	Config   *config.Loaded
	Build    Build
	Stderr   io.Writer // where it logs
	Terminal bool      // whether people look at Stderr
	Getenv   func(string) string
	// Supervisor is the command that supervises tasks; nil: this program.
	Supervisor []string
}

// Process is a server, a node's agent, or both, that run.
type Process struct {
	o         Options
	log       *slog.Logger
	level     slog.LevelVar
	notify    systemdNotifier
	metrics   *metrics
	tracer    trace.Tracer  // nil: nobody watches
	certs     *certificates // nil: nothing is encrypted
	dataDir   string
	startTime time.Time

	server *serverComponents // nil: none runs here
	agent  atomic.Pointer[agent.Agent]
	http   *httpServer
	// clientAs asks the servers as the bearer of a token; set before the agent is.
	clientAs func(token string) (*client.Client, error)

	down    teardown
	failed  chan error // capacity 1: why the process cannot go on
	stopped sync.Once

	mu     sync.Mutex     // guards config, held by Reload
	config *config.Loaded // that is in force
}

// Start starts a process and returns when it serves. On an error nothing of it is
// left.
func Start(ctx context.Context, o Options) (*Process, error) {
	p := &Process{o: o, config: o.Config, notify: newSystemdNotifier(o.Getenv), metrics: newMetrics(o.Build), failed: make(chan error, 1), startTime: time.Now()}
	p.level.Set(parseLevel(o.Config.Log.Level))
	p.log = newLogger(o.Stderr, o.Terminal, o.Config.Log.Format, &p.level)
	if err := p.start(ctx); err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		return nil, errors.Join(err, p.down.run(stop))
	}
	return p, nil
}

func (p *Process) start(ctx context.Context) (err error) {
	c := &p.config.Config
	for _, w := range p.config.Warnings() {
		p.log.WarnContext(ctx, "insecure configuration", "key", w.Key, "where", w.Where, "text", w.Text)
	}
	if err := p.openTracing(ctx); err != nil {
		return err
	}
	if p.certs, err = newCertificates(c.TLS); err != nil {
		return err
	}
	if err := p.makeDataDir(c); err != nil {
		return err
	}
	if p.http, err = p.listen(c); err != nil {
		return err
	}
	if c.Server.Enabled {
		if err := p.startServer(ctx, c); err != nil {
			return err
		}
	}
	p.http.serve(p)
	switch {
	case c.Pooled():
		p.bootstrapAsync(c)
	case c.Server.Enabled:
		if err := p.bootstrap(ctx, c); err != nil {
			return err
		}
	}
	if c.Client.Enabled {
		if err := p.startAgent(ctx, c); err != nil {
			return err
		}
	}
	if c.Member.Enabled {
		if err := p.startMember(c); err != nil {
			return err
		}
	}
	p.watchdog()
	p.notify.send(stateReady)
	p.log.InfoContext(ctx, "ready", "url", p.URL(), "server", c.Server.Enabled, "node", c.Client.Enabled, "member", c.Member.Enabled, "duration", time.Since(p.startTime))
	return nil
}

// makeDataDir makes the data directory, which for a try is one that goes with the
// process.
func (p *Process) makeDataDir(c *config.Config) error {
	p.dataDir = c.DataDir
	if p.dataDir != "" {
		if err := os.MkdirAll(p.dataDir, 0o711); err != nil {
			return fmt.Errorf("data_dir: %w; create the directory and make the user of the process its owner", err)
		}
		return nil
	}
	dir, err := os.MkdirTemp("", "cede-dev-")
	if err != nil {
		return err
	}
	p.dataDir = dir
	p.down.push("temporary data directory", func(context.Context) error { return os.RemoveAll(dir) })
	// Tasks may run as others, and pass through.
	return os.Chmod(dir, 0o711)
}

// URL is where the API is reached.
func (p *Process) URL() string { return p.http.url }

// NodeID is the id of this process's node; empty: there is none.
func (p *Process) NodeID() string {
	if a := p.agent.Load(); a != nil {
		return a.NodeID()
	}
	return ""
}

// MetricsAddress is where /metrics is served; empty: nowhere.
func (p *Process) MetricsAddress() string { return p.http.metricsAddress }

// Failed gets the reason when the process cannot go on: it is to be stopped.
func (p *Process) Failed() <-chan error { return p.failed }

func (p *Process) fail(err error) {
	select {
	case p.failed <- err:
	default: // one reason is enough
	}
}

// errLeft is that the server left its pool: the process has nothing to do any more.
var errLeft = errors.New("the server left the pool")

// stopAfterLeave stops the process once whoever asked for it was answered.
func (p *Process) stopAfterLeave() { p.fail(errLeft) }

// stopTimeout is how long a process may take to stop.
const stopTimeout = 30 * time.Second

// Stop ends the process: its node, its leadership, what callers wait for, and its
// storage, in this order. It returns when nothing of it runs, or ctx ends.
func (p *Process) Stop(ctx context.Context) (err error) {
	p.stopped.Do(func() {
		p.notify.send(stateStopping)
		p.log.InfoContext(ctx, "stopping")
		err = p.down.run(ctx)
		p.log.InfoContext(ctx, "stopped", "err", err)
	})
	return err
}

// Run starts a process and stops it when ctx ends or it fails. ready is called
// once it serves; each value of reload has it read its configuration again.
func Run(ctx context.Context, o Options, reload <-chan os.Signal, ready func(*Process)) error {
	p, err := Start(ctx, o)
	if err != nil {
		return err
	}
	ready(p)
	for err == nil {
		select {
		case <-reload:
			_, _ = p.Reload(ctx) // it is logged, and the process goes on as it was
		case err = <-p.failed:
			if errors.Is(err, errLeft) {
				return p.stop(ctx)
			}
			p.log.ErrorContext(ctx, "fatal error", "err", err)
		case <-ctx.Done():
			return p.stop(ctx)
		}
	}
	return errors.Join(err, p.stop(ctx))
}

func (p *Process) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- p.Stop(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done(): // a disk that hangs is not waited for
		return fmt.Errorf("shutdown did not complete within %v", stopTimeout)
	}
}

// watchdog tells systemd that the process lives, as long as its storage does.
func (p *Process) watchdog() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.notify.watch(ctx, func() error {
			if p.server == nil {
				return nil
			}
			return p.server.healthy()
		})
	}()
	p.down.push("watchdog", func(context.Context) error {
		cancel()
		<-done
		return nil
	})
}

// dataPath is a part's place in the data directory.
func (p *Process) dataPath(name string) string { return filepath.Join(p.dataDir, name) }

// advertise is where others reach what listens on address.
func advertise(wanted, address string) string { return cmp.Or(wanted, reachable(address)) }
