package cmdutil

import (
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

// ParseMoves returns the limit on moves, or nil if they are to be off.
func ParseMoves(text string) (*client.Moves, error) {
	if text == "off" {
		return nil, nil //nolint:nilnil // absent is a value: moves are off
	}
	number, window, _ := strings.Cut(text, "/")
	n, err := strconv.ParseInt(number, 10, 32)
	d, windowErr := time.ParseDuration(window)
	if err != nil || windowErr != nil || n < 1 || d <= 0 {
		return nil, Usagef("use a number and a duration, such as 1/1h, or off", "invalid --moves %q", text)
	}
	return &client.Moves{PerJob: int(n), Window: d}, nil
}
