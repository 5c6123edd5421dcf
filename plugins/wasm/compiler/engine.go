package compiler

import (
	"context"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// Engine returns the configuration of the engine for a module with the given maximum number
// of memory pages.
func Engine(cache wazero.CompilationCache, pages uint32, interpreter bool) wazero.RuntimeConfig {
	c := wazero.NewRuntimeConfig() // compiles if the processor is supported
	if interpreter {
		c = wazero.NewRuntimeConfigInterpreter()
	}
	// Fuel stops long calls. The engine's own deadline would cost four times as much,
	// depend on the clock, and miss recursion. Debug information is what metering wrote: it
	// drops the sections of the module.
	return c.WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(pages).WithCompilationCache(cache).
		WithDebugInfoEnabled(true).WithCloseOnContextDone(false)
}

// Observed returns a context in which modules are compiled so that calls of the function with
// the given index are reported to l. Compiled code contains which functions are reported.
func Observed(ctx context.Context, function int, l experimental.FunctionListener) context.Context {
	if function < 0 {
		return ctx
	}
	return experimental.WithFunctionListenerFactory(ctx, observer{uint32(function), l})
}

// observer returns the listener for one function.
type observer struct {
	function uint32
	listener experimental.FunctionListener
}

// NewFunctionListener returns nil for all other functions.
func (o observer) NewFunctionListener(f api.FunctionDefinition) experimental.FunctionListener {
	if f.Index() != o.function {
		return nil
	}
	return o.listener
}

// silent is a listener for processes that only compile.
type silent struct{}

func (silent) Before(context.Context, api.Module, api.FunctionDefinition, []uint64, experimental.StackIterator) {
}
func (silent) After(context.Context, api.Module, api.FunctionDefinition, []uint64) {}
func (silent) Abort(context.Context, api.Module, api.FunctionDefinition, error)    {}
