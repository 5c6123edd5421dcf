//go:build unix

package process

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/core/policy"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
	"github.com/cede-scheduler/cede/sdk/serve/policypb"
	"github.com/cede-scheduler/cede/sdk/settings"
)

// moody loads the policy in testdata in the given mode.
func moody(t testing.TB, h *Host, mood string) *Module {
	t.Helper()
	if soak.Race && !soak.Full() {
		t.Skip("the goroutines of the host are those of other guests, which run under the race detector")
	}
	return guest(t, h, "testdata/guest", LoadOptions{Limits: policy.Limits{Time: 20 * time.Second}, Env: []string{"MOOD=" + mood}})
}

func askDelta(i policy.Instance) (gap []int32, recheck sdk.Recheck, err error) {
	in := testCandidates()
	gap = make([]int32, in.Rows.Len())
	err = i.PriorityDelta(in, gap, &recheck)
	return gap, recheck, err
}

func TestServe_AnswersAfterConfiguration(t *testing.T) {
	h := newHost(t, Options{})
	m := moody(t, h, "fine")
	if m.Name() != "moody" || len(m.Settings()) != 1 || m.Limits().Memory != policy.DefaultLimits.Memory {
		t.Errorf("%s %v %v", m.Name(), m.Settings(), m.Limits())
	}
	i := configured(t, m, `{"text":"well"}`)
	if i.Hooks() != policy.HookDelta || i.Info().Delta != 10 || i.Fuel() != 0 {
		t.Errorf("%v %v", i.Hooks(), i.Info())
	}
	gap, recheck, err := askDelta(i)
	if err != nil || gap[len(gap)-1] != int32(len(gap)-1) || recheck.Time() != 42 {
		t.Errorf("%v %v %v", gap, recheck.Time(), err)
	}
	if err := callSelect(i); err == nil || !strings.Contains(err.Error(), "does not implement SelectVictims") {
		t.Errorf("hook that is not implemented: %v", err)
	}
}

func TestServe_RejectedConfigurationIsNotAFault(t *testing.T) {
	h := newHost(t, Options{})
	m := moody(t, h, "fine")
	for range 8 { // and no failure is counted
		c, err := settings.Read(m.Settings(), []byte(`{"text":"refused"}`))
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.Start(c)
		if _, isFault := errors.AsType[*policy.Error](err); isFault || err == nil || err.Error() != "text must not be refused" {
			t.Fatalf("got %v", err)
		}
		nothingLeft(t, h)
	}
	if _, _, err := askDelta(configured(t, m, "")); err != nil {
		t.Error(err)
	}
}

func TestServe_ReportsFirstLineOfPanic(t *testing.T) {
	h := newHost(t, Options{})
	for mood, words := range map[string]string{
		"index": "panic: runtime error: index out of range",
		"nil":   "panic: runtime error: invalid memory address or nil pointer dereference",
		"map":   "fatal error: concurrent map writes",
	} {
		i := configured(t, moody(t, h, mood), "")
		_, _, err := askDelta(i)
		wantFault(t, err, policy.FaultGuest, "process died during the call: exit status 2", words)
		if i.Alive() {
			t.Error("process is alive after ", mood)
		}
	}
	nothingLeft(t, h)
}

func TestServe_ReturnsTextOfError(t *testing.T) {
	h := newHost(t, Options{})
	i := configured(t, moody(t, h, "objects"), `{"text":"not today"}`)
	if _, _, err := askDelta(i); err == nil || err.Error() != "not today" || !i.Alive() {
		t.Errorf("got %v", err)
	}
}

func TestServe_KeepsLogLevels(t *testing.T) {
	log, out := logged(t)
	h := newHost(t, Options{Log: log})
	if _, _, err := askDelta(configured(t, moody(t, h, "talks"), "")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`level=DEBUG msg="policy output" digest=`, `text="line of level 0"`, `level=INFO msg="policy output"`,
		`level=WARN msg="policy output"`, `level=ERROR msg="policy output"`, `policy=moody text="line of level 3"`,
		`text="to standard output"`, `text="to standard error"`,
	} {
		eventually(t, "log contains "+want, func() bool { return strings.Contains(out.String(), want) })
	}
}

func TestServe_LimitsLogRate(t *testing.T) {
	log, out := logged(t)
	h := newHost(t, Options{Log: log})
	if _, _, err := askDelta(configured(t, moody(t, h, "chatters"), "")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a hundred lines are logged", func() bool { return strings.Contains(out.String(), "line 99") })
	if n := strings.Count(out.String(), "\n"); n > 1000 {
		t.Errorf("%d lines were logged", n)
	}
}

// A guest ends when its standard input closes, which its host holds. On systems without
// pdeathsig this is what ends it.
func TestServe_EndsWithItsStandardInput(t *testing.T) {
	cmd := exec.Command(executable(t, "testdata/guest"))
	cmd.Env = []string{policypb.CookieKey + "=" + policypb.CookieValue, "PLUGIN_PROTOCOL_VERSIONS=1", "PLUGIN_UNIX_SOCKET_DIR=" + shortDir(t)}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "handshake is printed", func() bool { return strings.HasPrefix(out.String(), "1|1|unix|") })
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestServe_ExplainsManualStart(t *testing.T) {
	for name, want := range map[string]string{
		executable(t, "testdata/guest"): "This binary is a plugin",
		untagged(t):                     "go build -tags process",
	} {
		var stderr bytes.Buffer
		cmd := exec.Command(name)
		cmd.Stderr = &stderr
		if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(stderr.String(), want) {
			t.Errorf("%v: %s", err, stderr.String())
		}
	}
}

// Building without the tag is the most common mistake.
func TestLoad_HintsAtMissingBuildTag(t *testing.T) {
	h := newHost(t, Options{})
	_, err := h.Load(context.Background(), untagged(t), LoadOptions{})
	wantFault(t, err, policy.FaultGuest, "exit status 1", "built as an ordinary program", "cede policy build")
}

func untagged(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "guest")
	cmd := exec.Command("go", "build", "-o", path, "./testdata/guest")
	cmd.Env = append(os.Environ(), "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}
