package operator

import (
	"testing"
	"time"
)

func TestTransferLine(t *testing.T) {
	for _, tc := range []struct {
		n, size int64
		want    string
	}{
		{1 << 20, 4 << 20, "25 %, about 30s left, c.snap, 1.0 MiB of 4.0 MiB, 10s"},
		{1 << 20, 0, "c.snap, 1.0 MiB, 10s"},
	} {
		if got := transferLine("dir/c.snap", tc.n, tc.size, 10*time.Second); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}
