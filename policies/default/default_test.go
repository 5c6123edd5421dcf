package defaults_test

import (
	"testing"

	defaults "github.com/cede-scheduler/cede/policies/default"
	"github.com/cede-scheduler/cede/sdk/policy"
)

func TestNew_ReturnsThePolicyDefaultWithItsHooks(t *testing.T) {
	t.Parallel()
	p := defaults.New()
	if name := p.Info().Name; name != "default" {
		t.Errorf("name %q", name)
	}
	if _, ok := p.(policy.VictimSelector); !ok {
		t.Error("no SelectVictims")
	}
	if _, ok := p.(policy.OptionScorer); !ok {
		t.Error("no ScoreOptions")
	}
}
