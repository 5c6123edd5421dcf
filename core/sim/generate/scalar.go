package generate

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// The readers of scalars, one per unit. Each rejects negative values.

var errNegative = errors.New("negative; expected 0 or more")

// maxTime bounds times in nanoseconds, so that sums of two do not overflow.
const maxTime = 10 * 365 * 24 * 3600 * 1_000_000_000

// duration returns nanoseconds. A number without a unit is in seconds.
func (s Scalar) duration() (int64, error) {
	var ns int64
	if s.number {
		f, err := strconv.ParseFloat(s.text, 64)
		if err != nil || math.IsNaN(f) || math.Abs(f) > maxTime/1e9 {
			return 0, fmt.Errorf("%.40s is not a valid number of seconds", s.text)
		}
		// Rounding keeps whole seconds and milliseconds exact.
		ns = int64(math.Round(f * 1e9))
	} else {
		d, err := scenario.ParseDuration(s.text)
		if err != nil {
			return 0, err
		}
		ns = int64(d)
	}
	switch {
	case ns < 0:
		return 0, fmt.Errorf("%.40s is %w", s.text, errNegative)
	case ns > maxTime:
		return 0, fmt.Errorf("%.40s is too long; expected at most ten years", s.text)
	}
	return ns, nil
}

// count returns a whole number of at most maxTasks.
func (s Scalar) count() (int64, error) {
	n, err := strconv.ParseInt(s.text, 10, 64)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%.40q is not an integer", s.text)
	case n < 0:
		return 0, fmt.Errorf("%d is %w", n, errNegative)
	case n > maxTasks:
		return 0, fmt.Errorf("%d is too large; expected at most %d", n, maxTasks)
	}
	return n, nil
}

// amount returns a reader of amounts of a resource. A number is in the unit of the
// resource, a string is a Kubernetes quantity.
func amount(resource string, parse func(resource, text string) (int64, error)) func(Scalar) (int64, error) {
	return func(s Scalar) (int64, error) {
		if !s.number {
			return parse(resource, s.text)
		}
		n, err := strconv.ParseInt(s.text, 10, 64)
		switch {
		case err != nil:
			return 0, fmt.Errorf("%.40s is not a whole number of %s", s.text, model.Unit(resource))
		case n < 0:
			return 0, fmt.Errorf("%d is %w", n, errNegative)
		case n > model.MaxAmount:
			return 0, fmt.Errorf("%d is too large; expected at most %d", n, int64(model.MaxAmount))
		}
		return n, nil
	}
}
