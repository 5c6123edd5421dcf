package app

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/sdk/client"
)

// withWorkers rewrites the configuration file of a test with another number of
// workers.
func withWorkers(t *testing.T, file, dataDir, workers string) {
	t.Helper()
	rewrite(t, file, dataDir, "")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "workers: 1,", workers, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// hangUp sends SIGHUP to this process, as systemd does for a reload.
func hangUp(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// The number of workers is set to two, to zero, to two again, and reset to its
// default. Meanwhile evaluations are pending, and the API reports the reason.
func TestReload_PausesAndResumesWorkers(t *testing.T) {
	t.Parallel()
	file, dataDir := durable(t, "")
	withWorkers(t, file, dataDir, "workers: 2,")
	o, log := options(load(t, config.Sources{Files: []string{file}, Environ: asSelf}))
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began, ended := make(chan *Process, 1), make(chan error, 1)
	go func() { ended <- Run(ctx, o, hangup, func(p *Process) { began <- p }) }()
	s := &started{<-began, t, log, nil}
	var err error
	if s.c, err = client.New(client.Config{Address: s.URL()}); err != nil {
		t.Fatal(err)
	}
	defer s.c.Close()
	tells := func(wanted, running int) {
		t.Helper()
		eventually(t, "the number of workers changes", func() bool {
			raft, err := s.c.Operator().RaftStatus(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return raft.Workers.Wanted == wanted && raft.Workers.Running == running
		})
		broker, err := s.c.Operator().BrokerStatus(t.Context())
		if err != nil || broker.Workers.Wanted != wanted || broker.Workers.Running != running || broker.Paused {
			t.Errorf("broker state is %+v, %v", broker, err)
		}
		for state, n := range map[string]int{"wanted": wanted, "running": running} {
			if got := s.metric(`cede_workers{state="` + state + `"}`); got != float64(n) {
				t.Errorf("metric of workers %s is %v, want %d", state, got, n)
			}
		}
	}
	tells(2, 2)
	s.register(job("first", 50, 1, 10, "sim", nil))
	s.await("first", "running")

	withWorkers(t, file, dataDir, "workers: 0,")
	hangUp(t)
	tells(0, 0)
	s.register(job("second", 50, 1, 10, "sim", nil))
	eventually(t, "the evaluation is pending", func() bool {
		b, err := s.c.Operator().BrokerStatus(t.Context())
		return err == nil && b.Ready == 1 && b.Unacked == 0
	})
	if code, text := s.get(s.URL() + "/readyz?verbose"); code != 200 || !strings.Contains(text, "paused") {
		t.Errorf("/readyz of a server whose workers are paused: %d %s", code, text)
	}
	if !strings.Contains(log.String(), "workers paused") {
		t.Error("the pause is not logged")
	}

	withWorkers(t, file, dataDir, "workers: 2,")
	hangUp(t)
	tells(2, 2)
	s.await("second", "running")

	withWorkers(t, file, dataDir, "")
	hangUp(t)
	half := config.Defaults().Server.Workers
	tells(half, half)
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("%v\n%s", err, log)
	}
}

// A server may start without workers.
func TestStart_WithoutWorkers(t *testing.T) {
	t.Parallel()
	s := start(t, load(t, config.Sources{Dev: true, Flags: loopback(map[string]string{"server.workers": "0"})}))
	s.register(job("waits", 50, 1, 10, "sim", nil))
	raft, err := s.c.Operator().RaftStatus(t.Context())
	if err != nil || raft.Workers.Wanted != 0 || raft.Workers.Running != 0 {
		t.Errorf("%+v, %v", raft, err)
	}
}
