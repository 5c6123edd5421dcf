package doctor

import (
	"errors"
	"time"

	"github.com/cede-scheduler/cede/core/storage/datadir"
)

// A Severity is the weight of a finding.
type Severity string

// Severities, ascending.
const (
	Info    Severity = "info"    // worth knowing
	Warning Severity = "warning" // a server starts, but something is not as expected
	Damage  Severity = "damage"  // written data is missing or changed
)

func (s Severity) String() string { return string(s) }

// A Finding is one observation of Run.
type Finding struct {
	Severity Severity `json:"severity"`
	Part     string   `json:"part"`
	Problem  string   `json:"what"`
	Where    string   `json:"where,omitempty"`
	Remedy   string   `json:"remedy,omitempty"`
}

// A Report is the result of Run for one data directory. It is part of the output format
// of the command: fields are added and never renamed.
type Report struct {
	Dir    string `json:"dir"`
	NodeID string `json:"nodeId,omitempty"`
	// Format is the format of the directory, ClusterVersion the highest version of the
	// cluster that the server has applied; 0 if unknown.
	Format         uint32 `json:"format,omitempty"`
	ClusterVersion uint32 `json:"clusterVersion,omitempty"`

	Log       *LogReport       `json:"log,omitempty"`
	Snapshots []SnapshotReport `json:"snapshots"`
	Blobs     []BlobReport     `json:"blobs"`
	History   *HistoryReport   `json:"history,omitempty"`
	Findings  []Finding        `json:"findings"`
}

// A LogReport describes a Raft log.
type LogReport struct {
	First   uint64 `json:"first"`
	Last    uint64 `json:"last"`
	Term    uint64 `json:"term"`   // of the last entry
	Commit  uint64 `json:"commit"` // lower bound of the committed entries
	Writes  uint64 `json:"writes"`
	Checked uint64 `json:"checked"` // entries that were read and are intact
	Bytes   int64  `json:"bytes"`   // on the disk
}

// A SnapshotReport describes a snapshot.
type SnapshotReport struct {
	ID     string `json:"id"`
	Index  uint64 `json:"index"`
	Term   uint64 `json:"term"`
	Bytes  int64  `json:"bytes"`
	Usable bool   `json:"usable"`
}

// A BlobReport describes a policy module.
type BlobReport struct {
	Digest   string `json:"digest"`
	Bytes    int64  `json:"bytes"`
	Finished bool   `json:"finished"`
	Whole    bool   `json:"whole"` // content matches the digest
}

// A HistoryReport describes the history.
type HistoryReport struct {
	Records int64      `json:"records"`
	Bytes   int64      `json:"bytes"`
	First   uint64     `json:"first"` // Raft index
	Last    uint64     `json:"last"`
	Oldest  *time.Time `json:"oldest,omitempty"`
	Newest  *time.Time `json:"newest,omitempty"`
}

// Damaged reports whether any finding is damage.
func (r *Report) Damaged() bool {
	for i := range r.Findings {
		if r.Findings[i].Severity == Damage {
			return true
		}
	}
	return false
}

// CheckCluster adds a finding if the cluster has a version above newest, the newest that
// this release supports.
func (r *Report) CheckCluster(newest uint32) {
	err := datadir.Version{Cluster: r.ClusterVersion}.Check(datadir.Layout{Dir: r.Dir}, newest)
	if e, ok := errors.AsType[*datadir.DamageError](err); ok {
		r.Findings = append([]Finding{{Severity: Damage, Part: e.Part, Where: e.Path, Problem: e.Problem, Remedy: e.Remedy}}, r.Findings...)
	}
}

func (r *Report) add(f Finding) { r.Findings = append(r.Findings, f) }
