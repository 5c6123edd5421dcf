package sim_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/core/sim"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// renamed returns a scenario in which the words that a pattern matches have other names, its
// nodes and running allocations are in another order, and the old names by the new ones.
func renamed(t *testing.T, name, pattern string, d *rand.Rand) (*scenario.File, map[string]string) {
	t.Helper()
	text, err := os.ReadFile("testdata/places/" + name)
	if err != nil {
		t.Fatal(err)
	}
	words := regexp.MustCompile(`\b(` + pattern + `)\b`)
	old := slices.Compact(slices.Sorted(slices.Values(words.FindAllString(string(text), -1))))
	renames, names := map[string]string{}, map[string]string{}
	for i, at := range d.Perm(len(old)) {
		renames[old[i]] = fmt.Sprintf("x%02d", at)
		names[renames[old[i]]] = old[i]
	}
	f, err := scenario.Decode(name, strings.NewReader(words.ReplaceAllStringFunc(string(text), func(word string) string { return renames[word] })))
	if err != nil {
		t.Fatal(err)
	}
	d.Shuffle(len(f.Nodes), func(i, j int) { f.Nodes[i], f.Nodes[j] = f.Nodes[j], f.Nodes[i] })
	d.Shuffle(len(f.Running), func(i, j int) { f.Running[i], f.Running[j] = f.Running[j], f.Running[i] })
	return f, names
}

// A gang that shares a rack takes the rack with the cheapest victims, whatever the names and
// the order of nodes, jobs and allocations.
func TestPlaces_GangUsesCheapestRack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, words string
		policies    []string
		evicted     string
	}{
		{"racks.yaml", "[ab][1-4]?|low|mid|train|[lm][1-8]", builtin.Names(), "l5 l6 l7 l8"},
		{"clique.yaml", "[ab][12]?|low|train|l[1-4]", []string{"least-waste"}, "l3 l4"},
	} {
		for _, policy := range c.policies {
			t.Run(c.file+" under "+policy, func(t *testing.T) {
				t.Parallel()
				for seed := range uint64(24) {
					f, names := renamed(t, c.file, c.words, rand.New(rand.NewPCG(7, seed)))
					run := play(t, f, sim.Options{Policy: policy})
					var evicted []string
					for _, e := range run.Result.Evicted {
						evicted = append(evicted, names[e.Alloc])
					}
					slices.Sort(evicted)
					if got := strings.Join(evicted, " "); got != c.evicted {
						t.Fatalf("seed %d: evicted %s, want %s", seed, got, c.evicted)
					}
				}
			})
		}
	}
}

// Of two equal candidates the one that fits elsewhere is evicted, and continues there,
// whatever the names and the order of nodes, jobs and allocations. Under policies that do not
// read where victims could run instead, the names decide. aging and protect leave the order of
// options to default, which reads it.
func TestPlaces_VictimHasSomewhereToGo(t *testing.T) {
	t.Parallel()
	for _, policy := range builtin.Names() {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			evicted := map[string]int{}
			for seed := range uint64(24) {
				f, names := renamed(t, "ds.yaml", "n[12]|agentd|web|top|a1|w1", rand.New(rand.NewPCG(8, seed)))
				run := play(t, f, sim.Options{Policy: policy})
				if len(run.Result.Evicted) != 1 {
					t.Fatalf("seed %d: evicted %v", seed, run.Result.Evicted)
				}
				victim := names[run.Result.Evicted[0].Alloc]
				evicted[victim]++
				if isPlaced := len(run.Result.Unplaced) == 0; isPlaced != (victim == "w1") {
					t.Errorf("seed %d: %s is evicted, unplaced: %v", seed, victim, run.Result.Unplaced)
				}
			}
			if relocates := slices.Contains([]string{"aging", "default", "least-waste", "protect"}, policy); relocates != (evicted["w1"] == 24) || !relocates && evicted["w1"] == 0 {
				t.Errorf("evicted %v", evicted)
			}
		})
	}
}
