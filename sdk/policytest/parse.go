package policytest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// Parse parses a case. Its text has a line for the preemptor, a line for each node
// with its free capacity, and below it, indented, a line for each allocation that may
// be evicted, with its name, priority and resources.
//
//	cluster cpu=8000 memory=8000
//	namespace team-a weight=2 cpu=6000
//	budget web slack=1
//	preemptor 90 cpu=1000 memory=1000 device:gpu=4 namespace=team-b waiting=10m
//	node n1 cpu=0 memory=100 device:gpu=2@0
//	  small 20 cpu=200 memory=200 evictions=1/2 namespace=team-a age=2h
//	  big   40 cpu=1000 memory=1000 device:gpu=3 port label:tier=gold
//
// Omitted amounts are 0. If two nodes have the same name, they are the same node with
// different device groups; the number of the group follows @. On a row, port and
// separation are reasons why it must leave, and evictions=k/limit is the number of
// evictions of its group that the plan already contains. Dimensions keep the order of
// their first appearance.
//
// The keywords of the preemptor are delta (default 10), waiting, attempts, type,
// namespace, job, group and ports. Those of a row are namespace, job (default: its
// name), group, age, lostwork (default: its age), budget, once for each budget that
// covers it, and fits: elsewhere (the default), evicting/PRIORITY/LOSTWORK or nowhere,
// which is where it could run if it were evicted. Both accept label:KEY, and note:NAME
// for an annotation. A node accepts follows=LOSTWORK/DEPTH/DELAY: the columns of
// look-ahead. The capacity of the cluster and the usage of a namespace are the sums over
// the case if no line sets them. The time is Now.
//
// The error lists every line that is invalid.
func Parse(text string) (*Case, error) {
	p := &parser{c: Case{Now: Now}}
	var errs []error
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		if err := p.line(strings.Fields(line)); err != nil {
			for problem := range strings.SplitSeq(err.Error(), "\n") {
				errs = append(errs, fmt.Errorf("line %d: %s", n+1, problem))
			}
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if name, found := p.c.unknownBudget(); found {
		return nil, fmt.Errorf("budget=%s: missing line budget %s", name, name)
	}
	p.widen()
	p.c.Sort()
	return &p.c, nil
}

// MustParse is Parse for tests. It fails the test if the text is invalid.
func MustParse(t testing.TB, text string) *Case {
	t.Helper()
	c, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type parser struct{ c Case }

func (p *parser) line(f []string) error {
	switch f[0] {
	case "preemptor":
		return p.preemptor(f[1:])
	case "node":
		return p.node(f[1:])
	case "cluster":
		return p.amounts(f[1:], &p.c.Totals)
	case "namespace":
		return p.namespace(f[1:])
	case "budget":
		return p.budget(f[1:])
	}
	if len(p.c.Options) == 0 {
		return fmt.Errorf("%q: expected preemptor or node", f[0])
	}
	return p.row(f)
}

func (p *parser) preemptor(f []string) error {
	w := &p.c.Preemptor
	if len(f) == 0 {
		return fmt.Errorf("preemptor: expected a priority")
	}
	w.Delta, w.JobType, w.Namespace = 10, "service", "default"
	if err := parseInt32(&w.Priority, f[0]); err != nil {
		return fmt.Errorf("priority: %w", err)
	}
	for _, item := range f[1:] {
		if known, err := preemptorWords.set(w, item); known || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		key, n, _, err := amount(item)
		if err != nil {
			return err
		}
		if id, ok := strings.CutPrefix(key, "device:"); ok {
			w.Devices = append(w.Devices, policy.DeviceAsk{ID: id, Count: int32(n)})
			continue
		}
		set(&w.Ask, p.dim(key), n)
	}
	return nil
}

func (p *parser) node(f []string) error {
	if len(f) == 0 {
		return fmt.Errorf("node: expected a name")
	}
	o := Option{Name: f[0], DeviceGroup: make([]int32, len(p.c.Preemptor.Devices))}
	o.Node = int32(slices.IndexFunc(p.c.Options, func(other Option) bool { return other.Name == o.Name }))
	if o.Node < 0 {
		o.Node = int32(len(p.c.Options))
	}
	var errs []error
	for _, item := range f[1:] {
		if err := p.nodeItem(&o, item); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.Name, err))
		}
	}
	p.c.Options = append(p.c.Options, o) // also with errors, which concern this line alone
	return errors.Join(errs...)
}

func (p *parser) nodeItem(o *Option, item string) error {
	if known, err := optionWords.set(o, item); known || err != nil {
		return err
	}
	key, n, group, err := amount(item)
	if err != nil {
		return err
	}
	r, device, err := p.request(key)
	switch {
	case err != nil:
		return err
	case device:
		set(&o.DeviceFree, r, n)
		o.DeviceGroup[r] = group
	default:
		set(&o.Free, p.dim(key), n)
	}
	return nil
}

