package cmdutil

import (
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

// ParseMoves returns the limit on moves that the flag --moves contains. alternative names other
// values that the command accepts, such as ", or off"; it is part of the hint of an error.
func ParseMoves(text, alternative string) (*client.Moves, error) {
	number, window, _ := strings.Cut(text, "/")
	n, err := strconv.ParseInt(number, 10, 32)
	d, windowErr := time.ParseDuration(window)
	if err != nil || windowErr != nil || n < 1 || d <= 0 {
		return nil, Usagef("use a number and a duration, such as 1/1h"+alternative, "invalid --moves %q", text)
	}
	return &client.Moves{PerJob: int(n), Window: d}, nil
}
