package wasm_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cede-scheduler/cede/core/coretest"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/wasm"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// verdict is the expected result for a hostile guest.
type verdict struct {
	refused bool // by Load, otherwise by a call
	hook    string
	fault   policy.Fault
	text    string // part of the error
	// finds is the result of the search if there is no fault.
	finds []string
	// limits of the test; zero: those of hostile guests.
	limits policy.Limits
}

func refused(hook string, fault policy.Fault, says string) verdict {
	return verdict{refused: true, hook: hook, fault: fault, text: says}
}

func faulty(hook string, fault policy.Fault, says string) verdict {
	return verdict{hook: hook, fault: fault, text: says}
}

// everyRow is the result of a policy that evicts every row; e alone does not free enough,
// and d and f have higher priority.
var everyRow = verdict{finds: []string{"n1: a b", "n2: c"}}

// hostile maps the modules of testdata/hostile to their verdicts.
var hostile = map[string]verdict{
	"spin":                faulty("SelectVictims", policy.FaultLimit, "used up its 2100000 ticks of fuel"),
	"recurse_exponential": faulty("SelectVictims", policy.FaultLimit, "ticks of fuel"),
	"recurse_endless":     {hook: "SelectVictims", fault: policy.FaultLimit, text: "stack overflow", limits: policy.DefaultLimits},
	"bulk":                faulty("SelectVictims", policy.FaultLimit, "ticks of fuel"),
	"random":              faulty("SelectVictims", policy.FaultLimit, "ticks of fuel"),
	"newlines":            faulty("SelectVictims", policy.FaultLimit, "ticks of fuel"),
	"empty_writes":        faulty("SelectVictims", policy.FaultLimit, "ticks of fuel"),
	"chatter":             faulty("SelectVictims", policy.FaultLimit, "ticks of fuel"),

	"memory_bomb":   faulty("SelectVictims", policy.FaultLimit, "out of memory, limit is 4 MiB"),
	"memory_keeper": {finds: everyRow.finds, limits: policy.DefaultLimits},
	"memory_mover":  everyRow,
	"memory_large":  refused("load", policy.FaultLimit, "initial memory is 128 MiB, limit is 4 MiB"),
	"table_bomb":    faulty("SelectVictims", policy.FaultGuest, "trap: unreachable"),

	"trap_delta":      faulty("PriorityDelta", policy.FaultGuest, "trap: unreachable"),
	"trap_score":      faulty("ScoreVictims", policy.FaultGuest, "trap: unreachable"),
	"trap_select":     faulty("SelectVictims", policy.FaultGuest, "trap: unreachable"),
	"trap_options":    faulty("ScoreOptions", policy.FaultGuest, "trap: unreachable"),
	"trap_memory":     faulty("SelectVictims", policy.FaultGuest, "trap: out of bounds memory access"),
	"trap_divide":     faulty("SelectVictims", policy.FaultGuest, "trap: integer divide by zero"),
	"trap_last_words": faulty("SelectVictims", policy.FaultGuest, "?[2Jmy last words ? (trap: unreachable in function 6)"),
	"trap_describe":   refused("Describe", policy.FaultGuest, "trap: unreachable"),
	"trap_alloc":      refused("Describe", policy.FaultGuest, "cede_alloc: trap: unreachable"),
	"exit":            faulty("SelectVictims", policy.FaultGuest, "exited with code 3"),

	"score_nan":       faulty("ScoreVictims", policy.FaultAnswer, "NaN"),
	"score_minus_inf": faulty("ScoreVictims", policy.FaultAnswer, "-Inf"),
	"score_never":     {},
	"option_nan":      faulty("ScoreOptions", policy.FaultAnswer, "NaN"),
	"option_inf":      faulty("ScoreOptions", policy.FaultAnswer, "+Inf"),

	"pick_stranger":     faulty("SelectVictims", policy.FaultAnswer, "lists row 1000, which is not one of its rows"),
	"pick_negative":     faulty("SelectVictims", policy.FaultAnswer, "lists row -1"),
	"pick_neighbour":    faulty("SelectVictims", policy.FaultAnswer, "lists row 2, which is not one of its rows 0 to 1"),
	"pick_twice":        faulty("SelectVictims", policy.FaultAnswer, "lists row 0 twice"),
	"pick_too_many":     faulty("SelectVictims", policy.FaultAnswer, "the answer has 1000000000 elements"),
	"pick_one_too_many": faulty("SelectVictims", policy.FaultAnswer, "the answer has 4 elements, but its area holds 3"),
	"pick_orphans":      faulty("SelectVictims", policy.FaultAnswer, "1 picks belong to no option"),
	"pick_backwards":    faulty("SelectVictims", policy.FaultAnswer, "the picks of option 0 end at -5"),
	"pick_nothing":      {},
	"upwards":           everyRow,

	"status_17":          faulty("SelectVictims", policy.FaultABI, "returned unknown status 17"),
	"status_1":           faulty("SelectVictims", policy.FaultABI, "returned unknown status 1"),
	"status_minus_5":     faulty("SelectVictims", policy.FaultABI, "returned unknown status -5"),
	"status_minimum":     faulty("SelectVictims", policy.FaultABI, "returned unknown status -2147483648"),
	"status_bad_frame":   faulty("SelectVictims", policy.FaultABI, "cannot decode the frame"),
	"status_unsupported": faulty("SelectVictims", policy.FaultABI, "declares cede_select_victims but does not implement it"),
	"status_memory":      faulty("SelectVictims", policy.FaultLimit, "out of memory"),
	"status_error":       faulty("SelectVictims", policy.FaultGuest, "the policy failed without an error text"),
	"status_error_long":  faulty("SelectVictims", policy.FaultGuest, strings.Repeat("w", 512)+" ..."),

	"scribble":        everyRow,
	"scribble_all":    faulty("SelectVictims", policy.FaultAnswer, "but its area holds"),
	"scribble_scores": faulty("ScoreVictims", policy.FaultAnswer, "NaN"),
	"write_outside":   {},

	"future_major":      refused("load", policy.FaultABI, "built for version 2.0 of the policy ABI, this host supports 1.4 (use a newer version of cede"),
	"future_minor":      refused("load", policy.FaultABI, "built for version 1.9 of the policy ABI, this host supports 1.4 (use a newer version of cede"),
	"past_major":        refused("load", policy.FaultABI, "built for version 0.7 of the policy ABI, this host supports 1.4 (build it again"),
	"missing_exports":   refused("load", policy.FaultABI, "missing exports: cede_abi_version () -> i32, cede_alloc (i32) -> i32, cede_describe (i32, i32) -> i32, the memory as memory"),
	"wrong_signatures":  refused("load", policy.FaultABI, "export cede_alloc has type (i32) -> (), must be (i32) -> i32; export cede_select_victims has type (i64, i32) -> i32, must be (i32, i32) -> i32; export memory is a function"),
	"wrong_imports":     refused("load", policy.FaultABI, "import wasi_snapshot_preview1.fd_write has type (i32, i32, i32) -> i32, must be (i32, i32, i32, i32) -> i32; import cede_v1.log is a global"),
	"import_socket":     refused("load", policy.FaultABI, "wasi_snapshot_preview1.sock_accept is not available to policies: policies have no network, files or processes"),
	"import_others":     refused("load", policy.FaultABI, "import of env.abort is not available to policies: hosts provide only cede_v1.log and ten functions of wasi_snapshot_preview1; import of wasi_snapshot_preview1.path_open is not available to policies: policies have no network, files or processes; in Go, do not import net, os, os/exec, fmt or time, directly or indirectly; import of cede_v1.now is not available to policies: this host provides only cede_v1.log; use a newer version of cede"),
	"import_memory":     refused("load", policy.FaultABI, "import of env.memory is not available to policies"),
	"start_spin":        refused("load", policy.FaultLimit, "start function: used up its 20000000 ticks of fuel"),
	"start_trap":        refused("load", policy.FaultGuest, "start function: trap: integer divide by zero"),
	"start_prints":      refused("load", policy.FaultGuest, "start function: hostile (exited with code 5)"),
	"initialize_spin":   refused("load", policy.FaultLimit, "_initialize: used up its 20000000 ticks of fuel"),
	"data_outside":      refused("load", policy.FaultGuest, "cannot be instantiated: data[1]: out of bounds memory access"),
	"alloc_null":        refused("Describe", policy.FaultLimit, "cede_alloc returned no "),
	"alloc_odd":         refused("Describe", policy.FaultABI, "cede_alloc returned the unaligned address 0x401"),
	"alloc_outside":     refused("Describe", policy.FaultABI, "cede_alloc returned address 0x7fffff00"),
	"alloc_negative":    refused("Describe", policy.FaultABI, "cede_alloc returned address 0xfffffff0"),
	"alloc_end":         refused("Describe", policy.FaultABI, "memory ends at 0x200000"),
	"describe_long":     refused("Describe", policy.FaultABI, "the answer has 4000 elements, but its area holds 128"),
	"describe_nameless": refused("load", policy.FaultABI, `invalid name ""`),
	"describe_control":  refused("load", policy.FaultABI, `invalid name "?[2Jile"`),
	"describe_hooks":    refused("load", policy.FaultABI, "declares cede_priority_delta, cede_score_victims, cede_score_options, cede_preempt_bindings but does not export it; declares hooks that version 1.4 of the ABI does not define (0xfff)"),
	"describe_columns":  refused("load", policy.FaultABI, "requests columns that version 1.4 of the ABI does not define"),
	"describe_settings": refused("load", policy.FaultABI, "settings: "),
	"describe_twice":    refused("Describe", policy.FaultABI, "name changed after configuration"),
	"configure_trap":    refused("Configure", policy.FaultGuest, "trap: unreachable"),
}

