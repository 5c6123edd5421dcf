package policytest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

const story = `
preemptor 90 cpu=1000 device:gpu=4   # asks for both
node n1 cpu=100 memory=5 device:gpu=2@7
  big   40 cpu=1000 device:gpu=3 port
  small 20 cpu=200 memory=1 evictions=1/2
node n1 cpu=100 device:gpu=0@8
`

func TestParse_ReadsWhatItSays(t *testing.T) {
	c := policytest.MustParse(t, story)
	in := c.Candidates()
	for _, tt := range []struct{ what, got, want any }{
		{"dimensions", fmt.Sprint(c.Dims), "[cpu memory]"},
		{"priority", c.Preemptor.Priority, int32(90)},
		{"needs", fmt.Sprint(in.Need), "[[900 900] [-5 0]]"},
		{"device needs", fmt.Sprint(in.DeviceNeed), "[[2 4]]"},
		{"rows", fmt.Sprint(in.FirstRow), "[0 2 2]"},
		{"priorities", fmt.Sprint(in.Rows.Priority), "[20 40]"},
		{"use", fmt.Sprint(in.Rows.Use), "[[200 1000] [1 0]]"},
		{"devices", fmt.Sprint(in.Rows.Devices), "[[0 3]]"},
		{"must leave", fmt.Sprintf("%d %d", in.MustLeave, in.Rows.MustLeave), "[1 0] [0 1]"},
		{"evictions", fmt.Sprint(in.Rows.Evictions, in.Rows.EvictionLimit), "[1 0] [2 0]"},
		{"nodes", c.Options[0].Node == c.Options[1].Node, true},
		{"group", c.Options[1].DeviceGroup[0], int32(8)},
	} {
		if tt.got != tt.want {
			t.Errorf("%v: %v, want %v", tt.what, tt.got, tt.want)
		}
	}
}

func TestParse_SaysWhereItFails(t *testing.T) {
	for text, want := range map[string]string{
		"  a 20 cpu=1":                               "line 1",
		"preemptor":                                  "priority",
		"preemptor 90 cpu":                           "name=number",
		"preemptor 90\nnode n1\n  a high":            "line 3: a",
		"preemptor 90\nnode n1 device:gpu=1":         "does not ask",
		"preemptor 90\nnode n1\n  a 2 evictions=one": "a: ",
	} {
		if _, err := policytest.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
}

func TestSettle_StopsWhenItFitsAndSparesFromTheEnd(t *testing.T) {
	c := policytest.MustParse(t, `
	preemptor 90 cpu=100
	node n1 cpu=0
	  a 10 cpu=40
	  b 20 cpu=50
	  c 30 cpu=60
	  d 40 cpu=100
	node n2 cpu=0
	  e 10 cpu=40`)
	in := c.Candidates()
	var s policy.Selection
	s.Reset()
	for row := range 4 {
		s.Pick(row)
	}
	s.Next()
	s.Pick(4)
	s.Next()
	if got, want := fmt.Sprint(policytest.Settle(in, &s, false)), "[[0 2] []]"; got != want {
		t.Errorf("victims %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(policytest.Settle(in, &s, true)), "[[0 1 2 3] []]"; got != want {
		t.Errorf("kept whole: victims %s, want %s", got, want)
	}
}
