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

// Best returns the best option; ok is false if there is none. If the request has a
// LookAhead, the chooser is called again about the best options after these were played. It
// returns a *policy.Error if the chooser is at fault.
func (f *Finder) Best() (choice Choice, ok bool, err error) {
	f.continueRounds(false)
	if err := f.scoreOptions(); err != nil || len(f.table.at) == 0 {
		return Choice{}, false, err
	}
	if err := lookAhead(f); err != nil {
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
		c.Why = s.explain(o, f.table.found)
		c.Why.Ranked = []model.RankedOption{f.table.ranked(i, s.scope.Snap)}
	}
	return c
}

// A LookAhead predicts the consequences of placing the instance at hand by a choice.
// Outlook is called one choice at a time on the goroutine of the Finder, in a
// deterministic order. It returns false if the fuel of the evaluation is used up.
type LookAhead interface {
	Outlook(c *Choice) (model.Outlook, bool)
}

// Playable is how many options are played at most. More would seldom change the choice,
// and each one costs several evaluations.
const Playable = 4

// lookAhead plays the best options of the last call, and calls the chooser about these
// alone. If there is one option, or the fuel is used up before two were played, the last
// call decides.
func lookAhead(f *Finder) error {
	t, s := &f.table, &f.search
	if !s.traits.looksAhead || len(t.at) < 2 {
		return nil
	}
	played := t.outlooks[:0]
	kept := t.best(Playable)
	for _, i := range kept {
		choice := f.choice(i)
		outlook, ok := s.req.LookAhead.Outlook(&choice)
		if !ok {
			break
		}
		played = append(played, playedOption{t.at[i], outlook})
	}
	if t.outlooks = played; len(played) < 2 {
		t.outlooks = t.outlooks[:0]
		return nil
	}
	// Options stay in the order of nodes, which breaks ties.
	slices.SortFunc(t.outlooks, func(a, b playedOption) int { return int(a.at - b.at) })
	t.at = t.at[:0]
	for i := range t.outlooks {
		t.at = append(t.at, t.outlooks[i].at)
	}
	return t.call(s, &f.chooser, &f.findings)
}
