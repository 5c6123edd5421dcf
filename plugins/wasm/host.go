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
	// not stored. It contains native code, so no other user may write there. Entries are
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
	// Compiler compiles modules in other processes, within a budget. It requires CacheDir.
	// Default: modules are compiled in this process, without a budget.
	Compiler *compiler.Compiler
	// CompilationWorkers is the number of goroutines that compile one module. Default: one
	// per processor, at most four.
	CompilationWorkers int
}

// A Host loads modules, which share a cache of compiled code.
type Host struct {
	options Options
	cache   wazero.CompilationCache
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
	h := &Host{options: o, log: o.Log, cache: wazero.NewCompilationCache()}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if o.CacheDir == "" {
		return h, nil
	}
	if err := ensurePrivate(o.CacheDir); err != nil {
		return nil, fmt.Errorf("cache of compiled policies: %w", err)
	}
	cache, err := wazero.NewCompilationCacheWithDir(o.CacheDir)
	if err != nil {
		return nil, fmt.Errorf("cache of compiled policies: %s: %w", o.CacheDir, err)
	}
	h.cache = cache
	return h, nil
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
func (h *Host) Close() error { return h.cache.Close(context.Background()) }
