//go:build linux && (amd64 || arm64)

package process

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
	"github.com/cede-scheduler/cede/sdk/serve/policypb"
)

// Environment of the guest that attacks its host.
const (
	targetEnv = "CEDE_TEST_TARGET" // a file of the host
	hostEnv   = "CEDE_TEST_HOST"   // the process ID of the host
)

func init() {
	whenAsked["attacks its host"] = func(_ context.Context, g *rawGuest, a *policypb.Answer) (*policypb.Answer, error) {
		target, host := os.Getenv(targetEnv), os.Getenv(hostEnv)
		var pid int
		_, _ = fmt.Sscan(host, &pid)
		var done []string
		try := func(what string, f func() error) {
			if f() == nil {
				done = append(done, what)
			}
		}
		try("read a file", func() error { _, err := os.ReadFile(target); return err })
		try("write a file", func() error { return os.WriteFile(target, nil, 0o600) })
		try("create a file", func() error { return os.WriteFile(target+".new", nil, 0o600) })
		try("remove a file", func() error { return os.Remove(target) })
		try("change a mode", func() error { return os.Chmod(target, 0o644) })
		try("read the environment of the host", func() error { _, err := os.ReadFile("/proc/" + host + "/environ"); return err })
		try("read users", func() error { _, err := os.ReadFile("/etc/passwd"); return err })
		try("signal the host", func() error { return syscall.Kill(pid, 0) })
		try("trace the host", func() error { return syscall.PtraceAttach(pid) })
		try("replace its executable", func() error { exe, _ := os.Executable(); return os.WriteFile(exe, nil, 0o700) })
		try("connect", func() error { _, err := net.Dial("udp", "127.0.0.1:9"); return err })
		try("listen", func() error { _, err := net.Listen("tcp", "127.0.0.1:0"); return err })
		g.decoder.PutError("done: " + strings.Join(done, ", ") + ".")
		a.Status = int32(abi.PolicyError)
		return a, nil
	}
}

// A policy process reaches neither the files of the server nor its process, nor the
// network.
func TestSandbox_KeepsPolicyFromHost(t *testing.T) {
	if _, err := sandboxState(); err != nil {
		t.Skip(err)
	}
	target := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(target, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newHost(t, Options{})
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var limits policy.Limits
	if soak.Race {
		limits.Memory = 1 << 50
	}
	m, err := h.Load(t.Context(), exe, LoadOptions{Limits: limits, Env: []string{
		modeEnv + "=attacks its host", targetEnv + "=" + target, hostEnv + "=" + fmt.Sprint(os.Getpid()),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	if err := callSelect(start(t, m)); err == nil || err.Error() != "done: ." {
		t.Errorf("the guest could: %v", err)
	}
	if b, err := os.ReadFile(target); err != nil || string(b) != "secret" {
		t.Errorf("the file holds %q, %v", b, err)
	}
	if !strings.Contains(m.Isolation(), "Landlock") {
		t.Errorf("isolation is %q", m.Isolation())
	}
}

// Without a sandbox, the log and the status of the policy report it.
func TestSandbox_ReportsItsAbsence(t *testing.T) {
	log, out := logged(t)
	h := newHost(t, Options{Log: log})
	h.isolation = ""
	m := load(t, h, "honest", policy.Limits{})
	if m.Isolation() != policy.NoIsolation || !strings.Contains(out.String(), "policy process is not isolated") {
		t.Errorf("isolation is %q:\n%s", m.Isolation(), out.String())
	}
	if err := callSelect(start(t, m)); err != nil {
		t.Error(err)
	}
}
