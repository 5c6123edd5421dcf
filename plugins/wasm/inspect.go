package wasm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// ModuleInfo describes the interface of a module, for operators.
type ModuleInfo struct {
	Imports []Function `json:"imports,omitempty"`
	Exports []Function `json:"exports,omitempty"`
	// MemoryMin and MemoryMax bound its memory in bytes; MemoryMax is 0 if the module sets
	// no maximum.
	MemoryMin int64 `json:"memoryMin"`
	MemoryMax int64 `json:"memoryMax,omitempty"`
}

// A Function is imported or exported by a module.
type Function struct {
	Module string `json:"module,omitempty"` // of an import
	Name   string `json:"name"`
	Type   string `json:"type"`
}

// Inspect reads a module without running any of its code.
func Inspect(ctx context.Context, code []byte) (*ModuleInfo, error) {
	config := wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false)
	r := wazero.NewRuntimeWithConfig(ctx, config)
	defer func() { _ = r.Close(ctx) }() // fails only for open files
	m, err := r.CompileModule(ctx, code)
	if err != nil {
		return nil, err
	}
	a := &ModuleInfo{}
	for _, f := range m.ImportedFunctions() {
		module, name, _ := f.Import()
		a.Imports = append(a.Imports, Function{Module: module, Name: name, Type: typeOf(f)})
	}
	for name, f := range m.ExportedFunctions() {
		a.Exports = append(a.Exports, Function{Name: name, Type: typeOf(f)})
	}
	slices.SortFunc(a.Exports, func(a, b Function) int { return strings.Compare(a.Name, b.Name) })
	for _, memory := range m.ExportedMemories() {
		a.MemoryMin = int64(memory.Min()) * pageSize
		if most, bounded := memory.Max(); bounded {
			a.MemoryMax = int64(most) * pageSize
		}
	}
	return a, nil
}

// typeOf returns the type of a function in the notation of the ABI reference.
func typeOf(f api.FunctionDefinition) string {
	return fmt.Sprintf("(%s) -> (%s)", typeList(f.ParamTypes()), typeList(f.ResultTypes()))
}

func typeList(types []api.ValueType) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = api.ValueTypeName(t)
	}
	return strings.Join(names, " ")
}