func hostileGuest(t testing.TB, name string) []byte {
	t.Helper()
	code, err := os.ReadFile("testdata/hostile/" + name + ".wasm")
	check(t, err)
	return code
}

// limits are small, so that exceeding them is fast.
var limits = policy.Limits{Fuel: 2_000_000, Memory: 4 << 20}

func TestHostile_EveryFixtureHasVerdict(t *testing.T) {
	files, err := filepath.Glob("testdata/hostile/*.wasm")
	check(t, err)
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".wasm"); hostile[name].hook == "" && hostile[name].finds == nil {
			if _, ok := hostile[name]; !ok {
				t.Errorf("%s is not in the table", name)
			}
		}
	}
	if len(files) != len(hostile) {
		t.Errorf("%d files, %d verdicts", len(files), len(hostile))
	}
}

func TestHostile_FixturesMatchSources(t *testing.T) {
	tool, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Skip("comparing fixtures with their sources requires wat2wasm: apt-get install wabt")
	}
	for name := range hostile {
		out := filepath.Join(t.TempDir(), name)
		if said, err := exec.Command(tool, "testdata/hostile/"+name+".wat", "-o", out).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, said)
			continue
		}
		built, err := os.ReadFile(out)
		check(t, err)
		if !bytes.Equal(built, hostileGuest(t, name)) {
			t.Errorf("%s.wasm differs from %s.wat; run go generate ./plugins/wasm", name, name)
		}
	}
}

