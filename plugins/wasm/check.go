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

// pageSize is the size of a memory page in bytes.
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

// export is a function that a module may or must export.
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

// check returns an error that lists everything that prevents a metered module from being a
// policy. It runs before compilation. Signatures matter: the engine would call a function
// with another one and interpret its stack.
func check(m *meter.Module) error {
	return errors.Join(append(checkImports(m), checkExports(m)...)...)
}

func checkImports(m *meter.Module) (errs []error) {
	strangers := map[string][]string{} // names of rejected imports by hint
	for _, im := range m.Imports {
		name := im.Module + "." + im.Name
		want, ok := hostFuncs[name]
		switch {
		case !ok:
			strangers[importHint(im)] = append(strangers[importHint(im)], name)
		case im.Kind != meter.KindFunction:
			errs = append(errs, fmt.Errorf("import %s is a %s, must be a function", name, im.Kind))
		case !sameSignature(im.Signature, want.signature):
			errs = append(errs, fmt.Errorf("import %s has type %s, must be %s", name, im.Signature, want.signature))
		}
	}
	for _, instead := range slices.Sorted(maps.Keys(strangers)) {
		names := guestlog.Clean(strings.Join(strangers[instead], ", "), maxOutputText)
		errs = append(errs, fmt.Errorf("import of %s is not available to policies: %s", names, instead))
	}
	return errs
}

// importHint returns the hint for a rejected import.
func importHint(im meter.Import) string {
	switch {
	case strings.HasPrefix(im.Module, "wasi_") && im.Module != wasiModule:
		return "build for WASI preview 1, or without a system interface"
	case im.Module == wasiModule:
		return "policies have no network, files or processes; in Go, do not import net, os, os/exec, fmt or time, directly or indirectly"
	case im.Module == abi.ImportModule:
		return "this host provides only " + abi.ImportModule + "." + abi.ImportLog + "; use a newer version of cede"
	}
	return "hosts provide only " + abi.ImportModule + "." + abi.ImportLog + " and ten functions of " + wasiModule
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
			errs = append(errs, fmt.Errorf("export %s is a %s, must be a function %s", want.name, got.Kind, want.signature))
		case !sameSignature(got.Signature, want.signature):
			errs = append(errs, fmt.Errorf("export %s has type %s, must be %s", want.name, got.Signature, want.signature))
		}
	}
	if memory, ok := m.Export(abi.ExportMemory); !ok {
		missing = append(missing, "the memory as "+abi.ExportMemory)
	} else if memory.Kind != meter.KindMemory {
		errs = append(errs, fmt.Errorf("export %s is a %s, must be the memory", abi.ExportMemory, memory.Kind))
	}
	if len(missing) > 0 {
		errs = append(errs, fmt.Errorf("missing exports: %s; use one of the SDKs, or see sdk/ABI.md", strings.Join(missing, ", ")))
	}
	return errs
}

// checkHooks compares the declared hooks with the exports of the module.
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
		errs = append(errs, fmt.Errorf("declares %s but does not export it", strings.Join(missing, ", ")))
	}
	if unknown := d.Hooks >> (abi.OpPreemptBindings - abi.OpPriorityDelta + 1); unknown != 0 {
		errs = append(errs, fmt.Errorf("declares hooks that version %d.%d of the ABI does not define (%#x)", abi.Major, abi.Minor, d.Hooks))
	}
	if unknown := d.Info.Columns &^ knownColumns; unknown != 0 {
		errs = append(errs, fmt.Errorf("requests columns that version %d.%d of the ABI does not define (%#x)", abi.Major, abi.Minor, uint64(unknown)))
	}
	return errors.Join(errs...)
}

// knownColumns are the optional columns of this ABI version.
const knownColumns = sdk.LookAheadColumns<<1 - 1

// hookBit returns the bit of a hook in a description.
func hookBit(op abi.Op) uint32 { return 1 << (op - abi.OpPriorityDelta) }

// hintRebuild is the hint for faults that cannot occur with the current SDKs.
const hintRebuild = "build it again with the SDK of this version"

// pageLimit returns the maximum number of memory pages of an instance.
func pageLimit(bytes int64) uint32 { return uint32(min(max(bytes/pageSize, 1), 1<<16)) }

// formatBytes formats an amount of memory.
func formatBytes(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%.4g MiB", float64(bytes)/(1<<20))
}
