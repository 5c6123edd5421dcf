package api

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/sdk/client"
)

// The most that is taken of a node's taints.
const (
	maxTaints    = 64
	maxTaintText = 256 // bytes of a key, and of a value
)

// taintsFrom is taints as somebody sends them; add is told what is wrong.
func taintsFrom(list []client.Taint, add func(format string, args ...any)) []model.Taint {
	if len(list) > maxTaints {
		add("Taints has %d: at most %d are taken", len(list), maxTaints)
		return nil
	}
	var all []model.Taint
	for i, t := range list {
		m := model.Taint{Key: t.Key, Value: t.Value, Effect: model.TaintEffect(t.Effect)}
		switch {
		case t.Key == "" || len(t.Key) > maxTaintText || len(t.Value) > maxTaintText || strings.ContainsAny(t.Key, " \t\n=:\x00"):
			add("Taints[%d]: %s with %s: want a word, and a value of at most %d bytes", i, quote(t.Key), quote(t.Value), maxTaintText)
		case !slices.Contains(model.TaintEffects, m.Effect):
			add("Taints[%d]: the effect is %s: want NoSchedule, PreferNoSchedule or NoExecute", i, quote(t.Effect))
		case slices.ContainsFunc(all, m.Matches):
			add("Taints[%d]: %s:%s is there already: want one of each", i, t.Key, t.Effect)
		}
		all = append(all, m)
	}
	return model.MergeTaints(all, nil)
}

func taintsOf(list []model.Taint) (all []client.Taint) {
	for _, t := range list {
		all = append(all, client.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect), Set: t.Set, Since: t.Since})
	}
	return all
}

func setTaints(a *API, c *call) (any, error) {
	var req client.NodeUpdateTaintsRequest
	if err := c.body(&req); err != nil {
		return nil, err
	}
	id, err := c.named(req.NodeID)
	if err != nil {
		return nil, err
	}
	var problems []string
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	taint, untaint := taintsFrom(req.Taint, add), untaintFrom(req.Untaint, add)
	if len(req.Taint)+len(req.Untaint) == 0 {
		add("there is nothing to change: want Taint or Untaint")
	}
	if len(problems) > 0 {
		return nil, invalid("%s", strings.Join(problems, "; ")).with("Problems", problems)
	}
	n, err := nodeKind.find(a.cfg.Server.Snapshot(), c, id)
	if err != nil {
		return nil, err
	}
	for _, t := range untaint {
		if at := slices.IndexFunc(n.Taints, t.Matches); at >= 0 && !n.Taints[at].Set {
			return nil, invalid("node %s declares %s itself", quote(n.ID), n.Taints[at]).
				hint("take it out of client.taints of its configuration, and restart its agent")
		}
	}
	ctx, cancel := c.within()
	defer cancel()
	return c.nodeChanged(a.cfg.Server.SetTaints(ctx, n.ID, untaint, taint))
}

// untaintFrom is what is to be taken away: without an effect, a key's taints of
// every effect.
func untaintFrom(list []client.Taint, add func(format string, args ...any)) (all []model.Taint) {
	for i, t := range list {
		effects := model.TaintEffects
		if t.Effect != "" {
			effects = []model.TaintEffect{model.TaintEffect(t.Effect)}
		}
		if t.Key == "" || !slices.Contains(model.TaintEffects, effects[0]) || i == maxTaints {
			add("Untaint[%d]: %s of effect %s: want the key of a taint, and its effect or none", i, quote(t.Key), quote(t.Effect))
			return nil
		}
		for _, e := range effects {
			all = append(all, model.Taint{Key: t.Key, Effect: e})
		}
	}
	return all
}
