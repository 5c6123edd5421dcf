package app

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/config"
)

// systemd listens on the notify socket in place of systemd.
func systemd(t *testing.T) (socket string, next func() string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return socket, func() string {
		b := make([]byte, 4096)
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		n, err := conn.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
}

func TestNotify_SendsStates(t *testing.T) {
	t.Parallel()
	socket, next := systemd(t)
	file, _ := durable(t, "")
	s := start(t, load(t, config.Sources{Files: []string{file}, Environ: asSelf}), func(o *Options) {
		o.Getenv = func(name string) string {
			return map[string]string{"NOTIFY_SOCKET": socket, "WATCHDOG_USEC": "20000"}[name]
		}
	})
	seen := map[string]bool{}
	until := func(want string) string {
		for {
			got := next()
			seen[strings.SplitN(got, "\n", 2)[0]] = true
			if strings.HasPrefix(got, want) {
				return got
			}
		}
	}
	until(stateReady)
	until(stateWatchdog)
	if _, err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := until("RELOADING=1"); !strings.Contains(got, "\nMONOTONIC_USEC=") {
		t.Errorf("sent %q, want MONOTONIC_USEC with it", got)
	}
	until(stateReady)
	s.end()
	until(stateStopping)
}

// Without a notification, the watchdog kills a process whose disk hangs and restarts
// it.
func TestNotify_NoWatchdogMessageIfUnhealthy(t *testing.T) {
	t.Parallel()
	socket, next := systemd(t)
	n := newSystemdNotifier(func(name string) string {
		return map[string]string{"NOTIFY_SOCKET": socket, "WATCHDOG_USEC": "2000"}[name]
	})
	asked := 0
	ctx, cancel := context.WithCancel(t.Context())
	n.runWatchdog(ctx, func() error {
		if asked++; asked == 10 {
			cancel()
		}
		return errors.New("the disk hangs")
	})
	n.send(stateReady)
	if got := next(); got != stateReady {
		t.Errorf("sent %q", got)
	}
}

func TestNotify_DoesNothingWithoutSystemd(t *testing.T) {
	t.Parallel()
	n := newSystemdNotifier(func(string) string { return "" })
	n.send(stateReady)
	n.runWatchdog(t.Context(), func() error { t.Error("unexpected health check"); return nil })
}
