package wasm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/plugins/internal/guestlog"
	"github.com/cede-scheduler/cede/plugins/wasm/meter"
	"github.com/cede-scheduler/cede/sdk/abi"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// pageSize is the size of a page of a module's memory.
const pageSize = 64 << 10

var (
	i32  = meter.I32
	i64  = meter.I64
	call = signature([]meter.ValueType{i32, i32}, i32) // of describe, configure and the hooks
)

func signature(params []meter.ValueType, results ...meter.ValueType) meter.Signature {
	return meter.Signature{Params: params, Results: results}
}

func sameSignature(a, b meter.Signature) bool {
	return slices.Equal(a.Params, b.Params) && slices.Equal(a.Results, b.Results)
}

// export is a function that a module may or must have.
type export struct {
	name      string
	signature meter.Signature
	required  bool
}

// exports are the functions that the host calls.
var exports = []export{
	{abi.ExportVersion, signature(nil, i32), true},
	{abi.ExportAlloc, signature([]meter.ValueType{i32}, i32), true},
	{abi.Exports[abi.OpDescribe], call, true},
	{abi.Exports[abi.OpConfigure], call, false},
	{abi.Exports[abi.OpPriorityDelta], call, false},
	{abi.Exports[abi.OpScoreVictims], call, false},
	{abi.Exports[abi.OpSelectVictims], call, false},
	{abi.Exports[abi.OpScoreOptions], call, false},
	{abi.Exports[abi.OpPreemptBindings], call, false},
	{abi.ExportInitialize, signature(nil), false},
}

// check finds everything that keeps a metered module from being a policy, before
// it is compiled. Signatures matter: the engine would call a function of another
// one and make a number of whatever lies on its stack.
func check(m *meter.Module) error {
	return errors.Join(append(checkImports(m), checkExports(m)...)...)
}

func checkImports(m *meter.Module) (errs []error) {
	strangers := map[string][]string{} // by what to do about them
	for _, im := range m.Imports {
		name := im.Module + "." + im.Name
		want, ok := hostFuncs[name]
		switch {
		case !ok:
			strangers[importHint(im)] = append(strangers[importHint(im)], name)
		case im.Kind != meter.KindFunction:
			errs = append(errs, fmt.Errorf("it imports %s as a %s, and it is a function", name, im.Kind))
		case !sameSignature(im.Signature, want.signature):
			errs = append(errs, fmt.Errorf("it imports %s as %s, and it is %s", name, im.Signature, want.signature))
		}
	}
	for _, instead := range slices.Sorted(maps.Keys(strangers)) {
		names := guestlog.Clean(strings.Join(strangers[instead], ", "), maxOutputText)
		errs = append(errs, fmt.Errorf("it imports %s, which policies cannot have: %s", names, instead))
	}
	return errs
}

// importHint says what to do about an import that is refused.
func importHint(im meter.Import) string {
	switch {
	case strings.HasPrefix(im.Module, "wasi_") && im.Module != wasiModule:
		return "build for WASI preview 1, or for no system at all"
	case im.Module == wasiModule && strings.HasPrefix(im.Name, "sock_"):
		return "a policy has no network; all it decides by is in its frame"
	case im.Module == wasiModule:
		return "a policy has no files; in Go, import neither os nor fmt nor time, nor what does"
	case im.Module == abi.ImportModule:
		return "this host has " + abi.ImportModule + "." + abi.ImportLog + " alone; use a newer one"
	}
	return "hosts offer " + abi.ImportModule + "." + abi.ImportLog + " and ten functions of " + wasiModule + ", and no more"
}

func checkExports(m *meter.Module) (errs []error) {
	var missing []string
	for _, want := range exports {
		got, ok := m.Export(want.name)
		switch {
		case !ok && want.required:
			missing = append(missing, want.name+" "+want.signature.String())
		case !ok:
		case got.Kind != meter.KindFunction:
			errs = append(errs, fmt.Errorf("its export %s is a %s; it must be a function %s", want.name, got.Kind, want.signature))
		case !sameSignature(got.Signature, want.signature):
			errs = append(errs, fmt.Errorf("its export %s is %s; it must be %s", want.name, got.Signature, want.signature))
		}
	}
	if memory, ok := m.Export(abi.ExportMemory); !ok {
		missing = append(missing, "the memory as "+abi.ExportMemory)
	} else if memory.Kind != meter.KindMemory {
		errs = append(errs, fmt.Errorf("its export %s is a %s; it must be the memory", abi.ExportMemory, memory.Kind))
	}
	if len(missing) > 0 {
		errs = append(errs, fmt.Errorf("it does not export %s; use one of the SDKs, or sdk/ABI.md", strings.Join(missing, ", ")))
	}
	return errs
}

// checkHooks compares what a policy says it has with what its module exports.
func (i *instance) checkHooks(d *abi.Description) error {
	var missing []string
	for op := abi.OpPriorityDelta; op <= abi.OpPreemptBindings; op++ {
		if d.Hooks&hookBit(op) != 0 && i.ops[op] == nil {
			missing = append(missing, abi.Exports[op])
		}
	}
	if d.Configurable && i.ops[abi.OpConfigure] == nil {
		missing = append(missing, abi.Exports[abi.OpConfigure])
	}
	var errs []error
	if len(missing) > 0 {
		errs = append(errs, fmt.Errorf("it says that it has %s and does not export it", strings.Join(missing, ", ")))
	}
	if unknown := d.Hooks >> (abi.OpPreemptBindings - abi.OpPriorityDelta + 1); unknown != 0 {
		errs = append(errs, fmt.Errorf("it says that it has hooks of which version %d.%d of the ABI knows nothing (%#x)", abi.Major, abi.Minor, d.Hooks))
	}
	if unknown := d.Info.Columns &^ knownColumns; unknown != 0 {
		errs = append(errs, fmt.Errorf("it asks for columns of which version %d.%d of the ABI knows nothing (%#x)", abi.Major, abi.Minor, uint64(unknown)))
	}
	return errors.Join(errs...)
}

// knownColumns are the optional columns of this version of the ABI.
const knownColumns = sdk.BudgetColumns<<1 - 1

// hookBit is the bit of a hook in a description.
func hookBit(op abi.Op) uint32 { return 1 << (op - abi.OpPriorityDelta) }

// hintRebuild is the remedy of what no SDK of this version does.
const hintRebuild = "build it again with the SDK of this version"

// pageLimit is how many pages of memory an instance may have.
func pageLimit(bytes int64) uint32 { return uint32(min(max(bytes/pageSize, 1), 1<<16)) }

// formatBytes is an amount of memory for people.
func formatBytes(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%.4g MiB", float64(bytes)/(1<<20))
}
