package app

import (
	"context"
	"net"
	"strconv"
	"time"
)

// systemdNotifier reports the state of the process to systemd (sd_notify). Without systemd
// it does nothing. It is written by hand: the protocol is one datagram, and
// github.com/coreos/go-systemd/v22/daemon would add a module for the same number of lines
// without RELOADING and its clock.
type systemdNotifier struct {
	socket   string
	watchdog time.Duration // interval at which systemd expects notifications; 0: none
}

func newSystemdNotifier(getenv func(string) string) systemdNotifier {
	n := systemdNotifier{socket: getenv("NOTIFY_SOCKET")}
	if us, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 {
		n.watchdog = time.Duration(us) * time.Microsecond
	}
	return n
}

// States of the sd_notify protocol.
const (
	stateReady    = "READY=1"
	stateStopping = "STOPPING=1"
	stateWatchdog = "WATCHDOG=1"
)

// stateReloading returns the state of a reload, with the clock that systemd compares.
func stateReloading(monotonic time.Duration) string {
	return "RELOADING=1\nMONOTONIC_USEC=" + strconv.FormatInt(monotonic.Microseconds(), 10)
}

// send reports a state. Errors are ignored, because the process works without systemd.
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

// runWatchdog notifies systemd until ctx ends, while alive returns nil.
func (n systemdNotifier) runWatchdog(ctx context.Context, alive func() error) {
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
