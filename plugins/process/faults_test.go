//go:build unix

package process

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// skipUnderRaceDetector skips modes of a guest for which the host takes the same path as
// for another one. Each start of a guest with the race detector takes a third of a second.
func skipUnderRaceDetector(t *testing.T, mode string, except ...string) {
	t.Helper()
	if soak.Race && !soak.Full() && !slices.Contains(except, mode) {
		t.Skip("another mode exercises the host under the race detector: set CEDE_SOAK=1")
	}
}

// Load reports the faults of processes that never become a policy.
func TestLoad_ReportsFaults(t *testing.T) {
	for mode, want := range map[string]struct {
		kind  policy.Fault
		words []string
	}{
		"exits":                 {policy.FaultGuest, []string{"died at its start", "exit status 3", "the licence has expired", "-tags process"}},
		"rubbish":               {policy.FaultABI, []string{`"Starting up, please wait..."`, "before its handshake"}},
		"rubbish and exit":      {policy.FaultABI, []string{`"?[31mhello|world"`}},
		"silent":                {policy.FaultTimeout, []string{"not ready after 500ms"}},
		"endless line":          {policy.FaultABI, []string{`"xxxx`, "before its handshake"}},
		"elsewhere":             {policy.FaultABI, []string{"listens on unix /run/docker.sock", "not in its directory"}},
		"by network":            {policy.FaultABI, []string{"listens on tcp 127.0.0.1:1"}},
		"no such core protocol": {policy.FaultABI, []string{"handshake failed", "incompatible core"}},
		"handshake and exit":    {policy.FaultGuest, []string{"process died", "changed my mind"}},
		"no listener":           {policy.FaultTimeout, []string{"not ready"}},
		"old transport":         {policy.FaultABI, []string{"netrpc"}},
		"future protocol":       {policy.FaultABI, []string{"uses version 9", "this host supports 1", "newer version of cede"}},
		"future ABI":            {policy.FaultABI, []string{"Describe", "version 1.5", "this host supports 1.4", "newer version of cede"}},
		"other ABI":             {policy.FaultABI, []string{"version 2.0", "newer version of cede"}},
		"ancient ABI":           {policy.FaultABI, []string{"version 0.0", "build the policy again"}},
		"no hooks":              {policy.FaultABI, []string{"no hook is implemented"}},
		"strange hooks":         {policy.FaultABI, []string{"0x200"}},
		"strange name":          {policy.FaultABI, []string{`invalid name "?[31mred"`}},
		"strange settings":      {policy.FaultABI, []string{"quantum"}},
		"dies when described":   {policy.FaultGuest, []string{"Describe", "died during the call", "signal: killed"}},
		"hangs when described":  {policy.FaultTimeout, []string{"Describe", "longer than"}},
	} {
		t.Run(mode, func(t *testing.T) {
			skipUnderRaceDetector(t, mode, "exits", "rubbish", "silent", "no such core protocol", "dies when described")
			h := newHost(t, Options{StartTimeout: 500 * time.Millisecond})
			if mode != "silent" && mode != "no listener" {
				h.options.StartTimeout = 20 * time.Second
			}
			limits := policy.Limits{Time: 20 * time.Second}
			if mode == "hangs when described" {
				limits.Time = slowed(time.Second)
			}
			m, err := self(h, mode, limits)
			if err == nil {
				m.Close()
			}
			wantFault(t, err, want.kind, want.words...)
			nothingLeft(t, h)
		})
	}
}

