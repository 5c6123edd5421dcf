package steps

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/internal/plainjson"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// An Answer is the answer to a decision. Each hook has fields of its own; an answer without
// any is that of the policy. Lists are by row of candidates or by option.
type Answer struct {
	ID       *int       `json:"id,omitempty"`       // of the decision; optional
	Eligible []bool     `json:"eligible,omitempty"` // PriorityDelta, ScoreVictims, SelectVictims: by row
	Gap      []int32    `json:"gap,omitempty"`      // PriorityDelta: by row, instead of eligible
	Tier     []int64    `json:"tier,omitempty"`     // with score of rows: by row
	Score    []*float64 `json:"score,omitempty"`    // ScoreVictims, SelectVictims: by row, null excludes; ScoreOptions: by option
	Picks    [][]int    `json:"picks,omitempty"`    // SelectVictims, PreemptBindings: rows by option, in the order of eviction
	Tiers    [][]int64  `json:"tiers,omitempty"`    // ScoreOptions, PreemptBindings: up to four lists by option
	Option   *int       `json:"option,omitempty"`   // ScoreOptions: the best option
	// RecheckAt is the time at which the answer may change, in nanoseconds; 0: never.
	RecheckAt int64 `json:"recheckAt,omitempty"`
}

// parseAnswer parses an answer: an object whose values are not null, except those of score.
func parseAnswer(text []byte) (*Answer, error) {
	var a Answer
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := plainjson.Explain(d.Decode(&a)); err != nil {
		return nil, fmt.Errorf("invalid JSON: %w", err)
	}
	var value any
	_ = json.Unmarshal(text, &value) // it was decoded before
	problems := nulls("", value)
	if a.RecheckAt < 0 {
		problems = append(problems, fmt.Sprintf("recheckAt: expected 0 or more nanoseconds, found %d", a.RecheckAt))
	}
	if len(problems) > 0 {
		return nil, errors.New(listed(problems))
	}
	return &a, nil
}

// nulls returns a problem for each null, which would otherwise be read as a missing value, 0,
// false or an empty list.
func nulls(path string, value any) (problems []string) {
	switch v := value.(type) {
	case nil:
		if path == "" {
			return []string{"expected an object, found null; {} is the answer of the policy"}
		}
		return []string{path + ": expected a value, found null"}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			problems = append(problems, nulls(name, v[name])...)
		}
	case []any:
		for i, element := range v {
			if element != nil || path != "score" {
				problems = append(problems, nulls(fmt.Sprintf("%s[%d]", path, i), element)...)
			}
		}
	}
	return problems
}

func (a *Answer) isEmpty() bool { return len(a.fields()) == 0 }

// fields lists the fields that the answer has.
func (a *Answer) fields() (list []string) {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"eligible", a.Eligible != nil},
		{"gap", a.Gap != nil},
		{"tier", a.Tier != nil},
		{"score", a.Score != nil},
		{"picks", a.Picks != nil},
		{"tiers", a.Tiers != nil},
		{"option", a.Option != nil},
		{"recheckAt", a.RecheckAt != 0},
	} {
		if f.set {
			list = append(list, f.name)
		}
	}
	return list
}

// fieldsOf lists the fields of an answer by hook.
var fieldsOf = map[string][]string{
	"PriorityDelta":   {"eligible", "gap", "recheckAt"},
	"ScoreVictims":    {"score", "tier", "eligible", "recheckAt"},
	"SelectVictims":   {"picks", "score", "tier", "eligible", "recheckAt"},
	"ScoreOptions":    {"option", "score", "tiers", "recheckAt"},
	"PreemptBindings": {"picks", "tiers", "recheckAt"},
}

// foreign returns a problem for each field that belongs to another hook.
func (a *Answer) foreign(hook string) (problems []string) {
	for _, name := range a.fields() {
		if !slices.Contains(fieldsOf[hook], name) {
			problems = append(problems, fmt.Sprintf("%s: not a field of %s: expected %s", name, hook, strings.Join(fieldsOf[hook], ", ")))
		}
	}
	return problems
}

func length(name string, have, want int) []string {
	if have == want {
		return nil
	}
	return []string{fmt.Sprintf("%s: expected %d values, found %d", name, want, have)}
}

func exclusive(name, other string, both bool) []string {
	if !both {
		return nil
	}
	return []string{name + " cannot be combined with " + other}
}