// For each hostile guest the fault is classified, nothing is evicted if the operator chose
// deny, default decides if the operator chose that, and other guests continue.
func TestHostile_IsReportedAndEvictsNothing(t *testing.T) {
	for _, e := range engines {
		h := host(t, e.options)
		for name, want := range hostile {
			t.Run(e.name+"/"+name, func(t *testing.T) {
				if soak.Race && strings.Contains(want.text, "ticks of fuel") && e.options.Interpreter {
					t.Skip("slow under the race detector")
				}
				if e.options.Interpreter && strings.Contains(want.text, " 20000000 ticks") && !soak.Full() {
					t.Skip("takes seconds: set CEDE_SOAK")
				}
				tryHostile(t, h, hostileGuest(t, name), want)
			})
		}
	}
}

func tryHostile(t *testing.T, h *wasm.Host, code []byte, want verdict) {
	m, err := h.Load(t.Context(), code, want.limits.WithDefaults(limits))
	if err == nil {
		defer m.Close()
	}
	var v *policy.Version
	if err == nil {
		v, err = policy.NewVersion(policy.Source{Name: "hostile", Module: m, Grants: policy.Grants})
	}
	if want.refused {
		checkFault(t, err, want)
		return
	}
	check(t, err)
	rules := coretest.Policies().Default()
	y := newYard(t, "hostile")
	found, err := y.find(v, rules)
	if want.hook == "" {
		check(t, err)
		if diff := cmp.Diff(want.finds, found); diff != "" {
			t.Error(diff)
		}
		v.ReleaseRef()
		return
	}
	checkFault(t, err, want)
	if _, faults := v.Stats(); len(found) > 0 || faults != 1 {
		t.Errorf("found %q, %d faults counted", found, faults)
	}
	v.ReleaseRef()
	planUnderFault(t, y, m, want)
}

func checkFault(t *testing.T, err error, want verdict) {
	t.Helper()
	fault := new(policy.Error)
	if !errors.As(err, &fault) {
		t.Fatalf("want a fault, got %v", err)
	}
	if fault.Hook != want.hook || fault.Fault != want.fault || fault.Policy == "" || fault.Version == "" || !strings.Contains(err.Error(), want.text) {
		t.Errorf("%s of %s %s: %v; want %s of %s: %s", fault.Fault, fault.Policy, fault.Hook, err, want.fault, want.hook, want.text)
	}
	if strings.ContainsAny(err.Error(), "\x1b\n") {
		t.Errorf("%q is not printable", err)
	}
}

// planUnderFault schedules a job with a faulty policy.
func planUnderFault(t *testing.T, y *yard, m *wasm.Module, want verdict) {
	t.Helper()
	alone, _ := newYard(t, "").plan(t, coretest.Policies())
	for _, choice := range []policy.OnFault{policy.Deny, policy.FallBack} {
		v, err := policy.NewVersion(policy.Source{Name: "hostile", Module: m, OnFault: choice})
		check(t, err)
		set, err := policy.NewSet(coretest.Policies().Default(), v)
		check(t, err)
		evicted, fault := y.plan(t, set)
		checkFault(t, fault, want)
		var expected []string
		if choice == policy.FallBack {
			expected = alone
		}
		if !slices.Equal(evicted, expected) {
			t.Errorf("under %s %q are evicted, want %q", choice, evicted, expected)
		}
		if others, fault := newYard(t, "").plan(t, set); fault != nil || !slices.Equal(others, alone) {
			t.Errorf("another job: %q, %v; want %q", others, fault, alone)
		}
		set.Unpin()
	}
}
