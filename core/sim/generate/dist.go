package generate

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/cede-scheduler/cede/core/suggest"
	"github.com/cede-scheduler/cede/sdk/fmath"
)

// Dist is a fixed value or a distribution, as written in the spec.
type Dist struct {
	kind    string // "" for a fixed value
	values  []Scalar
	weights []int64
	median  Scalar
	shape   float64 // sigma or alpha
	min     *Scalar
	max     *Scalar
	step    *Scalar
}

// distFields are the fields of a distribution.
var distFields = []string{"uniform", "choice", "weights", "lognormal", "pareto", "min", "max", "step"}

// UnmarshalYAML reads a value or {kind: ..., min: ..., max: ..., step: ...}.
func (d *Dist) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	*d = Dist{}
	if n.Kind == yaml.ScalarNode {
		d.values = make([]Scalar, 1)
		return d.values[0].UnmarshalYAML(n)
	}
	if n.Kind != yaml.MappingNode {
		return typeError(n, "expected a value or a distribution, such as {uniform: [1, 8]}")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if err := d.field(n.Content[i], n.Content[i+1]); err != nil {
			return err
		}
	}
	if d.kind == "" {
		return typeError(n, "missing distribution; expected one of uniform, choice, lognormal, pareto")
	}
	return nil
}

// field reads one field of a distribution.
func (d *Dist) field(key, value *yaml.Node) error {
	switch key.Value {
	case "uniform", "choice", "lognormal", "pareto":
		if d.kind != "" {
			return typeError(key, "%s and %s are mutually exclusive", d.kind, key.Value)
		}
		d.kind = key.Value
	}
	switch key.Value {
	case "uniform", "choice":
		return value.Decode(&d.values)
	case "weights":
		return value.Decode(&d.weights)
	case "lognormal":
		return d.parameters(value, "median", "sigma")
	case "pareto":
		return d.parameters(value, "alpha")
	case "min":
		d.min = new(Scalar)
		return d.min.UnmarshalYAML(value)
	case "max":
		d.max = new(Scalar)
		return d.max.UnmarshalYAML(value)
	case "step":
		d.step = new(Scalar)
		return d.step.UnmarshalYAML(value)
	}
	return typeError(key, "unknown field %.40q; %s", key.Value, suggest.Field(key.Value, distFields))
}

// parameters reads {median: ..., sigma: ...} or {alpha: ...}.
func (d *Dist) parameters(n *yaml.Node, fields ...string) error {
	if n.Kind != yaml.MappingNode || len(n.Content) != 2*len(fields) {
		return typeError(n, "expected {%s: ...}", strings.Join(fields, ": ..., "))
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if !slices.Contains(fields, key.Value) {
			return typeError(key, "unknown field %.40q; expected %s", key.Value, strings.Join(fields, " and "))
		}
		var err error
		if key.Value == "median" {
			err = d.median.UnmarshalYAML(value)
		} else {
			err = value.Decode(&d.shape)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// drawer is a distribution with its unit resolved.
type drawer struct {
	kind          string
	values        []int64
	cumulative    []int64 // of choice: cumulative sums of the weights
	median, shape float64
	lo, hi        int64
	step          int64
}

// compile resolves the values with read. It returns an error if a value is below least
// or the distribution is inconsistent. Draws are rounded to step if the spec has none.
func (d *Dist) compile(read func(Scalar) (int64, error), least, step int64) (*drawer, error) {
	out := &drawer{kind: d.kind, shape: d.shape, lo: least, hi: math.MaxInt64, step: step}
	var errs []string
	get := func(s *Scalar, into *int64) {
		if s == nil {
			return
		}
		v, err := read(*s)
		if err != nil {
			errs = append(errs, err.Error())
			return
		}
		*into = v
	}
	for i := range d.values {
		var v int64
		get(&d.values[i], &v)
		out.values = append(out.values, v)
	}
	get(d.min, &out.lo)
	get(d.max, &out.hi)
	get(d.step, &out.step)
	if d.kind == "lognormal" {
		var m int64
		get(&d.median, &m)
		out.median = float64(m)
	}
	if len(errs) == 0 {
		errs = d.check(out, least)
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(errs, ", and "))
	}
	return out, nil
}

// check returns the inconsistencies of the distribution.
func (d *Dist) check(out *drawer, least int64) (errs []string) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Sprintf(format, args...)) }
	if len(d.weights) > 0 && d.kind != "choice" {
		bad("weights are valid only with choice")
	}
	if out.lo > out.hi {
		bad("min is larger than max")
	}
	if out.step < 1 {
		bad("step must be above 0")
	}
	switch d.kind {
	case "", "uniform", "choice":
		if d.min != nil || d.max != nil {
			bad("min and max are valid only with lognormal and pareto")
		}
		d.checkValues(out, least, bad)
	case "lognormal":
		if d.max == nil {
			bad("lognormal requires max")
		}
		if out.median <= 0 || !(d.shape > 0 && d.shape <= 10) {
			bad("lognormal requires a median above 0, and a sigma above 0 and at most 10")
		}
	case "pareto":
		if d.min == nil || d.max == nil || out.lo < 1 {
			bad("pareto requires max, and a min above 0")
		}
		if !(d.shape >= 0.01 && d.shape <= 100) {
			bad("pareto requires an alpha between 0.01 and 100")
		}
	}
	if out.lo < least && len(errs) == 0 {
		bad("min is too small; expected at least %d", least)
	}
	return errs
}

