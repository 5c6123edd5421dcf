package serve

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// bindingGoldens returns requests of PreemptBindings that the policy default answers.
func bindingGoldens() map[string]golden {
	list := map[string]golden{}
	for name, options := range map[string]int{"some": 3, "more": 40} {
		in := policytest.RandomCandidates(rand.New(rand.NewPCG(43, uint64(options))), options, 5)
		in.Preemptor.JobType = policytest.JobTypeBinding
		list["preempt-bindings-"+name] = golden{op: abi.OpPreemptBindings, frame: bindingFrame(in)}
	}
	list["preempt-bindings-empty"] = golden{op: abi.OpPreemptBindings, frame: nothing(abi.OpPreemptBindings)}
	return list
}

// bindingFrame returns a request of PreemptBindings, which hosts support since 1.2.
func bindingFrame(in *policy.Candidates) []byte {
	var e abi.Encoder
	e.Candidates(abi.OpPreemptBindings, in, policy.BindingColumns)
	return change(written(&e), 4, 2<<16|abi.Major)
}

//go:generate go test -run TestGoldenBindings_AnswersAreUnchanged -update .

func TestGoldenBindings_AnswersAreUnchanged(t *testing.T) {
	for name, g := range bindingGoldens() {
		t.Run(name, func(t *testing.T) {
			answer := aligned(g.frame)
			if status := (&guest{policy: rules.New()}).call(g.op, answer); status != abi.OK {
				t.Fatalf("status %d", status)
			}
			if *update {
				put(t, "bindings/"+name+".frame", g.frame)
				put(t, "bindings/"+name+".answer", answer)
			}
			if !bytes.Equal(g.frame, readFrame(t, "bindings/"+name+".frame")) {
				t.Errorf("a host writes another frame than %s.frame", name)
			}
			if !bytes.Equal(answer, readFrame(t, "bindings/"+name+".answer")) {
				t.Errorf("the answer differs from %s.answer", name)
			}
		})
	}
}
