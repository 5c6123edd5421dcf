package build

import (
	"compress/gzip"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/cede-scheduler/cede/core/sim/scenario"
)

func TestNodeHash_IsFNV1aOfTheNameAndX(t *testing.T) {
	t.Parallel()
	h := uint32(2166136261)
	for _, c := range []byte("node-7x") {
		h = (h ^ uint32(c)) * 16777619
	}
	if got := nodeHash("node-7"); got != h {
		t.Errorf("got %d, want %d", got, h)
	}
}

func TestShrink_SmallerClusterIsSubset(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var nodes []scenario.Node
		for i := range rapid.IntRange(1, 40).Draw(t, "nodes") {
			nodes = append(nodes, scenario.Node{ID: fmt.Sprintf("n%d", i)})
		}
		a := rapid.Float64Range(0.01, 1).Draw(t, "a")
		b := rapid.Float64Range(a, 1).Draw(t, "b")
		less := (&Options{Keep: a}).shrink(slices.Clone(nodes))
		more := (&Options{Keep: b}).shrink(slices.Clone(nodes))
		if len(less) == 0 {
			t.Fatal("no nodes left")
		}
		i := 0
		for _, n := range more { // both are in the order of the trace
			if i < len(less) && less[i].ID == n.ID {
				i++
			}
		}
		if i != len(less) {
			t.Fatalf("%v is not part of %v", less, more)
		}
	})
}

func TestSampled_IsMonotoneAndProportional(t *testing.T) {
	t.Parallel()
	count := make(map[float64]int)
	for i := range 20_000 {
		id := fmt.Sprint(i)
		was := false
		for _, f := range []float64{0.001, 0.1, 0.5, 0.9, 1} {
			is := Sampled(id, f)
			if was && !is {
				t.Fatalf("%s is in a smaller sample and not in that of %v", id, f)
			}
			was = is
			if is {
				count[f]++
			}
		}
	}
	if count[1] != 20_000 || count[0.1] < 1800 || count[0.1] > 2200 || count[0.5] < 9700 || count[0.5] > 10_300 {
		t.Errorf("samples of 20,000: %v", count)
	}
}

func TestParseSeconds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"0": 0, "0.0": 0, "5611.086": 5_611_086_000_000, "1.5": 1_500_000_000,
		"0.0000000019": 1, "4000000000": 4_000_000_000_000_000_000,
	} {
		if got, ok := ParseSeconds(text); !ok || got != want {
			t.Errorf("%s: %d, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-1", "+1", "1.", ".5", "1.5s", "1e3", "4000000001", "1.2.3", "0.00000000000x"} {
		if got, ok := ParseSeconds(text); ok {
			t.Errorf("%q: got %d, want an error", text, got)
		}
	}
}

func TestTable_BoundsARow(t *testing.T) {
	t.Parallel()
	src := Source{FS: fstest.MapFS{"x.csv": {Data: []byte("a\n1\n\"" + strings.Repeat("x", 2*maxRow))}}}
	tab, err := src.Table("x.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	for tab.Next() {
	}
	if tab.Err() == nil || !strings.Contains(tab.Err().Error(), "x.csv:3: ") || !strings.Contains(tab.Err().Error(), "quote") {
		t.Errorf("got %v", tab.Err())
	}
}

func TestTable_NamesTruncatedFile(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte("a\n" + strings.Repeat("1\n", 1000)))
	_ = z.Close()
	src := Source{FS: fstest.MapFS{"x.csv.gz": {Data: []byte(b.String()[:b.Len()-9])}, "y.csv.gz": {Data: []byte("no gzip")}}}
	tab, err := src.Table("x.csv.gz")
	for err == nil && tab.Next() {
	}
	if err == nil {
		err = tab.Err()
		_ = tab.Close()
	}
	if err == nil || !strings.HasPrefix(err.Error(), "x.csv.gz") {
		t.Errorf("got %v", err)
	}
	if _, err := src.Table("y.csv.gz"); err == nil || !strings.Contains(err.Error(), "y.csv.gz: not a gzip file") {
		t.Errorf("got %v", err)
	}
}
