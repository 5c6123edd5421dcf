package toolchain

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/cmd/internal/scaffold"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/bundle"
	"github.com/cede-scheduler/cede/plugins/wasm"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// gentle is the policy of testdata/gentle.yaml in Go.
type gentle struct{}

func (gentle) Info() sdk.Info {
	return sdk.Info{
		Name: "gentle", Delta: 10, Ascending: true,
		Columns: sdk.StartColumn | sdk.LostWorkColumn | sdk.UseColumns | sdk.TotalsColumn | sdk.TimeColumns,
	}
}

const runtime = 600e9

func (gentle) PriorityDelta(in *sdk.Candidates, gap []int32, recheck *sdk.Recheck) error {
	for row, start := range in.Rows.Start {
		difference, age := in.Preemptor.Priority-in.Rows.Priority[row], in.Now-start
		gap[row] = 0
		if difference < 10 || age <= runtime {
			gap[row] = sdk.NeverEligible
			if difference > 0 && age <= runtime {
				recheck.At(in.Now + runtime - age + 1)
			}
		}
	}
	return nil
}

func (gentle) ScoreVictims(in *sdk.Candidates, out *sdk.VictimScores) error {
	for row, lost := range in.Rows.LostWork {
		share, resources := 0.0, 0.0
		for d, total := range in.Shared.Totals {
			if total > 0 {
				share += in.Rows.Use[d][row] / total
				resources++
			}
		}
		out.Tier[row] = int64(in.Rows.Priority[row])
		out.Score[row] = float64(int64(float64(lost) * (share / max(resources, 1))))
	}
	return nil
}

// gentleGuest returns an instance of gentle that is built from a language.
func gentleGuest(t testing.TB, host *wasm.Host, lang string) policy.Instance {
	t.Helper()
	in, err := testModule(t, host, "gentle", lang).Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.Close)
	return in
}

// testModule returns the policy of testdata/NAME.* that is built from a language. It skips
// the test if the compiler is missing.
func testModule(t testing.TB, host *wasm.Host, name, lang string) policy.Module {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	files, err := scaffold.Project{Name: name, Lang: lang}.Files()
	if err != nil {
		t.Fatal(err)
	}
	if err := scaffold.Write(dir, files); err != nil {
		t.Fatal(err)
	}
	extension := map[string]string{"c": ".c", "rust": ".rs", bundle.Rules: ".yaml"}[lang]
	source, err := os.ReadFile("testdata/" + name + extension)
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(dir, scaffold.Project{Name: name, Lang: lang}.Source())
	if err := os.WriteFile(target, source, 0o600); err != nil {
		t.Fatal(err)
	}
	m, _, err := bundle.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	built, err := (&Project{Dir: dir, Manifest: m}).Build(context.Background())
	if missing, ok := errors.AsType[*MissingError](err); ok {
		t.Skipf("%v; %s", missing, missing.Hint())
	}
	if failed, ok := errors.AsType[*CompileError](err); ok {
		t.Fatalf("%v\n%s", failed, failed.Output)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer built.Close()
	code, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(built.Module)))
	if err != nil {
		t.Fatal(err)
	}
	module, err := host.Load(context.Background(), code, policy.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(module.Close)
	return module
}

// The same rule has equal victims in Go, C, Rust and as rules.
func TestGentle_HasEqualVictimsInEveryLanguage(t *testing.T) {
	host := newHost(t)
	for _, lang := range []string{"c", "rust", bundle.Rules} {
		t.Run(lang, func(t *testing.T) {
			in := gentleGuest(t, host, lang)
			if diff := cmp.Diff(gentle{}.Info(), in.Info()); diff != "" {
				t.Fatal(diff)
			}
			native, guest := policytest.Of(gentle{}), &policytest.Subject{Info: in.Info(), Delta: in, Scorer: in}
			r := rand.New(rand.NewPCG(18, 1))
			evicted := 0
			for k := range soak.Count(1000, 10_000) {
				c := policytest.Random(r, policytest.Shape{Options: 5, Rows: 14, Work: true, MustLeave: k%3 == 0, Devices: k%4 == 0, Small: k%2 == 0})
				want, err := native.Decide(c)
				if err != nil {
					t.Fatal(err)
				}
				got, err := guest.Decide(c)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("case %d: Go (-) and %s (+) differ:\n%s\n%s", k, lang, diff, policytest.Format(c))
				}
				if slices.ContainsFunc(got.Victims, func(v []int) bool { return len(v) > 0 }) {
					evicted++
				}
			}
			if evicted == 0 {
				t.Error("no case has victims")
			}
		})
	}
}

func newHost(t testing.TB) *wasm.Host {
	t.Helper()
	host, err := wasm.NewHost(wasm.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close() })
	return host
}

// gentleCalls returns a call of each hook on 400 nodes with ten candidates each, and the
// number of candidates.
func gentleCalls(guest policy.Instance) (calls map[string]func() error, candidates int) {
	c := policytest.ConstructionB(400, true)
	c.Now = policytest.Now
	for range c.Dims {
		c.Totals = append(c.Totals, 1<<22)
	}
	in := c.Candidates()
	n := in.Rows.Len()
	gaps, out := make([]int32, n), sdk.VictimScores{Tier: make([]int64, n), Score: make([]float64, n)}
	return map[string]func() error{
		"PriorityDelta": func() error { return guest.PriorityDelta(in, gaps, new(sdk.Recheck)) },
		"ScoreVictims":  func() error { return guest.ScoreVictims(in, &out) },
	}, n
}

// Rules cost at most one and a half times as much as the same policy in C.
func TestGentle_RulesUseLittleMoreFuelThanC(t *testing.T) {
	host := newHost(t)
	fuel := func(lang, hook string) float64 {
		guest := gentleGuest(t, host, lang)
		calls, _ := gentleCalls(guest)
		if err := calls[hook](); err != nil {
			t.Fatal(err)
		}
		return float64(guest.Fuel())
	}
	for _, hook := range []string{"PriorityDelta", "ScoreVictims"} {
		c, rules := fuel("c", hook), fuel(bundle.Rules, hook)
		if rules > 1.5*c {
			t.Errorf("%s: rules use %.0f ticks, C uses %.0f: %.2f times as much", hook, rules, c, rules/c)
		}
	}
}

// BenchmarkGentle measures the calls of gentleCalls, with the encoding of the request.
func BenchmarkGentle(b *testing.B) {
	host := newHost(b)
	for _, lang := range []string{"c", "rust", bundle.Rules} {
		b.Run(lang, func(b *testing.B) {
			guest := gentleGuest(b, host, lang)
			calls, n := gentleCalls(guest)
			for hook, call := range calls {
				b.Run(hook, func(b *testing.B) {
					for b.Loop() {
						if err := call(); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/candidate")
					b.ReportMetric(float64(guest.Fuel())/float64(n), "fuel/candidate")
				})
			}
		})
	}
}
