package policytest

import "slices"

// shrink searches for a smaller case on which check still fails, and returns it with
// the error. It removes whole options and rows first, then dimensions and requests,
// then reduces amounts, until every remaining part is needed. If an engine would call
// the policy for the original case, this also holds for the result, so that it can be
// replayed.
func shrink(c *Case, err error, check func(*Case) error) (*Case, error) {
	played := needsPolicy(c)
	for smaller := true; smaller; {
		smaller = false
		for try := range reductions(c) {
			if played && !needsPolicy(try) {
				continue
			}
			if e := check(try); e != nil {
				c, err, smaller = try, e, true
				break
			}
		}
	}
	return c, err
}

// needsPolicy reports whether an engine calls a policy for the case: the preemptor
// fits on no node as it is, but on at least one if candidates are evicted.
func needsPolicy(c *Case) bool {
	in := c.Candidates()
	possible := false
	for i := range c.Options {
		if Fits(in, i, nil) {
			return false
		}
		all := Eligible(in, slices.Repeat([]int32{in.Preemptor.Delta}, in.Rows.Len()), i)
		possible = possible || len(all) > 0 && Fits(in, i, all)
	}
	return possible
}

// reductions yields the cases that are one step smaller, largest steps first.
func reductions(c *Case) func(yield func(*Case) bool) {
	return func(yield func(*Case) bool) {
		for _, step := range []func(*Case, func(*Case) bool) bool{
			fewerOptions, fewerRows, fewerDims, fewerRequests, plainer, lessAmounts,
		} {
			if !step(c, yield) {
				return
			}
		}
	}
}

func fewerOptions(c *Case, yield func(*Case) bool) bool {
	for i := range c.Options {
		if len(c.Options) == 1 {
			return true
		}
		n := c.clone()
		n.Options = slices.Delete(n.Options, i, i+1)
		if !yield(n) {
			return false
		}
	}
	return true
}

func fewerRows(c *Case, yield func(*Case) bool) bool {
	for i := range c.Options {
		for k := range c.Options[i].Rows {
			n := c.clone()
			n.Options[i].Rows = slices.Delete(n.Options[i].Rows, k, k+1)
			if !yield(n) {
				return false
			}
		}
	}
	return true
}

func fewerDims(c *Case, yield func(*Case) bool) bool {
	for d := range c.Dims {
		if len(c.Dims) == 1 {
			return true
		}
		n := c.clone()
		n.Dims = slices.Delete(n.Dims, d, d+1)
		n.Preemptor.Ask = slices.Delete(n.Preemptor.Ask, d, d+1)
		if n.Totals != nil {
			n.Totals = slices.Delete(n.Totals, d, d+1)
		}
		for i := range n.Namespaces {
			if n.Namespaces[i].Use != nil {
				n.Namespaces[i].Use = slices.Delete(n.Namespaces[i].Use, d, d+1)
			}
		}
		for i := range n.Options {
			o := &n.Options[i]
			o.Free = slices.Delete(o.Free, d, d+1)
			for k := range o.Rows {
				o.Rows[k].Use = slices.Delete(o.Rows[k].Use, d, d+1)
			}
		}
		if !yield(n) {
			return false
		}
	}
	return true
}

func fewerRequests(c *Case, yield func(*Case) bool) bool {
	for r := range c.Preemptor.Devices {
		n := c.clone()
		n.Preemptor.Devices = slices.Delete(n.Preemptor.Devices, r, r+1)
		for i := range n.Options {
			o := &n.Options[i]
			o.DeviceFree = slices.Delete(o.DeviceFree, r, r+1)
			o.DeviceGroup = slices.Delete(o.DeviceGroup, r, r+1)
			for k := range o.Rows {
				o.Rows[k].Devices = slices.Delete(o.Rows[k].Devices, r, r+1)
			}
		}
		if !yield(n) {
			return false
		}
	}
	return true
}

// plainer removes the outlook of an option, and the attributes of a row other than its
// amounts.
func plainer(c *Case, yield func(*Case) bool) bool {
	for i := range c.Options {
		if c.Options[i].Follows != (Outlook{}) {
			n := c.clone()
			n.Options[i].Follows = Outlook{}
			if !yield(n) {
				return false
			}
		}
		for k, row := range c.Options[i].Rows {
			n := c.clone()
			n.Options[i].Rows[k] = Row{Name: row.Name, Priority: row.Priority, Use: n.Options[i].Rows[k].Use, Devices: n.Options[i].Rows[k].Devices}
			if !isPlain(&row) && !yield(n) {
				return false
			}
		}
	}
	return true
}

// isPlain reports whether a row has no attributes other than its amounts.
func isPlain(r *Row) bool {
	return r.MustLeave == 0 && r.Evictions == 0 && r.EvictionLimit == 0 && r.Namespace == "" && r.Job == "" && r.Group == "" &&
		r.Age == 0 && r.LostWork == 0 && r.Labels == nil && r.Annotations == nil && r.Budgets == nil &&
		r.Relocation == Relocation{}
}

// lessAmounts replaces an amount with 0, 1 or half of it.
func lessAmounts(c *Case, yield func(*Case) bool) bool {
	amounts := func(c *Case) []*float64 {
		list := pointers(c.Preemptor.Ask)
		for i := range c.Options {
			o := &c.Options[i]
			list = append(append(list, pointers(o.Free)...), pointers(o.DeviceFree)...)
			for k := range o.Rows {
				list = append(append(list, pointers(o.Rows[k].Use)...), pointers(o.Rows[k].Devices)...)
			}
		}
		return list
	}
	for at, p := range amounts(c) {
		for _, less := range []float64{0, 1, float64(int64(*p / 2))} {
			if less >= *p {
				continue
			}
			n := c.clone()
			*amounts(n)[at] = less
			if !yield(n) {
				return false
			}
		}
	}
	return true
}

func pointers(v []float64) []*float64 {
	list := make([]*float64, len(v))
	for i := range v {
		list[i] = &v[i]
	}
	return list
}
