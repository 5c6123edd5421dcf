package term

import (
	"testing"
	"time"
	"unicode/utf8"
)

func TestProgressLine_ShowsPercentageAndTimeLeft(t *testing.T) {
	const long = "a detail that is too long to fit beside the others in one line of a terminal"
	for _, test := range []struct {
		share   float64
		elapsed time.Duration
		details []string
		want    string
	}{
		{0, time.Second, []string{"web"}, "0 %, web"},
		{0.25, 10 * time.Second, []string{"web", "3 placed"}, "25 %, about 30s left, web, 3 placed"},
		{0.1, time.Minute, []string{"web"}, "10 %, about 9m left, web"},
		{0.02, 5 * time.Minute, nil, "2 %, about 4h05m left"},
		{1, time.Minute, []string{"web"}, "100 %, web"},
		{1.5, time.Minute, nil, "100 %"},
		{-1, time.Minute, []string{"web"}, "web"},
		{0.5, 4 * time.Second, []string{"first", long, "last"}, "50 %, about 4s left, first, last"},
	} {
		got := ProgressLine(test.share, test.elapsed, test.details...)
		if got != test.want || utf8.RuneCountInString(got) > 79 {
			t.Errorf("%v after %v: got %q, want %q", test.share, test.elapsed, got, test.want)
		}
	}
	if got := ProgressLine(-1, 0, long+long); utf8.RuneCountInString(got) > 79 {
		t.Errorf("%d columns: %q", utf8.RuneCountInString(got), got)
	}
}
