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
	"github.com/tetratelabs/wazero/api"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/sdk/abi"
)

// Options say how modules are run. The zero value is fit for modules of strangers.
type Options struct {
	// CacheDir keeps compiled modules between runs of the program; empty: nothing
	// is kept. It holds native code: nobody else may write there. An entry is
	// found by the hash of the metered module, under the engine's version and the
	// processor's features, so no other version of the meter or the engine reads it.
	CacheDir string
	// Limits of calls, where Load is given none of its own.
	Limits policy.Limits
	// Interpreter runs modules without compiling them, some twenty times slower:
	// for tests, and for machines that the compiler does not know.
	Interpreter bool
	// Log takes what guests say; nil: nobody listens.
	Log *slog.Logger
	// CompilationWorkers is how many goroutines compile one module; default: one
	// for each processor, at most four.
	CompilationWorkers int
}

// Host loads modules. What they share is a cache of compiled code.
type Host struct {
	options Options
	cache   wazero.CompilationCache
	// compiling keeps modules from being compiled and freed side by side: engines
	// share what they compiled, and two that compile the same code at once end
	// with one of them pointing to what the other has freed.
	compiling sync.Mutex
	log       *slog.Logger
}

var errBigEndian = errors.New("WebAssembly policies need a little-endian machine, and this is none; run the policy as a process")

// NewHost makes a host. It starts nothing.
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

// ensurePrivate makes sure of a folder that nobody else can write to: what lies there
// is executed.
func ensurePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	at, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !at.IsDir() {
		return fmt.Errorf("%s is no folder; name another", dir)
	}
	const othersWrite = 0o022
	if at.Mode().Perm()&othersWrite != 0 {
		return fmt.Errorf("%s can be written by others, and what lies there is executed; run chmod go-w %s", dir, filepath.Clean(dir))
	}
	return nil
}

// clearCache empties the folder of compiled modules, in which something is
// damaged, and is whether all went. The folders in it stay: the engine does not
// make them twice.
func (h *Host) clearCache() bool {
	h.log.Warn("the cache of compiled policies is damaged: it is written anew", "folder", h.options.CacheDir)
	files, err := filepath.Glob(filepath.Join(h.options.CacheDir, "wazero-*", "*"))
	for _, file := range files {
		err = errors.Join(err, os.Remove(file))
	}
	return err == nil
}

// Close frees what modules share. It must come after every module and instance
// was closed.
func (h *Host) Close() error { return h.cache.Close(context.Background()) }

// config is how the engine runs a module.
func (h *Host) config(pages uint32) wazero.RuntimeConfig {
	c := wazero.NewRuntimeConfig() // compiles where it can
	if h.options.Interpreter {
		c = wazero.NewRuntimeConfigInterpreter()
	}
	// Fuel stops what runs too long. The engine's own way would cost four times
	// as much, depend on the clock, and miss recursion.
	return c.WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(pages).WithCompilationCache(h.cache).
		WithDebugInfoEnabled(false).WithCloseOnContextDone(false)
}
