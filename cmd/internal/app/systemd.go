package app

import (
	"context"
	"net"
	"strconv"
	"time"
)

// systemdNotifier tells systemd how the process does (sd_notify). Without systemd it
// tells nobody.
type systemdNotifier struct {
	socket   string
	watchdog time.Duration // within which it wants to hear from us; 0: it does not
}

func newSystemdNotifier(getenv func(string) string) systemdNotifier {
	n := systemdNotifier{socket: getenv("NOTIFY_SOCKET")}
	if us, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 {
		n.watchdog = time.Duration(us) * time.Microsecond
	}
	return n
}

// The states that systemd knows.
const (
	stateReady    = "READY=1"
	stateStopping = "STOPPING=1"
	stateWatchdog = "WATCHDOG=1"
)

// stateReloading carries the clock that systemd compares with its own.
func stateReloading(monotonic time.Duration) string {
	return "RELOADING=1\nMONOTONIC_USEC=" + strconv.FormatInt(monotonic.Microseconds(), 10)
}

// send tells a state. That nobody listens is no error of ours.
func (n systemdNotifier) send(state string) {
	if n.socket == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"})
	if err != nil {
		return
	}
	_, _ = conn.Write([]byte(state))
	_ = conn.Close()
}

// watch says that the process lives for as long as it does, until ctx ends.
func (n systemdNotifier) watch(ctx context.Context, alive func() error) {
	if n.socket == "" || n.watchdog <= 0 {
		return
	}
	tick := time.NewTicker(n.watchdog / 2)
	defer tick.Stop()
	for {
		if alive() == nil {
			n.send(stateWatchdog)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