// A fault in a call is reported, the process is gone, and the next process works.
func TestCall_ReportsFaultAndNextProcessWorks(t *testing.T) {
	for mode, want := range map[string]struct {
		kind  policy.Fault
		words []string
		lives bool
	}{
		"kills itself":             {policy.FaultGuest, []string{"process died", "signal: killed"}, false},
		"exits in a call":          {policy.FaultGuest, []string{"exit status 7", "cannot reach the oracle"}, false},
		"panics":                   {policy.FaultGuest, []string{"exit status 2", "panic: no such row: 17"}, false},
		"hangs":                    {policy.FaultTimeout, []string{"longer than", "killed", "raise the time"}, false},
		"spins":                    {policy.FaultTimeout, []string{"longer than"}, false},
		"stops":                    {policy.FaultTimeout, []string{"longer than"}, false},
		"longer":                   {policy.FaultABI, []string{"frame of"}, false},
		"shorter":                  {policy.FaultABI, []string{"frame of"}, false},
		"no frame":                 {policy.FaultABI, []string{"with 0 bytes at 0"}, false},
		"from nowhere":             {policy.FaultABI, []string{"with 0 bytes at 2147483648"}, false},
		"strange entries":          {policy.FaultABI, []string{"7 bytes of entries"}, false},
		"much larger":              {policy.FaultAnswer, []string{"larger than the request frame"}, false},
		"garbage":                  {policy.FaultAnswer, []string{"but its area holds"}, false},
		"too many picks":           {policy.FaultAnswer, []string{"but its area holds"}, false},
		"no status":                {policy.FaultABI, []string{"status 7"}, false},
		"bad frame":                {policy.FaultABI, []string{"cannot decode the frame"}, true},
		"unsupported":              {policy.FaultABI, []string{"declares SelectVictims but"}, true},
		"no memory":                {policy.FaultLimit, []string{"out of memory"}, false},
		"error of gRPC":            {policy.FaultABI, []string{"PermissionDenied", "not you"}, false},
		"claims to be unavailable": {policy.FaultGuest, []string{"connection closed"}, false},
		"claims a deadline":        {policy.FaultABI, []string{"DeadlineExceeded", "too late"}, false},
	} {
		t.Run(mode, func(t *testing.T) {
			skipUnderRaceDetector(t, mode, "kills itself", "hangs", "shorter", "garbage", "bad frame", "no memory")
			h := newHost(t, Options{StartTimeout: 20 * time.Second})
			patience := 20 * time.Second
			if want.kind == policy.FaultTimeout {
				patience = slowed(time.Second) // Load must answer within it too
			}
			m := load(t, h, mode, policy.Limits{Time: patience})
			for range 2 { // Load has not started the second process
				i := start(t, m)
				began := time.Now()
				wantFault(t, callSelect(i), want.kind, want.words...)
				if d := time.Since(began); d > 15*time.Second { // not by a timeout
					t.Errorf("fault was reported after %v", d)
				}
				if i.Alive() != want.lives {
					t.Errorf("Alive returned %v", i.Alive())
				}
				if !want.lives {
					nothingLeft(t, h)
				}
				if err := callSelect(i); err == nil {
					t.Error("second call returned no error")
				}
				i.Close()
				i.Close()
			}
			nothingLeft(t, h)
		})
	}
}

func TestCall_ErrorOfPolicyIsNotAFault(t *testing.T) {
	h := newHost(t, Options{})
	i := start(t, load(t, h, "objects", policy.Limits{}))
	for range 3 {
		err := callSelect(i)
		if err == nil || err.Error() != "today is ?Sunday" {
			t.Fatalf("got %v", err)
		}
		if !i.Alive() {
			t.Fatal("error of the policy counts as a fault")
		}
	}
}

func TestCall_LimitsMemory(t *testing.T) {
	skipUnlessLinux(t)
	if soak.Race {
		t.Skip("the race detector maps more memory than any limit")
	}
	log, out := logged(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(out)
		}
	})
	h := newHost(t, Options{Log: log})
	i := start(t, load(t, h, "allocates", policy.Limits{Memory: 64 << 20, Time: 20 * time.Second}))
	wantFault(t, callSelect(i), policy.FaultLimit, "memory", "raise the memory")
}

func TestCall_LogsOutputOfGuests(t *testing.T) {
	log, out := logged(t)
	h := newHost(t, Options{Log: log})
	i := start(t, load(t, h, "logs", policy.Limits{}))
	if err := callSelect(i); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`level=WARN msg="policy output" digest=`, `text="careful rows=3"`, `level=DEBUG`, `no level`, `no time`,
		`text="plain ?[31mred"`, `long long`, "printed by the policy", `policy=default`,
	} {
		eventually(t, "log contains "+want, func() bool { return strings.Contains(out.String(), want) })
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > 5000 {
			t.Errorf("a line of %d bytes was logged", len(line))
		}
	}
}

func TestStart_PassesMinimalEnvironment(t *testing.T) {
	t.Setenv("CEDE_SECRET", "x")
	h := newHost(t, Options{})
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	m, err := h.Load(context.Background(), exe, LoadOptions{
		Args: []string{"one", "two"}, Env: []string{modeEnv + "=tells its environment"}, Limits: policy.Limits{Memory: 1 << 50},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	const want = "one two CEDE_TEST_GUEST CEDE_POLICY PLUGIN_MIN_PORT PLUGIN_MAX_PORT PLUGIN_PROTOCOL_VERSIONS PLUGIN_CLIENT_CERT PLUGIN_UNIX_SOCKET_DIR GOMEMLIMIT"
	if err := callSelect(start(t, m)); err == nil || err.Error() != want {
		t.Errorf("environment is\n%v, want\n%s", err, want)
	}
}
