package wasm_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/hosttest"
	"github.com/cede-scheduler/cede/plugins/wasm"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/settings"
)

// Whatever is done to a module, loading and calling it must end with an answer, a fault or
// a rejection.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/hostile/*.wasm")
	check(f, err)
	for _, file := range files {
		code, err := os.ReadFile(file)
		check(f, err)
		f.Add(code)
	}
	h, err := wasm.NewHost(wasm.Options{})
	check(f, err)
	f.Fuzz(func(t *testing.T, code []byte) {
		m, err := h.Load(t.Context(), bytes.Clone(code), policy.Limits{Fuel: 100_000, Memory: 4 << 20})
		if err != nil {
			return
		}
		defer m.Close()
		config, err := settings.Read(m.Settings(), nil)
		if err != nil {
			return
		}
		in, err := m.Start(config)
		if err != nil {
			return
		}
		defer in.Close()
		askAnything(in, hosttest.UniformCandidates(2, 3))
		if n, _ := wasm.Live(m); n != 1 {
			t.Fatalf("%d instances", n)
		}
	})
}

// askAnything calls all hooks and ignores the answers.
func askAnything(in policy.Instance, q *sdk.Candidates) {
	var out sdk.Selection
	out.Reset()
	_ = in.SelectVictims(q, &out)
	_ = in.PriorityDelta(q, make([]int32, q.Rows.Len()), &sdk.Recheck{})
	_ = in.ScoreVictims(q, &sdk.VictimScores{Tier: make([]int64, q.Rows.Len()), Score: make([]float64, q.Rows.Len())})
}
