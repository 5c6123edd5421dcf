package certificate

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/sdk/abi"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// A Call is one call of a hook.
type Call struct {
	Policy int    // position in Document.Policies
	Hook   string // as in faults, for readers
	Frame  []byte // request of the ABI, as a module receives it
	Answer []byte // numbers of the answer in the order of its fields, little endian
}

// frameOf encodes a request. columns are those that the policy reads.
func frameOf(encode func(e *abi.Encoder) int) []byte {
	var e abi.Encoder
	frame := abi.Grow(nil, encode(&e))
	e.Write(frame)
	return frame
}

// answer encodes the numbers of an answer.
type answer struct{ b []byte }

func (a *answer) int(n int64)     { a.b = binary.LittleEndian.AppendUint64(a.b, uint64(n)) }
func (a *answer) float(x float64) { a.int(int64(math.Float64bits(x))) }

// gap encodes the answer of PriorityDelta.
func (a *answer) gap(gap []int32, recheck *sdk.Recheck) {
	for _, n := range gap {
		a.int(int64(n))
	}
	a.int(recheck.Time())
}

// scores encodes the answer of ScoreVictims.
func (a *answer) scores(s *sdk.VictimScores) {
	for i := range s.Tier {
		a.int(s.Tier[i])
		a.float(s.Score[i])
	}
	a.int(s.Recheck.Time())
}

// selection encodes the answer of SelectVictims.
func (a *answer) selection(s *sdk.Selection) {
	a.int(int64(s.Len()))
	for o := range s.Len() {
		rows := s.Rows(o)
		a.int(int64(len(rows)))
		for _, row := range rows {
			a.int(int64(row))
		}
	}
	a.int(s.Recheck.Time())
}

// options encodes the answer of ScoreOptions.
func (a *answer) options(s *sdk.OptionScores) {
	a.tiers(&s.Tiers)
	for _, x := range s.Score {
		a.float(x)
	}
	a.int(s.Recheck.Time())
}

func (a *answer) tiers(tiers *[4][]int64) {
	for _, list := range tiers {
		for _, n := range list {
			a.int(n)
		}
	}
}

// answerAgain calls the hook of a frame and returns the encoded answer.
func answerAgain(in policy.Instance, frame []byte) ([]byte, error) {
	own := abi.Grow(nil, len(frame)) // aligned
	copy(own, frame)
	var d abi.Decoder
	op, err := d.Load(own)
	if err != nil {
		return nil, err
	}
	if op == abi.OpScoreOptions {
		options, err := d.Options()
		if err != nil {
			return nil, err
		}
		return answerOptions(in, options)
	}
	candidates, err := d.Candidates()
	if err != nil {
		return nil, err
	}
	return answerCandidates(in, op, candidates)
}

func answerOptions(in policy.Instance, o *sdk.Options) ([]byte, error) {
	if !in.Hooks().Has(policy.HookScoreOptions) {
		return nil, fmt.Errorf("the policy does not implement %s", abi.Names[abi.OpScoreOptions])
	}
	out := sdk.OptionScores{Score: make([]float64, o.Len())}
	for k := range out.Tiers {
		out.Tiers[k] = make([]int64, o.Len())
	}
	err := in.ScoreOptions(o, &out)
	var a answer
	a.options(&out)
	return a.b, err
}

// answerCandidates calls a hook with answers that are prepared as the host prepares them.
func answerCandidates(in policy.Instance, op abi.Op, c *sdk.Candidates) ([]byte, error) {
	rows := c.Rows.Len()
	hooks := map[abi.Op]policy.Hooks{
		abi.OpPriorityDelta: policy.HookDelta, abi.OpScoreVictims: policy.HookScoreVictims,
		abi.OpSelectVictims: policy.HookSelectVictims, abi.OpPreemptBindings: policy.HookPreemptBindings,
	}
	hook, known := hooks[op]
	if !known || !in.Hooks().Has(hook) {
		return nil, fmt.Errorf("the policy does not implement operation %d", op)
	}
	var a answer
	var err error
	switch op {
	case abi.OpPriorityDelta:
		gap, recheck := make([]int32, rows), sdk.Recheck{}
		for i := range gap {
			gap[i] = c.Preemptor.Delta
		}
		err = in.PriorityDelta(c, gap, &recheck)
		a.gap(gap, &recheck)
	case abi.OpScoreVictims:
		out := sdk.VictimScores{Tier: make([]int64, rows), Score: make([]float64, rows)}
		err = in.ScoreVictims(c, &out)
		a.scores(&out)
	case abi.OpSelectVictims:
		var out sdk.Selection
		out.Reset()
		err = in.SelectVictims(c, &out)
		a.selection(&out)
	case abi.OpPreemptBindings:
		var out sdk.BindingVictims
		out.Reset()
		for k := range out.Tiers {
			out.Tiers[k] = make([]int64, c.Len())
		}
		err = in.PreemptBindings(c, &out)
		a.selection(&out.Selection)
		a.tiers(&out.Tiers)
	}
	return a.b, err
}
