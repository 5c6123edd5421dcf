// Package probe implements a policy that verifies the transport of questions: it
// hashes every value it receives into one number and derives its answers from it. The
// policy exists in every guest language with the same hash in the same order. The
// golden frames of sdk/abi contain its questions and answers.
//
// A Policy must be used by one goroutine at a time.
package probe

import (
	"errors"

	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/policy"
)

// Policy implements the policy named probe.
type Policy struct {
	seed uint64 // hash of the configuration
}

var (
	_ policy.Configurable   = (*Policy)(nil)
	_ policy.DeltaHook      = (*Policy)(nil)
	_ policy.VictimScorer   = (*Policy)(nil)
	_ policy.VictimSelector = (*Policy)(nil)
	_ policy.OptionScorer   = (*Policy)(nil)

	_ policy.BindingPreemptor = (*Policy)(nil)
)

// New returns an unconfigured policy.
func New() *Policy { return &Policy{} }

// AllColumns is the set of columns that the probe requests.
const AllColumns policy.Columns = 1<<19 - 1

// Version is the version of a probe module.
const Version = "1.0-größe"

// Description returns the description of a probe module.
func Description(settings []byte) abi.Description {
	return abi.Description{Info: New().Info(), Version: Version, Hooks: 31, Configurable: true, Settings: settings}
}

// Info implements policy.Policy.
func (*Policy) Info() policy.Info {
	return policy.Info{
		Name: "probe", Delta: -7, Columns: AllColumns, Adaptive: true, Ascending: true, KeepRedundant: true,
		Elastic: true, MultiCluster: true, LeastFirst: true, YoungestFirst: true, Monotone: true,
	}
}

// Settings implements policy.Configurable. It returns a setting of each kind, with
// characters that need escaping.
func (*Policy) Settings() []policy.Setting {
	return []policy.Setting{
		{Name: "on", Kind: policy.Bool, Doc: `says "yes" or \no`, Default: "true"},
		{Name: "count", Kind: policy.Integer, Doc: "größe,\n\tin 日本 🦀", Default: "3", Limits: policy.Between(-1, 9)},
		{Name: "weight", Kind: policy.Number, Limits: policy.AtLeast(0.5), Default: "0.5"},
		{Name: "span", Kind: policy.Duration, Default: "10m"},
		{Name: "order", Kind: policy.Text, Required: true, OneOf: []string{"newest", "größte", "reject"}},
		{Name: "spare", Kind: policy.Texts},
		{Name: "shares", Kind: policy.Numbers},
	}
}

// Configure implements policy.Configurable.
func (p *Policy) Configure(c *policy.Config) error {
	h := sum(basis)
	if c.Bool("on") {
		h.add(1)
	}
	h.add(uint64(c.Integer("count")))
	h.float(c.Number("weight"))
	h.add(uint64(c.Duration("span")))
	h.text(c.Text("order"))
	spare, shares := c.Texts("spare"), c.Numbers("shares")
	h.add(uint64(len(spare)))
	for _, text := range spare {
		h.text(text)
	}
	h.add(uint64(len(shares)))
	for _, share := range shares {
		h.text(share.Item)
		h.float(share.Number)
	}
	if c.Text("order") == "reject" {
		return errors.New("rejected: " + spare[0])
	}
	p.seed = uint64(h)
	return nil
}

// check returns an error if the job name of the preemptor requests one.
func check(p *policy.Preemptor) error {
	if p.Job == "fail" {
		return errors.New("no: " + p.Namespace)
	}
	return nil
}

// PriorityDelta implements policy.DeltaHook.
func (p *Policy) PriorityDelta(in *policy.Candidates, gap []int32, recheck *policy.Recheck) error {
	h := p.candidates(in)
	for row := range gap {
		gap[row] += int32(h.part(row) >> 58)
	}
	recheck.At(int64(h >> 2))
	recheck.At(int64(h>>2) + 1)
	return check(in.Preemptor)
}

// ScoreVictims implements policy.VictimScorer.
func (p *Policy) ScoreVictims(in *policy.Candidates, out *policy.VictimScores) error {
	h := p.candidates(in)
	for row := range out.Score {
		out.Tier[row] = int64(h.part(row))
		out.Score[row] = float64(h.part(row) >> 11)
	}
	return check(in.Preemptor)
}

// SelectVictims implements policy.VictimSelector. If the preemptor's job requests it,
// it picks every row twice, which exceeds the capacity of the answer.
func (p *Policy) SelectVictims(in *policy.Candidates, out *policy.Selection) error {
	p.pick(in, out)
	return check(in.Preemptor)
}

func (p *Policy) pick(in *policy.Candidates, out *policy.Selection) sum {
	h := p.candidates(in)
	for i := range in.Len() {
		for row := int(in.FirstRow[i+1]) - 1; row >= int(in.FirstRow[i]); row-- {
			switch {
			case in.Preemptor.Job == "twice":
				out.Pick(row)
				out.Pick(row)
			case h.part(row)>>63 != 0:
				out.Pick(row)
			}
		}
		out.Next()
	}
	out.Recheck.At(int64(h >> 1))
	return h
}

// PreemptBindings implements policy.BindingPreemptor. It picks as SelectVictims does,
// and ranks the options as ScoreOptions does.
func (p *Policy) PreemptBindings(in *policy.Candidates, out *policy.BindingVictims) error {
	h := p.pick(in, &out.Selection)
	for k := range out.Tiers {
		for i := range out.Tiers[k] {
			out.Tiers[k][i] = int64(h.part(4*i + k))
		}
	}
	return check(in.Preemptor)
}

// ScoreOptions implements policy.OptionScorer.
func (p *Policy) ScoreOptions(in *policy.Options, out *policy.OptionScores) error {
	h := p.options(in)
	for i := range out.Score {
		for k := range out.Tiers {
			out.Tiers[k][i] = int64(h.part(4*i + k))
		}
		out.Score[i] = -float64(h.part(i) >> 11)
	}
	return check(in.Preemptor)
}
