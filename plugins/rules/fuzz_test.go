package rules_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/hosttest"
	"github.com/cede-scheduler/cede/plugins/rules"
	"github.com/cede-scheduler/cede/plugins/wasm"
)

// FuzzRules compiles any text. What compiles must load, and answer without a trap, within
// its limits, as the interpreter does.
func FuzzRules(f *testing.F) {
	for _, text := range examples {
		f.Add(text)
	}
	for _, text := range []string{
		"order: 1 / 0", "order: 0.0 / 0.0", "eligible: 1 / 0 == 1 || true", "order: -9223372036854775807 - 2",
		"order: [1, 2.0, true, now]; eligible: duration('2562047h') * 4 > victim.age", "option: int(1e300)",
	} {
		f.Add(text)
	}
	host, err := wasm.NewHost(wasm.Options{Interpreter: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = host.Close() })
	r := rand.New(rand.NewPCG(3, 9))
	cases := []hosttest.Case{hosttest.RandomCase(r), hosttest.RandomCase(r), hostileCase(2, 20)}
	f.Fuzz(func(t *testing.T, text string) {
		source, err := rules.ParseInline("tested", text)
		if err != nil {
			return
		}
		code, err := rules.Compile(source)
		if err != nil {
			return
		}
		m, err := host.Load(context.Background(), code, policy.DefaultLimits)
		if err != nil {
			t.Fatalf("%s\n%v", text, err)
		}
		defer m.Close()
		in, err := m.Start(nil)
		if err != nil {
			t.Fatalf("%s\n%v", text, err)
		}
		defer in.Close()
		for _, q := range cases {
			if a := hosttest.CallHooks(t, in, q); a.Err != [5]string{} {
				t.Fatalf("%s\n%v", text, a.Err)
			}
		}
	})
}
