package rulestest

import (
	"math"
	"math/big"
	"slices"

	"github.com/cede-scheduler/cede/plugins/rules/ir"
	"github.com/cede-scheduler/cede/plugins/rules/schema"
	"github.com/cede-scheduler/cede/sdk/policy"
)

// Policy evaluates a program for each candidate and option.
type Policy struct{ Program *ir.Program }

var (
	_ policy.Policy       = (*Policy)(nil)
	_ policy.DeltaHook    = (*Policy)(nil)
	_ policy.VictimScorer = (*Policy)(nil)
	_ policy.OptionScorer = (*Policy)(nil)
)

// Info implements policy.Policy.
func (p *Policy) Info() policy.Info { return p.Program.Info() }

// PriorityDelta implements policy.DeltaHook.
func (p *Policy) PriorityDelta(in *policy.Candidates, gap []int32, recheck *policy.Recheck) error {
	for i := range in.Len() {
		for row := in.FirstRow[i]; row < in.FirstRow[i+1]; row++ {
			e := Candidate(in, i, int(row))
			if v, ok := e.Eval(p.Program.Eligible); ok && v.N != 0 {
				gap[row] = 0
				continue
			}
			gap[row] = policy.NeverEligible
			if in.Rows.Priority[row] < in.Preemptor.Priority {
				e.recheck(p.Program.Eligible, recheck)
			}
		}
	}
	return nil
}

// recheck requests the next time at which a comparison changes.
func (e *Env) recheck(n *ir.Node, to *policy.Recheck) {
	for _, t := range n.Turns() {
		if t.Slope == 0 {
			if e.now <= math.MaxInt64-60e9 && e.now >= 0 {
				to.At(e.now + 60e9)
			}
			continue
		}
		a, okA := e.Eval(t.Args[0])
		b, okB := e.Eval(t.Args[1])
		gap, ok := ir.Whole64(ir.Sub, b.N, a.N)
		if t.Slope < 0 {
			gap, ok = ir.Whole64(ir.Sub, a.N, b.N)
		}
		if !okA || !okB || !ok || gap < 0 {
			continue
		}
		if after := flip(t, gap); after > 0 && e.now >= 0 && after <= math.MaxInt64-e.now {
			to.At(e.now + after)
		}
	}
}

// flip returns the first time after which a comparison has another result, if its sides are
// gap apart and approach each other; 0 if it has none. A comparison for equality counts as
// changed when the sides meet.
func flip(t ir.Turn, gap int64) int64 {
	steps := max(t.Slope, -t.Slope)
	holds := func(after int64) bool {
		d := new(big.Int).Mul(big.NewInt(after), big.NewInt(steps))
		d.Sub(d, big.NewInt(gap))
		if t.Slope < 0 {
			d.Neg(d)
		}
		return compare(t.Op, d.Sign())
	}
	reach := gap / steps
	if gap%steps != 0 {
		reach++
	}
	if t.Op == ir.Eq || t.Op == ir.Ne {
		return max(reach, 1)
	}
	for _, after := range []int64{reach, gap/steps + 1} {
		if after > 0 && holds(after) != holds(after-1) {
			return after
		}
	}
	return 0
}

// ScoreVictims implements policy.VictimScorer.
func (p *Policy) ScoreVictims(in *policy.Candidates, out *policy.VictimScores) error {
	for i := range in.Len() {
		from, to := int(in.FirstRow[i]), int(in.FirstRow[i+1])
		if !p.Program.Sorted() {
			for row := from; row < to; row++ {
				e := Candidate(in, i, row)
				out.Tier[row] = e.key(p.Program.Order[0])
				if len(p.Program.Order) > 1 {
					out.Score[row] = e.score(p.Program.Order[1])
				}
			}
			continue
		}
		p.rank(in, i, out.Tier[from:to], out.Score[from:to])
	}
	return nil
}

// rank sets the tier of each row of an option to the number of rows before it. Two entries
// are tier and score, if no number has to be rounded.
func (p *Policy) rank(in *policy.Candidates, i int, tier []int64, score []float64) {
	keys := make([][]int64, len(tier))
	for k := range keys {
		e := Candidate(in, i, int(in.FirstRow[i])+k)
		for _, entry := range p.Program.Order {
			keys[k] = append(keys[k], e.key(entry))
		}
	}
	if rounded := func(k []int64) bool { return k[1] != math.MaxInt64 && (k[1] < -1<<53 || k[1] > 1<<53) }; len(p.Program.Order) == 2 && !slices.ContainsFunc(keys, rounded) {
		for k := range keys {
			if tier[k], score[k] = keys[k][0], float64(keys[k][1]); keys[k][1] == math.MaxInt64 {
				score[k] = math.MaxFloat64
			}
		}
		return
	}
	for k := range keys {
		tier[k] = 0
		for j := range keys {
			if slices.Compare(keys[j], keys[k]) < 0 {
				tier[k]++
			}
		}
	}
}

// ScoreOptions implements policy.OptionScorer.
func (p *Policy) ScoreOptions(in *policy.Options, out *policy.OptionScores) error {
	for i := range in.Len() {
		e := Option(in, i)
		for k, entry := range p.Program.Option {
			out.Tiers[k][i] = e.key(entry)
		}
	}
	return nil
}

// key returns the value of an entry as a whole number that sorts alike.
func (e *Env) key(n *ir.Node) int64 {
	v, ok := e.Eval(n)
	switch {
	case !ok || n.Type == schema.Double && math.IsNaN(v.X):
		return math.MaxInt64
	case n.Type != schema.Double:
		return v.N
	}
	bits := int64(math.Float64bits(v.X + 0))
	if v.X == 0 {
		bits = 0
	}
	if bits < 0 {
		bits ^= math.MaxInt64
	}
	return bits
}

// score returns the value of an entry as a finite score.
func (e *Env) score(n *ir.Node) float64 {
	v, ok := e.Eval(n)
	if !ok || math.IsNaN(v.X) {
		return math.MaxFloat64
	}
	return max(-math.MaxFloat64, min(math.MaxFloat64, v.X))
}