func (p *parser) row(f []string) error {
	if len(f) < 2 {
		return fmt.Errorf("%s: expected a priority", f[0])
	}
	r := Row{Name: f[0]}
	if err := parseInt32(&r.Priority, f[1]); err != nil {
		return fmt.Errorf("%s: priority: %w", r.Name, err)
	}
	for _, item := range f[2:] {
		if err := p.rowItem(&r, item); err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
	}
	o := &p.c.Options[len(p.c.Options)-1]
	o.Rows = append(o.Rows, r)
	return nil
}

func (p *parser) rowItem(r *Row, item string) error {
	switch item {
	case "port":
		r.MustLeave |= policy.MustLeavePort
		return nil
	case "separation":
		r.MustLeave |= policy.MustLeaveSeparation
		return nil
	}
	if known, err := rowWords.set(r, item); known || err != nil {
		return err
	}
	key, n, _, err := amount(item)
	if err != nil {
		return err
	}
	k, device, err := p.request(key)
	switch {
	case err != nil:
		return err
	case device:
		set(&r.Devices, k, n)
	default:
		set(&r.Use, p.dim(key), n)
	}
	return nil
}

// namespace parses a namespace: its name, weight and usage.
func (p *parser) namespace(f []string) error {
	if len(f) == 0 {
		return fmt.Errorf("namespace: expected a name")
	}
	n := Namespace{Name: f[0], Weight: 1}
	f = f[1:]
	if len(f) > 0 && strings.HasPrefix(f[0], "weight=") {
		w, err := parseFloat(f[0][len("weight="):])
		if err != nil {
			return fmt.Errorf("%s: weight: %w", n.Name, err)
		}
		n.Weight, f = w, f[1:]
	}
	if err := p.amounts(f, &n.Use); err != nil {
		return err
	}
	p.c.Namespaces = append(p.c.Namespaces, n)
	return nil
}

// budget parses a disruption budget: its name and slack.
func (p *parser) budget(f []string) error {
	if len(f) != 2 || !strings.HasPrefix(f[1], "slack=") {
		return fmt.Errorf("budget: expected a name and slack=number")
	}
	b := Budget{Name: f[0]}
	if err := parseInt32(&b.Slack, f[1][len("slack="):]); err != nil {
		return err
	}
	p.c.Budgets = append(p.c.Budgets, b)
	return nil
}

// amounts parses amounts by dimension.
func (p *parser) amounts(f []string, to *[]float64) error {
	for _, item := range f {
		key, n, _, err := amount(item)
		if err != nil {
			return err
		}
		set(to, p.dim(key), n)
	}
	return nil
}

// amount parses key=number@group.
func amount(item string) (key string, n float64, group int32, err error) {
	key, value, ok := strings.Cut(item, "=")
	if !ok {
		return "", 0, 0, fmt.Errorf("%q: expected name=number", item)
	}
	value, at, ok := strings.Cut(value, "@")
	if ok {
		if err := parseInt32(&group, at); err != nil {
			return "", 0, 0, fmt.Errorf("%s: group: %w", key, err)
		}
	}
	if n, err = parseFloat(value); err != nil {
		err = fmt.Errorf("%s: %w", key, err)
	}
	return key, n, group, err
}

func (p *parser) dim(name string) int {
	if d := slices.Index(p.c.Dims, name); d >= 0 {
		return d
	}
	p.c.Dims = append(p.c.Dims, name)
	return len(p.c.Dims) - 1
}

// request returns the index of the preemptor's device request for key. The result
// device is false if key is not a device.
func (p *parser) request(key string) (r int, device bool, err error) {
	id, device := strings.CutPrefix(key, "device:")
	if !device {
		return 0, false, nil
	}
	r = slices.IndexFunc(p.c.Preemptor.Devices, func(a policy.DeviceAsk) bool { return a.ID == id })
	if r < 0 {
		return 0, true, fmt.Errorf("%s: the preemptor does not request it", key)
	}
	return r, true, nil
}

// widen extends all columns to their full length once all names have been read.
func (p *parser) widen() {
	dims, requests := len(p.c.Dims), len(p.c.Preemptor.Devices)
	if p.c.Totals != nil {
		p.c.Totals = widen(p.c.Totals, dims)
	}
	for i := range p.c.Namespaces {
		if n := &p.c.Namespaces[i]; n.Use != nil {
			n.Use = widen(n.Use, dims)
		}
	}
	p.c.Preemptor.Ask = widen(p.c.Preemptor.Ask, dims)
	for i := range p.c.Options {
		o := &p.c.Options[i]
		o.Free, o.DeviceFree = widen(o.Free, dims), widen(o.DeviceFree, requests)
		for r := range o.Rows {
			o.Rows[r].Use = widen(o.Rows[r].Use, dims)
			o.Rows[r].Devices = widen(o.Rows[r].Devices, requests)
		}
	}
}

func widen(v []float64, n int) []float64 { return append(v, make([]float64, n-len(v))...) }

func set(v *[]float64, i int, x float64) {
	if i >= len(*v) {
		*v = widen(*v, i+1)
	}
	(*v)[i] = x
}
