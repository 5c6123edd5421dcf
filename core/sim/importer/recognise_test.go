package importer_test

import (
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/cede-scheduler/cede/core/sim/importer"
)

func TestRecognise_NamesTheFormatOfTheExamples(t *testing.T) {
	t.Parallel()
	root := "../../../examples/traces"
	for path, want := range map[string]string{
		"gfs": "gfs", "helios/Venus": "helios", "philly": "philly", "slurm": "slurm", "kwok": "kwok", "simkube": "simkube",
		"gfs/job_info_df.csv": "gfs", "slurm/sacct.txt": "slurm", "philly/cluster_job_log": "philly", "kwok/recording.yaml": "kwok", "simkube/trace.json": "simkube",
	} {
		src, err := importer.Open(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		for _, tried := range []string{"swf", want} {
			if have := importer.Recognise(src, tried); have != want {
				t.Errorf("%s tried as %s: %q, want %q", path, tried, have, want)
			}
		}
	}
	for name, text := range map[string]string{"x.csv": "a,b\n1,2\n", "empty": "", "x.txt": "JobIDs|x\n", "x.bin": "\x00\xff"} {
		src := importer.Source{FS: fstest.MapFS{name: {Data: []byte(text)}}, File: name}
		if have := importer.Recognise(src, "slurm"); have != "" {
			t.Errorf("%q is recognised as %s", text, have)
		}
	}
	swf := importer.Source{FS: fstest.MapFS{"log.swf": {Data: []byte("; Version: 2\n1 0 -1 10 1 -1 -1 1 20 -1 1 1 1 1 1 1 -1 -1\n")}}}
	if have := importer.Recognise(swf, "kube"); have != "swf" {
		t.Errorf("%q, want swf", have)
	}
}

// The limit leaves the same jobs and counts as a sort of all of them.
func TestSlurm_LimitTakesTheFirstSubmitted(t *testing.T) {
	t.Parallel()
	src, err := importer.Open("../../../examples/traces/slurm/sacct.txt")
	if err != nil {
		t.Fatal(err)
	}
	formats := importer.Formats()
	slurm := formats[slices.IndexFunc(formats, func(f importer.Format) bool { return f.Name == "slurm" })].Import
	all, whole, err := slurm(importer.Options{}, src)
	if err != nil {
		t.Fatal(err)
	}
	for limit := 1; limit <= len(all.Jobs)+1; limit++ {
		f, report, err := slurm(importer.Options{Limit: limit}, src)
		if err != nil {
			t.Fatal(err)
		}
		want := all.Jobs[:min(limit, len(all.Jobs))]
		if len(f.Jobs) != len(want) || f.Jobs[len(want)-1].ID != want[len(want)-1].ID {
			t.Errorf("limit %d: %d jobs, want %d", limit, len(f.Jobs), len(want))
		}
		if report.TasksRead != whole.TasksRead {
			t.Errorf("limit %d: %d tasks were read, want %d", limit, report.TasksRead, whole.TasksRead)
		}
	}
}
