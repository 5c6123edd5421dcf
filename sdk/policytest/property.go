package policytest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// A Property holds for every correct policy, whichever victims it prefers.
type Property struct {
	Name string // used to skip it
	Doc  string // the statement that holds
	// shape limits cases to those for which the property is meaningful.
	shape func(Shape) Shape
	check func(t *trial, c *Case) error
}

// A trial holds the state of checking a property.
type trial struct {
	subject *Subject
	other   *Subject   // another instance of the same policy
	rand    *rand.Rand // reset for every case, so that a case can be repeated
	seed    uint64
	answers int   // decisions on cases for which an engine would call the policy
	err     error // of the last call that failed
}

// Properties returns all properties.
func Properties() []Property {
	any := func(s Shape) Shape { return s }
	noTies := func(s Shape) Shape {
		return Shape{Options: s.Options, Rows: s.Rows, NoTies: true, Work: true, Tenants: s.Tenants}
	}
	return []Property{
		{"answers", "every answer is valid", any, checkAcceptable},
		{"enough", "if evicting all eligible candidates makes the preemptor fit, evicting the victims does", any, checkEnough},
		{"minimal", "no victim is redundant, unless the policy is granted keepRedundant", any, checkMinimal},
		{"order", "the order of nodes and allocations affects ties only", noTies, checkOrderFree},
		{"units", "amounts in other units give the same victims", any, checkUnitFree},
		{"deterministic", "the same input gives the same answer, from every instance", any, checkDeterministic},
		{"independent", "the victims of an option do not depend on other options", any, checkIndependent},
	}
}

// CheckOptions configure CheckProperties.
type CheckOptions struct {
	Runs int    // cases per property
	Seed uint64 // seed of the random cases
	Skip []string
	// Progress receives the number of cases that are done, and of all cases, before each one;
	// default: it is not reported.
	Progress func(done, total int)
}

// A Finding is a violated property, with the smallest counterexample found.
type Finding struct {
	Property Property
	Case     *Case
	Err      error
}

// CheckProperties checks a policy on random cases. The function fresh returns a new
// instance, which CheckProperties closes. Violations of properties are findings. It
// returns an error if the check itself fails, for example if an instance does not
// start.
func CheckProperties(fresh func() (*Subject, error), o CheckOptions) ([]Finding, error) {
	if err := checkSkip(o.Skip); err != nil {
		return nil, err
	}
	var findings []Finding
	checked := slices.DeleteFunc(Properties(), func(p Property) bool { return slices.Contains(o.Skip, p.Name) })
	done := 0
	for k, p := range Properties() {
		if slices.Contains(o.Skip, p.Name) {
			continue
		}
		each := o
		each.Progress = func(cases, _ int) {
			if o.Progress != nil {
				o.Progress(done+cases, len(checked)*o.Runs)
			}
		}
		f, err := p.find(fresh, each, uint64(k))
		done += o.Runs
		if err != nil {
			return nil, err
		}
		if f != nil {
			findings = append(findings, *f)
		}
	}
	return findings, nil
}

func checkSkip(names []string) error {
	var known []string
	for _, p := range Properties() {
		known = append(known, p.Name)
	}
	var errs []error
	for _, name := range names {
		if !slices.Contains(known, name) {
			errs = append(errs, fmt.Errorf("cannot skip unknown property %q: expected %s", name, strings.Join(known, ", ")))
		}
	}
	return errors.Join(errs...)
}

// shapes lists the shapes of the random cases, which are used in turn.
var shapes = []Shape{
	{Options: 4, Rows: 8, Work: true, Tenants: true},
	{Options: 3, Rows: 10, Small: true, Work: true, Tenants: true},
	{Options: 4, Rows: 8, Devices: true, Small: true},
	{Options: 3, Rows: 8, Devices: true, MustLeave: true, Work: true, Tenants: true},
}

