// Package heartbeat tracks, on the leader, by when each node and each member cluster
// must report, and writes those that miss their deadline into the log as down.
//
// Deadlines are held in memory and start anew with every term of leadership. They are
// counted in ticks, which do not jump if the wall clock is set. The package makes no
// decisions about affected allocations: the state derives evaluations from the entry.
//
// Nodes and Clusters are safe for concurrent use.
package heartbeat

import (
	"log/slog"
	"time"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/server/logwriter"
)

// Config configures Nodes and Clusters. All fields are required.
type Config struct {
	Writer *logwriter.Writer
	Clock  clock.Clock
	// Ticks returns the nanoseconds since the server started.
	Ticks func() int64
	// Random returns a number in [0, n), for jitter.
	Random func(n int64) int64
	Logger *slog.Logger

	TTL           time.Duration // within which a node reports, at least
	Grace         time.Duration // beyond its TTL before a node is down
	Rate          int           // reports a second; TTLs of nodes are stretched to stay below
	FailoverGrace time.Duration // for everything when a term starts, or three TTLs if that is more
	ExpiryWindow  time.Duration // in which nodes that fail form one entry
	ClusterLost   time.Duration // silence after which assignments are lost; negative: never
	// BatchSize returns how many of n nodes form one entry.
	BatchSize func(n int) int
}
