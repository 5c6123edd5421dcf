package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/app"
	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/sdk/client"
)

// Options configure a measurement.
type Options struct {
	// Server is the address of a running server; nil: servers are started.
	Server *client.Config
	// Metrics are the addresses (HOST:PORT) of the metrics of that server, or of all
	// servers of its pool. If it is empty, figures that require metrics are omitted.
	Metrics []string
	// Servers is the number of servers to start, each in a separate process on
	// loopback; 0: one in this process.
	Servers int
	// Program is the executable of those processes.
	Program string
	// Dir is the parent of the temporary directory of started servers; empty: that of
	// the system.
	Dir string
	// TTL and Grace of heartbeats of started servers, and the heartbeat rate for
	// which they extend TTLs; 0: their defaults.
	TTL, Grace time.Duration
	Rate       int
	// Workers is the number of scheduling workers of each started server; 0: its
	// default.
	Workers int

	Build  app.Build
	Log    io.Writer // errors of started servers
	Getenv func(string) string
	// Show reports progress; it is called often.
	Show func(what string, done, total int)
}

// Target is a server under load.
type Target struct {
	c       *client.Client
	o       Options
	run     string   // prefix of the IDs of everything that the run creates
	metrics []string // URLs, one per server; nil if metrics are not available
	grace   time.Duration

	transport *http.Transport
	process   *app.Process // server in this process; nil if there is none
	pool      *processes   // started servers in separate processes
	dir       string       // data directory of process
	peak      int64        // bytes, of one server
	probed    time.Time
}

// Open connects to the server, or starts servers.
func Open(ctx context.Context, o Options) (*Target, error) {
	t := &Target{o: o, run: "bench-" + strings.ToLower(rand.Text()[:8])}
	t.transport = http.DefaultTransport.(*http.Transport).Clone()
	t.transport.MaxIdleConnsPerHost = 256
	t.transport.Proxy = nil
	conf := client.Config{}
	if o.Server != nil {
		conf = *o.Server
		for _, addr := range o.Metrics {
			t.metrics = append(t.metrics, "http://"+addr+"/metrics")
		}
	} else if err := t.own(ctx, &conf); err != nil {
		return nil, err
	}
	if conf.CACert == "" {
		conf.HTTPClient = &http.Client{Transport: t.transport}
	}
	var err error
	if t.c, err = client.New(conf); err == nil {
		if err = t.formed(ctx); err == nil {
			err = t.learn(ctx)
		}
	}
	if err != nil {
		return nil, errors.Join(err, t.Close(ctx))
	}
	return t, nil
}

// own starts servers and sets their addresses in conf.
func (t *Target) own(ctx context.Context, conf *client.Config) error {
	if t.o.Servers > 0 {
		return t.startPool(conf)
	}
	if err := t.start(ctx); err != nil {
		return err
	}
	conf.Address = t.process.URL()
	t.metrics = []string{"http://" + t.process.MetricsAddress() + "/metrics"}
	return nil
}

// patience returns the heartbeat settings that differ from a server's defaults.
func (o *Options) patience() map[string]string {
	set := map[string]string{}
	for name, d := range map[string]time.Duration{"ttl": o.TTL, "grace": o.Grace} {
		if d > 0 {
			set[name] = d.String()
		}
	}
	if o.Rate > 0 {
		set["rate"] = fmt.Sprint(o.Rate)
	}
	return set
}

// start runs a server in this process.
func (t *Target) start(ctx context.Context) (err error) {
	if t.dir, err = os.MkdirTemp(t.o.Dir, "cede-bench-"); err != nil {
		return err
	}
	if t.dir, err = filepath.Abs(t.dir); err != nil {
		return err
	}
	flags := map[string]string{
		"data_dir": t.dir, "server.enabled": "true", "log.level": "error", "limits.rate": "0",
		"listen.http": "127.0.0.1:0", "listen.rpc": "127.0.0.1:0", "listen.metrics": "127.0.0.1:0",
	}
	for name, value := range t.o.patience() {
		flags["server.heartbeat."+name] = value
	}
	if t.o.Workers > 0 {
		flags["server.workers"] = fmt.Sprint(t.o.Workers)
	}
	c, err := config.Load(config.Sources{Flags: flags})
	if err == nil {
		t.process, err = app.Start(ctx, app.Options{Config: c, Build: t.o.Build, Stderr: t.o.Log, Getenv: t.o.Getenv})
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(t.dir))
	}
	return nil
}

// learn reads the heartbeat settings of the server.
func (t *Target) learn(ctx context.Context) error {
	self, err := t.c.Status().Self(ctx)
	if err != nil {
		return err
	}
	t.grace = config.Defaults().Server.Heartbeat.Grace
	if text, ok := self.Config["server.heartbeat.grace"].(string); ok {
		if d, err := time.ParseDuration(text); err == nil {
			t.grace = d
		}
	}
	if ns, ok := self.Config["server.heartbeat.grace"].(float64); ok {
		t.grace = time.Duration(ns)
	}
	return nil
}

// closeWithin limits the time to stop the servers.
const closeWithin = time.Minute

// Close stops everything that was started, and deletes everything that the run
// created on a server that keeps running.
func (t *Target) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
	defer cancel()
	var errs []error
	switch {
	case t.process != nil:
		errs = append(errs, t.process.Stop(ctx), os.RemoveAll(t.dir))
	case t.pool != nil:
		errs = append(errs, t.pool.close())
	case t.c != nil:
		errs = append(errs, t.forget(ctx))
	}
	t.transport.CloseIdleConnections()
	if t.c != nil {
		t.c.Close()
	}
	return errors.Join(errs...)
}

// forget deletes the jobs and nodes of the run from a server that keeps running.
func (t *Target) forget(ctx context.Context) error {
	jobs, _, err := t.c.Jobs().List(ctx, &client.QueryOptions{Prefix: t.run})
	if err != nil {
		return fmt.Errorf("jobs and nodes %s-* are still there: %w", t.run, err)
	}
	var errs []error
	for _, j := range jobs {
		if _, err := t.c.Jobs().Stop(ctx, j.ID, &client.StopOptions{Purge: true}); err != nil && !client.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	nodes, _, err := t.c.Nodes().List(ctx, &client.QueryOptions{Prefix: t.run})
	errs = append(errs, err)
	for _, n := range nodes {
		if _, err := t.c.Nodes().Delete(ctx, n.ID); err != nil && !client.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	if len(errs) > 5 {
		errs = append(errs[:5:5], fmt.Errorf("and %d more", len(errs)-5))
	}
	return errors.Join(errs...)
}

// id returns the ID of an object of the run.
func (t *Target) id(kind string, n int) string { return fmt.Sprintf("%s-%s-%05d", t.run, kind, n) }

func (t *Target) show(what string, done, total int) {
	if t.o.Show != nil {
		t.o.Show(what, done, total)
	}
}

// index returns the index of the newest applied log entry.
func (t *Target) index(ctx context.Context) (uint64, error) {
	s, err := t.c.Operator().RaftStatus(ctx)
	if err != nil {
		return 0, err
	}
	return s.AppliedIndex, nil
}

// configure changes the scheduler configuration.
func (t *Target) configure(ctx context.Context, change func(*client.SchedulerConfiguration)) error {
	c, _, err := t.c.Scheduler().Get(ctx, nil)
	if err != nil {
		return err
	}
	change(c)
	_, err = t.c.Scheduler().Set(ctx, c, nil)
	return err
}
