package app

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/config"
)

func options(c *config.Loaded) (Options, *logBuffer) {
	log := &logBuffer{}
	return Options{Config: c, Build: Build{Version: "test"}, Stderr: log, Getenv: func(string) string { return "" }}, log
}

func TestRun_EndsWithContext(t *testing.T) {
	t.Parallel()
	o, log := options(load(t, config.Sources{Dev: true, Flags: loopback(map[string]string{"log.level": "info"})}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := Run(ctx, o, nil, func(*Process) { cancel() }); err != nil {
		t.Errorf("%v\n%s", err, log)
	}
	if !strings.Contains(log.String(), `"msg":"stopped"`) {
		t.Errorf("the process did not shut down in order: %s", log)
	}
}

// If the disk hangs or fails, storage reports it and the process exits, so that its
// supervisor restarts it.
func TestRun_EndsWhenTheStorageFails(t *testing.T) {
	t.Parallel()
	hangs := errors.New("the disk hangs")
	o, log := options(load(t, config.Sources{Dev: true, Flags: loopback(nil)}))
	var dir string
	err := Run(t.Context(), o, nil, func(p *Process) {
		dir = p.dataDir
		p.server.setStorageFault(hangs)
		if err := p.server.healthy(); !errors.Is(err, hangs) {
			t.Errorf("health check returns %v", err)
		}
		p.fail(hangs)
	})
	if !errors.Is(err, hangs) {
		t.Errorf("Run returned %v\n%s", err, log)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the data directory still exists: %v", err)
	}
}

func TestRun_ReloadsOnSignal(t *testing.T) {
	t.Parallel()
	file, dataDir := durable(t, "log: {level: info}\n")
	o, log := options(load(t, config.Sources{Files: []string{file}, Environ: asSelf}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hangup := make(chan os.Signal, 1)
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, o, hangup, func(*Process) {
			rewrite(t, file, dataDir, "log: {level: debug}\n")
			hangup <- os.Interrupt
		})
	}()
	eventually(t, "the configuration is reloaded", func() bool { return strings.Contains(log.String(), `"changed":["log.level"]`) })
	cancel()
	if err := <-done; err != nil {
		t.Errorf("%v\n%s", err, log)
	}
}
