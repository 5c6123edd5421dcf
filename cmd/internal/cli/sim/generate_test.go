package sim

import (
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/sim/generate"
)

func TestGenerateLine_ShowsPercentageAndTimeLeft(t *testing.T) {
	jobs := generate.Progress{Jobs: 1200, Share: 0.5}
	if got, want := generateLine("storm", jobs, 0, 10*time.Second), "5 %, about 3m left, storm, 1,200 jobs, 10s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	jobs.Share = 1
	if got, want := generateLine("storm", jobs, 0.5, 10*time.Second), "55 %, about 9s left, storm, 1,200 jobs, 10s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
