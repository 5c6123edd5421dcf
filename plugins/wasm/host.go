package wasm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/tetratelabs/wazero"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/wasm/compiler"
	"github.com/cede-scheduler/cede/sdk/abi"
)

// Options configure a host. The zero value is safe for untrusted modules.
type Options struct {
	// CacheDir stores compiled modules across runs of the program. If it is empty, they are
	// in a temporary directory until the host is closed. It contains native code, so no other
	// user may write there. Entries are
	// keyed by the hash of the metered module, the engine version and the processor
	// features, so another version never reads them. A file that does not match its recorded
	// checksum is replaced.
	CacheDir string
	// Limits apply to calls if Load specifies none.
	Limits policy.Limits
	// Interpreter runs modules without compiling them, about twenty times slower: for
	// tests, and for processors that the compiler does not support.
	Interpreter bool
	// Log receives the output of guests. Default: discard.
	Log *slog.Logger
	// Budget bounds the compilation of one module, in a process of its own.
	Budget compiler.Budget
	// CompilationWorkers is the number of goroutines that compile one module. Default: one
	// per processor, at most four.
	CompilationWorkers int
}

// A Host loads modules, which share a cache of compiled code.
type Host struct {
	options   Options
	compiler  *compiler.Compiler
	temporary string // directory of compiled modules that Close removes; empty if CacheDir is set
	cache     wazero.CompilationCache
	// compiling serializes compilation and release of modules. Engines share compiled code;
	// if two compile the same code concurrently, one of them can end up using code that the
	// other has released.
	compiling sync.Mutex
	log       *slog.Logger
}

var errBigEndian = errors.New("WebAssembly policies require a little-endian machine; run the policy as a process")

// NewHost returns a host. It starts no goroutine.
func NewHost(o Options) (*Host, error) {
	if !abi.LittleEndian() {
		return nil, errBigEndian
	}
	o.Limits = o.Limits.WithDefaults(policy.DefaultLimits)
	if o.CompilationWorkers <= 0 {
		o.CompilationWorkers = min(runtime.GOMAXPROCS(0), 4)
	}
	h := &Host{options: o, log: o.Log, compiler: compiler.New(o.Budget)}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if o.Interpreter {
		h.cache = wazero.NewCompilationCache()
		return h, nil
	}
	if err := h.openCache(); err != nil {
		return nil, errors.Join(err, h.removeTemporary())
	}
	return h, nil
}

// openCache opens the directory of compiled modules, or a temporary one.
func (h *Host) openCache() (err error) {
	dir := &h.options.CacheDir
	if *dir == "" {
		if *dir, err = os.MkdirTemp("", "cede-compiled-"); err != nil {
			return fmt.Errorf("directory of compiled policies: %w; set TMPDIR to a writable one", err)
		}
		h.temporary = *dir
	}
	if err := ensurePrivate(*dir); err != nil {
		return fmt.Errorf("cache of compiled policies: %w", err)
	}
	if h.cache, err = wazero.NewCompilationCacheWithDir(*dir); err != nil {
		return fmt.Errorf("cache of compiled policies: %s: %w", *dir, err)
	}
	return nil
}

// removeTemporary removes the temporary directory of compiled modules.
func (h *Host) removeTemporary() error {
	if h.temporary == "" {
		return nil
	}
	return os.RemoveAll(h.temporary)
}

// ensurePrivate creates a directory that no other user can write to, or returns an error.
// Its files are executed.
func ensurePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	at, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !at.IsDir() {
		return fmt.Errorf("%s is not a directory; configure another one", dir)
	}
	const othersWrite = 0o022
	if at.Mode().Perm()&othersWrite != 0 {
		return fmt.Errorf("%s is writable by other users, and its files are executed; run chmod go-w %s", dir, filepath.Clean(dir))
	}
	return nil
}

// Close releases the shared cache. All modules and instances must be closed before.
func (h *Host) Close() error {
	return errors.Join(h.cache.Close(context.Background()), h.removeTemporary())
}
