package extender

import (
	"fmt"
	"testing"

	"github.com/cede-scheduler/cede/policies/aging"
	"github.com/cede-scheduler/cede/policies/karmada"
	"github.com/cede-scheduler/cede/policies/kubernetes"
	leastwaste "github.com/cede-scheduler/cede/policies/least-waste"
	"github.com/cede-scheduler/cede/policies/nomad"
	"github.com/cede-scheduler/cede/policies/protect"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// bound returns a running pod of one CPU that fits on nodes of one kind only; "": on any.
func bound(name, node, kind string) string {
	selector := ""
	if kind != "" {
		selector = fmt.Sprintf(`"nodeSelector":{"kind":%q},`, kind)
	}
	return fmt.Sprintf(`{"kind":"Pod","metadata":{"name":%q,"uid":%q},"spec":{"nodeName":%q,"priority":5,%s
		"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]},"status":{"phase":"Running","startTime":"2026-01-01T00:00:00Z"}}`+"\n", name, name, node, selector)
}

func ofKind(kind, name string) string {
	return fmt.Sprintf(`{"kind":"Node","metadata":{"name":%q,"labels":{"kubernetes.io/hostname":%q,"kind":%q}},"status":{"allocatable":{"cpu":"2","pods":"10"}}}`+"\n", name, name, kind)
}

// Of two equal pods the one that fits on another node is evicted, whatever their names, and also
// if kube-scheduler proposes the other one. Under policies that follow another scheduler, the
// names decide.
func TestExtender_EvictsPodThatFitsElsewhere(t *testing.T) {
	for name, c := range map[string]struct {
		policy    func() sdk.Policy
		relocates bool
	}{
		"aging":       {func() sdk.Policy { return aging.New() }, true},
		"default":     {func() sdk.Policy { return rules.New() }, true},
		"least-waste": {func() sdk.Policy { return leastwaste.New() }, true},
		"protect":     {func() sdk.Policy { return protect.New() }, true},
		"karmada":     {func() sdk.Policy { return karmada.New() }, false},
		"kubernetes":  {func() sdk.Policy { return kubernetes.New() }, false},
		"nomad":       {func() sdk.Policy { return nomad.New() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			elsewhere := 0
			for _, pods := range [][2]string{{"p", "q"}, {"q", "p"}} {
				mobile, pinned := pods[0], pods[1]
				e := start(t, c.policy, nil).extender
				e.Feed(readDump(t, ofKind("main", "n1")+ofKind("other", "n2")+bound(mobile, "n1", "")+bound(pinned, "n1", "main")), true)
				switch got := namedVictims(t, e, map[string][]string{"n1": {pinned}}); {
				case got == "n1: "+mobile:
					elsewhere++
				case got != "n1: "+pinned:
					t.Fatalf("answer %q", got)
				}
			}
			if c.relocates != (elsewhere == 2) {
				t.Errorf("in %d of 2 cases the pod that fits elsewhere is evicted; reads where pods fit: %v", elsewhere, c.relocates)
			}
		})
	}
}
