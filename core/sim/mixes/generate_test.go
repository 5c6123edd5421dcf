package mixes_test

import (
	"bytes"
	"testing"

	"github.com/cede-scheduler/cede/core/sim/mixes"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

func encoded(t *testing.T, f *scenario.File) []byte {
	var b bytes.Buffer
	if err := scenario.Encode(&b, f, scenario.YAML); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGenerate_IsValidAndDependsOnTheSeedAlone(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		text := encoded(t, mixes.Generate(seed))
		if !bytes.Equal(text, encoded(t, mixes.Generate(seed))) {
			t.Fatalf("seed %d gives two scenarios", seed)
		}
		if _, err := scenario.Decode("mix.yaml", bytes.NewReader(text)); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

func TestShrink_KeepsTheConditionAndLittleElse(t *testing.T) {
	t.Parallel()
	f := mixes.Generate(7)
	jobs := 0
	least := mixes.Shrink(f, func(f *scenario.File) bool {
		jobs = max(jobs, len(f.Jobs))
		return len(f.Jobs) >= 2
	})
	if jobs < 3 {
		t.Fatal("the mix is too small for this test")
	}
	if len(least.Jobs) != 2 || len(least.Nodes)+len(least.Events)+len(least.Running)+len(least.Budgets) > 0 {
		t.Errorf("not the smallest scenario:\n%s", encoded(t, least))
	}
}
