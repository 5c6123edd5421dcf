//go:build linux && (amd64 || arm64)

package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

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
		try("start a process in another session", func() error { return detached(&syscall.SysProcAttr{Setsid: true}) })
		try("start a process in another group", func() error { return detached(&syscall.SysProcAttr{Setpgid: true}) })
		try("connect", func() error { _, err := net.Dial("udp", "127.0.0.1:9"); return err })
		try("listen", func() error { _, err := net.Listen("tcp", "127.0.0.1:0"); return err })
		for _, network := range []string{"unix", "unixpacket", "unixgram"} {
			for _, prefix := range []string{"", "@"} { // "@" is an abstract address
				to := prefix + target + "." + network
				try("connect to "+prefix+network, func() error { _, err := net.Dial(network, to); return err })
			}
		}
		try("send to a socket", func() error { return sendTo(target + ".unixgram") })
		try("bind the host to a processor", func() error {
			var all unix.CPUSet
			_ = unix.SchedGetaffinity(0, &all) // never fails
			return unix.SchedSetaffinity(pid, &all)
		})
		try("change the scheduling of the host", func() error {
			return unix.SchedSetAttr(pid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH}, 0)
		})
		try("change the scheduling parameters of the host", func() error { return call(unix.SYS_SCHED_SETPARAM, pid, new(int32)) })
		try("change the policy of the host", func() error { return call(unix.SYS_SCHED_SETSCHEDULER, pid, new(int32)) })
		try("change the I/O priority of the host", func() error {
			const process, idle = 1, 3 << 13
			_, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, process, uintptr(pid), idle)
			return errnoError(errno)
		})
		g.decoder.PutError("done: " + strings.Join(done, ", ") + ".")
		a.Status = int32(abi.PolicyError)
		return a, nil
	}
}

// sendTo sends a datagram from a pair of sockets to an address.
func sendTo(path string) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return unix.Sendto(pair[0], []byte("x"), 0, &unix.SockaddrUnix{Name: path})
}

// call makes a system call about a process; the scheduling policy is SCHED_OTHER.
func call(number uintptr, pid int, parameter *int32) error {
	args := [2]uintptr{uintptr(unsafe.Pointer(parameter))}
	if number == unix.SYS_SCHED_SETSCHEDULER {
		args = [2]uintptr{unix.SCHED_NORMAL, uintptr(unsafe.Pointer(parameter))}
	}
	_, _, errno := unix.Syscall(number, uintptr(pid), args[0], args[1])
	return errnoError(errno)
}

// errnoError returns nil for 0.
func errnoError(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// listenUnix opens the sockets of a host: by path and abstract, of every type.
func listenUnix(t *testing.T, path string) {
	t.Helper()
	for kind, network := range map[int]string{unix.SOCK_STREAM: "unix", unix.SOCK_SEQPACKET: "unixpacket", unix.SOCK_DGRAM: "unixgram"} {
		for _, prefix := range []string{"", "@"} {
			fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
			if err == nil {
				t.Cleanup(func() { _ = unix.Close(fd) })
				err = unix.Bind(fd, &unix.SockaddrUnix{Name: prefix + path + "." + network})
			}
			if err == nil && kind != unix.SOCK_DGRAM {
				err = unix.Listen(fd, 8)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// detached runs a program with the given attributes.
func detached(attributes *syscall.SysProcAttr) error {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = attributes
	return cmd.Run()
}

// A policy process reaches neither the files of the server nor its process, nor the
// network, and it has no children that outlive it.
func TestSandbox_KeepsPolicyFromHost(t *testing.T) {
	if _, err := sandboxState(); err != nil {
		t.Skip(err)
	}
	target := filepath.Join(shortDir(t), "token")
	if err := os.WriteFile(target, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	listenUnix(t, target)
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

// Folders for data and configuration of an operator are not readable, also those below
// /usr: the kernel cannot exclude a folder below one that is allowed.
func TestSystemPaths_ExcludeFilesOfTheOperator(t *testing.T) {
	for _, file := range []string{"/etc/cede/server.key", "/usr/local/etc/cede/server.key", "/usr/local/var/lib/cede", "/usr/local/cede/data", "/usr/src", "/opt/cede/data", "/var/lib/cede", "/proc/1/environ", "/run/cede"} {
		for _, path := range systemPaths {
			if strings.HasPrefix(file+"/", path+"/") {
				t.Errorf("%s is below %s", file, path)
			}
		}
	}
}

// Paths of the system that are missing, or that the user of the server cannot reach, do not
// prevent a policy from starting. Other errors do.
func TestAllowPath_UnreachablePathsAreOptional(t *testing.T) {
	dir := t.TempDir()
	file, loop, closed := filepath.Join(dir, "file"), filepath.Join(dir, "loop"), filepath.Join(dir, "closed")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink(loop, loop), os.MkdirAll(filepath.Join(closed, "bin"), 0o700), os.Chmod(closed, 0)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(closed, 0o700) }) // the folder is removed after the test
	paths := []string{filepath.Join(dir, "missing"), filepath.Join(file, "bin"), loop}
	if os.Geteuid() != 0 { // root reaches every path
		paths = append(paths, filepath.Join(closed, "bin"))
	}
	const noRuleset = -1
	for _, path := range paths {
		if err := allowPath(noRuleset, path, readAndExecute); !isUnreachable(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := allowPath(noRuleset, file, readAndExecute); err == nil || isUnreachable(err) {
		t.Errorf("a rule that cannot be added: %v", err)
	}
}
