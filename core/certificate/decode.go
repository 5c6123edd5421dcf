package certificate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/cede-scheduler/cede/sdk/abi"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// A DecodedCall is a call with its input and its answer. Fields that the hook lacks are nil.
type DecodedCall struct {
	Op         abi.Op
	Candidates *sdk.Candidates // of every hook but ScoreOptions
	Options    *sdk.Options    // of ScoreOptions

	Gaps    []int32           // by row
	Victims *sdk.VictimScores // by row
	Picks   [][]int32         // rows by option, in the order of picking
	Scores  *sdk.OptionScores // by option; PreemptBindings has tiers only
	Recheck int64             // Unix nanoseconds; 0: none
}

// errAnswer means that an answer has another size than its hook defines.
var errAnswer = errors.New("the answer does not match the frame")

// Decode decodes a call. It returns an error if the frame or the answer is not valid.
func (c *Call) Decode() (*DecodedCall, error) {
	own := abi.Grow(nil, len(c.Frame)) // aligned; the decoded input refers to it
	copy(own, c.Frame)
	var d abi.Decoder
	op, err := d.Load(own)
	if err != nil {
		return nil, err
	}
	out := &DecodedCall{Op: op}
	a := answerReader{c.Answer, nil}
	if op == abi.OpScoreOptions {
		if out.Options, err = d.Options(); err != nil {
			return nil, err
		}
		out.Scores = &sdk.OptionScores{}
		a.tiers(&out.Scores.Tiers, out.Options.Len())
		out.Scores.Score = a.floats(out.Options.Len())
		out.Recheck = a.int()
		return out, a.end()
	}
	if out.Candidates, err = d.Candidates(); err != nil {
		return nil, err
	}
	rows := out.Candidates.Rows.Len()
	switch op {
	case abi.OpPriorityDelta:
		for range rows {
			out.Gaps = append(out.Gaps, int32(a.int()))
		}
		out.Recheck = a.int()
	case abi.OpScoreVictims:
		out.Victims = &sdk.VictimScores{}
		for range rows {
			out.Victims.Tier = append(out.Victims.Tier, a.int())
			out.Victims.Score = append(out.Victims.Score, a.float())
		}
		out.Recheck = a.int()
	case abi.OpSelectVictims, abi.OpPreemptBindings:
		out.Picks = a.selection(out.Candidates)
		out.Recheck = a.int()
		if op == abi.OpPreemptBindings {
			out.Scores = &sdk.OptionScores{}
			a.tiers(&out.Scores.Tiers, out.Candidates.Len())
		}
	default:
		return nil, fmt.Errorf("unknown operation %d", op)
	}
	return out, a.end()
}

// An answerReader reads the numbers of an answer and retains its first error.
type answerReader struct {
	b   []byte
	err error
}

func (a *answerReader) int() int64 {
	if len(a.b) < 8 {
		a.err = errAnswer
		return 0
	}
	n := int64(binary.LittleEndian.Uint64(a.b))
	a.b = a.b[8:]
	return n
}

func (a *answerReader) float() float64 { return math.Float64frombits(uint64(a.int())) }

func (a *answerReader) floats(n int) (list []float64) {
	for range n {
		list = append(list, a.float())
	}
	return list
}

func (a *answerReader) tiers(to *[4][]int64, n int) {
	for k := range to {
		for range n {
			to[k] = append(to[k], a.int())
		}
	}
}

// selection reads picks. Rows that are not those of their option are an error.
func (a *answerReader) selection(in *sdk.Candidates) (picks [][]int32) {
	n := a.int()
	if n < 0 || n > int64(in.Len()) {
		a.err = errAnswer
		return nil
	}
	for i := range n {
		k := a.int()
		if k < 0 || k > int64(len(a.b)/8) {
			a.err = errAnswer
			return nil
		}
		rows := make([]int32, 0, k)
		for range k {
			row := a.int()
			if row < int64(in.FirstRow[i]) || row >= int64(in.FirstRow[i+1]) {
				a.err = errAnswer
			}
			rows = append(rows, int32(row))
		}
		picks = append(picks, rows)
	}
	return picks
}

func (a *answerReader) end() error {
	if a.err == nil && len(a.b) > 0 {
		a.err = errAnswer
	}
	return a.err
}
