package guesttest

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// Probes built for earlier ABI versions decode frames of current hosts, and promise only
// features of their version. Frames that use later features are skipped.
func TestOlder_ProbesRemainSupported(t *testing.T) {
	for name, c := range map[string]struct {
		columns policy.Columns
		later   bool // it has the flags of versions after 1.0
		unlike  []string
	}{
		"probe-c-1.0":              {1<<16 - 1, false, append(relocation(), "describe", "preempt-bindings", "score-victims-budgets", "score-options-budgets", "bad-budgets")},
		"probe-assemblyscript-1.2": {1<<17 - 1, false, append(relocation(), "describe")},
		"probe-rust-1.3":           {1<<18 - 1, true, []string{"describe", lookAhead}},
	} {
		t.Run(name, func(t *testing.T) {
			code, err := os.ReadFile(guests + "older/" + name + ".wasm")
			if err != nil {
				t.Fatal(err)
			}
			m := compile(t, code)
			want := policy.Info{Name: "probe", Delta: -7, Columns: c.columns, Adaptive: true, Ascending: true, KeepRedundant: true}
			if c.later {
				want.LeastFirst, want.Monotone, want.YoungestFirst, want.Elastic, want.MultiCluster = true, true, true, true, true
			}
			if diff := cmp.Diff(want, m.start(t).describe().Info); diff != "" {
				t.Error(diff)
			}
			if put := checkGoldenBut(t, m, c.unlike...); put < 70 {
				t.Errorf("%d frames: that shows too little", put)
			}
		})
	}
}

// lookAhead is the frame with columns of version 1.4.
const lookAhead = "score-options-lookahead"

// relocation returns the frames with columns of version 1.3 and later.
func relocation() (names []string) {
	for _, hook := range []string{"priority-delta", "score-victims", "select-victims", "score-options"} {
		names = append(names, hook+"-relocation")
	}
	return append(names, lookAhead)
}
