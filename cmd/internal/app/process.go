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

// Options configure a process.
type Options struct {
	Config *config.Loaded
	Build  Build
	Stderr io.Writer // destination of the log
	// Terminal reports whether Stderr is a terminal.
	Terminal bool
	Getenv   func(string) string
	// Supervisor is the command that supervises tasks; nil: this program.
	Supervisor []string
}

// An environment holds what all parts of a process share.
type environment struct {
	o       Options
	log     *slog.Logger
	metrics *metrics
	tracer  trace.Tracer  // nil if tracing is disabled
	certs   *certificates // nil without TLS
	dataDir string
	down    teardown
	failed  chan error // capacity 1: reason to stop the process
}

// A Process is a running server, node agent, agent of a member cluster, or several of
// them.
type Process struct {
	environment
	level     slog.LevelVar
	notify    systemdNotifier
	startTime time.Time

	server *serverComponents // nil if no server runs here
	agent  atomic.Pointer[agent.Agent]
	http   *httpServer
	// clientAs returns a client of the servers that authenticates with a token.
	// Invariant: set before the agent starts.
	clientAs func(token string) (*client.Client, error)

	stopped sync.Once

	mu     sync.Mutex     // guards config, held by Reload
	config *config.Loaded // active configuration
}

// Start starts a process and returns when it serves. If it returns an error, everything
// that was started has been stopped.
func Start(ctx context.Context, o Options) (*Process, error) {
	p := &Process{
		environment: environment{o: o, metrics: newMetrics(o.Build), failed: make(chan error, 1)},
		config:      o.Config, notify: newSystemdNotifier(o.Getenv), startTime: time.Now(),
	}
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
		p.server = newServerComponents(&p.environment)
		if err := p.server.start(ctx, c, p.apiProcess(c), p.http.advertised); err != nil {
			return err
		}
	}
	p.http.serve(p)
	switch {
	case c.Pooled():
		p.server.bootstrapAsync(c)
	case c.Server.Enabled:
		if err := p.server.bootstrap(ctx, c); err != nil {
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

// makeDataDir creates the data directory; in development mode it is temporary.
func (e *environment) makeDataDir(c *config.Config) error {
	e.dataDir = c.DataDir
	if e.dataDir != "" {
		if err := os.MkdirAll(e.dataDir, 0o711); err != nil {
			return fmt.Errorf("data_dir: %w; create the directory and make the user of the process its owner", err)
		}
		return nil
	}
	dir, err := os.MkdirTemp("", "cede-dev-")
	if err != nil {
		return err
	}
	e.dataDir = dir
	e.down.push("temporary data directory", func(context.Context) error { return os.RemoveAll(dir) })
	// Tasks may run as other users, which need to traverse the directory.
	return os.Chmod(dir, 0o711)
}

// URL returns the URL of the API.
func (p *Process) URL() string { return p.http.url }

// NodeID returns the ID of the node of this process, or "" if it runs none.
func (p *Process) NodeID() string {
	if a := p.agent.Load(); a != nil {
		return a.NodeID()
	}
	return ""
}

// MetricsAddress returns the address of /metrics; empty: none.
func (p *Process) MetricsAddress() string { return p.http.metricsAddress }

// Failed receives the reason if the process cannot continue and must be stopped.
func (p *Process) Failed() <-chan error { return p.failed }

func (e *environment) fail(err error) {
	select {
	case e.failed <- err:
	default: // one reason is enough
	}
}

// errLeft means that the server has left its pool, so that the process ends.
var errLeft = errors.New("the server left the pool")

// stopAfterLeave stops the process after the response to the leave request.
func (p *Process) stopAfterLeave() { p.fail(errLeft) }

// stopTimeout limits the time to stop a process.
const stopTimeout = 30 * time.Second

// Stop stops the node, transfers leadership, ends pending requests and closes the storage,
// in this order. It returns when everything has stopped, or when ctx ends.
func (p *Process) Stop(ctx context.Context) (err error) {
	p.stopped.Do(func() {
		p.notify.send(stateStopping)
		p.log.InfoContext(ctx, "stopping")
		err = p.down.run(ctx)
		p.log.InfoContext(ctx, "stopped", "err", err)
	})
	return err
}

// Run starts a process and stops it when ctx ends or the process fails. It calls ready
// once the process serves. Each value of reload reloads the configuration.
func Run(ctx context.Context, o Options, reload <-chan os.Signal, ready func(*Process)) error {
	p, err := Start(ctx, o)
	if err != nil {
		return err
	}
	ready(p)
	for err == nil {
		select {
		case <-reload:
			_, _ = p.Reload(ctx) // Reload logs its error, and the configuration stays as it is
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
	case <-ctx.Done(): // do not wait for a hanging disk
		return fmt.Errorf("shutdown did not complete within %v", stopTimeout)
	}
}

// watchdog notifies systemd periodically while the storage is healthy.
func (p *Process) watchdog() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.notify.runWatchdog(ctx, func() error {
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

// dataPath returns the path of a part of the data directory.
func (e *environment) dataPath(name string) string { return filepath.Join(e.dataDir, name) }

// advertise returns the address by which other hosts reach a listener.
func advertise(wanted, address string) string { return cmp.Or(wanted, reachable(address)) }
