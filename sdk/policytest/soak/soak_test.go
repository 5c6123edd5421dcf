package soak

import "testing"

func TestCount_DependsOnTheEnvironment(t *testing.T) {
	for _, tc := range []struct {
		name        string
		full, quick string
		want        int // of Count(80, 1000)
	}{
		{"full", "1", "", 1000},
		{"full takes precedence", "1", "1", 1000},
		{"reduced", "", "1", 10},
		{"normal", "", "", 80},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("CEDE_SOAK", tc.full)
			t.Setenv("CEDE_QUICK", tc.quick)
			want := tc.want
			if Race && want == 80 {
				want = 10
			}
			if got := Count(80, 1000); got != want {
				t.Errorf("Count(80, 1000) = %d, want %d", got, want)
			}
			if got := Count(3, 3); got < 1 {
				t.Errorf("Count(3, 3) = %d, want at least 1", got)
			}
		})
	}
}
