package jobtrace

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cede-scheduler/cede/core/sim/importer/build"
)

// Jobs of the same size share their resources, and nothing retains the rows: accounts of a
// year have millions of them.
func TestSlurm_RetainsLittlePerJob(t *testing.T) {
	const rows, most = 20_000, 750 // bytes of a job, its group and its event
	var text strings.Builder
	text.WriteString("JobID|Account|Partition|Submit|Start|End|State|NNodes|NCPUS|ReqTRES|NodeList\n")
	for i := range rows {
		fmt.Fprintf(&text, "%d|acct%d|part%d|2024-01-01T00:00:%02d|2024-01-01T00:01:00|2024-01-01T01:%02d:%02d|COMPLETED|1|%d|cpu=%d,mem=%dG,node=1,gres/gpu:a100=1|node%03d\n",
			i, i%40, i%5, i*60/rows, i/60%60, i%60, 1+i%16, 1+i%16, 4+i%16, i%200)
	}
	src := build.Source{FS: fstest.MapFS{"sacct.txt": {Data: []byte(text.String())}}}
	before := liveHeap()
	f, _, err := Slurm(build.Options{}, src)
	if err != nil || len(f.Jobs) != rows {
		t.Fatalf("%v, %d jobs", err, len(f.Jobs))
	}
	if perJob := (liveHeap() - before) / rows; perJob > most {
		t.Errorf("%d bytes are retained per job, want at most %d", perJob, most)
	}
	runtime.KeepAlive(f)
	runtime.KeepAlive(src)
}

// The number of a run is not searched from the first one for each row.
func TestSlurm_NumbersRunsOfARequeuedJobInLinearTime(t *testing.T) {
	const rows = 50_000
	text := "JobID|Submit|Start|End|State|NNodes|NCPUS|NodeList\n" +
		strings.Repeat("7|2024-01-01T00:00:00|2024-01-01T00:01:00|2024-01-01T01:00:00|COMPLETED|1|1|n1\n", rows)
	f, _, err := Slurm(build.Options{}, build.Source{FS: fstest.MapFS{"sacct.txt": {Data: []byte(text)}}})
	if err != nil || len(f.Jobs) != rows {
		t.Fatalf("%v, %d jobs", err, len(f.Jobs))
	}
	if last := f.Jobs[rows-1].ID; last != fmt.Sprintf("j7-run%d", rows) {
		t.Errorf("the last run is %s", last)
	}
}

// If every job was left out, its nodes are unknown for that reason.
func TestSlurm_ReportsThatNoJobHasRun(t *testing.T) {
	text := "JobID|Submit|Start|End|State|NNodes|NCPUS|NodeList\n7|2024-01-01T00:00:00|2024-01-01T00:01:00|2023-01-01T01:00:00|COMPLETED|1|1|n1\n"
	_, _, err := Slurm(build.Options{}, build.Source{FS: fstest.MapFS{"sacct.txt": {Data: []byte(text)}}})
	if err == nil || !strings.Contains(err.Error(), "sacct.txt: no job has run, and the nodes of the cluster are unknown") {
		t.Error(err)
	}
}

func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
