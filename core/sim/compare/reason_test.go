package compare

import (
	"bytes"
	"strings"
	"testing"
)

func TestDivergence_ReasonNamesCosts(t *testing.T) {
	t.Parallel()
	a := Choice{Policy: "a", Placed: true, Node: "n1", Victims: []string{"x"}, Cost: Cost{HighestPriority: 20, LostWork: 90}}
	b := Choice{Policy: "b", Placed: true, Node: "n2", Victims: []string{"y"}, Cost: Cost{HighestPriority: 50, LostWork: 30}}
	v := Divergence{Choices: []Choice{a, b}}
	want := "a evicts 1 on n1, b evicts 1 on n2 (a evicts priority 20, b evicts priority 50; a loses 1m30s of work, b loses 30s of work)"
	if got := v.reason(); got != want {
		t.Errorf("reason = %q, want %q", got, want)
	}
}

// A rare event has the median 0 and the interval [0, 0]. The mean shows it.
func TestTable_ShowsMeanThatQuantilesHide(t *testing.T) {
	t.Parallel()
	var runs []Run
	for seed := range uint64(40) {
		for _, policy := range []string{"default", "nomad"} {
			r := run(policy, seed, 12, 500, 3)
			r.Metrics.PingPong, r.Decisions = 0, nil
			if seed == 7 && policy == "nomad" {
				r.Metrics.PingPong = 6
			}
			runs = append(runs, r)
		}
	}
	d := New(runs)
	row := d.Row("pingPong")
	if row.Policies["nomad"].High != 0 || row.Means["nomad"] != 0.15 || len(row.Means) != 1 {
		t.Errorf("%+v", row)
	}
	var b bytes.Buffer
	if err := d.WriteTable(&b, 0); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "0 (mean 0.15)") {
		t.Errorf("no mean in:\n%s", &b)
	}
}