// find searches for a case that violates the property.
func (p *Property) find(fresh func() (*Subject, error), o CheckOptions, stream uint64) (*Finding, error) {
	r := rand.New(rand.NewPCG(o.Seed, stream))
	t := &trial{}
	var err1, err2 error
	t.subject, err1 = fresh()
	t.other, err2 = fresh()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	var first, unasked *Finding
	for k := range o.Runs {
		o.Progress(k, o.Runs)
		shape := p.shape(shapes[k%len(shapes)])
		shape.Budgets = t.subject.Info.Columns.Has(policy.BudgetColumns)
		shape.Relocation = t.subject.Info.Columns.Has(policy.RelocationColumns)
		shape.LookAhead = t.subject.Info.Columns.Has(policy.LookAheadColumns)
		c := Random(r, shape)
		t.seed = uint64(k)
		err := p.holds(t, c)
		if err != nil && !needsPolicy(c) { // no engine would call the policy for this case
			unasked = &Finding{Property: *p, Case: c, Err: err}
			continue
		}
		if err != nil {
			c, err = shrink(c, err, func(c *Case) error { return p.holds(t, c) })
			return &Finding{Property: *p, Case: c, Err: err}, nil
		}
		if first == nil && t.err != nil {
			first = &Finding{Property: *p, Case: c, Err: t.err}
		}
	}
	if unasked != nil {
		unasked.Case, unasked.Err = shrink(unasked.Case, unasked.Err, func(c *Case) error { return p.holds(t, c) })
		return unasked, nil
	}
	if t.answers == 0 {
		return first, nil // all calls failed, so the property is not verified
	}
	return nil, nil
}

// holds checks the property on a copy of one case.
func (p *Property) holds(t *trial, c *Case) error {
	t.rand = rand.New(rand.NewPCG(t.seed, 0))
	return p.check(t, c.clone())
}

func checkAcceptable(t *trial, c *Case) error {
	t.decided(c)
	return t.err
}

// decided returns the decision of the policy, or nil if its answer is not acceptable.
// The property "answers" reports these.
func (t *trial) decided(c *Case) *Decision {
	d, err := t.subject.Decide(c)
	if t.err = err; err != nil {
		return nil
	}
	if needsPolicy(c) {
		t.answers++
	}
	return d
}

func checkEnough(t *trial, c *Case) error {
	d := t.decided(c)
	if d == nil {
		return nil
	}
	in := c.Candidates()
	for i, victims := range d.Victims {
		allowed := exclude(d.Eligible[i], d.Refused[i])
		if victims == nil && Fits(in, i, allowed) {
			return fmt.Errorf("on %s it picks too few victims, although the preemptor fits if %s are evicted", c.Options[i].Name, c.listed(i, allowed))
		}
	}
	return nil
}

func exclude(rows, not []int) []int {
	return slices.DeleteFunc(slices.Clone(rows), func(k int) bool { return slices.Contains(not, k) })
}

func checkMinimal(t *trial, c *Case) error {
	d := t.decided(c)
	if d == nil || t.subject.KeepRedundant {
		return nil
	}
	in := c.Candidates()
	for i, victims := range d.Victims {
		for k, v := range victims {
			if rest := slices.Delete(slices.Clone(victims), k, k+1); Fits(in, i, rest) {
				return fmt.Errorf("on %s it evicts %s, of which %s are redundant", c.Options[i].Name, c.listed(i, victims), c.listed(i, []int{v}))
			}
		}
	}
	return nil
}

func checkOrderFree(t *trial, c *Case) error {
	if t.subject.hasTies(c) {
		return nil
	}
	before := t.decided(c)
	permuted := c.clone()
	slices.Reverse(permuted.Options)
	for i := range permuted.Options {
		rows := permuted.Options[i].Rows
		t.rand.Shuffle(len(rows), func(a, b int) { rows[a], rows[b] = rows[b], rows[a] })
	}
	after := t.decided(permuted)
	if before == nil || after == nil {
		return nil
	}
	for i := range c.Options {
		j := len(c.Options) - 1 - i
		a, b := c.sorted(i, before.Victims[i]), permuted.sorted(j, after.Victims[j])
		if a != b {
			return fmt.Errorf("on %s it evicts %s, but %s if nodes and allocations are in another order", c.Options[i].Name, a, b)
		}
	}
	return nil
}

