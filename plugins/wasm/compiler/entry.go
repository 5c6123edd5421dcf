package compiler

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/cpu"
)

// ErrCache means that the directory of compiled modules cannot be used.
var ErrCache = errors.New("cache of compiled policies is damaged")

// An entry records which file of the cache directory holds the native code of a module, and
// its checksum. The engine checks the instructions alone: with a damaged table of functions
// it would jump to any address, which ends the process. So it reads no file without a record.
type entry struct {
	dir  string // the cache directory
	path string // of the record
}

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// entry returns the entry of a module that this program compiles. Another version of it uses
// other entries.
func (r *Request) entry(module []byte) *entry {
	h := sha256.New()
	h.Write([]byte(version()))
	h.Write([]byte{0})
	h.Write(module)
	return &entry{r.CacheDir, filepath.Join(r.CacheDir, "compiled-modules", hex.EncodeToString(h.Sum(nil)))}
}

// version returns the architecture, the features of the processor and the version of the
// engine, on all of which native code depends.
func version() string {
	const engine = "github.com/tetratelabs/wazero"
	machine := fmt.Sprint(runtime.GOARCH, " ", cpu.X86, " ", cpu.ARM64)
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, d := range build.Deps {
			if d.Path == engine {
				return machine + " " + d.Version
			}
		}
	}
	return machine
}

// isIntact reports whether the file of the entry is as it was written. It returns an error
// that describes the damage if the module was compiled before.
func (e *entry) isIntact() (bool, error) {
	record, err := os.ReadFile(e.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	name, _, ok := strings.Cut(string(record), " ")
	if !ok || !filepath.IsLocal(name) {
		return false, errors.New("not a valid record")
	}
	code, err := os.ReadFile(filepath.Join(e.dir, name))
	if err != nil {
		return false, err
	}
	if !bytes.Equal(record, recordOf(name, code)) {
		return false, fmt.Errorf("checksum of %s differs", name)
	}
	return true, nil
}

// publish moves the only file that the engine wrote to another cache directory into that of
// the entry, and writes the record.
func (e *entry) publish(from string) error {
	written, err := filepath.Glob(filepath.Join(from, "*", "*"))
	if err != nil {
		return err
	}
	if len(written) != 1 {
		return fmt.Errorf("the engine wrote %d files, not one", len(written))
	}
	name, err := filepath.Rel(from, written[0])
	if err != nil {
		return err
	}
	code, err := os.ReadFile(written[0])
	if err != nil {
		return err
	}
	to := filepath.Join(e.dir, name)
	for _, dir := range []string{filepath.Dir(to), filepath.Dir(e.path)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := os.Rename(written[0], to); err != nil {
		return err
	}
	return os.WriteFile(e.path, recordOf(name, code), 0o600)
}

// recordOf returns the content of the record of a file.
func recordOf(name string, code []byte) []byte {
	return fmt.Appendf(nil, "%s %08x\n", name, crc32.Checksum(code, crcTable))
}