// checkPicks checks that each option has its list of rows, each at most once.
func checkPicks(a *Answer, in *sdk.Candidates) []string {
	problems := length("picks", len(a.Picks), in.Len())
	if len(problems) > 0 {
		return problems
	}
	for option, rows := range a.Picks {
		first, last := int(in.FirstRow[option]), int(in.FirstRow[option+1])-1
		for at, row := range rows {
			if row < first || row > last {
				problems = append(problems, fmt.Sprintf("picks[%d][%d]: expected a row from %d to %d, found %d", option, at, first, last, row))
			} else if slices.Contains(rows[:at], row) {
				problems = append(problems, fmt.Sprintf("picks[%d][%d]: row %d is picked twice", option, at, row))
			}
		}
	}
	return problems
}

// checkScores checks an answer that orders rows.
func checkScores(a *Answer, in *sdk.Candidates) (problems []string) {
	rows := in.Rows.Len()
	if a.Score != nil {
		problems = length("score", len(a.Score), rows)
	}
	if a.Tier != nil {
		problems = append(problems, length("tier", len(a.Tier), rows)...)
		if a.Score == nil {
			problems = append(problems, "tier: requires score")
		}
	}
	if a.Eligible != nil {
		problems = append(problems, length("eligible", len(a.Eligible), rows)...)
	}
	return problems
}

// checkOrder checks an answer that picks rows or orders them.
func checkOrder(a *Answer, in *sdk.Candidates) []string {
	problems := checkScores(a, in)
	if a.Picks != nil {
		problems = append(append(problems, checkPicks(a, in)...), exclusive("picks", "score", a.Score != nil)...)
	}
	return problems
}

// order returns the rows of each option by tier, score and position, without rows of the
// score null.
func (a *Answer) order(in *sdk.Candidates) [][]int {
	picks := make([][]int, in.Len())
	for option := range picks {
		picks[option] = []int{}
		for row := int(in.FirstRow[option]); row < int(in.FirstRow[option+1]); row++ {
			if a.Score[row] != nil {
				picks[option] = append(picks[option], row)
			}
		}
		slices.SortStableFunc(picks[option], func(x, y int) int {
			if a.Tier != nil && a.Tier[x] != a.Tier[y] {
				return cmp.Compare(a.Tier[x], a.Tier[y])
			}
			return cmp.Compare(*a.Score[x], *a.Score[y])
		})
	}
	return picks
}

// removeIneligible removes picks that are not eligible.
func (a *Answer) removeIneligible() {
	if a.Eligible == nil {
		return
	}
	for option := range a.Picks {
		a.Picks[option] = slices.DeleteFunc(a.Picks[option], func(row int) bool { return !a.Eligible[row] })
	}
}

func checkTiers(a *Answer, options int) (problems []string) {
	if most := len(sdk.OptionScores{}.Tiers); len(a.Tiers) > most {
		problems = append(problems, fmt.Sprintf("tiers: expected at most %d lists, found %d", most, len(a.Tiers)))
	}
	for i := range a.Tiers {
		problems = append(problems, length(fmt.Sprintf("tiers[%d]", i), len(a.Tiers[i]), options)...)
	}
	return problems
}

func (a *Answer) setRecheck(to *sdk.Recheck) {
	*to = sdk.Recheck{}
	if a.RecheckAt != 0 {
		to.At(a.RecheckAt)
	}
}

func (a *Answer) setPicks(to *sdk.Selection) {
	to.Reset()
	for _, rows := range a.Picks {
		for _, row := range rows {
			to.Pick(row)
		}
		to.Next()
	}
	a.setRecheck(&to.Recheck)
}

func (a *Answer) setTiers(to *[4][]int64) {
	for i := range to {
		clear(to[i])
		if i < len(a.Tiers) {
			copy(to[i], a.Tiers[i])
		}
	}
}

// scoresOf returns scores in the form of an answer.
func scoresOf(list []float64) []*float64 {
	out := make([]*float64, len(list))
	for i := range list {
		if !math.IsInf(list[i], 0) && !math.IsNaN(list[i]) {
			out[i] = &list[i]
		}
	}
	return out
}

func picksOf(s *sdk.Selection) [][]int {
	out := make([][]int, s.Len())
	for i := range out {
		out[i] = []int{}
		for _, row := range s.Rows(i) {
			out[i] = append(out[i], int(row))
		}
	}
	return out
}

func tiersOf(tiers *[4][]int64) (out [][]int64) {
	for i := range tiers {
		out = append(out, slices.Clone(tiers[i]))
	}
	return out
}
