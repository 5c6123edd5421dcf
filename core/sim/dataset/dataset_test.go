package dataset_test

import (
	"bytes"
	"encoding/csv"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/dataset"
	"github.com/cede-scheduler/cede/core/sim/scenario"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// record plays a scenario and returns its rows with its result. The part is closed by the test.
func record(t *testing.T, file string, seed uint64) (*dataset.Part, *sim.Run) {
	t.Helper()
	text, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = text.Close() }()
	f, err := scenario.Decode(file, text)
	if err != nil {
		t.Fatal(err)
	}
	f.Seed = seed
	part, err := dataset.NewPart(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := part.Close(); err != nil {
			t.Error(err)
		}
	})
	recorder := dataset.NewRecorder(part, dataset.Run{Scenario: f.Name, Draw: 1, Policy: "default", Seed: seed})
	options := sim.Options{Resolve: func(spec sim.PolicySpec) (*policy.Version, error) {
		return policy.NewVersion(policy.Source{
			Name: spec.Name, Module: policy.Native(policy.BuiltinDigest("default", "test"), func() sdk.Policy { return rules.New() }),
		})
	}}
	recorder.Observe(&options)
	run, err := sim.Play(t.Context(), f, options)
	if err != nil {
		t.Fatal(err)
	}
	if err := recorder.Finish(run); err != nil {
		t.Fatal(err)
	}
	return part, run
}

// files returns the CSV file of a table, parsed, and its Parquet file.
func files(t *testing.T, table string, parts ...*dataset.Part) (rows [][]string, file []byte) {
	t.Helper()
	all := dataset.Tables()
	at := slices.IndexFunc(all, func(x dataset.Table) bool { return x.Name() == table })
	var text, binary bytes.Buffer
	if err := all[at].WriteCSV(&text, parts); err != nil {
		t.Fatal(err)
	}
	if err := all[at].WriteParquet(&binary, parts); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&text).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows, binary.Bytes()
}

// cells returns the rows of a Parquet file as CSV would hold them, under the names of the
// columns.
func cells(t *testing.T, file []byte) [][]string {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var header []string
	for _, path := range f.Schema().Columns() {
		header = append(header, path[0])
	}
	all := [][]string{header}
	for _, group := range f.RowGroups() {
		rows := group.Rows()
		buffer := make([]parquet.Row, 7)
		for {
			n, err := rows.ReadRows(buffer)
			for _, row := range buffer[:n] {
				var line []string
				for _, v := range row {
					line = append(line, cell(v))
				}
				all = append(all, line)
			}
			if err != nil {
				break
			}
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func cell(v parquet.Value) string {
	switch {
	case v.IsNull():
		return ""
	case v.Kind() == parquet.Double:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64)
	}
	return v.String()
}

const (
	evicting = "../testdata/places/gangdefrag.yaml"
	binding  = "../../../examples/bindings/scenario.yaml"
)

func TestTables_AreEqualInBothFormats(t *testing.T) {
	a, _ := record(t, "../../../examples/budgets/scenario.yaml", 1)
	b, _ := record(t, binding, 2)
	for _, table := range dataset.Tables() {
		rows, file := files(t, table.Name(), a, b)
		if got := cells(t, file); !slices.EqualFunc(got, rows, slices.Equal) {
			t.Errorf("table %s differs:\nCSV     %q\nParquet %q", table.Name(), rows, got)
		}
		if len(rows) < 3 && table.Name() != "queue" {
			t.Errorf("table %s has %d lines: the scenarios must fill it", table.Name(), len(rows))
		}
		again, other := files(t, table.Name(), a, b)
		if !slices.EqualFunc(again, rows, slices.Equal) || !bytes.Equal(file, other) {
			t.Errorf("table %s: a second write differs from the first", table.Name())
		}
	}
}

func TestTables_HoldTheResult(t *testing.T) {
	part, run := record(t, "../../../examples/budgets/scenario.yaml", 1)
	rows, _ := files(t, "placements", part)
	if got, want := len(rows)-1, len(run.Result.Placements); got != want || want == 0 {
		t.Errorf("placements: %d rows, want %d", got, want)
	}
	rows, _ = files(t, "evictions", part)
	if got, want := len(rows)-1, run.Metrics.Victims; got != want || want == 0 {
		t.Errorf("evictions: %d rows, want %d", got, want)
	}
	lost := column(rows, "lost_work_s")
	for i, v := range run.Result.Evicted {
		if want := strconv.FormatFloat(float64(v.LostWork)/1e9, 'g', -1, 64); lost[i] != want {
			t.Errorf("eviction of %s: lost work %s s, want %s s", v.Alloc, lost[i], want)
		}
	}
	rows, _ = files(t, "metrics", part)
	names, values := column(rows, "metric"), column(rows, "value")
	for i, v := range run.Metrics.Flatten() {
		if names[i] != v.Name || values[i] != strconv.FormatFloat(v.Value, 'g', -1, 64) {
			t.Errorf("metric %d is %s = %s, want %s = %v", i, names[i], values[i], v.Name, v.Value)
		}
	}
}

// TestQueue_EndsWithTheUnplacedInstances replays the changes of a run in which some work
// never fits.
func TestQueue_EndsWithTheUnplacedInstances(t *testing.T) {
	for _, file := range []string{evicting, "../../../examples/budgets/scenario.yaml", "../../../examples/silent-node/scenario.yaml"} {
		part, run := record(t, file, 1)
		rows, _ := files(t, "queue", part)
		jobs, groups, counts := column(rows, "job"), column(rows, "group"), column(rows, "pending")
		pending := map[[2]string]string{}
		for i := range jobs {
			key := [2]string{jobs[i], groups[i]}
			if before, known := pending[key]; known && before == counts[i] || !known && counts[i] == "0" {
				t.Errorf("%s: row %d repeats the number %s of %v", file, i, counts[i], key)
			}
			pending[key] = counts[i]
		}
		for key, n := range pending {
			if n == "0" {
				delete(pending, key)
			}
		}
		for _, u := range run.Result.Unplaced {
			key := [2]string{u.Job, u.Group}
			if pending[key] != strconv.Itoa(u.Count) {
				t.Errorf("%s: %v ends with %q pending instances, want %d", file, key, pending[key], u.Count)
			}
			delete(pending, key)
		}
		if len(pending) > 0 {
			t.Errorf("%s: groups are pending at the end although all of their instances are placed: %v", file, pending)
		}
	}
}

func column(rows [][]string, name string) (cells []string) {
	at := slices.Index(rows[0], name)
	for _, row := range rows[1:] {
		cells = append(cells, row[at])
	}
	return cells
}

// TestPart_LeavesNoFiles fails if temporary files remain.
func TestPart_LeavesNoFiles(t *testing.T) {
	dir := t.TempDir()
	part, err := dataset.NewPart(dir)
	if err != nil {
		t.Fatal(err)
	}
	if list, _ := os.ReadDir(dir); len(list) != len(dataset.Tables()) {
		t.Errorf("%d temporary files, want one for each table", len(list))
	}
	if err := part.Close(); err != nil {
		t.Fatal(err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 0 {
		t.Errorf("%d temporary files remain", len(list))
	}
	if _, err := dataset.NewPart(dir + "/missing"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a missing folder returns %v", err)
	}
}