// checkValues checks the values and weights of a fixed value, uniform or choice, and
// sets the bounds or cumulative weights of out.
func (d *Dist) checkValues(out *drawer, least int64, bad func(string, ...any)) {
	switch {
	case len(out.values) == 0:
		bad("values are missing")
		return
	case d.kind == "uniform" && (len(out.values) != 2 || out.values[0] > out.values[1]):
		bad("uniform requires two values, the smaller one first")
		return
	case slices.Min(out.values) < least:
		bad("%d is too small; expected at least %d", slices.Min(out.values), least)
	}
	if d.kind == "uniform" {
		out.lo, out.hi = out.values[0], out.values[1]
	}
	if d.kind != "choice" {
		return
	}
	sum := int64(0)
	for i := range out.values {
		w := int64(1)
		if len(d.weights) > 0 {
			w = d.weights[min(i, len(d.weights)-1)]
		}
		if w < 0 || w > 1<<32 {
			bad("%d is not a valid weight", w)
			return
		}
		sum += w
		out.cumulative = append(out.cumulative, sum)
	}
	if len(d.weights) > 0 && len(d.weights) != len(out.values) || sum == 0 {
		bad("%d weights for %d values; expected one for each, and not all 0", len(d.weights), len(out.values))
	}
}

// maxRedraw is the number of attempts to draw a value within the bounds before it is
// clamped. Clamping every draw would accumulate values at the bounds.
const maxRedraw = 100

// next returns a random value of the distribution.
func (d *drawer) next(r *rng) int64 {
	switch d.kind {
	case "uniform":
		// Draw a multiple of the step: rounding a finer draw would not be uniform.
		if d.step > 1 {
			return d.lo + r.below((d.hi-d.lo)/d.step+1)*d.step
		}
		return r.between(d.lo, d.hi)
	case "choice":
		x := r.below(d.cumulative[len(d.cumulative)-1])
		return d.values[sort.Search(len(d.cumulative), func(i int) bool { return x < d.cumulative[i] })]
	case "lognormal":
		x := d.median * fmath.Exp(d.shape*r.normal())
		for i := 0; i < maxRedraw && !(x >= float64(d.lo) && x <= float64(d.hi)); i++ {
			x = d.median * fmath.Exp(d.shape*r.normal())
		}
		return d.round(x)
	case "pareto":
		// The inverse of the bounded cumulative distribution function.
		lo, hi := float64(d.lo), float64(d.hi)
		tail := fmath.Pow(lo/hi, d.shape)
		u := 1 - float64(r.unit()*(1-tail))
		return d.round(lo * fmath.Pow(u, -1/d.shape))
	}
	return d.values[0]
}

// round returns the nearest multiple of the step within the bounds.
func (d *drawer) round(x float64) int64 {
	if !(x < float64(d.hi)) {
		return d.hi
	}
	n := int64(math.Round(x/float64(d.step))) * d.step
	return min(max(n, d.lo), d.hi)
}
