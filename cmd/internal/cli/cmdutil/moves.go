package cmdutil

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

// ParseMoves returns the limit on moves that the flag --moves contains. alternative names other
// values that the command accepts, such as ", or off"; it is part of the hint of an error.
func ParseMoves(text, alternative string) (*client.Moves, error) {
	number, window, _ := strings.Cut(text, "/")
	var problems []string
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil || n < 1 {
		problems = append(problems, fmt.Sprintf("the number must be between 1 and %d", math.MaxInt32))
	}
	d, err := time.ParseDuration(window)
	if err != nil || d <= 0 {
		problems = append(problems, "the window must be a duration above 0")
	}
	if len(problems) > 0 {
		return nil, Usagef("use a number and a duration, such as 1/1h"+alternative, "invalid --moves %q: %s", text, strings.Join(problems, ", and "))
	}
	return &client.Moves{PerJob: int(n), Window: d}, nil
}
