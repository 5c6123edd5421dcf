package rules_test

import (
	"fmt"
	"testing"

	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/rules"
)

func TestWaste_IsLostTimeOfTheWholeCluster(t *testing.T) {
	t.Parallel()
	c := policytest.MustParse(t, `
	cluster cpu=1000 memory=100
	preemptor 90 cpu=1 tape=0
	node n1
	  half    20 cpu=500 memory=50 age=10s
	  lopsided 20 cpu=1000 age=10s
	  saved   20 cpu=500 memory=50 age=10s lostwork=1s
	  new     20 cpu=500 memory=50
	  worth   20 cpu=500 memory=50 age=10s note:cost=3
	  trash   20 cpu=500 memory=50 age=10s note:cost=-1
	  odd     20 cpu=500 memory=50 age=10s tape=9
	  endless 20 cpu=1000 memory=100 age=2000000h note:cost=9`)
	in := c.Candidates()
	for _, tt := range []struct {
		w    rules.Waste
		want string
	}{
		{rules.Waste{}, "[5000000000 5000000000 500000000 0 5000000000 5000000000 5000000000 4503599627370496]"},
		{rules.Waste{Annotation: "cost"}, "[5000000000 5000000000 500000000 0 15000000000 0 5000000000 4503599627370496]"},
		{rules.Waste{Annotation: "cost", Seconds: true}, "[5000000000 5000000000 500000000 0 1500000000 0 5000000000 9000000000]"},
		{rules.Waste{Annotation: "nobody's"}, "[5000000000 5000000000 500000000 0 5000000000 5000000000 5000000000 4503599627370496]"},
	} {
		tt.w.Load(&in.Rows, in.Shared)
		var got []int64
		for row := range in.Rows.Len() {
			got = append(got, tt.w.Of(row))
		}
		if fmt.Sprint(got) != tt.want {
			t.Errorf("%+v: %v, want %s", tt.w.Annotation, got, tt.want)
		}
	}
}

func TestBalance_UnpickUndoesPick(t *testing.T) {
	t.Parallel()
	c := policytest.MustParse(t, `
	preemptor 90 cpu=100 memory=50 device:gpu=2
	node n1 cpu=20 memory=60 device:gpu=1
	  a 20 cpu=40 memory=10
	  b 20 cpu=100 device:gpu=1
	  c 20 port`)
	in := c.Candidates()
	var b rules.Balance
	b.Load(in)
	b.Reset(0)
	gains := func() string {
		text := ""
		for row := range in.Rows.Len() {
			gain, spill := b.Gain(row)
			text += fmt.Sprintf("%.2f+%.2f ", gain, spill)
		}
		return text
	}
	for _, step := range []struct {
		do      func()
		covered bool
		gains   string
	}{
		{func() {}, false, "0.50+0.00 2.00+0.25 0.00+0.00 "},
		{func() { b.Pick(0) }, false, "1.00+0.00 2.00+1.50 0.00+0.00 "},
		{func() { b.Pick(1) }, false, "0.00+0.00 0.00+0.00 0.00+0.00 "},
		{func() { b.Pick(2) }, true, "0.00+0.00 0.00+0.00 0.00+0.00 "},
		{func() { b.Reprieve(2); b.Reprieve(1); b.Reprieve(0) }, true, "0.00+0.00 0.00+0.00 0.00+0.00 "},
		{func() { b.Unpick(1) }, false, "0.50+0.00 2.00+0.25 0.00+0.00 "},
	} {
		step.do()
		if b.Covered() != step.covered || gains() != step.gains {
			t.Errorf("covered %v, gains %s; want %v, %s", b.Covered(), gains(), step.covered, step.gains)
		}
	}
}
