package doctor

import "time"

// Severity says how bad a finding is.
type Severity string

// The severities.
const (
	Info    Severity = "info"    // worth knowing
	Warning Severity = "warning" // a server starts, and something is not as it should be
	Damage  Severity = "damage"  // something that was written is not there, or is not what it was
)

func (s Severity) String() string { return string(s) }

// Finding is one thing that Doctor noticed.
type Finding struct {
	Severity Severity `json:"severity"`
	Part     string   `json:"part"`
	Problem  string   `json:"what"`
	Where    string   `json:"where,omitempty"`
	Remedy   string   `json:"remedy,omitempty"`
}

// Report is what Doctor found in a data directory.
type Report struct {
	Dir       string           `json:"dir"`
	NodeID    string           `json:"nodeId,omitempty"`
	Log       *LogReport       `json:"log,omitempty"`
	Snapshots []SnapshotReport `json:"snapshots"`
	Blobs     []BlobReport     `json:"blobs"`
	History   *HistoryReport   `json:"history,omitempty"`
	Findings  []Finding        `json:"findings"`
}

// LogReport describes a Raft log.
type LogReport struct {
	First   uint64 `json:"first"`
	Last    uint64 `json:"last"`
	Term    uint64 `json:"term"`   // of the last entry
	Commit  uint64 `json:"commit"` // at least so much is committed
	Writes  uint64 `json:"writes"`
	Checked uint64 `json:"checked"` // entries that were read and are whole
	Bytes   int64  `json:"bytes"`   // on the disk
}

// SnapshotReport describes a snapshot.
type SnapshotReport struct {
	ID     string `json:"id"`
	Index  uint64 `json:"index"`
	Term   uint64 `json:"term"`
	Bytes  int64  `json:"bytes"`
	Usable bool   `json:"usable"`
}

// BlobReport describes a policy module.
type BlobReport struct {
	Digest   string `json:"digest"`
	Bytes    int64  `json:"bytes"`
	Finished bool   `json:"finished"`
	Whole    bool   `json:"whole"` // its bytes are those of its digest
}

// HistoryReport describes the history.
type HistoryReport struct {
	Records int64      `json:"records"`
	Bytes   int64      `json:"bytes"`
	First   uint64     `json:"first"` // index
	Last    uint64     `json:"last"`
	Oldest  *time.Time `json:"oldest,omitempty"`
	Newest  *time.Time `json:"newest,omitempty"`
}

// Damaged is whether something is lost or wrong.
func (r *Report) Damaged() bool {
	for i := range r.Findings {
		if r.Findings[i].Severity == Damage {
			return true
		}
	}
	return false
}

func (r *Report) add(f Finding) { r.Findings = append(r.Findings, f) }
