package preempt

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
)

// A Choice is an option that was chosen. Victims refers to memory of the Finder and
// must be copied to be retained.
type Choice struct {
	Pos     int32               // of the node
	Device  []int16             // position in Node.Devices for each device request
	Victims []*model.Allocation // valid until the Finder returns another choice
	Version *policy.Version     // that selected the victims
	Score   float64
	// Why explains the choice, if the request has Explain. EachRanked leaves its list of
	// other nodes empty, because the caller decides among its options.
	Why *model.Choice
}

// Best returns the best option; ok is false if there is none. It returns a
// *policy.Error if the chooser is at fault.
func (f *Finder) Best() (choice Choice, ok bool, err error) {
	f.continueRounds(false)
	if err := f.scoreOptions(); err != nil || len(f.table.at) == 0 {
		return Choice{}, false, err
	}
	best := 0
	for i := 1; i < len(f.table.at); i++ {
		if f.table.better(i, best) {
			best = i
		}
	}
	choice = f.choice(best)
	if choice.Why != nil {
		choice.Why.Ranked = f.table.rank(best, f.search.scope.Snap)
	}
	return choice, true, nil
}

// EachNode calls visit with the best option of every node that has one, in the order of
// the request's nodes. It serves jobs that run on every node.
func (f *Finder) EachNode(visit func(Choice)) error {
	f.continueRounds(true)
	if err := f.scoreOptions(); err != nil {
		return err
	}
	t := &f.table
	for i := 0; i < len(t.at); {
		best, next := t.bestOfNode(i)
		choice := f.choice(best)
		if choice.Why != nil {
			choice.Why.Search, choice.Why.Options = model.SearchEachNode, next-i
		}
		visit(choice)
		i = next
	}
	return nil
}

// EachRanked calls visit with every option, the best first, until visit returns false.
// Victims must be copied to be retained.
func (f *Finder) EachRanked(visit func(Choice) bool) error {
	f.continueRounds(true)
	if err := f.scoreOptions(); err != nil {
		return err
	}
	t := &f.table
	order := make([]int, len(t.at))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case t.better(a, b):
			return -1
		case t.better(b, a):
			return 1
		}
		return cmp.Compare(a, b)
	})
	for _, i := range order {
		choice := f.choice(i)
		if choice.Why != nil {
			choice.Why.Search = model.SearchGang
		}
		if !visit(choice) {
			return nil
		}
	}
	return nil
}

// scoreOptions calls the chooser about all feasible options.
func (f *Finder) scoreOptions() error {
	if f.err != nil {
		return f.err
	}
	return f.table.score(&f.search, &f.chooser, &f.findings)
}

// choice converts option i of the table.
func (f *Finder) choice(i int) Choice {
	s := &f.search
	o := &s.options[f.table.at[i]]
	c := Choice{Pos: o.pos, Version: s.traits.victims, Score: f.table.scores.Score[i]}
	if len(s.req.Group.Ask.Devices) > 0 {
		c.Device = s.deviceChoice(o)
	}
	f.chosen = o.appendVictims(f.chosen[:0], s.scope.Snap)
	c.Victims = f.chosen
	if s.req.Explain {
		c.Why = s.explain(o, len(f.table.at))
		c.Why.Ranked = []model.RankedOption{f.table.ranked(i, s.scope.Snap)}
	}
	return c
}
