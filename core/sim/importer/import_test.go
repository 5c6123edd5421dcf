package importer

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// TestImport runs the transcripts: `file` writes a file of the trace (with
// `with=old|new`, after a replacement in the file of that name), `import` imports the
// trace and shows the report and the scenario.
func TestImport(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/import", func(t *testing.T, path string) {
		folder := fstest.MapFS{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "file":
				folder[d.CmdArgs[0].Key] = &fstest.MapFile{Data: []byte(d.Input + "\n")}
				return ""
			case "remove":
				delete(folder, d.CmdArgs[0].Key)
				return ""
			case "import":
				return transcript(t, d, folder)
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

// transcript imports with options in the notation of CLI flags.
func transcript(t *testing.T, d *datadriven.TestData, folder fstest.MapFS) string {
	src := Source{FS: folder}
	opts, quiet := parseOptions(t, d, &src)
	var format Format
	for _, f := range Formats() {
		if f.Name == d.CmdArgs[0].Key {
			format = f
		}
	}
	f, report, err := format.Import(opts, src)
	if err != nil {
		return fmt.Sprintf("error: %v\n", err)
	}
	checkImport(t, f, report)
	if quiet {
		return report.String()
	}
	var b strings.Builder
	b.WriteString(report.String())
	if err := scenario.Encode(&b, f, scenario.JSON); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func parseOptions(t *testing.T, d *datadriven.TestData, src *Source) (opts Options, quiet bool) {
	for _, a := range d.CmdArgs[1:] {
		v := strings.Join(a.Vals, ",")
		f, _ := strconv.ParseFloat(v, 64)
		n, _ := strconv.Atoi(v)
		at, _ := time.ParseDuration(v)
		switch a.Key {
		case "quiet":
			quiet = true
		case "src":
			src.File = v
		case "name":
			opts.Name = v
		case "keep":
			opts.Keep = f
		case "nodes":
			opts.Nodes = n
		case "compress":
			opts.Compress = f
		case "sample":
			opts.Sample = f
		case "limit":
			opts.Limit = n
		case "from":
			opts.From = at
		case "until":
			opts.Until = at
		case "list":
			opts.List = v
		case "whole-gpus":
			opts.WholeGPUs = true
		case "gpu-shares":
			opts.GPUShares = true
		case "raw-priority":
			opts.RawPriority = true
		case "never-ran":
			opts.NeverRan = map[string]NeverRan{"keep": NeverRanKeep, "drop": NeverRanDrop}[v]
		case "band":
			k, p, _ := strings.Cut(v, ":")
			n, err := strconv.Atoi(p)
			if err != nil {
				t.Fatal(err)
			}
			if opts.Bands == nil {
				opts.Bands = make(map[string]int32)
			}
			opts.Bands[k] = int32(n)
		default:
			d.Fatalf(t, "unknown option %s", a.Key)
		}
	}
	return opts, quiet
}

// checkImport checks the invariants of every import.
func checkImport(t *testing.T, f *scenario.File, r *Report) {
	t.Helper()
	if err := f.Validate(); err != nil {
		t.Errorf("not valid: %v", err)
	}
	left := 0
	for _, n := range r.Notes {
		if n.LeftOut {
			left += n.Count
		}
	}
	tasks := 0
	for i := range f.Jobs {
		if f.Jobs[i].Type == "system" { // runs once on every node
			tasks += running(f, f.Jobs[i].ID)
			continue
		}
		for j := range f.Jobs[i].Groups {
			tasks += *f.Jobs[i].Groups[j].Count
		}
	}
	if r.Tasks != tasks || r.TasksRead != tasks+left {
		t.Errorf("read %d tasks, reported %d and left out %d; the scenario has %d", r.TasksRead, r.Tasks, left, tasks)
	}
	if r.Nodes != len(f.Nodes) || r.Jobs != len(f.Jobs) {
		t.Errorf("reported %d nodes and %d jobs; the scenario has %d and %d", r.Nodes, r.Jobs, len(f.Nodes), len(f.Jobs))
	}
}

// running returns the number of running allocations of a job at the start.
func running(f *scenario.File, job string) (n int) {
	for i := range f.Running {
		if f.Running[i].Job == job {
			n++
		}
	}
	return n
}
