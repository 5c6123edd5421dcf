package codec

import (
	"github.com/cede-scheduler/cede/core/model"
	pb "github.com/cede-scheduler/cede/core/replication/replicationpb"
)

// choice encodes an explanation. Nodes and versions repeat, and are names.
func (e *Encoder) choice(c *model.Choice) *pb.Choice {
	m := &pb.Choice{
		By: e.id(c.By), Search: uint32(c.Search), Options: uint32(c.Options), Ceiling: c.Ceiling, Omitted: uint32(c.Omitted),
		Selector: e.policyCall(&c.Selector), Chooser: e.policyCall(&c.Chooser),
	}
	for i := range c.Ranked {
		r := &c.Ranked[i]
		m.Ranked = append(m.Ranked, &pb.RankedOption{
			NodeId: e.name(r.NodeID), Tiers: trimTiers(&r.Tiers), Score: r.Score, Victims: uint32(r.Victims), Highest: r.Highest,
			Outlook: outlook(r.Outlook),
		})
	}
	for i := range c.Candidates {
		x := &c.Candidates[i]
		m.Candidates = append(m.Candidates, &pb.Candidate{
			AllocId: e.id(x.AllocID), Verdict: uint32(x.Verdict), Scored: x.Scored, Tier: x.Tier, Score: x.Score,
		})
	}
	return m
}

func outlook(o *model.Outlook) *pb.Outlook {
	if o == nil {
		return nil
	}
	return &pb.Outlook{LostWork: o.LostWork, Depth: uint32(o.Depth), Delay: o.Delay}
}

func (e *Encoder) policyCall(c *model.PolicyCall) *pb.PolicyCall {
	if *c == (model.PolicyCall{}) {
		return nil
	}
	return &pb.PolicyCall{Version: e.name(c.Version), Hook: e.name(c.Hook), Columns: c.Columns, Part: e.name(c.Part)}
}

// trimTiers returns the tiers without zeros at the end.
func trimTiers(tiers *[4]int64) []int64 {
	n := len(tiers)
	for n > 0 && tiers[n-1] == 0 {
		n--
	}
	return tiers[:n:n]
}

// choice decodes an explanation.
func (d *Decoder) choice(m *pb.Choice) *model.Choice {
	c := &model.Choice{
		By: d.id(m.By), Search: model.Search(d.enum("search", m.Search, model.Searches-1)), Options: int(m.Options),
		Ceiling: m.Ceiling, Omitted: int(m.Omitted), Selector: d.policyCall(m.Selector), Chooser: d.policyCall(m.Chooser),
	}
	for _, r := range m.Ranked {
		ranked := model.RankedOption{NodeID: d.name(r.NodeId), Score: r.Score, Victims: int(r.Victims), Highest: r.Highest}
		copy(ranked.Tiers[:], r.Tiers)
		if o := r.Outlook; o != nil {
			ranked.Outlook = &model.Outlook{LostWork: o.LostWork, Depth: int32(o.Depth), Delay: o.Delay}
		}
		c.Ranked = append(c.Ranked, ranked)
	}
	for _, x := range m.Candidates {
		c.Candidates = append(c.Candidates, model.Candidate{
			AllocID: d.id(x.AllocId), Verdict: model.Verdict(d.enum("verdict", x.Verdict, model.Verdicts-1)),
			Scored: x.Scored, Tier: x.Tier, Score: x.Score,
		})
	}
	return c
}

func (d *Decoder) policyCall(m *pb.PolicyCall) (c model.PolicyCall) {
	if m == nil {
		return c
	}
	return model.PolicyCall{Version: d.name(m.Version), Hook: d.name(m.Hook), Columns: m.Columns, Part: d.name(m.Part)}
}

// observedChoice encodes the explanation of an observation with names of its own: an
// evaluation is encoded apart from others.
func observedChoice(c *model.Choice, m *pb.Observation) *pb.Choice {
	if c == nil {
		return nil
	}
	var e Encoder
	out := e.choice(c)
	m.Names = e.Names()
	return out
}

// observedChoice decodes the explanation of an observation.
func (d *Decoder) observedChoice(m *pb.Observation) *model.Choice {
	if m.Choice == nil {
		return nil
	}
	own := NewDecoder(nil, m.Names)
	c := own.choice(m.Choice)
	if err := own.Err(); err != nil {
		d.fail("choice of an observation: %v", err)
	}
	return c
}
