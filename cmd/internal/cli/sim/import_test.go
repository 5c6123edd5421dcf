package sim

import (
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/sim/importer"
)

func TestImportLine_ShowsPercentageAndTimeLeft(t *testing.T) {
	for _, tc := range []struct {
		progress importer.Progress
		want     string
	}{
		{importer.Progress{Read: 1 << 20, Total: 4 << 20}, "25 %, about 30s left, google, 1.0 MiB of 4.0 MiB, 10s"},
		{importer.Progress{Read: 1 << 20}, "google, 1.0 MiB, 10s"}, // a stream has no size
	} {
		if got := importLine("google", tc.progress, 10*time.Second); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.progress, got, tc.want)
		}
	}
}
