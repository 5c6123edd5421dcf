//go:build unix

package process

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cede-scheduler/cede/core/policy"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

func TestLoad_RejectsOtherFiles(t *testing.T) {
	h, dir := newHost(t, Options{}), t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]struct {
		kind  policy.Fault
		words []string
	}{
		filepath.Join(dir, "absent"): {policy.FaultHost, []string{"no such file"}},
		dir:                          {policy.FaultABI, []string{"not a regular file"}},
		pipe:                         {policy.FaultABI, []string{"not a regular file"}},
		write("script", "#!/bin/sh\nexec policy\n", 0o755):            {policy.FaultABI, []string{"a script", "checksum"}},
		write("text", "hello", 0o755):                                 {policy.FaultABI, []string{"not an executable", "linux/"}},
		write("empty", "", 0o755):                                     {policy.FaultABI, []string{"not an executable"}},
		write("module.wasm", "\x00asm\x01\x00\x00\x00", 0o755):        {policy.FaultABI, []string{"WebAssembly", "load it as"}},
		write("windows.exe", "MZ\x90\x00", 0o755):                     {policy.FaultABI, []string{"for Windows"}},
		write("plain", "\x7fELF", 0o644):                              {policy.FaultABI, []string{"chmod +x"}},
		write("truncated", "\x7fELF\x02\x01\x01", 0o755):              {policy.FaultABI, []string{"cannot be executed", "build it for this system"}},
		write("broken", "\x7fELF"+strings.Repeat("\x00", 999), 0o755): {policy.FaultABI, []string{"cannot be executed"}},
	} {
		t.Run(filepath.Base(path), func(t *testing.T) {
			_, err := h.Load(context.Background(), path, LoadOptions{})
			if want.words[0] != "cannot be executed" { // the error then contains the path of the copy
				want.words = append(want.words, path)
			}
			wantFault(t, err, want.kind, want.words...)
			nothingLeft(t, h)
		})
	}
	files, err := os.ReadDir(h.dir.path)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) > 0 {
		t.Errorf("host retains %v", files)
	}
}

func TestLoad_VerifiesChecksumOfCopy(t *testing.T) {
	h := newHost(t, Options{})
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(code)
	right := hex.EncodeToString(sum[:])
	// A symbolic link, whose target can be replaced at any time.
	link := filepath.Join(t.TempDir(), "policy")
	if err := os.Symlink(exe, link); err != nil {
		t.Fatal(err)
	}
	_, err = h.Load(context.Background(), link, LoadOptions{SHA256: strings.Repeat("0", 64)})
	wantFault(t, err, policy.FaultHost, right, "000000", "permit the new checksum")
	if !errors.Is(err, ErrChecksum) {
		t.Errorf("%v is not ErrChecksum", err)
	}
	for _, allowed := range []string{right, "sha256:" + right, strings.ToUpper(right)} {
		m, err := h.Load(context.Background(), link, LoadOptions{SHA256: allowed, Limits: policy.Limits{Memory: 1 << 50}, Env: []string{modeEnv + "=honest"}})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if m.Digest() != "sha256:"+right {
			t.Errorf("digest is %s", m.Digest())
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/bin/false", link); err != nil {
			t.Fatal(err)
		}
		start(t, m).Close()
		if err := callSelect(start(t, m)); err != nil { // started after the replacement
			t.Error(err)
		}
		if err := errors.Join(os.Remove(link), os.Symlink(exe, link)); err != nil {
			t.Fatal(err)
		}
		at, err := os.Stat(m.program.file)
		if err != nil {
			t.Fatal(err)
		}
		if at.Mode().Perm() != 0o500 {
			t.Errorf("copy has mode %v", at.Mode())
		}
	}
}

func TestStart_ReportsRemovedCopy(t *testing.T) {
	h := newHost(t, Options{})
	m := load(t, h, "honest", policy.Limits{})
	start(t, m)
	if err := os.Remove(m.program.file); err != nil {
		t.Fatal(err)
	}
	_, err := m.Start(sdk.NewConfig(nil, nil))
	wantFault(t, err, policy.FaultHost, "executable was removed", "load it again")
	start(t, load(t, h, "honest", policy.Limits{}))
}

func TestNewHost_RequiresPrivateDirectory(t *testing.T) {
	dir := shortDir(t)
	open := filepath.Join(dir, "open")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o755)); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(open, link); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		open: "chmod 700", link: "is not a directory", file: "not a directory",
		filepath.Join(dir, strings.Repeat("x", 90)): "configure a shorter one",
	} {
		if _, err := NewHost(Options{RunDir: path}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
	if os.Geteuid() == 0 {
		theirs := filepath.Join(dir, "theirs")
		if err := errors.Join(os.Mkdir(theirs, 0o700), os.Chown(theirs, 12345, 12345)); err != nil {
			t.Fatal(err)
		}
		if _, err := NewHost(Options{RunDir: theirs}); err == nil || !strings.Contains(err.Error(), "another user") {
			t.Errorf("got %v", err)
		}
	}
}
