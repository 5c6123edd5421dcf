package term

import (
	"fmt"
	"time"
)

// progressWidth is the maximum width of a progress line, so that it fits a terminal of 80
// columns without being truncated.
const progressWidth = 79

// minShare is the share from which an estimate of the remaining time is shown: before, it
// varies too much.
const minShare = 0.02

// ProgressLine returns a line with the percentage done, the estimated time left, and as
// many details as fit in 79 columns. share is between 0 and 1; it is negative if the total
// is unknown.
func ProgressLine(share float64, elapsed time.Duration, details ...string) string {
	line := ""
	add := func(text string) {
		switch {
		case line == "":
			line = text
		case Columns(line)+2+Columns(text) <= progressWidth:
			line += ", " + text
		}
	}
	if share >= 0 {
		share = min(share, 1)
		add(fmt.Sprintf("%d %%", int(share*100)))
	}
	if share >= minShare && share < 1 && elapsed >= time.Second {
		add("about " + roundTime(time.Duration(float64(elapsed)*(1/share-1))) + " left")
	}
	for _, d := range details {
		add(d)
	}
	return clip(line, progressWidth+1)
}

// roundTime formats a duration with a precision that suits an estimate.
func roundTime(d time.Duration) string {
	switch {
	case d >= time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= 2*time.Minute:
		return fmt.Sprintf("%dm", d.Round(time.Minute)/time.Minute)
	}
	return fmt.Sprintf("%ds", (d+time.Second-1)/time.Second)
}
