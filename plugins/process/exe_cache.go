package process

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/cede-scheduler/cede/core/policy"
)

// MaxExecutable is the maximum size of an executable in bytes.
const MaxExecutable = 512 << 20

// digestPrefix names the algorithm of a digest.
const digestPrefix = "sha256:"

// acquireExecutable copies an executable into the host's directory under its digest and
// adds a reference; the caller must call releaseExecutable later. The copy is hashed while
// it is written, and only the copy is executed.
func (h *Host) acquireExecutable(ctx context.Context, path, want string) (file, digest string, err error) {
	source, err := openExecutable(path)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = source.Close() }()
	fresh, sum, err := h.copy(ctx, source)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", path, err)
	}
	defer func() { _ = os.Remove(fresh) }() // renamed before if nothing failed
	if want != "" && !strings.EqualFold(strings.TrimPrefix(want, digestPrefix), sum) {
		return "", "", &policy.Error{
			Fault: policy.FaultHost, Hint: "permit the new checksum if you trust the executable",
			Err: fmt.Errorf("%s: %w: its SHA-256 is %s, permitted is %s", path, ErrChecksum, sum, strings.TrimPrefix(want, digestPrefix)),
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing {
		return "", "", closedFault()
	}
	file = filepath.Join(h.dir.path, sum)
	// A copy that is in use is not replaced: a process that is starting may execute only
	// the file for which its sandbox was created.
	if _, err := os.Lstat(file); err != nil || h.executableRefs[sum] == 0 {
		if err := os.Rename(fresh, file); err != nil {
			return "", "", err
		}
	}
	h.executableRefs[sum]++
	return file, digestPrefix + sum, nil
}

// releaseExecutable removes a copy after its last reference. Running processes continue.
func (h *Host) releaseExecutable(digest string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	sum := strings.TrimPrefix(digest, digestPrefix)
	if h.executableRefs[sum]--; h.executableRefs[sum] == 0 {
		delete(h.executableRefs, sum)
		_ = os.Remove(filepath.Join(h.dir.path, sum))
	}
}

// copy writes an executable to a new read-only file and returns its SHA-256.
func (h *Host) copy(ctx context.Context, from io.Reader) (path, sum string, err error) {
	f, err := os.CreateTemp(h.dir.path, "copy-")
	if err != nil {
		return "", "", err
	}
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, hash), &cancellable{ctx, io.LimitReader(from, MaxExecutable+1)})
	if err == nil && n > MaxExecutable {
		err = fault(policy.FaultLimit, "strip it (go build -ldflags='-s -w')", "executable is larger than %d MiB", MaxExecutable>>20)
	}
	const ownerReadsAndExecutes = 0o500
	err = errors.Join(err, f.Chmod(ownerReadsAndExecutes), f.Close())
	if err != nil {
		_ = os.Remove(f.Name())
		return "", "", err
	}
	return f.Name(), hex.EncodeToString(hash.Sum(nil)), nil
}

// cancellable is a reader that fails when its context ends.
type cancellable struct {
	ctx context.Context //nolint:containedctx // lives as long as one call of copy
	io.Reader
}

func (c *cancellable) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.Reader.Read(b)
}

// openExecutable opens a native executable. Scripts are rejected: their checksum does not
// cover the interpreter and the programs that it runs.
func openExecutable(path string) (io.ReadCloser, error) {
	refuse := func(hint, format string, args ...any) (io.ReadCloser, error) {
		return nil, fault(policy.FaultABI, hint, path+": "+format, args...)
	}
	at, err := os.Stat(path) // before it is opened, which blocks for a pipe
	switch {
	case err != nil:
		return nil, &policy.Error{Fault: policy.FaultHost, Err: err}
	case !at.Mode().IsRegular():
		return refuse("specify the executable of a policy", "not a regular file")
	case hasModes && at.Mode().Perm()&0o111 == 0:
		return refuse("run chmod +x "+path+" if it is an executable", "not marked as executable")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, &policy.Error{Fault: policy.FaultHost, Err: err}
	}
	head := make([]byte, 4)
	n, _ := io.ReadFull(f, head)
	if hint, what := unsupportedFormat(head[:n]); what != "" {
		_ = f.Close()
		return refuse(hint, "%s", what)
	}
	return &opened{Reader: io.MultiReader(bytes.NewReader(head[:n]), f), Closer: f}, nil
}

// opened is a file whose first bytes were already read.
type opened struct {
	io.Reader
	io.Closer
}

// unsupportedFormat returns a description and a hint if the first bytes show that a file is
// not an executable for this system.
func unsupportedFormat(head []byte) (hint, what string) {
	const native = "use an executable for " + runtime.GOOS + "/" + runtime.GOARCH
	begins := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }
	switch {
	case begins("#!"):
		return "build an executable; the checksum of a script does not cover its interpreter", "a script"
	case begins("\x00asm"):
		return "load it as a WebAssembly module", "a WebAssembly module"
	case begins("\x7fELF"):
		if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
			return native, "an executable for another system"
		}
	case begins("MZ"):
		if runtime.GOOS != "windows" {
			return native, "an executable for Windows"
		}
	case begins("\xcf\xfa\xed\xfe"), begins("\xca\xfe\xba\xbe"):
		if runtime.GOOS != "darwin" {
			return native, "an executable for macOS"
		}
	default:
		return native, "not an executable"
	}
	return "", ""
}
