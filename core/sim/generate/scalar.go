package generate

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

// The units in which a scalar may be read. Each reader refuses what is below
// zero.

var errNegative = errors.New("negative; expected 0 or more")

// maxTime is far more than any scenario lasts, and adds up without overflow.
const maxTime = 10 * 365 * 24 * 3600 * 1_000_000_000

// duration reads nanoseconds.
func (s Scalar) duration() (int64, error) {
	var ns int64
	if s.number {
		f, err := strconv.ParseFloat(s.text, 64)
		if err != nil || math.IsNaN(f) || math.Abs(f) > maxTime/1e9 {
			return 0, fmt.Errorf("%.40s is no number of seconds", s.text)
		}
		// Whole seconds and milliseconds come out exactly.
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
		return 0, fmt.Errorf("%.40s is more than ten years", s.text)
	}
	return ns, nil
}

// count reads a whole number.
func (s Scalar) count() (int64, error) {
	n, err := strconv.ParseInt(s.text, 10, 64)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%.40q is not a whole number", s.text)
	case n < 0:
		return 0, fmt.Errorf("%d is %w", n, errNegative)
	case n > maxTasks:
		return 0, fmt.Errorf("%d is more than %d", n, maxTasks)
	}
	return n, nil
}

// amount returns the reader of amounts of a resource; a number is in the
// resource's unit, a text is a quantity as Kubernetes writes it.
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
			return 0, fmt.Errorf("%d is more than %d", n, int64(model.MaxAmount))
		}
		return n, nil
	}
}