func checkUnitFree(t *trial, c *Case) error {
	before := t.decided(c)
	other := c.clone()
	for d := range other.Dims {
		other.rescale(d, math.Ldexp(1, t.rand.IntN(21)-10)) // a power of two, so that ties remain ties
	}
	after := t.decided(other)
	if before == nil || after == nil {
		return nil
	}
	for i := range c.Options {
		if a, b := c.listed(i, before.Victims[i]), c.listed(i, after.Victims[i]); a != b {
			return fmt.Errorf("on %s it evicts %s, but %s if amounts are in other units", c.Options[i].Name, a, b)
		}
	}
	return nil
}

func checkDeterministic(t *trial, c *Case) error {
	first := t.decided(c)
	if first == nil {
		return nil
	}
	for _, s := range []*Subject{t.subject, t.other} {
		again, err := s.Decide(c)
		if err != nil {
			return fmt.Errorf("the first call succeeds, but the same input again fails: %w", err)
		}
		if a, b := fmt.Sprint(*first), fmt.Sprint(*again); a != b {
			return fmt.Errorf("it decides %s, but %s for the same input again", a, b)
		}
	}
	return nil
}

func checkIndependent(t *trial, c *Case) error {
	together := t.decided(c)
	if together == nil {
		return nil
	}
	tables := c.Candidates()
	for i := range c.Options {
		alone := c.clone()
		alone.fixTables(tables) // the tables describe the whole cluster
		alone.Options = alone.Options[i : i+1]
		d := t.decided(alone)
		if d == nil {
			continue
		}
		if a, b := c.listed(i, together.Victims[i]), c.listed(i, d.Victims[0]); a != b {
			return fmt.Errorf("on %s it evicts %s among other options, but %s if it is the only option", c.Options[i].Name, a, b)
		}
	}
	return nil
}

// listed returns the names of rows for messages, in the given order.
func (c *Case) listed(i int, rows []int) string {
	if rows == nil {
		return "none (it does not fit)"
	}
	if len(rows) == 0 {
		return "no victims"
	}
	return strings.Join(c.Names(i, rows), ", ")
}

// sorted returns the names of rows in sorted order, to compare sets of victims.
func (c *Case) sorted(i int, rows []int) string {
	rows = slices.Clone(rows)
	names := c.Names(i, rows)
	slices.Sort(names)
	if rows == nil {
		return c.listed(i, nil)
	}
	return strings.Join(names, ", ")
}

// rescale converts the amounts of a dimension to another unit.
func (c *Case) rescale(d int, unit float64) {
	c.Preemptor.Ask[d] *= unit
	if c.Totals != nil {
		c.Totals[d] *= unit
	}
	for i := range c.Namespaces {
		if c.Namespaces[i].Use != nil {
			c.Namespaces[i].Use[d] *= unit
		}
	}
	for i := range c.Options {
		c.Options[i].Free[d] *= unit
		for k := range c.Options[i].Rows {
			c.Options[i].Rows[k].Use[d] *= unit
		}
	}
}

// clone returns a deep copy.
func (c *Case) clone() *Case {
	n := *c
	n.Dims = slices.Clone(c.Dims)
	n.Totals = slices.Clone(c.Totals)
	n.Preemptor.Ask, n.Preemptor.Devices = slices.Clone(c.Preemptor.Ask), slices.Clone(c.Preemptor.Devices)
	n.Namespaces = slices.Clone(c.Namespaces)
	for i := range n.Namespaces {
		n.Namespaces[i].Use = slices.Clone(n.Namespaces[i].Use)
	}
	n.Options = slices.Clone(c.Options)
	for i := range n.Options {
		o := &n.Options[i]
		o.Free, o.DeviceFree, o.DeviceGroup = slices.Clone(o.Free), slices.Clone(o.DeviceFree), slices.Clone(o.DeviceGroup)
		o.Rows = slices.Clone(o.Rows)
		for k := range o.Rows {
			o.Rows[k].Use, o.Rows[k].Devices = slices.Clone(o.Rows[k].Use), slices.Clone(o.Rows[k].Devices)
		}
	}
	n.Sort()
	return &n
}
