package abi_test

import (
	"math/rand/v2"
	"testing"

	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/policytest/probe"
)

// A frame without annotations that followed a frame with annotations was rejected:
// the values of the earlier frame were retained without names.
func TestDecoder_ForgetsPreviousFrame(t *testing.T) {
	t.Parallel()
	in := policytest.RandomCandidates(rand.New(rand.NewPCG(9, 10)), 20, 8)
	var e abi.Encoder
	var d abi.Decoder
	for _, columns := range []struct{ first, then string }{{"all", "none"}, {"none", "all"}} {
		for _, name := range []string{columns.first, columns.then} {
			asked := probe.AllColumns
			if name == "none" {
				asked = 0
			}
			e.Candidates(abi.OpScoreVictims, in, asked)
			load(t, &d, written(&e, nil), abi.OpScoreVictims)
			if _, err := d.Candidates(); err != nil {
				t.Errorf("%s after %s: %v", name, columns.first, err)
			}
		}
	}
}
