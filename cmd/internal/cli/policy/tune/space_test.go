package tune

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/builtin"
	"github.com/cede-scheduler/cede/core/tune"
	"github.com/cede-scheduler/cede/plugins/rules"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

var list = []sdk.Setting{
	{Name: "halfLife", Kind: sdk.Duration, Default: "10m", Range: sdk.Between(60, 6*3600)},
	{Name: "floor", Kind: sdk.Integer, Default: "7", Choices: []string{"1", "5", "20"}},
	{Name: "weight", Kind: sdk.Number, Default: "0.5", Range: sdk.Between(0, 1)},
	{Name: "fewest", Kind: sdk.Bool, Choices: []string{"false", "true"}},
	{Name: "note", Kind: sdk.Text, Default: "cost"},
}

func TestSettingsSpace_RendersChangedSettings(t *testing.T) {
	t.Parallel()
	s, err := settingsSpace(builtin.Spec{Use: "p", Config: map[string]any{"note": "a&b"}}, list, map[string]string{"weight": "0.25,0.75"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range s.Axes {
		names = append(names, a.Name)
	}
	if d := cmp.Diff([]string{"halfLife", "floor", "weight", "fewest"}, names); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"1", "5", "7", "20"}, s.Axes[1].Values); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"0.25", "0.5", "0.75"}, s.Axes[2].Values); d != "" {
		t.Error(d)
	}
	if n := len(s.Axes[0].Values); n < gridSteps || n > gridSteps+1 || s.Axes[0].Values[0] != "1m0s" || s.Axes[0].Values[n-1] != "6h0m0s" {
		t.Errorf("values of halfLife are %v", s.Axes[0].Values)
	}
	if got := s.Render(s.Start); got != "p?note=a%26b" {
		t.Errorf("the start is %s", got)
	}
	p := append(tune.Point{}, s.Start...)
	p[1], p[3] = 0, 1
	if got := s.Render(p); got != "p?fewest=true&floor=1&note=a%26b" {
		t.Error(got)
	}
	if again, err := builtin.Parse(s.Render(p)); err != nil || again.Config["note"] != "a&b" {
		t.Error(again, err)
	}
}

// Every policy of the grammar compiles.
func TestRulesSpace_EveryRuleCompiles(t *testing.T) {
	t.Parallel()
	s := rulesSpace()
	r := rand.New(rand.NewPCG(1, 2))
	points := []tune.Point{s.Start, make(tune.Point, len(s.Axes))}
	for axis := range s.Axes { // every expression once
		for v := range s.Axes[axis].Values {
			p := append(tune.Point{}, s.Start...)
			p[axis] = v
			points = append(points, p)
		}
	}
	for range 50 {
		p := make(tune.Point, len(s.Axes))
		for i := range p {
			p[i] = r.IntN(len(s.Axes[i].Values))
		}
		points = append(points, p)
	}
	for _, p := range points {
		text := s.Render(p)
		source, err := rules.ParseInline("r", text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if _, err := rules.Check(source); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if strings.Contains(text, "WEIGHT") {
			t.Error(text)
		}
	}
}
